# comparison.awk: of the row of a comparison.csv that csv_row() took in: how much of the runs that the paper's claim is about it rests on.

# is it of the beginning of a run, of a shorter one or of a smaller model?
function is_part() { return cell_of("run") !~ /^(full|quick)?$/ }
# are runs of it yet to be made (not_yet in lib.sh)?
function is_open() { return cell_of("note") ~ /not run yet: / }
# is it a comparison of a claim that the end of a run, or a run that is not made yet, will decide?
function is_waiting() { return cell_of("claim") != "" && cell_of("agrees") == "n/a" && cell_of("ours") == "" && (is_open() || cell_of("rule") !~ /^(none)?$/) }
