# plot.gp: the pictures of scripts/plot.sh, which writes and names a file that sets
#
#   dir, out, ending, terminal, size_of(w, h)    where the tables are, where to the pictures go, how they are drawn
#   mark_scale, big, small                       size of this terminal's marks; fonts of titles and of what stands below them
#   curves, name1 ..., final1 ..., members1 ...  the curves: names, last scores as text, runs in each
#   banded                                       1: some have several runs
#   name_width, final_width                      letters of the longest
#   about, about_points, about_bars              what is true of all runs, below the titles
#   part                                         "1 of 160 epochs", where that is so of all
#   note, notes                                  what of their schedules runs did not come to, in so many lines
#   scored                                       1: there are scores to draw
#   quality                                      'accuracy' [%], 'perplexity' or 'wer' [%]
#   against                                      some of "steps bytes time"
#   loss_low, loss_high, score_low, score_high   ranges of y; steps_high, epochs_high, bytes_low, score_bytes_low,
#                                                bytes_high, seconds_high of x
#   points, after, only_start                    1: no curve has more than one score after the start; how far that was, as text;
#                                                1: none has any
#   bar_high, bar_width                          of time: milliseconds, pixels
#
# and calls it as `gnuplot SETTINGS plot.gp`. Tables: dir/loss-I and dir/score-I as merge.awk makes them; dir/time: a row per curve:
# name, milliseconds a step of each phase, their sum, the curve's number from 0, least and greatest sum.

set encoding utf8
set datafile missing "-"
name(i) = value(sprintf("name%d", i))
final(i) = value(sprintf("final%d", i))
members(i) = value(sprintf("members%d", i))
file(what, i) = sprintf("%s/%s-%d", dir, what, i)

# Thirteen curves and more are told apart three times over: Okabe and Ito's colours (any colour vision, and grey), dashes, marks.
# The cycles have no common divisor, so that curves of one colour differ in dash and mark, and all three agree after 360 curves.
array run_colour[8] = [0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9, 0x000000, 0x999999]
array run_mark[9] = [7, 4, 9, 12, 5, 10, 13, 6, 11]
set dashtype 2 (14, 5)
set dashtype 3 (4, 3)
set dashtype 4 (14, 4, 3, 4)
set dashtype 5 (20, 4, 3, 4, 3, 4)
colour(i) = run_colour[(i - 1) % 8 + 1]
mark(i) = run_mark[(i - 1) % 9 + 1]
dash(i) = (i - 1) % 5 + 1
pale(i) = colour(i) + 0xb8000000
raw(i) = curves <= 3 && members(i) == 1 # every step's loss behind the smoothed one
width = curves > 6 ? 2.0 : 2.6
array phase_colour[8] = [0x0072b2, 0x56b4e9, 0xd55e00, 0xe69f00, 0xcc79a7, 0x009e73, 0xf0e442, 0x999999]

set border 3 lc rgb 0x404040 lw 1.2
set tics out nomirror scale 0.6 tc rgb 0x202020
set grid ytics lc rgb 0xd8d8d8 lw 1 lt 1
set style fill solid 1.0 noborder
set tmargin at screen 0.85 - 0.03 * notes

# A legend stands inside where it is small and nothing fills the picture; else beside it, in a picture that is wider by it.
beside = curves > 6 || name_width > 30 || banded
key_where(side) = beside ? "set key outside right top" : "set key inside right ".side
begin_picture(what, w) = sprintf("set terminal %s %s; set output out.'/%s.'.ending", terminal, size_of(w, 750), what)
picture_width(letters) = beside ? 1060 + 10.5 * letters : 1200
# Over the whole picture: above the curves alone a long one would be cut off beside a wide legend.
begin(text, facts) = sprintf("set label 1 '%s' at screen 0.5, screen 0.955 center font big; \
    set label 2 '%s' at screen 0.5, screen 0.895 center font small tc rgb 0x505050; \
    set label 3 note at screen 0.5, screen 0.862 center font small tc rgb 0x505050", part eq '' ? text : text.' ('.part.')', facts)

# The axis below: how it is called, and which columns of the tables hold positions and marks.
x_column(axis) = axis eq 'bytes' ? 2 : axis eq 'time' ? 3 : 1
mark_column(axis) = axis eq 'bytes' ? 8 : 7
hours = seconds_high > 7200 ? 3600. : seconds_high > 180 ? 60. : 1.
x(axis, v) = axis eq 'bytes' ? (v > 0 ? v : NaN) : axis eq 'time' ? v / hours : v
suffix(axis) = axis eq 'steps' ? '' : '-'.axis
logarithmic(least) = bytes_high > 8 * least
axis_below(axis, what, most, least) = axis eq 'bytes' \
    ? "set xlabel 'bytes sent by a rank'; set format x '%.0s %cB'; ".(logarithmic(least) ? "set logscale x; " : "set format x '%.3s %cB'; ").\
      (logarithmic(least) && bytes_high < 200 * least ? more_tics : '').\
      sprintf("set xrange [%g:%g]", logarithmic(least) ? least / 1.3 : 0, bytes_high * (logarithmic(least) ? 1.3 : 1.03)) \
    : axis eq 'time' \
    ? sprintf("set xlabel 'training time [%s]'; set xrange [0:%g]", hours == 3600 ? 'h' : hours == 60 ? 'min' : 's', seconds_high / hours) \
    : sprintf("set xlabel '%s'; set xrange [0:%g]", what, most)
