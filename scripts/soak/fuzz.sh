# shellcheck shell=sh
# fuzz.sh: of soak.sh: CPU time for every fuzz target, in pieces of 600 s, one a core at a time. Rows: target, piece; commit,
# inputs, CPU seconds, what was found, verdict. $out/corpus/<target> grows from piece to piece.
# shellcheck disable=SC2034,SC2154

wanted_cpu=3600 piece_seconds=600
if [ -n "$short" ]; then wanted_cpu=1 piece_seconds=3; fi
table fuzz target,piece,commit,inputs,cpu_seconds,found,verdict
sh scripts/fuzz.sh --build > "$work/stdout" 2>&1
case $? in
0) ;;
77)
    cat "$work/stdout"
    exit 77
    ;;
*)
    cat "$work/stdout"
    exit 1
    ;;
esac
cores=$(getconf _NPROCESSORS_ONLN 2> /dev/null || echo 1)

spent() { awk -F, -v target="$1" '$1 == target { s += $5 } END { printf "%d\n", s }' "$csv"; }
pieces() { grep -c "^$1," "$csv"; }
# piece TARGET: its line to $work/piece-TARGET
piece() { FUZZ_OUT=$out/found FUZZ_CORPUS=$out/corpus sh scripts/fuzz.sh --target "$1" "$piece_seconds" > "$work/piece-$1" 2>&1; }

# Those that have had least go first, as many as there are cores, until all have had enough.
while ! out_of_time; do
    next=$(for target in $(sh scripts/fuzz.sh --list); do echo "$(spent "$target") $target"; done | sort -n |
        awk -v enough="$wanted_cpu" -v cores="$cores" '$1 < enough && n++ < cores { print $2 }')
    [ -n "$next" ] || break
    for target in $next; do piece "$target" & done
    wait
    for target in $next; do
        : > "$work/stderr"
        cp "$work/piece-$target" "$work/stdout"
        read -r name inputs _ cpu _ _ _ what << END
$(grep "^$target " "$work/piece-$target")
END
        case ${what:-no line} in nothing) verdict=good ;; *) verdict="an input that breaks it" ;; esac
        row "$verdict" "${name:-$target}" "$(($(pieces "$target") + 1))" "$commit" "${inputs:-0}" "${cpu:-$piece_seconds}" "$(basename "${what:-no-line}")"
    done
done
count
part_says="$(awk -F, 'NR > 1 { inputs += $4; cpu += $5; t[$1] = 1 } END { for (x in t) n++; printf "%d inputs to %d targets in %.1f hours of CPU", inputs, n, cpu / 3600 }' "$csv"); $found pieces found something"
