#!/bin/sh
# soak.sh [PART...] [--out DIR] [--short] [--list] [--seconds S] [--seed N] [--share I/N]: campaigns that look for what loses work, changes a
# result, hangs or crashes; docs/soak.md says what each part counts and what its rows mean.
#
#   faults    a small run, fresh and resumed; each of its file-system calls fails once, in each way that such a call can
#   kills     kill -9 of a rank, of mpirun or of all, at random moments, and the run resumed until it is done
#   crafted   checkpoints that are cut, damaged, exchanged, or no files at all
#   fuzz      every fuzz target (scripts/fuzz.sh) for an hour of CPU time
#
# No PART: all of them. Rows are added to DIR/<part>.csv (soak-out): the same command goes on where they end. What broke
# something is kept in DIR/found. --short: some of each, in a minute or two. Exit 0: nothing was found. 1: something was.
# 77: this machine lacks what a part needs.
#   --seconds S   stop after about so long, to go on another time
#   --seed N      of the random moments (1)
#   --share I/N   of every N faults, kills and crafted checkpoints the I-th only: N of these run side by side, each in a
#                 DIR of its own, and their rows are then put together
# Environment: BUILD (build), MPIRUN.
# shellcheck disable=SC2034,SC2317 # the parts, which are sourced, use and set these
set -u
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build}
parts='' out=soak-out short='' limit='' seed=1 share=1/1

. scripts/lib/common.sh
options_hint='the head of scripts/soak.sh says how it is used'
list=''
options 'list!list short!short out seconds:limit seed share ...' "$@"
parts=$words
if [ -n "$list" ]; then
    printf '%s\n' faults kills crafted fuzz
    exit 0
fi
for part in $parts; do
    case $part in faults | kills | crafted | fuzz) ;; *) fail "there is no part \"$part\"; $options_hint" ;; esac
done
case $limit$seed in *[!0-9]*) fail "--seconds and --seed want a number; $options_hint" ;; esac
share_of=${share#*/} share_number=${share%%/*}
case $share in *[!0-9/]* | */*/* | */ | /*) share_of=0 ;; */*) ;; *) share_of=0 ;; esac
{ [ "$share_number" -ge 1 ] && [ "$share_number" -le "$share_of" ]; } 2> /dev/null || fail "--share wants I/N, the I-th of N; $options_hint"
[ -n "$out" ] || fail "--out wants a directory; $options_hint"
# as about.txt has it: where the rows lie here is nobody's business
command_line=soak.sh$parts
[ "$out" = soak-out ] || command_line="$command_line --out DIR"
command_line="$command_line${short:+ --short}${limit:+ --seconds $limit}"
[ "$seed" = 1 ] || command_line="$command_line --seed $seed"
[ "$share" = 1/1 ] || command_line="$command_line --share $share"

need_program
program=$(absolute "$program")
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
. scripts/mpi-env.sh
. scripts/lib/mpi-files.sh
. scripts/lib/ranks.sh
export OMP_NUM_THREADS="${OMP_NUM_THREADS-1}"
make_scratch
work=$scratch/work
mkdir -p "$work" || exit 1
mpi_files "$scratch/mpi"
start=$(date +%s)
out_of_time() { [ -n "$limit" ] && [ $(($(date +%s) - start)) -ge "$limit" ]; }

. scripts/soak/lib.sh
result=0
for part in ${parts:-faults kills crafted fuzz}; do
    part_start=$(date +%s) done_rows=0 found=0 # set anew by the part
    # shellcheck source=/dev/null
    . "scripts/soak/$part.sh"
    about "$part"
    [ "$found" -eq 0 ] || result=1
done
exit $result