# Two decades are too few for a number at each of them alone.
more_tics = "do for [k=0:15] { do for [m in '2 5'] { set xtics add (gprintf('%.0s %cB', m * 10.**k) m * 10.**k) } }; "
reset_axis = "unset logscale x; set format x '%g'; unset xtics; set xtics out nomirror scale 0.6 tc rgb 0x202020"

curve_plots = "\
    plot for [i=1:curves] file(table, i) using (x(axis, column(xc))):5:6 with filledcurves fc rgb pale(i) fs solid noborder notitle, \
         for [i=1:curves] file(table, i) using (x(axis, column(xc))):(raw(i) ? $9 : NaN) with lines lw 0.6 lc rgb pale(i) notitle, \
         for [i=1:curves] file(table, i) using (x(axis, column(xc))):4 with lines lw width dt dash(i) lc rgb colour(i) notitle, \
         for [i=1:curves] file(table, i) using (x(axis, column(xc))):(column(mark_column(axis))) with points pt mark(i) ps 1.3 * mark_scale lw 1.6 lc rgb colour(i) notitle, \
         for [i=1:curves] NaN with linespoints lw width dt dash(i) pt mark(i) ps 1.3 * mark_scale lc rgb colour(i) title label_of(i); "

loss_panel = "\
    eval begin('Training loss', about); set ylabel 'cross-entropy [nats]'; set yrange [loss_low:loss_high]; \
    eval axis_below(axis, 'step', steps_high, bytes_low); eval key_where('top'); \
    table = 'loss'; xc = x_column(axis); label_of(i) = name(i); \
    eval curve_plots; eval reset_axis; "
score_text = quality eq 'accuracy' ? 'Test accuracy' : quality eq 'wer' ? 'Test word error rate' : 'Validation perplexity'
score_unit = quality eq 'accuracy' ? 'top-1 [%]' : quality eq 'wer' ? 'wrong words [%]' : 'perplexity'
score_panel = "\
    eval begin(score_text, about); set ylabel score_unit; set yrange [score_low:score_high]; \
    eval axis_below(axis, 'epoch', epochs_high, score_bytes_low); eval key_where(quality eq 'accuracy' ? 'bottom' : 'top'); \
    table = 'score'; xc = x_column(axis); label_of(i) = name(i).'   '.final(i); \
    eval curve_plots; eval reset_axis; "
# One score each: a row for each curve, in place of curves.
points_panel = "\
    eval begin(score_text.' '.after, about_points); set xlabel score_unit; unset ylabel; unset key; \
    set xrange [score_low:score_high + 0.018 * final_width * (score_high - score_low)]; set yrange [curves + 0.6:0.4]; \
    unset ytics; set ytics nomirror scale 0 tc rgb 0x202020 (name(1) 1); set for [i=2:curves] ytics add (name(i) i); \
    set grid xtics; \
    plot for [i=1:curves] file('score', i) using (shown($1) ? $5 : NaN):(i):($6 - $5):(0) with vectors nohead lw 1.6 lc rgb colour(i) notitle, \
         for [i=1:curves] file('score', i) using (shown($1) ? $4 : NaN):(i) with points pt mark(i) ps 1.6 * mark_scale lw 1.6 lc rgb colour(i) notitle, \
         for [i=1:curves] file('score', i) using (shown($1) ? $6 : NaN):(i):(final(i)) with labels left offset 1.2,0 tc rgb 0x202020 notitle; \
    unset ytics; set ytics out nomirror scale 0.6 tc rgb 0x202020; set grid noxtics; "
shown(epoch) = epoch > 0 || only_start
time_panel = "\
    eval begin('Time per step', about_bars); unset xlabel; set ylabel 'mean over ranks [ms]'; \
    set xrange [-0.6:curves-0.4]; set yrange [0:bar_high]; set key outside right top reverse Left invert samplen 1; \
    set style data histograms; set style histogram rowstacked; set boxwidth 0.6 relative; \
    set xtics scale 0; set bmargin 4.8; \
    plot for [c=2:9] dir.'/time' using c:xtic(1) lc rgb phase_colour[c-1] title columnheader(c), \
         dir.'/time' using 11:12:(0):($13 - $12) with vectors heads size graph 0.006,90 lw 1.6 lc rgb 0x202020 notitle, \
         dir.'/time' using 11:14:(sprintf('%.1f', $10)) with labels offset 0,0.7 tc rgb 0x202020 notitle; "

set key samplen 3.5 spacing 1.15 tc rgb 0x202020 noenhanced
do for [axis in against] {
    eval begin_picture('loss'.suffix(axis), picture_width(name_width))
    eval loss_panel
    if (scored) {
        eval begin_picture(quality.suffix(axis), picture_width(name_width + 3 + final_width))
        if (points && axis eq 'steps') { eval points_panel } else { eval score_panel }
    }
}
wide = 420 + bar_width * curves
eval begin_picture('time', wide < (banded ? 1150 : 900) ? (banded ? 1150 : 900) : wide)
eval time_panel
