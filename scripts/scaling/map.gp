# map.gp: the map of winners as pictures; scaling.sh calls it with these variables, all texts:
#     out, data     the picture; lines "panel x y code kind": panel = 3 model + density from 0, x = log2 P, y = network from 0,
#                   code the winner (or with shades=yes how far ahead), kind 1 simulated, 0 model
#     names         the winners with blanks between, code 0 first
#     models, densities, networks   their names with blanks between
#     title
#     shades        yes: code is a number, shown in shades from 1 to 3 (default no)
set encoding utf8
if (!exists("shades")) shades = "no"
array palette[12] = [0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9, 0x000000, 0x999999, 0xf0e442, 0x7f3f00, 0x3f007f, 0x7f7f00]
colour(code) = palette[int(code) % 12 + 1]
set terminal pngcairo noenhanced size 1500,1150 font "Sans,13"
set output out
set border 3 lc rgb 0x808080
set tics out nomirror scale 0.4 tc rgb 0x202020
set xrange [1.4:10.6]
set yrange [-0.6:words(networks)-0.4]
set xtics ("4" 2, "8" 3, "16" 4, "32" 5, "64" 6, "128" 7, "256" 8, "512" 9, "1024" 10) font ",10"
unset key
rows = words(models)
columns = words(densities)
set multiplot title title font ',18'
left = 0.06; right = 0.99; top = 0.92; bottom = 0.12
w = (right - left) / columns
h = (top - bottom) / rows
set style fill solid noborder
if (shades eq "yes") {
    set palette defined (0.5 '#b2182b', 1 '#f7f7f7', 2 '#67a9cf', 3 '#2166ac')
    set cbrange [0.5:3]
    unset colorbox
}
do for [row=0:rows-1] {
    do for [column=0:columns-1] {
        set lmargin at screen left + column * w + 0.02
        set rmargin at screen left + (column + 1) * w - 0.015
        set tmargin at screen top - row * h - 0.035
        set bmargin at screen top - (row + 1) * h + 0.03
        set title word(models, row + 1).", density ".word(densities, column + 1) font ',13' offset 0,-0.7
        unset ytics
        if (column == 0) {
            set ytics () font ",10"
            do for [i=1:words(networks)] { set ytics add (word(networks, i) i - 1) }
        }
        if (row == rows - 1) { set xlabel "P [ranks]" font ',11' offset 0,0.6 } else { unset xlabel }
        panel = 3 * row + column
        if (shades eq "yes") {
            plot data using ($1 == panel ? $2 : NaN):3:(0.46):(0.42):4 with boxxyerror lc palette, \
                 data using ($1 == panel ? $2 : NaN):3:(sprintf("%.1f", $4)) with labels font ',9' tc rgb 0x202020
        } else {
            plot data using ($1 == panel ? $2 : NaN):3:(0.46):(0.42):(colour($4)) with boxxyerror lc rgb variable, \
                 data using ($1 == panel && $5 == 0 ? $2 : NaN):3 with points pt 7 ps 0.7 lc rgb 0xffffff
        }
    }
}
# the legend
unset xlabel; unset title; unset tics; unset border
set lmargin at screen left; set rmargin at screen right; set tmargin at screen 0.06; set bmargin at screen 0.0
set xrange [0:1]; set yrange [0:1]
if (shades eq "yes") {
    set label 1 "number: seconds of the best published algorithm (coo32) over those of the best of ours; below 1 ours is behind" at 0.02, 0.5 font ',13'
} else {
    do for [i=1:words(names)] {
        set object i rectangle from 0.02 + 0.13 * (i - 1), 0.3 to 0.04 + 0.13 * (i - 1), 0.8 fc rgb colour(i - 1) fs solid noborder
        set label i word(names, i) at 0.045 + 0.13 * (i - 1), 0.55 font ',13'
    }
    set label 99 "white dot: by the cost model alone" at 0.75, 0.55 font ',13'
}
plot NaN notitle
unset multiplot
