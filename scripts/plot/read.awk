# read.awk: one log (docs/run-jsonl.md) as tables, for plot.sh and sweep.sh, which call it by read_log (lib/common.sh):
#
#     awk -F TAB -v to=PREFIX -v keys=LIST -v dense=" NAME NAME ... " -f read.awk OPTIONS ROWS
#
# dense: algorithms without a density. OPTIONS: the config of the last header, a key and a value a line. ROWS: of header, step, eval and summary the values of these
# keys, "-" where there is none; both as `sparsetrain rows` prints them.
#
#   PREFIX.loss     a row per step: step, bytes sent per rank so far, seconds of training so far, loss, smoothed loss (the
#                   mean over a window of a fiftieth of the run around the step)
#   PREFIX.score    a row per evaluation: epoch, bytes, seconds, test accuracy [%] or, of a text, validation perplexity, of speech word errors [%]
#   PREFIX.time     milliseconds a step of compute, io, select, pack, communicate, merge, update, other, and their sum
#   PREFIX.config   KEY=VALUE: what makes this run another one than the next, but for the seed
#   PREFIX.facts    KEY=VALUE: what it is called, how far it got, what it came to
#
# A run that was resumed or killed is read as far as it got. Exit status 1: there is no step in it.
#
# A log in which steps were left out (those in results/measured keep every tenth) has bytes and seconds all the same: each row
# stands for the steps since the row before it, or since an evaluation between the two, where densities change; and where a sum is
# known, from the evaluations or, of older logs, of the steps that a summary counts, the curve is stretched to it (or, where the
# rows that are left miss it by far, as those between two averages of fedavg, it is a straight line); seconds are exact at every
# evaluation and even between two of them.

function string(key) { return $column[key] == "-" ? "" : $column[key] }
function number(key) { return $column[key] ~ /^-?[0-9]/ ? $column[key] + 0 : "-" }

# Of pairs (x, y), x rising: y at x, on a straight line between two of them; behind the last one as steep as before it.
function between(x, count, xs, ys,   i) {
    if (!count) return 0
    for (i = 1; i < count && xs[i] < x; i++) { }
    if (i == 1) return x < xs[1] ? ys[1] * x / xs[1] : count == 1 ? ys[1] * x / xs[1] : ys[1]
    return ys[i - 1] + (ys[i] - ys[i - 1]) * (x - xs[i - 1]) / (xs[i] - xs[i - 1])
}
# known(STEP, SECONDS): so long this process had trained by then; a continuation begins where the one before it was
function known(step, seconds) {
    if (anchors && step <= anchor_step[anchors]) return
    anchor_step[++anchors] = step
    anchor[anchors] = base + seconds
}
# said(STEP, BYTES): so many had been sent by then;  by_rows(STEP): the same as the rows have it, from the last such number on
function said(s, bytes) {
    if (s <= 0 || (sums && s <= sum_step[sums])) return
    sum_step[++sums] = s
    sum_of[sums] = bytes
}
function by_rows(s) { return (sums ? sum_of[sums] - between(sum_step[sums], n, step, bytes) : 0) + between(s, n, step, bytes) }

