# lines.gp: a figure of curves; `figure FILE.png lines.gp NAME=VALUE...` of lib.sh calls it with these variables, all texts:
#     out, data, blocks     the picture; the file of series: blocks with two blank lines between, the first line of each
#                           its name in quotes, then x, y, and the least and the most that agree with y; how many there are
#     bands                 the first so many are what a rule allows, as bands: x, least, most (default 0)
#     published             the next so many are the paper's numbers: hollow points, bars from the least to the most (default 0)
#     paired                yes: each in the colour of ours that stands as many places further (default no)
#     note                  a line below the title: what the paper's axes are, where these are others
#     title, xlabel, ylabel
#     logx, logy            the base of a logarithmic axis (default: linear)
#     xformat               of the numbers on the x axis (default: powers on a logarithmic one)
#     xrange, yrange        as "0:100" (default: what the data need)
#     with                  how our series are drawn (default linespoints)
#     marks                 how large the marks of our series are (default 0.5)
#     key                   where the legend stands (default "outside right top")
set encoding utf8
set datafile missing "-"
if (!exists("bands")) bands = "0"
if (!exists("published")) published = "0"
if (!exists("with")) with = "linespoints"
if (!exists("key")) key = "outside right top"
if (!exists("marks")) marks = "0.5"
if (!exists("paired")) paired = "no"
first = int(bands)
papers = first + int(published)
count = int(blocks)

# Okabe and Ito's colours, as in scripts/plot/plot.gp; after eight of them the dashes change, so that more can be told apart.
array palette[8] = [0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9, 0x000000, 0x999999]
array tint[3] = [0xcfdbe8, 0xf0d9b5, 0xcfe5d6]
place(i) = i < papers || paired eq "no" ? i - first : i - papers
colour(i) = palette[place(i) % 8 + 1]
dash(i) = place(i) / 8 % 3 == 0 ? 1 : place(i) / 8 % 3 + 1

set border 3 lc rgb 0x404040 lw 1.2
set tics out nomirror scale 0.6 tc rgb 0x202020
set grid lc rgb 0xd8d8d8 lw 1 lt 1
set samples 400
eval "set key ".key." samplen 2 spacing 1.15 tc rgb 0x202020"
# over the whole width: a title over the curves alone would be cut off beside a wide legend
set label 1 title at screen 0.5, screen 0.95 center noenhanced font ',18'
if (exists("note")) set label 2 note at screen 0.5, screen 0.905 center noenhanced font ',12' tc rgb 0x505050
set tmargin (exists("note") ? 5 : 3.5)
set xlabel xlabel
set ylabel ylabel
if (exists("logx")) eval "set logscale x ".logx
if (exists("logy")) eval "set logscale y ".logy
if (exists("logx")) eval "set format x '".logx."^{%L}'"
if (exists("logy")) eval "set format y '".logy."^{%L}'"
if (exists("xformat")) set format x xformat
if (exists("xrange")) eval "set xrange [".xrange."]"
if (exists("yrange")) eval "set yrange [".yrange."]"

set terminal pngcairo noenhanced size 1200,700 font "Sans,15" linewidth 1.5
if (exists("logx") || exists("logy")) set terminal pngcairo enhanced size 1200,700 font "Sans,15" linewidth 1.5
set output out
ours = with eq "lines" ? "lines lw 2.2" : with." lw 2.2 pt 7 ps ".marks
command = "plot "
if (first > 0) command = command."for [i=0:first-1] data index i using 1:2:3 with filledcurves fc rgb tint[i % 3 + 1] fs transparent solid 0.8 title columnheader(1) noenhanced, "
command = command."for [i=papers:count-1] data index i using 1:2 with ".ours." lc rgb colour(i) dt dash(i) title columnheader(1) noenhanced"
if (papers > first) command = command.", for [i=first:papers-1] data index i using 1:2:3:4 with yerrorbars lw 2 pt 6 ps 2 lc rgb colour(i) title columnheader(1) noenhanced"
eval command
