# bars.gp: a figure of stacked bars; `figure FILE.png DATA bars.gp NAME=VALUE...` of lib.sh calls it with these variables:
#     out, data       the picture; rows of a name in quotes and a number for each part, below a line with the parts' names
#     parts           how many parts there are
#     title, ylabel
#     note            a line below the title
#     yrange          as "0:100" (default: from 0 to what the data need)
set encoding utf8
array palette[8] = [0x0072b2, 0xe69f00, 0xd55e00, 0x009e73, 0xcc79a7, 0x56b4e9, 0x000000, 0x999999]
set border 3 lc rgb 0x404040 lw 1.2
set tics out nomirror scale 0.6 tc rgb 0x202020
set xtics scale 0
set grid ytics lc rgb 0xd8d8d8 lw 1 lt 1
set key outside right top reverse Left invert samplen 1 tc rgb 0x202020
set style data histograms
set style histogram rowstacked
set style fill solid 1.0 noborder
set boxwidth 0.7 relative
set bmargin 4
stats data using 2 every ::1 nooutput
set xrange [-0.6:STATS_records-0.4]
set yrange [0:*]
if (exists("yrange")) eval "set yrange [".yrange."]"
# over the whole width: a title over the curves alone would be cut off beside a wide legend
set label 1 title at screen 0.5, screen 0.95 center noenhanced font ',18'
if (exists("note")) set label 2 note at screen 0.5, screen 0.905 center noenhanced font ',12' tc rgb 0x505050
set tmargin (exists("note") ? 5 : 3.5)
set ylabel ylabel
set terminal pngcairo noenhanced size 1200,700 font "Sans,15" linewidth 1.5
set output out
plot for [c=2:int(parts)+1] data using c:xtic(1) lc rgb palette[c-1] title columnheader(c)