BEGIN {
    phases = split("compute io select pack communicate merge update other", phase, " ")
    # Only how a run is watched, how far it goes now or where its files go (RULE_LOCAL in cli/options/options_table.c), and the seed.
    split("out resume resume-residuals stop-at target dry-run checkpoint-every keep keep-every check-replicas samples audit log-slices log-xi record record-what record-every trace mllog log-tensorboard progress quiet seed", names, " ")
    for (i in names) left_out[names[i]] = 1
    for (i = split(keys, names, ","); i > 0; i--) column[names[i]] = i
}
FILENAME == ARGV[1] {
    order[++options] = $1
    option[$1] = $2
    next
}
$1 == "header" {
    ranks = number("ranks"); nodes = number("nodes"); device = string("device"); crc = string("data_crc32")
    images = number("train_images"); commit = string("versions.commit"); length_of_run = number("steps")
    text = number("valid_words") != "-"
    settled = number("density_from"); ramped = number("lr_from")
    list = string("lr_changes") # [4,6]
    gsub(/[][ ]/, "", list)
    changes = split(list, change, ",")
    resumed_at = number("resumed_at")
    from = resumed_at + 0
    summary_step = 0 # that of what went before
    while (sums && sum_step[sums] > from) sums--
    if (resumed_at != "-") {
        base = between(from, anchors, anchor_step, anchor)
        known(from, 0)
    }
}
$1 == "step" {
    n++; step[n] = number("step"); loss[n] = number("loss"); epoch_of[n] = number("epoch"); density[n] = number("density")
    gap = step[n] - step[n - 1]
    if (gap != 1) thinned = 1
    mean = number("bytes_sent_mean")
    earlier = n > 1 && m && eval_step[m] > step[n - 1] ? eval_step[m] - step[n - 1] : 0
    bytes[n] = bytes[n - 1] + earlier * mean_before + (gap - earlier) * mean
    mean_before = mean
    seconds[n] = seconds[n - 1] + gap * number("seconds")
    for (i = 1; i <= phases; i++) total[i] += number("phases." phase[i])
    completed = 0
}
$1 == "eval" {
    m++; eval_epoch[m] = number("epoch"); eval_step[m] = number("step")
    if (number("valid_perplexity") != "-") text = 1
    if (number("test_wer") != "-") speech = 1
    score[m] = text ? number("valid_perplexity") : 100 * number(speech ? "test_wer" : "test_accuracy")
    if (eval_step[m] > 0) known(eval_step[m], number("train_seconds"))
    eval_bytes[m] = number("bytes_sent")
    if (eval_bytes[m] != "-") said(eval_step[m], eval_bytes[m])
}
$1 == "summary" {
    completed = string("completed") == "true" || string("target.reached") == "true"
    summary_step = number("step")
    if (number("bytes_sent") != "-") {
        said(summary_step, number("bytes_sent"))
    } else { # an older log: of its process alone
        said(from, by_rows(from))
        said(summary_step, by_rows(from) + number("bytes_sent_per_step") * (summary_step - from))
    }
    known(summary_step, number("train_seconds"))
    rate = number("images_per_second"); words = number("words_per_second")
    score_names = "test_loss test_accuracy test_perplexity valid_perplexity valid_loss valid_loss_sampled test_wer test_cer"
    split(score_names, names, " ")
    for (i in names) final[names[i]] = number(names[i])
}

# Steps that were left out: see above.
function fill_in(   i, a, rows, begin, done, done_rows, all, stretch) {
    step_end = summary_step > step[n] ? summary_step : step[n]
    for (i = 1; i <= n; i++) rows[i] = bytes[i]
    i = 1
    for (a = 1; a <= sums; a++) {
        all = between(sum_step[a], n, step, rows) - done_rows
        stretch = all > 0 ? (sum_of[a] - done) / all : 0
        for (; i <= n && step[i] <= sum_step[a]; i++)
            if (stretch < 0.75 || stretch > 1.33) bytes[i] = done + (sum_of[a] - done) * (step[i] - begin) / (sum_step[a] - begin)
            else bytes[i] = done + stretch * (rows[i] - done_rows)
        begin = sum_step[a]
        done = sum_of[a]
        done_rows += all
    }
    for (; i <= n; i++) bytes[i] = done + rows[i] - done_rows
    bytes_end = done + between(step_end, n, step, rows) - done_rows
    if (anchors) for (i = 1; i <= n; i++) seconds[i] = between(step[i], anchors, anchor_step, anchor)
}
function sent_by(s) { return s >= step_end ? bytes_end : s < step[1] ? bytes[1] * s / step[1] : between(s, n, step, bytes) }
function trained_by(s) { return thinned && anchors ? between(s, anchors, anchor_step, anchor) : s < 1 ? 0 : between(s, n, step, seconds) }

