# memory.awk: what a simulation needs of the machine's memory, for simulate.sh, which asks before it starts, and for the scaling
# study, which plans.

# Bytes of P ranks with n entries each, of which they select a part (density), for the algorithms of a list with commas. On each
# rank the program's own part and, for a sparse algorithm, residual and gradient, and what it gathers: some bytes for each of the
# k entries of all ranks (16 for topka, the most of several that were measured; oktopk has more messages under way). The device
# sparse holds what is not zero instead: 200 bytes for each of a rank's k, and for those of all ranks what is measured at P = 16
# to 256. Another device has its gradients in another way, which nobody knows here. checked: with a plain sum to compare with.
function simulation_memory(P, n, density, device, algos, checked,   each, gathered, selected, i, list, most) {
    each = device ~ /^(auto|cpu|cuda)?$/ ? 8 : 0
    gathered = algos ~ /(^|,)(oktopk|all)(,|$)/ ? 32 : 16
    if (device == "sparse") {
        gathered = 0
        selected = 200
        for (i = split(algos, list, ","); i > 0; i--) {
            most = list[i] ~ /^(gtopk|gtopk-rd|spardl|micro)$/ ? 0 : list[i] == "oktopk" ? 25 : list[i] ~ /^(topkdsa|all)$/ ? 55 : 22
            if (most > gathered) gathered = most
        }
    }
    if (algos == "dense") each = gathered = selected = 0
    return P * (2e6 + n * (each + (checked ? 20 : 0) + density * (selected + gathered * P)))
}
