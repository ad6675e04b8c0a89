# page.awk: the page of the scaling study, after study.awk, from its tables and these:
#     table=cells cells.csv, table=aims aims.csv (both as scaling.sh writes them)
#     table=single, table=throughput   results/published/gtopk-single-gpu.csv, gtopk-throughput.csv
# Variables: command, commits, machine, seconds (of all jobs), pictures (the folder of the figures from the page, with /),
# costs, on (the table of measured selection and merging, and its device; empty: none), error (the largest by which a simulated
# step was off, a fraction) and error_of (which); table=jobs is jobs.tsv.
BEGIN {
    class_of["coo32"] = "coo32"
    class_of["packed-f32"] = "lossless"
    class_of["packed"] = "rounded"
}
table == "simulated" { simulated_job[$15 SUBSEP $7 " " $6]++ }
table == "jobs" {
    split($0, part, "\t")
    commit_of[part[1]] = part[2]
}
table == "cells" {
    cell = ++rows
    for (i = 1; i <= NF; i++) field[cell, i] = $i
    at[$1, $2, $4, $6, $7, $21] = cell
    if (!($2 in seen_model)) {
        seen_model[$2] = 1
        models[++model_count] = $2
        length_of[$2] = $3
    }
    if (!($4 in seen_density)) {
        seen_density[$4] = 1
        density_of[++density_count] = $4
    }
    if (!($6 in seen_p)) {
        seen_p[$6] = 1
        p_of[++p_count] = $6
    }
}
table == "aims" {
    aim[$1, $4, $6, $5, ($8 + $9 > 0)] = $7 / $10
    simulated_job[$13 SUBSEP $6 " " $5]++
    aim_compute[$1] = $7
    if (!($1 in seen_aim)) {
        seen_aim[$1] = 1
        aim_model[++aim_count] = $1
        aim_n[$1] = $2
    }
}
table == "single" { images[$1] = $4 }
table == "throughput" {
    measured[$1, "dense"] = $3
    measured[$1, "topka"] = $4
    measured[$1, "gtopk"] = $5
}
# Columns of cells.csv
function kind_of(c) { return field[c, 8] }
function winner_of(c) { return field[c, 9] }
function number(x, digits) { return sprintf("%." digits "g", x) }
function percent(x) { return x == "" ? " " : sprintf("%.1f%%", 100 * x) }
function ms(x) { return sprintf(x >= 0.1 ? "%.0f ms" : x >= 0.01 ? "%.1f ms" : "%.3g ms", 1000 * x) }

