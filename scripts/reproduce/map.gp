# map.gp: a figure of a table, a cell for each column and line, coloured; `figure FILE.png DATA map.gp NAME=VALUE...` of lib.sh calls it
# with these variables:
#     out, data       the picture; rows, tab-separated: column from 0, line from 0 at the bottom, log10 of what its colour says (nan: grey),
#                     its text, the names of column and line
#     title
#     note            a line below the title
set encoding utf8
set datafile separator "\t"
set border 0
set tics out nomirror scale 0 tc rgb 0x202020
set xtics rotate by 30 right
unset key
stats data using 1:2 nooutput
columns = STATS_max_x + 1
lines = STATS_max_y + 1
set xrange [-0.5:columns-0.5]
set yrange [-0.5:lines-0.5]
set palette defined (-1 '#2166ac', -0.3 '#92c5de', 0 '#f7f7f7', 0.3 '#f4a582', 1 '#b2182b')
set cbrange [-1:1]
set cbtics ("1/10" -1, "1/3" -0.477, "1" 0, "3" 0.477, "10" 1)
set colorbox
set style fill solid noborder
set label 1 title at screen 0.5, screen 0.965 center noenhanced font ',18'
if (exists("note")) set label 2 note at screen 0.5, screen 0.93 center noenhanced font ',11' tc rgb 0x505050
set tmargin 5
set terminal pngcairo noenhanced size 520 + 100 * columns, 220 + 32 * lines font "Sans,12"
set output out
plot data using 1:2:(0.48):(0.46):xtic(5):ytic(6) with boxxyerror lc rgb 0xe8e8e8, \
     data using 1:(valid(3) ? $2 : NaN):(0.48):(0.46):3 with boxxyerror lc palette, \
     data using 1:2:4 with labels font ',11' tc rgb 0x202020
