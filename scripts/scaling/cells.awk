# cells.awk: each cell in both wire formats, after study.awk: who wins by the cost model and in simulation, and how far what is
# ours is ahead of the best published algorithm. Prints the lines of cells.csv:
#     kind         simulated: all that could win was simulated; model: the cost model alone
#     winner       the fastest of all in this format, by this kind
#     published    the fastest published algorithm, in coo32
#     ours         the fastest of ours, in this format or in coo32
#     ahead        published_s / ours_s; below 1: ours is behind
END {
    print "net,model,n,density,k,P,wire,kind,winner,winner_s,predicted,predicted_s,published,published_s,ours,ours_wire,ours_s,ahead"
    for (w = 1; w <= 2; w++)
        for (c = 1; c <= cells; c++) row(cell_net[c], cell_model[c], cell_density[c], cell_p[c], w == 1 ? "coo32" : "packed", c)
}
function row(net, model, density, P, wire, c,   kind, predicted_s, predicted_algo, winner, winner_s, published, published_s, ours, ours_s, ours_wire, s) {
    predicted_s = best_of("model", "all", net, model, density, P, wire)
    predicted_algo = best_algo
    # packed is compared with what is published in coo32, so that must be there too
    kind = is_simulated(net, model, density, P, "coo32") && is_simulated(net, model, density, P, wire) ? "simulated" : "model"
    winner_s = best_of(kind, "all", net, model, density, P, wire)
    winner = best_algo
    published_s = best_of(kind, "published", net, model, density, P, "coo32")
    published = best_algo
    ours_s = best_of(kind, "ours", net, model, density, P, wire)
    ours = best_algo
    ours_wire = wire
    if (wire != "coo32" && (s = best_of(kind, "ours", net, model, density, P, "coo32")) != "" && (ours_s == "" || s < ours_s)) {
        ours_s = s
        ours = best_algo
        ours_wire = "coo32"
    }
    printf "%s,%s,%s,%s,%s,%s,%s,%s,%s,%.6g,%s,%.6g,%s,%.6g,%s,%s,%.6g,%.4g\n", net, model, cell_n[c], density, cell_k[c], P, wire, kind, \
        winner, winner_s, predicted_algo, predicted_s, published, published_s, ours, ours_wire, ours_s, published_s / ours_s
}
