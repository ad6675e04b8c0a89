# keep.awk: runs.csv of transformer.sh with the runs of one of its sweeps that have ended besides, behind csv.awk:
#
#     WITH=HELP OPTIONS=TEXT MACHINE=TEXT awk -v p=P -v exchange=NAME -f csv.awk -f keep.awk KEPT.csv SWEEP-RUNS.csv
#
# A run that KEPT.csv has already stays as it is there.
{ csv_row() }
FNR == NR {
    print
    kept[cell_of("ranks"), cell_of("optimiser"), cell_of("exchange"), cell_of("with"), cell_of("density"), cell_of("seed")]
    next
}
FNR == 1 || cell_of("state") !~ /^(done|diverged)$/ { next }
(p, cell_of("optimiser"), exchange, ENVIRON["WITH"], cell_of("density"), cell_of("seed")) in kept { next }
{
    print p "," cell_of("optimiser") "," csv_field(exchange) "," csv_field(ENVIRON["WITH"]) "," cell_of("density") "," cell_of("seed") "," cell_of("state") "," \
        cell_of("step") "," cell_of("valid_loss") "," cell_of("valid_loss_sampled") "," cell_of("bytes_sent_per_rank") "," cell_of("seconds") "," \
        csv_field(ENVIRON["OPTIONS"]) "," cell_of("commit") "," csv_field(ENVIRON["MACHINE"])
}