# -- the aims --------------------------------------------------------------------------------------------------------
# A step by the paper's own cost model (its Table I), alpha and beta those of 1gbe
function paper_efficiency(model, algo, P,   seconds, n, k, log_p) {
    n = aim_n[model]
    k = int(n * 0.001)
    log_p = log(P) / log(2)
    if (algo == "dense") seconds = 2 * (P - 1) * alpha_of["1gbe"] + 2 * n * (P - 1) / P * beta_of["1gbe"]
    else if (algo == "topka") seconds = log_p * alpha_of["1gbe"] + 2 * (P - 1) * k * beta_of["1gbe"]
    else seconds = 2 * log_p * alpha_of["1gbe"] + 4 * k * log_p * beta_of["1gbe"]
    return aim_compute[model] / (aim_compute[model] + seconds)
}
# An efficiency; "": not simulated. packed-f32 has no row of its own in the table of costs: what packed takes is added.
function aim_of(model, P, algo, wire, costs,   key) {
    if ((model, P, algo, wire, costs) in aim) return aim[model, P, algo, wire, costs]
    key = model SUBSEP "0.001" SUBSEP P SUBSEP wire SUBSEP algo
    if (!costs || wire != "packed-f32" || !((model, P, algo, wire, 0) in aim) || !(key in local_of)) return ""
    return aim_compute[model] / (aim_compute[model] / aim[model, P, algo, wire, 0] + local_of[key])
}
# The best of ours in the first `class` formats, with (1) or without (0) costs: best_name, and its efficiency is returned
function best_aim(model, P, costs, class,   i, w, e, best) {
    best = ""
    best_name = ""
    for (w = 1; w <= class; w++) {
        for (i = 1; i <= algo_count; i++) {
            if (is_published(wires[w], algos[i]) || (e = aim_of(model, P, algos[i], wires[w], costs)) == "") continue
            if (best == "" || e > best) {
                best = e
                best_name = algos[i] ", " wires[w]
            }
        }
    }
    return best
}
# What an efficiency leaves beside computing [ms]
function beside(model, e) { return 1000 * aim_compute[model] * (1 / e - 1) }
# Two columns: the best of ours in a class, and whether it reaches the aim; what does not goes to missed[costs, class].
function aim_columns(model, P, goal, costs, class,   ours, alone) {
    ours = best_aim(model, P, costs, class)
    if (ours == "") return " | |"
    if (ours < goal) {
        missed[costs, class] = missed[costs, class] (missed[costs, class] == "" ? "" : "; ") model " at P = " P " (" percent(ours) ")"
        alone = best_aim(model, P, 0, class)
        best_aim(model, P, costs, class)
        if (costs && alone >= goal)
            missed[costs, class] = missed[costs, class] sprintf(": the aim leaves %.1f ms for selecting, packing and merging, which take %.1f ms", \
                beside(model, goal) - beside(model, alone), beside(model, ours) - beside(model, alone))
    }
    return " " percent(ours) " " best_name " | " (ours >= goal ? "yes" : "**no**") " |"
}
function aims_of(costs,   m, i, P, model, goal, line, list, a, any, charged, class) {
    print "| model | P | aim | ours, lossless | reached | ours, rounded | reached | dense | topka | gtopk | spardl in coo32 |"
    print "|---|---|---|---|---|---|---|---|---|---|---|"
    for (m = 1; m <= aim_count; m++)
        for (i = 1; i <= 2; i++) {
            model = aim_model[m]
            P = i == 1 ? 32 : 256
            goal = i == 1 ? 0.93 : 0.90
            if (best_aim(model, P, costs, wire_count) == "") continue
            any++
            line = "| " model " | " P " | " percent(goal) " |"
            for (class = 2; class <= wire_count; class++) line = line aim_columns(model, P, goal, costs, class)
            split("dense topka gtopk spardl", list, " ")
            for (a = 1; a <= 4; a++) {
                charged = list[a] == "dense" ? 0 : costs # nothing is charged to it
                line = line " " percent(aim_of(model, P, list[a], "coo32", charged)) " |"
            }
            print line
        }
    for (class = 2; any && class <= wire_count; class++) {
        if (missed[costs, class] != "") print "\n**Not reached, " class_of[wires[class]] ":** " missed[costs, class] "."
        else print "\nWith " class_of[wires[class]] " messages every aim that was simulated is reached."
    }
}
# How far adding local work to a simulated step is from injecting it into the simulation, over all aims that have both
function added_check(   key, part, sum, ratio, least, most, count) {
    for (key in aim) {
        split(key, part, SUBSEP)
        if (part[5] != 1 || !((part[1], part[2], part[3], part[4], 0) in aim) || !((part[1], "0.001", part[2], part[4], part[3]) in local_of)) continue
        sum = aim_compute[part[1]] * (1 / aim[part[1], part[2], part[3], part[4], 0] - 1) + local_of[part[1], "0.001", part[2], part[4], part[3]]
        ratio = sum / (aim_compute[part[1]] * (1 / aim[key] - 1))
        if (!count++ || ratio < least) least = ratio
        if (count == 1 || ratio > most) most = ratio
    }
    if (!count) return " It is added to simulated seconds as the cost lines have it."
    return sprintf(" It is added to simulated seconds as the cost lines have it: in the %d steps of the aims that were simulated with it, too, the sum is %.2f to %.2f times what the simulation has.", count, least, most)
}
function against_the_paper(   m, model, a, list, measured_e) {
    print "| model, P = 32 | algorithm | measured in the paper | by the paper's cost model | simulated here | step measured in the paper | step by its cost model |"
    print "|---|---|---|---|---|---|---|"
    split("dense topka gtopk", list, " ")
    for (m = 1; m <= aim_count; m++) {
        model = aim_model[m]
        for (a = 1; a <= 3; a++) {
            if (!((model, list[a]) in measured)) continue
            measured_e = measured[model, list[a]] / (32 * images[model])
            print "| " model " | " list[a] " | " percent(measured_e) " | " percent(paper_efficiency(model, list[a], 32)) " | " \
                percent(aim_of(model, 32, list[a], "coo32", 0)) " | " \
                sprintf("%.3g s", aim_compute[model] / measured_e) " | " sprintf("%.3g s", aim_compute[model] / paper_efficiency(model, list[a], 32)) " |"
        }
    }
}

