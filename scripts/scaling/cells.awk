# cells.awk: each cell in both wire formats, after study.awk: who wins by the cost model and in simulation, and how far what is
# ours is ahead of the best published algorithm. Prints the lines of cells.csv:
#     kind         simulated: all that could win was simulated; model: the cost model alone
#     winner       the fastest of all, by this kind: in coo32 alone, or (wire packed) in any of the two; winner_wire: in which
#     predicted    the same by the cost model
#     published    the fastest published algorithm, in coo32
#     ours         the fastest of ours, in coo32 or any of the two
#     ahead        published_s / ours_s; below 1: ours is behind. ahead_model: the same by the cost model, in which MPI's
#                  collectives are as good as their papers have them
END {
    print "net,model,n,density,k,P,wire,kind,winner,winner_s,predicted,predicted_s,published,published_s,ours,ours_wire,ours_s,ahead,winner_wire,ahead_model"
    for (w = 1; w <= 2; w++)
        for (c = 1; c <= cells; c++) row(cell_net[c], cell_model[c], cell_density[c], cell_p[c], w == 1 ? "coo32" : "packed", c)
}
# The best of a kind in coo32 or (wire packed) in any of the two: found, found_wire; its seconds are returned
function best_up_to(kind, who, net, model, density, P, wire,   coo32, s) {
    coo32 = best_of(kind, who, net, model, density, P, "coo32")
    found = best_algo
    found_wire = "coo32"
    if (wire == "coo32") return coo32
    s = best_of(kind, who, net, model, density, P, wire)
    if (s == "" || coo32 != "" && s >= coo32) return coo32
    found = best_algo
    found_wire = takes[found] ? wire : "coo32"
    return s
}
function row(net, model, density, P, wire, c,   kind, predicted_s, predicted_algo, winner, winner_wire, winner_s, published, published_s, ours_s, ahead_model) {
    predicted_s = best_up_to("model", "all", net, model, density, P, wire)
    predicted_algo = found
    ahead_model = best_of("model", "published", net, model, density, P, "coo32") / best_up_to("model", "ours", net, model, density, P, wire)
    # packed is compared with what is published in coo32, so that must be there too
    kind = is_simulated(net, model, density, P, "coo32") && is_simulated(net, model, density, P, wire) ? "simulated" : "model"
    winner_s = best_up_to(kind, "all", net, model, density, P, wire)
    winner = found
    winner_wire = found_wire
    published_s = best_of(kind, "published", net, model, density, P, "coo32")
    published = best_algo
    ours_s = best_up_to(kind, "ours", net, model, density, P, wire)
    printf "%s,%s,%s,%s,%s,%s,%s,%s,%s,%.6g,%s,%.6g,%s,%.6g,%s,%s,%.6g,%.4g,%s,%.4g\n", net, model, cell_n[c], density, cell_k[c], P, wire, kind, \
        winner, winner_s, predicted_algo, predicted_s, published, published_s, found, found_wire, ours_s, published_s / ours_s, winner_wire, ahead_model
}
