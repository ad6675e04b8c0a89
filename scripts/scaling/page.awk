# page.awk: the page of the scaling study, after study.awk, from its tables and these:
#     table=cells cells.csv, table=aims aims.csv (both as scaling.sh writes them)
#     table=single, table=throughput   results/published/gtopk-single-gpu.csv, gtopk-throughput.csv
# Variables: command, commits, machine, seconds (of all jobs), pictures (the folder of the figures from the page, with /),
# costs, on (the table of measured selection and merging, and its device; empty: none), shortest_p, densities.
table == "cells" {
    cell = ++rows
    for (i = 1; i <= NF; i++) field[cell, i] = $i
    at[$1, $2, $4, $6, $7] = cell
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
# The best of ours with (1) or without (0) costs: best_name, and its efficiency is returned
function best_aim(model, P, costs,   i, w, wire, e, best) {
    best = ""
    best_name = ""
    for (w = 1; w <= 2; w++) {
        wire = w == 1 ? "coo32" : "packed"
        for (i = 1; i <= algo_count; i++) {
            if (is_published(wire, algos[i]) || !((model, P, algos[i], wire, costs) in aim)) continue
            e = aim[model, P, algos[i], wire, costs]
            if (best == "" || e > best) {
                best = e
                best_name = algos[i] (wire == "packed" ? ", packed" : ", coo32")
            }
        }
    }
    return best
}
# What an efficiency leaves beside computing [ms]
function beside(model, e) { return 1000 * aim_compute[model] * (1 / e - 1) }
function aims_of(costs,   m, i, P, model, goal, ours, alone, line, list, a, any, charged) {
    print "| model | P | aim | ours, simulated | with | reached | dense, simulated | topka, simulated | gtopk, simulated | spardl in coo32, simulated |"
    print "|---|---|---|---|---|---|---|---|---|---|"
    for (m = 1; m <= aim_count; m++)
        for (i = 1; i <= 2; i++) {
            model = aim_model[m]
            P = i == 1 ? 32 : 256
            goal = i == 1 ? 0.93 : 0.90
            ours = best_aim(model, P, costs)
            if (ours == "") continue
            any++
            line = "| " model " | " P " | " percent(goal) " | " percent(ours) " | " best_name " | " (ours >= goal ? "yes" : "**no**") " |"
            if (ours < goal) {
                missed[costs] = missed[costs] (missed[costs] == "" ? "" : "; ") model " at P = " P " (" percent(ours) ")"
                alone = best_aim(model, P, 0)
                if (costs && alone >= goal)
                    missed[costs] = missed[costs] sprintf(": the aim leaves %.1f ms for selecting, packing and merging, which take %.1f ms", \
                        beside(model, goal) - beside(model, alone), beside(model, ours) - beside(model, alone))
            }
            split("dense topka gtopk spardl", list, " ")
            for (a = 1; a <= 4; a++) {
                charged = list[a] == "dense" ? 0 : costs # nothing is charged to it
                line = line " " percent((model, P, list[a], "coo32", charged) in aim ? aim[model, P, list[a], "coo32", charged] : "") " |"
            }
            print line
        }
    if (missed[costs] != "") print "\n**Not reached:** " missed[costs] "."
    else if (any) print "\nEvery aim that was simulated is reached."
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
                percent((model, 32, list[a], "coo32", 0) in aim ? aim[model, 32, list[a], "coo32", 0] : "") " | " \
                sprintf("%.3g s", aim_compute[model] / measured_e) " | " sprintf("%.3g s", aim_compute[model] / paper_efficiency(model, list[a], 32)) " |"
        }
    }
}

# -- the map ---------------------------------------------------------------------------------------------------------
function map(wire, density,   n, m, p, c, line, text) {
    line = "| network | model |"
    for (p = 1; p <= p_count; p++) line = line " " p_of[p] " |"
    print line
    line = "|---|---|"
    for (p = 1; p <= p_count; p++) line = line "---|"
    print line
    for (n = 1; n <= net_count; n++)
        for (m = 1; m <= model_count; m++) {
            line = "| " nets[n] " | " models[m] " |"
            for (p = 1; p <= p_count; p++) {
                c = at[nets[n], models[m], density, p_of[p], wire]
                text = winner_of(c) (wire != "coo32" && takes[winner_of(c)] && field[c, 19] == "coo32" ? " coo32" : "") " " (wire == "coo32" || is_ours_ahead(c) ? sprintf("%.2f", field[c, 18]) : "**" sprintf("%.2f", field[c, 18]) "**")
                line = line " " text (kind_of(c) == "model" ? " (m)" : "") " |"
            }
            print line
        }
}
# Differences of less than half a percent are none: a message carries 16 bytes beside its words.
function is_ours_ahead(c) { return field[c, 18] >= 0.995 }