# -- ahead, behind, or neither -----------------------------------------------------------------------------------------
# A lead counts where it is more than the error of a simulated step.
function is_ahead(c) { return field[c, 18] * (1 - error) > 1 }
function is_behind(c) { return field[c, 18] < 1 - error }
function status_of(c) { return is_ahead(c) ? "ahead" : is_behind(c) ? "behind" : "within" }
# Of communication alone a network with the alpha/beta of another says nothing new; local work sets the two apart.
function counts(c) { return field[c, 21] || twin[field[c, 1]] == "" }

function sort(x, count,   i, j, t) {
    for (i = 2; i <= count; i++) {
        t = x[i]
        for (j = i - 1; j > 0 && x[j] > t; j--) x[j + 1] = x[j]
        x[j + 1] = t
    }
}
# A line of the first table: of a class, with or without local work, of a kind
function lead(wire, local, kind,   c, count, list, n, m, line, s) {
    for (c = 1; c <= rows; c++) {
        if (field[c, 7] != wire || field[c, 21] != local || kind_of(c) != kind || !counts(c)) continue
        list[++count] = field[c, 18] + 0
        s = status_of(c)
        n[s]++
        n[field[c, 2], s]++
    }
    if (!count) return
    sort(list, count)
    line = "| " class_of[wire] " | " (local ? "charged" : "none") " | " count " | " n["ahead"] + 0 " | " n["within"] + 0 " | " (n["behind"] ? "**" n["behind"] "**" : 0) " | " \
        sprintf("%.2f | %.2f | %.2f |", list[1], list[int((count + 1) / 2)], list[count])
    for (m = 1; m <= model_count; m++) line = line sprintf(" %d / %d / %d |", n[models[m], "ahead"], n[models[m], "within"], n[models[m], "behind"])
    print line
}
function leads(kind,   m, w, local, line) {
    line = "| messages | local work | " kind " cells | ahead | within the error | behind | least | median | most |"
    for (m = 1; m <= model_count; m++) line = line " " models[m] " |"
    print line
    line = "|---|---|---|---|---|---|---|---|---|"
    for (m = 1; m <= model_count; m++) line = line "---|"
    print line
    for (local = 0; local <= has_local; local++)
        for (w = 1; w <= wire_count; w++) lead(wires[w], local, kind)
}

# Which published algorithm is the best in how many simulated cells: "micro 70, spardl 30"
function published_best(local,   c, i, n, most, text) {
    for (c = 1; c <= rows; c++)
        if (field[c, 7] == "coo32" && field[c, 21] == local && kind_of(c) == "simulated" && counts(c)) n[field[c, 13]]++
    while (1) {
        most = ""
        for (i in n)
            if (n[i] > 0 && (most == "" || n[i] > n[most] || n[i] == n[most] && i < most)) most = i
        if (most == "") return text
        text = text (text == "" ? "" : ", ") most " in " n[most]
        n[most] = 0
    }
}

# -- the map ---------------------------------------------------------------------------------------------------------
function map(wire, density,   n, m, p, c, line, text, s) {
    line = "| network | model |"
    for (p = 1; p <= p_count; p++) line = line " " p_of[p] " |"
    print line
    line = "|---|---|"
    for (p = 1; p <= p_count; p++) line = line "---|"
    print line
    for (n = 1; n <= net_count; n++)
        for (m = 1; twin[nets[n]] == "" && m <= model_count; m++) {
            line = "| " nets[n] " | " models[m] " |"
            for (p = 1; p <= p_count; p++) {
                c = at[nets[n], models[m], density, p_of[p], wire, 0]
                s = sprintf("%.2f", field[c, 18])
                text = winner_of(c) (wire != "coo32" && takes[winner_of(c)] && field[c, 19] == "coo32" ? " coo32" : "") " " (is_ahead(c) ? s : is_behind(c) ? "**" s "**" : s "~")
                line = line " " text (kind_of(c) == "model" ? " (m)" : "") " |"
            }
            print line
        }
}

