# missing.awk: what runs.csv of transformer.sh has not of one of its sweeps, behind csv.awk:
#
#     WITH=HELP OPTIONS=TEXT awk -v p=P -v exchange=NAME -v lists="DENSITIES OPTIMISERS SEEDS" -f csv.awk -f missing.awk KEPT.csv
#
# Lists with commas between, densities "-" where there is none; prints a line "DENSITY OPTIMISER SEED" for each run. Exit status 1
# where it has a run of this sweep, but with other options.
{ csv_row() }
FNR > 1 && cell_of("ranks") == p && cell_of("exchange") == exchange && cell_of("with") == ENVIRON["WITH"] {
    if (cell_of("options") != ENVIRON["OPTIONS"]) exit other = 1
    kept[cell_of("density") == "" ? "-" : cell_of("density"), cell_of("optimiser"), cell_of("seed")]
}
END {
    if (other) exit 1
    split(lists, list, " ")
    densities = split(list[1], density, ",")
    optimisers = split(list[2], optimiser, ",")
    seeds = split(list[3], seed, ",")
    for (i = 1; i <= densities; i++) for (j = 1; j <= optimisers; j++) for (k = 1; k <= seeds; k++)
        if (!((density[i], optimiser[j], seed[k]) in kept)) print density[i], optimiser[j], seed[k]
}