# The stretches of P in which one algorithm wins: "gtopk-rd 4 to 64, spardl from 128"; with (m) where all of a stretch is by
# the model
function stretches(net, model, density, wire,   p, c, w, text, from, last, simulated_any) {
    last = ""
    for (p = 1; p <= p_count + 1; p++) {
        c = p > p_count ? 0 : at[net, model, density, p_of[p], wire]
        w = c ? winner_of(c) : ""
        if (w != last) {
            if (last != "") {
                text = text (text == "" ? "" : ", ") last (from == 1 && !c ? " everywhere" : !c ? " from " p_of[from] : \
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
function crossovers(   n, m, d) {
    print "| network | model | density | coo32 alone | any format |"
    print "|---|---|---|---|---|"
    for (n = 1; n <= net_count; n++)
        for (m = 1; m <= model_count; m++)
            for (d = 1; d <= density_count; d++)
                print "| " nets[n] " | " models[m] " | " density_of[d] " | " stretches(nets[n], models[m], density_of[d], "coo32") " | " \
                    stretches(nets[n], models[m], density_of[d], "packed") " |"
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

# -- how far ahead -----------------------------------------------------------------------------------------------------
function sort(x, count,   i, j, t) {
    for (i = 2; i <= count; i++) {
        t = x[i]
        for (j = i - 1; j > 0 && x[j] > t; j--) x[j + 1] = x[j]
        x[j + 1] = t
    }
}
# column: 18, or 20 for what the model says of the same cells
function lead(wire, kind, column,   c, count, behind, list) {
    for (c = 1; c <= rows; c++) {
        if (field[c, 7] != wire || kind_of(c) != kind) continue
        list[++count] = field[c, column] + 0
        if (list[count] < 0.995) behind++
    }
    if (!count) return
    sort(list, count)
    print "| " (wire == "coo32" ? "coo32 alone" : "any format") " | " kind (column == 20 ? ": by the model" : "") " | " count " | " sprintf("%.2f | %.2f | %.2f", list[1], list[int((count + 1) / 2)], list[count]) " | " (behind ? "**" behind "**" : 0) " |"
}
function behind(   c, text, count) {
    for (c = 1; c <= rows; c++) {
        if (field[c, 7] != "packed" || is_ours_ahead(c)) continue
        count++
        if (count <= 40) text = text "\n- " field[c, 1] ", " field[c, 2] ", density " field[c, 4] ", P = " field[c, 6] ": " field[c, 15] " (" field[c, 16] ") " \
            ms(field[c, 17]) ", " field[c, 13] " " ms(field[c, 14]) " (" kind_of(c) ")"
    }
    if (!count) print "In no cell of the map is the best of ours, in any format, behind the best published algorithm."
    else print "**Ours is behind the best published algorithm in " count (count == 1 ? " cell" : " cells") " of the map" (count > 40 ? ", of which the first 40:" : ":") "**\n" text
}

# -- simulation against the model --------------------------------------------------------------------------------------
function reason(algo) {
    if (algo == "gtopk-rd") return "one message after the other, both ways at once: what the line says"
    if (algo == "spardl") return "as gtopk-rd; blocks are whole entries"
    if (algo == "gtopk") return "messages of up to 64 KiB leave together and share the link of the rank that passes the result on"
    if (algo == "topka") return "an all-gather of our own with log2(P) start-ups, as the line has it"
    if (algo == "topkdsa") return "the line is its upper end (all of n gathered); and messages to all ranks wait together for their start-up"
    if (algo == "oktopk") return "the line has 6k words, its bound, of which about 4k are sent, and 2P start-ups, which here pass at the same time; new thresholds and regions, every 32 and 64 steps, are not in these steps; where a cell is scaled, its counts and histograms, which do not shrink, weigh S times too much (seen at P = 128 and 256)"
    if (algo == "micro") return "all-gathers and a reduce-scatter of our own with log2(P) start-ups, as the line has it; blocks have room for a 32nd more"
    return ""
}
function ratios(   a, key, part, list, count, wire, w) {
    print "| algorithm | format | simulated cells | least | median | most | why |"
    print "|---|---|---|---|---|---|---|"
    for (a = 1; a <= algo_count; a++)
        for (w = 1; w <= 2; w++) {
            wire = w == 1 ? "coo32" : "packed"
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
        if (is_published("coo32", algos[a]) && algos[a] != "dense-ovlp" && algos[a] != "torus2d") text = text (text == "" ? "" : ", ") algos[a]
    return text
}
# Where the simulated winner is another than the predicted one
function disagreements(   c, count, all, key, i, text, seen, times, list) {
    for (c = 1; c <= rows; c++) {
        if (kind_of(c) != "simulated" || twin[field[c, 1]] != "") continue
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
END {
    print "## The scaling study\n"
    print "Which algorithm is the fastest on which network, for which model, at which number of ranks, and how far ahead what is ours is. A step here is the exchange alone; " \
        "computing is added for the efficiencies, and selecting and merging only where it says so.\n"
    print "**simulated**: the program itself, every rank, under SimGrid (docs/simulation.md). **model** or (m): the alpha-beta cost lines of `sparsetrain predict`. " \
        "**Published**: every algorithm of others, with its paper's format, coo32 (" published_names() "). " \
        "**Ours**: gtopk-rd, and every algorithm in the packed format (`--wire packed`), which no paper has. One rank a node, its own link; so hitopk and torus2d are topka and dense here.\n"
    print "### The aims: weak scaling on 1 Gbit/s\n"
    print "Steps of the gTop-k paper's GPU (its v1, Table VI), density 0.001, efficiency = computing / (computing + exchange). Communication alone:\n"
    aims_of(0)
    print ""
    if (costs) {
        print "With selection, packing and merging as measured on the device " on " (`" costs "`; injected by `--select-cost`, `--word-cost`), beside a GPU that computes: what each algorithm takes there, at density 0.001" (on == "cpu" ? ". Those are passes over the gradient at the speed of a CPU\047s memory; what a GPU takes, on which gradients would stay, has not been measured yet" : "") ":\n"
        aims_of(1)
        print ""
    } else print "With selection and merging: there is no table of measured costs (`scripts/measure-costs.sh`), so nothing of them is in these numbers.\n"
    print "What the paper measured is far below its own cost model: its throughputs at 32 GPUs over 32 times that of one, beside that model with its alpha and beta, and the simulation, which is to be held against the model:\n"
    against_the_paper()
    print "\nThe paper's model has a ring for dense, 2(P-1) start-ups; the allreduce that is simulated takes 2 log2(P). The aims are held against our simulated numbers. They are no comparison with the measured column: what slowed the paper's steps down beyond its cost model is not in the simulation.\n"
    print "### Who wins, in any format\n"
    print "The fastest of all in coo32 or packed, and by what factor the best of ours is faster than the best published algorithm (in coo32); in bold where it is behind. " \
        "10gbe and 100gbe have the same alpha/beta: every time of one is that of the other times a constant, and one of them was simulated.\n"
    for (d = 1; d <= density_count; d++) {
        print "Density " density_of[d] ":\n"
        map("packed", density_of[d])
        print ""
    }
    print "![Who wins, in any format](" pictures "winners-packed.png)\n\n![How far ahead](" pictures "ahead.png)\n"
    print "### Who wins, in coo32 alone\n"
    print "Here ours is gtopk-rd alone, and the factor is its lead over the best published algorithm; all others are published.\n"
    for (d = 1; d <= density_count; d++) {
        print "Density " density_of[d] ":\n"
        map("coo32", density_of[d])
        print ""
    }
    print "![Who wins, in coo32](" pictures "winners-coo32.png)\n"
    print "### Crossovers\n"
    print "Where the winner changes, of the numbers of ranks in the map. A change with (m) comes with the step from simulation to model, and may be no more than the difference of the two.\n"
    crossovers()
    print "\n### Ahead of the best published algorithm\n"
    print "Seconds of the best published algorithm over those of the best of ours:\n"
    print "| formats | kind | cells | least | median | most | behind |"
    print "|---|---|---|---|---|---|---|"
    lead("packed", "simulated", 18)
    lead("packed", "simulated", 20)
    lead("packed", "model", 18)
    lead("coo32", "simulated", 18)
    lead("coo32", "model", 18)
    print "\nIn coo32 alone ours is gtopk-rd and nothing else, so behind means there that a published algorithm is the better one; what we have for it is the other format.\n"
    behind()
    print "\n### Simulation and cost model\n"
    print "Simulated seconds over predicted ones, of everything that was simulated:\n"
    ratios()
    print ""
    disagreements()
    print "\nNot simulated: gtopk-naive and hitopk, which send what topka sends; gaussiank, which does so with one gathering more; what is dense, which by the model " \
        "takes " sprintf("%.1f", dense_behind()) " times as long as the best or more in every cell; what was far behind at the number of ranks before; and what would need more than 10 GB. Long selections ran at an S-th of the entries over an S-th of the bandwidth (`scale` in the rows). " \
        "Gradients are drawn as ranks of real runs had them (`results/measured/profiles`); models without a profile have that of the nearest model. micro ran over independent numbers, for its times follow from k and P alone.\n"
    print "### How this was made\n"
    print "`" command "`, " seconds " s of simulation, at commit " commits " on " machine " (simulated times are the same on every machine). " (pictures == "" ? "Beside this page" : "In `" pictures "`") ": `simulated.csv` (a row an algorithm and cell), `aims.csv`, `cells.csv` (what the map shows), `jobs.tsv` (the command of each row)."
}