# The stretches of P in which one thing is so: "gtopk-rd 4 to 64, spardl from 128"; with (m) where all of a stretch is by the
# model. what: the winner, or the status
function stretches(net, model, density, wire, local, what,   p, c, w, text, from, last, simulated_any) {
    last = ""
    for (p = 1; p <= p_count + 1; p++) {
        c = p > p_count ? 0 : at[net, model, density, p_of[p], wire, local]
        w = !c ? "" : what == "winner" ? winner_of(c) : status_of(c)
        if (w != last) {
            if (last != "") {
                text = text (text == "" ? "" : ", ") (last == "behind" ? "**behind**" : last) (from == 1 && !c ? " everywhere" : !c ? " from " p_of[from] : \
                    p - 1 == from ? " at " p_of[from] : " " p_of[from] " to " p_of[p - 1]) (simulated_any ? "" : " (m)")
            }
            last = w
            from = p
            simulated_any = 0
        }
        if (c && kind_of(c) == "simulated") simulated_any = 1
    }
    return text
}
# A row a network, model and density, a column a class
function by_class(local, what,   n, m, d, w, line) {
    print "| network | model | density | coo32 | lossless | rounded |"
    print "|---|---|---|---|---|---|"
    for (n = 1; n <= net_count; n++)
        for (m = 1; (local || twin[nets[n]] == "") && m <= model_count; m++)
            for (d = 1; d <= density_count; d++) {
                line = "| " nets[n] " | " models[m] " | " density_of[d] " |"
                for (w = 1; w <= wire_count; w++) line = line " " stretches(nets[n], models[m], density_of[d], wires[w], local, what) " |"
                print line
            }
}

# By how much dense is behind the best in coo32 where it is the least, by the model
function dense_behind(   c, s, least, best) {
    for (c = 1; c <= cells; c++) {
        best = best_of("model", "all", cell_net[c], cell_model[c], cell_density[c], cell_p[c], "coo32")
        s = model_s(cell_net[c], cell_model[c], cell_density[c], cell_p[c], "coo32", "dense") / best
        if (least == "" || s < least) least = s
    }
    return least
}

