# plot.gp: the pictures of scripts/plot.sh, which calls
#     gnuplot -e "dir='...'; out='...'; runs=N; name1='...'; ...; steps_max=; loss_max=; time_max=; bar_width=;
#             notes=; quality='accuracy'; scored='1 2 ...'" plot.gp        (quality empty: no picture of it)
# dir/loss-I: step, loss, smoothed loss;  dir/accuracy-I, for the runs I of `scored`: epoch, test accuracy [%] or, where
# quality is 'perplexity', validation perplexity;  dir/time: one row per run, name and
# then milliseconds per step of each phase, their sum, the run's number from 0, with the phases' names in the first line;
# dir/notes: `notes` lines for under the titles of the others.

set encoding utf8
set datafile missing "-"
name(i) = value(sprintf("name%d", i))
file(what, i) = sprintf("%s/%s-%d", dir, what, i)

# Okabe and Ito's colours: told apart with any colour vision and in grey.
array run_colour[8] = [0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9, 0x000000, 0x999999]
colour(i) = run_colour[(i - 1) % 8 + 1]
pale(i) = colour(i) + 0xa8000000
dash(i) = i > 8 ? 2 : 1 # a second round of the colours is dashed
key_where(side) = runs > 6 ? "set key outside right top" : "set key inside right ".side
array phase_colour[8] = [0x0072b2, 0x56b4e9, 0xd55e00, 0xe69f00, 0xcc79a7, 0x009e73, 0xf0e442, 0x999999]

set border 3 lc rgb 0x404040 lw 1.2
set tics out nomirror scale 0.6 tc rgb 0x202020
set grid ytics lc rgb 0xd8d8d8 lw 1 lt 1
set key samplen 2 spacing 1.15 tc rgb 0x202020
set style fill solid 1.0 noborder

note = notes > 0 ? system("cat ".dir."/notes") : ""
head(title) = notes == 0 ? sprintf("set title '%s' font ',19'; ", title) : sprintf( \
    "set title '%s' font ',19' offset 0,%g; set label 1 note at graph 0.5, graph 1 offset 0,%g center font ',12' \
    tc rgb 0x404040; set tmargin %g; ", title, 0.8 * notes, 0.75 * notes + 0.1, 2.6 + notes)
loss_panel = head('Training loss')."\
    set xlabel 'step'; set ylabel 'cross-entropy [nats]'; \
    set xrange [0:steps_max]; set yrange [0:loss_max]; eval key_where('top'); \
    plot for [i=1:runs] file('loss', i) using 1:2 with lines lw 0.6 lc rgb pale(i) notitle, \
         for [i=1:runs] file('loss', i) using 1:3 with lines lw 2.6 dt dash(i) lc rgb colour(i) title name(i); "
accuracy_panel = head('Test accuracy')."\
    set xlabel 'epoch'; set ylabel 'top-1 [%]'; \
    set xrange [0:*]; set yrange [0:100]; eval key_where('bottom'); \
    plot for [s in scored] file('accuracy', s + 0) using 1:2 with linespoints lw 2.6 dt dash(s + 0) pt 7 ps 0.8 \
         lc rgb colour(s + 0) title name(s + 0); "
perplexity_panel = head('Validation perplexity')."\
    set xlabel 'epoch'; set ylabel 'perplexity'; \
    set xrange [0:*]; set yrange [*:*]; eval key_where('top'); \
    plot for [s in scored] file('accuracy', s + 0) using 1:2 with linespoints lw 2.6 dt dash(s + 0) pt 7 ps 0.8 \
         lc rgb colour(s + 0) title name(s + 0); "
time_panel = "\
    unset label 1; set title 'Time per step' font ',19' offset 0,0; set tmargin; unset xlabel; \
    set ylabel 'mean over ranks [ms]'; \
    set xrange [-0.6:runs-0.4]; set yrange [0:time_max]; set key outside right top reverse Left invert samplen 1; \
    set style data histograms; set style histogram rowstacked; set boxwidth 0.6 relative; \
    set xtics scale 0; set bmargin 4.8; \
    plot for [c=2:9] dir.'/time' using c:xtic(1) lc rgb phase_colour[c-1] title columnheader(c), \
         dir.'/time' using 11:10:(sprintf('%.1f', $10)) with labels offset 0,0.7 tc rgb 0x202020 notitle; "

set terminal pngcairo noenhanced size (runs > 6 ? 1400 : 1200),750 font "Sans,16" linewidth 1.5
set output out."/loss.png"
eval loss_panel
if (quality ne '') {
    set output out."/".quality.".png"
    if (quality eq 'perplexity') { eval perplexity_panel } else { eval accuracy_panel }
}
if (bar_width < 160) { bar_width = 160 }
wide = 420 + bar_width * runs
set terminal pngcairo noenhanced size (wide < 900 ? 900 : wide),750 font "Sans,16" linewidth 1.5
set output out."/time.png"
eval time_panel