function write_loss(   i, half, sum, low, high) {
    half = int(n / 100); if (half < 2) half = 2
    for (i = 1; i <= n; i++) sum[i] = sum[i - 1] + loss[i]
    for (i = 1; i <= n; i++) {
        low = i - half < 1 ? 1 : i - half; high = i + half > n ? n : i + half
        printf "%d %.10g %.10g %.10g %.10g\n", step[i], bytes[i], seconds[i], loss[i], (sum[high] - sum[low - 1]) / (high - low + 1) > (to ".loss")
    }
}
function write_score(   i, shown) {
    printf "" > (to ".score")
    for (i = 1; i <= m; i++) {
        # That of a text before training is the whole vocabulary: it would leave no room for the rest.
        if (text && eval_step[i] == 0) continue
        printf "%.10g %.10g %.10g %.10g\n", eval_epoch[i], (eval_bytes[i] != "-" ? eval_bytes[i] : sent_by(eval_step[i])), trained_by(eval_step[i]), score[i] > (to ".score")
    }
}
# Without the place where it was found: the checksum says what it was.
function data(   text) {
    text = option["data"]
    if (text !~ /^synthetic/) sub(/:.*/, "", text)
    return text
}
function write_config(   i) {
    printf "" > (to ".config")
    for (i = 1; i <= options; i++) {
        if (order[i] in left_out) continue
        print order[i] "=" (order[i] == "data" ? data() : option[order[i]]) > (to ".config")
    }
    print "ranks=" ranks > (to ".config")
    print "nodes=" nodes > (to ".config")
    print "on=" device > (to ".config")
    # Made-up data are others with every seed.
    print "checksum=" (option["data"] ~ /^synthetic/ ? "" : crc) > (to ".config")
}
function short(x,   text) { text = sprintf("%.2f", x); sub(/0+$/, "", text); sub(/\.$/, "", text); return text }
# "1 of 160 epochs", where the run was asked for more than it has done (so far, or ever).
function part(   done, full) {
    if (option["steps"] + 0 > 0) {
        full = option["steps"] + 0; done = step_end
        return done < full ? done " of " full " steps" : ""
    }
    full = option["epochs"] + 0; done = epoch_of[n] * step_end / step[n]
    return full - done > 0.5 * done / step_end ? short(done) " of " short(full) " epochs" : ""
}
# What of the schedules begins behind the last step, which began at this epoch: a list with semicolons. Old logs lack the keys.
function missing(   began, i, count, all, list) {
    began = epoch_of[n] * (step[n] - 1) / step[n]
    if (sparse && density[n] > option["density"] + 0)
        list = ";density " option["density"] (settled == "-" ? "" : " (epoch " settled ")")
    if (ramped != "-" && ramped > epoch_of[n]) list = list ";learning rate " option["lr"] " (epoch " ramped ")"
    for (i = 1; i <= changes; i++) if (change[i] + 0 > began) all = all (count++ ? ", " : "") change[i]
    if (count) list = list ";the rate\047s change" (count > 1 ? "s" : "") " at epoch" (count > 1 ? "s" : "") " " all
    return substr(list, 2)
}
# The algorithm, and the density that the run came to.
function name(   last) {
    if (!sparse) return option["algo"]
    last = density[n] == "-" || density[n] == option["density"] + 0 ? option["density"] : density[n]
    return option["algo"] ", ρ = " (last != option["density"] && density[1] != density[n] ? density[1] " to " : "") last
}
function fact(key, value) { print key "=" value > (to ".facts") }
function write_facts(   i) {
    sparse = !index(dense, " " option["algo"] " ")
    fact("name", name())
    fact("sparse", sparse)
    fact("missing", missing())
    fact("seed", option["seed"])
    fact("kind", text ? "perplexity" : speech ? "wer" : "accuracy")
    fact("model", option["model"])
    fact("data", data())
    fact("ranks", ranks)
    fact("part", part())
    fact("step", step_end)
    fact("steps", length_of_run)
    fact("epoch", epoch_of[n] * step_end / step[n])
    fact("completed", completed ? "yes" : "no")
    fact("bytes", sprintf("%.0f", bytes_end))
    fact("seconds", sprintf("%.6g", trained_by(step_end)))
    fact("commit", commit)
    # Of all of the run, where the summary of a resumed one speaks of its last part; a log with gaps has the summary's alone.
    if (!thinned && images != "-" && seconds[n] > 0) rate = epoch_of[n] * images / seconds[n]
    if (rate != "-" && rate != "") fact("images_per_second", rate)
    if (words != "-" && words != "") fact("words_per_second", words)
    split(score_names, names, " ")
    for (i in names) if (completed && final[names[i]] != "-") fact(names[i], final[names[i]])
}
END {
    if (!n) exit 1
    step_end = step[n]; bytes_end = bytes[n]
    if (thinned) fill_in()
    write_loss()
    write_score()
    for (i = 1; i <= phases; i++) all += total[i]
    for (i = 1; i <= phases; i++) printf "%.6f ", 1000 * total[i] / n > (to ".time")
    printf "%.6f\n", 1000 * all / n > (to ".time")
    write_config()
    write_facts()
}
