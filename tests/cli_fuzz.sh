#!/bin/sh
# cli_fuzz.sh: a minute of fuzzing of the wire formats' decoders (scripts/fuzz.sh), as one test. FUZZ_SECONDS: another
# time.
# shellcheck source=tests/tap.sh
. tests/tap.sh

name="fuzzing the wire formats for ${FUZZ_SECONDS:-60} s"
if [ -n "${SAN:-}" ]; then
    skip "$name" "the run without SAN does it, under sanitizers of its own"
else
    sh scripts/fuzz.sh "${FUZZ_SECONDS:-60}" > "$W/out" 2>&1
    status=$?
    sed 's/^/# /' "$W/out"
    case $status in
    0) ok "$name" ;;
    77) skip "$name" "$(sed -n 's/^skipped: [^:]*: //p' "$W/out")" ;;
    *) not_ok "$name" "an input that breaks a decoder, see above" ;;
    esac
fi
finish
