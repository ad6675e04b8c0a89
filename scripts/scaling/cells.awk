# cells.awk: each cell in each class of messages, after study.awk: who wins by the cost model and in simulation, and how far
# what is ours is ahead of the best published algorithm. Prints the lines of cells.csv:
#     wire         the class: coo32 alone; packed-f32: lossless, coo32 or packed-f32; packed: rounded, any of the three
#     kind         simulated: all that could win was simulated; model: the cost model alone
#     winner       the fastest of all in this class, by this kind; winner_wire: in which format
#     predicted    the same by the cost model
#     published    the fastest published algorithm, in coo32
#     ours         the fastest of ours in this class
#     ahead        published_s / ours_s; below 1: ours is behind. ahead_model: the same by the cost model, in which MPI's
#                  collectives are as good as their papers have them
#     local        0: communication alone; 1: all seconds are with local work, where a table of it was read
END {
    print "net,model,n,density,k,P,wire,kind,winner,winner_s,predicted,predicted_s,published,published_s,ours,ours_wire,ours_s,ahead,winner_wire,ahead_model,local"
    for (local = 0; local <= has_local; local++)
        for (w = 1; w <= wire_count; w++)
            for (c = 1; c <= cells; c++) row(cell_net[c], cell_model[c], cell_density[c], cell_p[c], w, c, local)
}
# The best of a kind in the first `class` formats: found, found_wire; its seconds are returned
function best_up_to(kind, who, net, model, density, P, class,   i, s, least, algo) {
    least = ""
    for (i = 1; i <= class; i++) {
        s = best_of(kind, who, net, model, density, P, wires[i])
        if (s == "" || least != "" && s >= least) continue
        least = s
        algo = best_algo
        found_wire = takes[algo] ? wires[i] : "coo32"
    }
    found = algo
    return least
}
function row(net, model, density, P, class, c, local,   i, kind, predicted_s, predicted_algo, winner, winner_wire, winner_s, published, published_s, ours_s, ahead_model) {
    charged = 0 # what is to be simulated goes by communication
    kind = "simulated"
    for (i = 1; i <= class; i++)
        if (!is_simulated(net, model, density, P, wires[i])) kind = "model"
    charged = local
    predicted_s = best_up_to("model", "all", net, model, density, P, class)
    predicted_algo = found
    ahead_model = best_of("model", "published", net, model, density, P, "coo32") / best_up_to("model", "ours", net, model, density, P, class)
    winner_s = best_up_to(kind, "all", net, model, density, P, class)
    winner = found
    winner_wire = found_wire
    published_s = best_of(kind, "published", net, model, density, P, "coo32")
    published = best_algo
    ours_s = best_up_to(kind, "ours", net, model, density, P, class)
    printf "%s,%s,%s,%s,%s,%s,%s,%s,%s,%.6g,%s,%.6g,%s,%.6g,%s,%s,%.6g,%.4g,%s,%.4g,%d\n", net, model, cell_n[c], density, cell_k[c], P, wires[class], \
        kind, winner, winner_s, predicted_algo, predicted_s, published, published_s, found, found_wire, ours_s, published_s / ours_s, winner_wire, ahead_model, local
}
