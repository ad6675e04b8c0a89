# plan.awk: what is yet to be simulated at P = plan_p ("": at every P), after study.awk. A job a line:
#     net, model, n, density, k, P, wire, algorithms (blanks between), scale, estimated seconds of one core
# Algorithms that run at the same scale (study.awk: least_k) share a job.
# Seconds of one core for three steps, as measured here (P = 64 and 256), to tell minutes from hours.
function job_seconds(algo, P, k,   rank) {
    if (algo == "gtopk-rd") rank = 2.5e-3 + k * 0.08e-6 * log(P) / log(2)
    else if (algo == "gtopk") rank = 2.5e-3 + k * 0.4e-6
    else if (algo == "spardl") rank = 4e-3 + k * 0.4e-6
    else if (algo == "oktopk") rank = 2e-3 + P * 0.15e-3 + k * 1e-6
    else if (algo == "micro") rank = 3e-3 + k * 0.5e-6
    else rank = 2e-3 + P * 0.05e-3 + k * P * 0.05e-6
    return 3 * P * rank
}
END {
    for (c = 1; c <= cells; c++) {
        net = cell_net[c]
        P = cell_p[c]
        if (twin[net] != "" || plan_p != "" && P != plan_p) continue
        for (w = 1; w <= wire_count; w++) {
            wire = wires[w]
            split("", group)
            for (i = 1; i <= algo_count; i++) {
                a = algos[i]
                if (!is_wanted(net, cell_model[c], cell_density[c], P, wire, a)) continue
                if (simulated_s(net, cell_model[c], cell_density[c], P, wire, a) != "") continue
                k = least_k(a, P, cell_k[c])
                scale = sprintf("%.6g", cell_k[c] / k)
                # micro runs over other gradients, so on its own
                if (a == "micro") scale = scale " "
                if (scale in group) group[scale] = group[scale] " " a
                else {
                    group[scale] = a
                    seconds[scale] = 0.3
                }
                seconds[scale] += job_seconds(a, P, k)
            }
            for (scale in group)
                printf "%s,%s,%s,%s,%s,%s,%s,%s,%s,%.1f\n", net, cell_model[c], cell_n[c], cell_density[c], cell_k[c], P, wire, group[scale], scale + 0, seconds[scale]
        }
    }
}
