# study.awk: what plan.awk, cells.awk and page.awk share: the tables of the scaling study, read before what they do.
#
#     awk -v simulated_p=4,8,16 -f memory.awk -f study.awk -f cells.awk table=exchanges exchanges.csv table=networks networks.csv \
#         table=predicted predicted.csv table=simulated simulated.csv
#
# exchanges.csv  name, sparse, ours, moves_as: of every algorithm, as its row in the program says
# networks.csv   net, alpha [s], beta [s/word], twin, factor: a network whose alpha/beta is that of an earlier one is its
#                twin: every time of it is the twin's times factor, so it is not simulated again
# predicted.csv  net, model, n, density, k, P, wire, algo, takes (1: a wire format changes it), seconds: by the cost model
# simulated.csv  net, model, n, density, P, wire, algo, seconds, ...: mean of the simulated steps
#
# local.csv      model, n, density, P, wire, algo, seconds: what a rank itself does in a step, by a table of measured costs
#                (predict --best --costs); may be missing. packed-f32 is charged what packed is: see scaling.sh.
#
# A cell is a net, model, density and P. Messages are of three classes: coo32; lossless: in coo32 or packed-f32, which keep
# every value; rounded: in any format, of which packed rounds values to bf16. A cell has a winner in each class.
# A published algorithm in the format of its paper, coo32: what others have proposed. Ours is gtopk-rd in any format (the
# one that the program calls ours), and every algorithm in a format of ours. micro and the dense ones have no format of their own and stay what they are.
BEGIN {
    FS = ","
    OFS = ","
    steps_p = split(simulated_p, p_simulated, ",")
    for (i = 1; i <= steps_p; i++) place_of_p[p_simulated[i]] = i
    wire_count = split("coo32 packed-f32 packed", wires, " ")
}
FNR == 1 { next }
# What is not simulated: what sends as another algorithm does (with one rank a node), and what is dense, which by the model is far
# behind in every cell (the page says how far). Every other algorithm of predicted.csv is.
table == "exchanges" {
    ours[$1] = $3 == "true"
    moves_as[$1] = $4
    left_out[$1] = $2 != "true" || $4 != ""
}
table == "networks" {
    nets[++net_count] = $1
    alpha_of[$1] = $2
    beta_of[$1] = $3
    twin[$1] = $4
    factor[$1] = $5
}
table == "predicted" {
    if (!(($1, $2, $4, $6) in seen_cell)) {
        seen_cell[$1, $2, $4, $6] = 1
        cell_net[++cells] = $1
        cell_model[cells] = $2
        cell_n[cells] = $3
        cell_density[cells] = $4
        cell_k[cells] = $5
        cell_p[cells] = $6
        k_of[$2, $4] = $5
    }
    if (!($8 in seen_algo)) {
        seen_algo[$8] = 1
        algos[++algo_count] = $8
        takes[$8] = $9
    }
    predicted[$1, $2, $4, $6, $7, $8] = $10
}
table == "simulated" { simulated[$1, $2, $4, $5, $6, $7] = $8 }
table == "local" {
    local_of[$1, $3, $4, $5, $6] = $7
    has_local = 1
}

function is_published(wire, algo) { return !ours[algo] && (wire == "coo32" || !takes[algo]) }
# Seconds of a step by the model; "": there is none
function model_s(net, model, density, P, wire, algo,   key) {
    key = net SUBSEP model SUBSEP density SUBSEP P SUBSEP (takes[algo] ? wire : "coo32") SUBSEP algo
    return key in predicted ? predicted[key] : ""
}
# ... in simulation
function simulated_s(net, model, density, P, wire, algo,   key) {
    key = model SUBSEP density SUBSEP P SUBSEP (takes[algo] ? wire : "coo32") SUBSEP algo
    if (twin[net] != "") return (twin[net] SUBSEP key) in simulated ? simulated[twin[net], key] * factor[net] : ""
    return (net SUBSEP key) in simulated ? simulated[net, key] : ""
}
# ... of a kind, with (charged = 1) or without local work. dense is not simulated: MPI's sum takes what its line has.
function seconds_of(kind, net, model, density, P, wire, algo,   s, key) {
    if (kind == "simulated" && algo != "dense") s = simulated_s(net, model, density, P, wire, algo)
    else s = model_s(net, model, density, P, wire, algo)
    if (!charged || s == "") return s
    key = model SUBSEP density SUBSEP P SUBSEP (takes[algo] ? wire : "coo32") SUBSEP algo
    return key in local_of ? s + local_of[key] : ""
}
# The fastest of a kind in a format: best_algo, and its seconds are returned ("": none). who: "all", "published", "ours".
# Of equal ones that of the shorter name, for what a paper builds on another paper comes later and is called longer.
function best_of(kind, who, net, model, density, P, wire,   i, s, least) {
    least = ""
    best_algo = ""
    for (i = 1; i <= algo_count; i++) {
        if (who == "published" && !is_published(wire, algos[i]) || who == "ours" && is_published(wire, algos[i])) continue
        if ((s = seconds_of(kind, net, model, density, P, wire, algos[i])) == "") continue
        if (least == "" || s < least || s == least && length(algos[i]) < length(best_algo)) {
            least = s
            best_algo = algos[i]
        }
    }
    return least
}
# A cell is simulated at an S-th of the entries over an S-th of the bandwidth, where k/S entries are still enough: 16 a rank, so
# that they can be divided among the ranks, and 4096, so that MPI chooses the same collectives.
function least_k(algo, P, k,   least) {
    least = small ? small : algo ~ /^gtopk/ || 16 * P < 4096 ? 4096 : 16 * P
    return k < least ? k : least
}
# Would it fit into 10 GB? Of k entries that are all selected.
function fits(algo, P, k) { return simulation_memory(P, least_k(algo, P, k), 1, "sparse", algo) < 1e10 }
# Is this algorithm to be simulated in this cell? At the first P all are. Then those that were not far behind at the P
# before (what falls behind as P grows goes on to do so), and those that the model holds to be among the first; and what is ours
# in coo32, too.
function is_wanted(net, model, density, P, wire, algo,   before, s, published, best, lead) {
    if (left_out[algo] || !takes[algo] && wire != "coo32" || !(P in place_of_p)) return 0
    if (!fits(algo, P, k_of[model, density])) return 0
    if (place_of_p[P] == 1 || ours[algo]) return 1
    published = is_published(wire, algo)
    s = model_s(net, model, density, P, wire, algo)
    if (s <= 1.3 * best_of("model", "all", net, model, density, P, wire)) return 1
    if (published && s <= 1.3 * best_of("model", "published", net, model, density, P, wire)) return 1
    before = p_simulated[place_of_p[P] - 1]
    best = best_of("simulated", "all", net, model, density, before, wire)
    lead = best_of("simulated", "published", net, model, density, before, "coo32")
    s = simulated_s(net, model, density, before, wire, algo)
    if (best == "") { # nothing is known of the P before: as the model says, for an estimate
        s = model_s(net, model, density, P, wire, algo)
        return s <= 1.7 * best_of("model", "all", net, model, density, P, wire)
    }
    return s != "" && (s <= 1.7 * best || published && s <= 1.5 * lead)
}
# Has everything been simulated that is to be?
function is_simulated(net, model, density, P, wire,   i) {
    if (!(P in place_of_p)) return 0
    for (i = 1; i <= algo_count; i++)
        if (is_wanted(net, model, density, P, wire, algos[i]) && simulated_s(net, model, density, P, wire, algos[i]) == "") return 0
    return 1
}