# -- simulation against the model --------------------------------------------------------------------------------------
function reason(algo) {
    if (algo == "gtopk-rd") return "one message after the other, both ways at once: what the line says"
    if (algo == "spardl") return "as gtopk-rd; blocks are whole entries"
    if (algo == "gtopk") return "messages of up to 64 KiB leave together and share the link of the rank that passes the result on"
    if (algo == "topka") return "an all-gather of our own with log2(P) start-ups, as the line has it"
    if (algo == "topkdsa") return "the line is its upper end (all of n gathered); and messages to all ranks wait together for their start-up"
    if (algo == "oktopk") return "the line has 6k words, its bound, of which about 4k are sent, and 2P start-ups, which here pass at the same time; every step gathers counts of 11 words a rank, which the line, as the paper\047s, leaves out, and which weigh S times too much where a cell is scaled; new thresholds and regions, every 32 and 64 steps, are not in these steps"
    if (algo == "micro") return "all-gathers and a reduce-scatter of our own with log2(P) start-ups, as the line has it; blocks have room for a 32nd more"
    return ""
}
function ratios(   a, key, part, list, count, wire, w) {
    print "| algorithm | format | simulated cells | least | median | most | why |"
    print "|---|---|---|---|---|---|---|"
    for (a = 1; a <= algo_count; a++)
        for (w = 1; w <= wire_count; w++) {
            wire = wires[w]
            count = 0
            split("", list)
            for (key in simulated) {
                split(key, part, SUBSEP)
                if (part[6] != algos[a] || part[5] != wire) continue
                list[++count] = simulated[key] / model_s(part[1], part[2], part[3], part[4], wire, algos[a])
            }
            if (!count) continue
            sort(list, count)
            print "| " algos[a] " | " wire " | " count " | " sprintf("%.2f | %.2f | %.2f", list[1], list[int((count + 1) / 2)], list[count]) " | " (w == 1 ? reason(algos[a]) : "as in coo32; and indices that cluster take fewer bits than evenly spread ones, which the line has") " |"
        }
}
# Of the algorithms, what others have published; one of those that are dense stands for them.
function published_names(   a, text) {
    for (a = 1; a <= algo_count; a++)
        if (is_published("coo32", algos[a]) && moves_as[algos[a]] != "dense") text = text (text == "" ? "" : ", ") algos[a]
    return text
}
# Where the simulated winner is another than the predicted one
function disagreements(   c, count, all, key, i, text, seen, times, list) {
    for (c = 1; c <= rows; c++) {
        if (kind_of(c) != "simulated" || twin[field[c, 1]] != "" || field[c, 21]) continue
        all++
        if (winner_of(c) == field[c, 11]) continue
        count++
        key = field[c, 11] SUBSEP winner_of(c)
        if (!(key in times)) list[++i] = key
        times[key]++
        text = field[c, 1] ", " field[c, 2] ", " field[c, 4] ", P = " field[c, 6] ", " field[c, 7]
        if (times[key] <= 3) seen[key] = seen[key] (seen[key] == "" ? "" : "; ") text
    }
    if (!count) {
        print "In all " all " simulated cells and formats the winner is the predicted one."
        return
    }
    print "In " count " of " all " simulated cells and formats another algorithm wins than the model says:\n"
    print "| predicted | simulated | cells | for example | why |"
    print "|---|---|---|---|---|"
    for (key = 1; key <= i; key++) {
        split(list[key], part, SUBSEP)
        print "| " part[1] " | " part[2] " | " times[list[key]] " | " seen[list[key]] " | " part[2] ": " reason(part[2]) ". " part[1] ": " reason(part[1]) " |"
    }
}
# Which commit the rows of each algorithm are of
function provenance(   key, part, count, list, i, j, t, rows_of, names, seen) {
    for (key in simulated_job) {
        split(key, part, SUBSEP)
        if (!((commit_of[part[1]]) in rows_of)) list[++count] = commit_of[part[1]]
        rows_of[commit_of[part[1]]] += simulated_job[key]
        seen[commit_of[part[1]], part[2]] = 1
    }
    for (i = 2; i <= count; i++)
        for (j = i; j > 1 && list[j] < list[j - 1]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
    print "| commit | rows | algorithms and formats |"
    print "|---|---|---|"
    for (i = 1; i <= count; i++) {
        names = ""
        for (j = 1; j <= algo_count; j++)
            for (t = 1; t <= wire_count; t++)
                if ((list[i], algos[j] " " wires[t]) in seen) names = names (names == "" ? "" : ", ") algos[j] (takes[algos[j]] ? " " wires[t] : "")
        print "| " list[i] " | " rows_of[list[i]] " | " names " |"
    }
}
function shortest(   c, m) {
    for (c = 1; c <= rows; c++)
        if (kind_of(c) == "simulated" && field[c, 6] > m + 0) m = field[c, 6]
    return m
}
END {
    print "## The scaling study\n"
    printf "Where is the best of ours ahead of the best published algorithm, and where not? Of the cells that were simulated (a network, model, density and number of ranks; under a model ahead / within / behind):\n\n"
    leads("simulated")
    printf "\n**ahead**, **behind**: by more than the simulator\047s error, %.1f%%, the largest by which a simulated step of `sim-calibration` differs from the same step on an emulated network of 4 and 8 nodes (%s); **within the error**: by less, which shows nothing. The three numbers: seconds of the best published algorithm over those of the best of ours. ", 100 * error, error_of
    print "Simulated steps are mostly too short, and most of all those of gtopk-rd and spardl.\n"
    print "- **coo32**: all in the papers\047 format; ours is then gtopk-rd alone. **lossless**: ours may send packed-f32, too: packed indices, values bit for bit. **rounded**: ours may send packed, too, which rounds values to bf16 (the error stays in the residual); of whether models converge as well with it there is one run, ten epochs of ResNet-20 with gtopk (`results/measured/resnet20-cifar10-p4-packed`). Published algorithms are in coo32 throughout, though all but micro and the dense ones could be sent in these formats, and \"ours\" is then mostly spardl or gtopk in ours."
    printf "- **local work**: selecting, packing, unpacking and merging: none, or charged to all"
    if (costs) printf " as measured on the device %s (`%s`, words timed on two ranks). packed-f32 is charged what packed is, entry for entry: the table has no rows of it; alone it is packed and unpacked as fast (`results/measured/bench-exchange.txt`). Dense sums are charged nothing", on, costs
    print "." (has_local ? added_check() : "")
    print "- Every cell counts once: 100gbe has the alpha/beta of 10gbe, so its communication is the same times a constant; only with local work is it a network of its own.\n"
    print "**simulated**: the program itself, every rank, under SimGrid (docs/simulation.md). **model** or (m): the alpha-beta cost lines of `sparsetrain predict`. " \
        "**Published**: every algorithm of others, with its paper\047s format, coo32 (" published_names() "). " \
        "**Ours**: gtopk-rd, and the two packed formats (`--wire packed-f32`, `packed`), which no paper has. A step is the exchange alone. One rank a node, its own link; so hitopk and torus2d are topka and dense here.\n"
    print "What was not simulated (above P = " shortest() ", and where a simulation is missing) by the cost model alone, in the same bands:\n"
    leads("model")
    print "\n### Ahead, within the error, behind: where\n"
    print "Communication alone:\n"
    by_class(0, "status")
    if (has_local) {
        print "\nWith local work as measured on " on ", where the best published algorithm of the simulated cells is " published_best(1) " (without: " published_best(0) "):\n"
        by_class(1, "status")
    }
    print "\n### The aims: weak scaling on 1 Gbit/s\n"
    print "Steps of the gTop-k paper's GPU (its v1, Table VI), density 0.001, efficiency = computing / (computing + exchange), all simulated. Communication alone:\n"
    aims_of(0)
    print ""
    if (costs) {
        print "With selection, packing and merging as measured on the device " on " (`" costs "`; injected by `--select-cost`, `--word-cost`; to packed-f32 added), beside a GPU that computes" (on == "cpu" ? ". Those are passes over the gradient at the speed of a CPU\047s memory; what a GPU takes, on which gradients would stay, has not been measured yet" : "") ":\n"
        aims_of(1)
        print ""
    } else print "With selection and merging: there is no table of measured costs (`scripts/measure-costs.sh`), so nothing of them is in these numbers.\n"
    print "What the paper measured is far below its own cost model: its throughputs at 32 GPUs over 32 times that of one, beside that model with its alpha and beta, and the simulation, which is to be held against the model:\n"
    against_the_paper()
    print "\nThe paper's model has a ring for dense, 2(P-1) start-ups; the allreduce that is simulated takes 2 log2(P). The aims are held against our simulated numbers. They are no comparison with the measured column: what slowed the paper's steps down beyond its cost model is not in the simulation.\n"
    for (w = wire_count; w >= 1; w--) {
        print "### Who wins: " class_of[wires[w]] "\n"
        print (wires[w] == "coo32" ? "The fastest of all in coo32, where ours is gtopk-rd and all others are published" : "The fastest of all in coo32" (w > 2 ? ", packed-f32" : "") " or " wires[w]) \
            ", by communication alone, and seconds of the best published algorithm (in coo32) over those of the best of ours: in bold behind, with ~ within the simulator\047s error.\n"
        for (d = 1; d <= density_count; d++) {
            print "Density " density_of[d] ":\n"
            map(wires[w], density_of[d])
            print ""
        }
        if (wires[w] == "packed") print "![Who wins, in any format](" pictures "winners-packed.png)\n\n![How far ahead: rounded](" pictures "ahead.png)\n"
        else if (wires[w] == "coo32") print "![Who wins, in coo32](" pictures "winners-coo32.png)\n"
        else print "![How far ahead: lossless](" pictures "ahead-lossless.png)\n"
    }
    print "### Crossovers\n"
    print "Where the winner changes, of the numbers of ranks in the map, by communication alone. A change with (m) comes with the step from simulation to model, and may be no more than the difference of the two.\n"
    by_class(0, "winner")
    print "\n### Simulation and cost model\n"
    print "Simulated seconds over predicted ones, of everything that was simulated:\n"
    ratios()
    print ""
    disagreements()
    print "\nNot simulated: gtopk-naive and hitopk, which send what topka sends; gaussiank, which does so with one gathering more; what is dense, which by the model " \
        "takes " sprintf("%.1f", dense_behind()) " times as long as the best or more in every cell without local work (with it, it competes by the model); what was far behind at the number of ranks before; and what would need more than 10 GB. Long selections ran at an S-th of the entries over an S-th of the bandwidth (`scale` in the rows). " \
        "Gradients are drawn as ranks of real runs had them (`results/measured/profiles`); models without a profile have that of the nearest model. micro ran over independent numbers, for its times follow from k and P alone.\n"
    print "### How this was made\n"
    print "`" command "`, " seconds " s of simulation on " machine " (simulated times are the same on every machine). " (pictures == "" ? "Beside this page" : "In `" pictures "`") ": `simulated.csv` (a row an algorithm and cell), `aims.csv`, `cells.csv` (what the map shows), `jobs.tsv` (the command of each row). Rows are of the commit that simulated them; those of an algorithm that has not changed since are kept:\n"
    provenance()
}
