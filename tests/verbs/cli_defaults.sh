#!/bin/sh
# cli_defaults.sh: --help and the manual page say for every model what a run of it is set to where nothing is asked for: the
# default behind each option, read as a user reads it, beside what `sparsetrain config` says.
. tests/lib/tap.sh

# agrees TEXT CONFIG MODEL: lines on which they do not, and how many options were compared as "N options". An entry of a
# default is "VALUE", or of named models "gpt, bert VALUE", with "; " between entries.
agrees() {
    awk -v model="$3" -v models=" $models " '
        function entry(text, named, first) { # is it of this model, or of those not named? its value: found, rest
            named = 0
            while (match(text, /^[a-z0-9-]+,? /) && index(models, " " substr(text, 1, RLENGTH - (text ~ /^[a-z0-9-]+, / ? 2 : 1)) " ")) {
                first = substr(text, 1, RLENGTH); sub(/,? $/, "", first)
                if (first == model) named = 2; else if (!named) named = 1
                text = substr(text, RLENGTH + 1)
            }
            if (named == 2) found = text
            if (!named) rest = text
        }
        function stated(text, entries, count, i) {
            found = rest = ""
            if (!match(text, /\(default: .*\)$/)) return ""
            text = substr(text, RSTART + 10, RLENGTH - 11)
            count = split(text, entries, "; ")
            for (i = 1; i <= count; i++) entry(entries[i])
            return found != "" ? found : rest
        }
        function keep() { if (name != "") text_of[name] = text }
        FNR == NR && /^  --/ { keep(); name = $1; sub(/^--/, "", name); text = $0; sub(/^  --[^ ]+( [^ ]+)? */, "", text); next }
        FNR == NR && /^            / { sub(/^ */, ""); text = text (text == "" ? "" : " ") $0; next }
        FNR == NR { keep(); name = ""; next }
        /=/ { at = index($0, "="); value[substr($0, 1, at - 1)] = substr($0, at + 1) }
        END {
            for (name in value) {
                is = value[name]; says = stated(text_of[name])
                # What only other optimisers read.
                if (name == "momentum" && value["optimiser"] != "sgd") continue
                if (name == "beta2" && value["optimiser"] !~ /^adam/) continue
                if (name == "model" || (is == "no" && says == "")) continue # what was asked for; a flag
                if (says == "by --steps" && "steps" in value) continue
                compared++
                if (says == "the preset" sprintf("%c", 39) "s" && "preset" in value) continue
                if (says != is && !(says ~ /^[0-9.e-]+$/ && is ~ /^[0-9.e-]+$/ && says + 0 == is + 0)) printf "%s of %s is %s, and the text says: %s\n", name, model, is, says
            }
            print compared + 0 " options"
        }' "$1" "$2"
}

"$PROGRAM" --help > "$W/help"
models=$(names_of MODEL nets/models/models.def | tr '\n' ' ')
check "there are models" [ "$(echo "$models" | wc -w)" -ge 6 ]
for model in $models; do
    "$PROGRAM" config --model "$model" > "$W/config"
    agrees "$W/help" "$W/config" "$model" > "$W/said"
    why=$(head -n 3 "$W/said")
    check "$model: the defaults in --help are those of a run" grep -qxE '[5-9][0-9] options' "$W/said"
    why=$(head -n 3 "$W/said")
    check "$model: all of them" [ "$(wc -l < "$W/said")" -eq 1 ]
done
# A value that another model has is seen.
sed 's/^lr=.*/lr=0.123/' "$W/config" > "$W/other"
check "and another value would be seen" sh -c "! cmp -s '$W/config' '$W/other'"
check "by name" [ "$(agrees "$W/help" "$W/other" "$model" | grep -c '^lr of ')" -eq 1 ]

# "the preset's": one of them has another value than the first.
presets_differ() { # presets_differ MODEL OPTION PRESET...
    of=$1 option=$2
    shift 2
    [ "$(for preset in "$@"; do "$PROGRAM" config --model "$of" --preset "$preset" | sed -n "s/^$option=//p"; done | sort -u | wc -l)" -gt 1 ]
}
for option in hidden layers heads steps; do
    check "bert, $option: presets differ" presets_differ bert $option tiny mini small base
    check "gpt, $option: presets differ" presets_differ gpt $option char-cpu char gpt2
done

# The manual page has the same sentences.
"$PROGRAM" man | tr '\n' ' ' > "$W/man"
check "the manual page has them, too" grep -q 'default: 0\.001; lstm 0\.005; gpt, bert 0\.01; speech 0\.02' "$W/man"
finish
