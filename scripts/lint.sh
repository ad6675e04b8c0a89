#!/bin/sh
# lint.sh: everything that can be said about the source without running it. One line per check, details below a check
# that failed; a check whose tool is missing is named and skipped. Exit 1 if any failed.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib/common.sh
make_scratch
found=$scratch/found
failures=0

# All files of the project, as git sees them (also those not added yet), or all but what a build makes.
files() {
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files --cached --others --exclude-standard
    else
        find . -type f ! -path './.git/*' ! -path './build*' ! -path './runs/*' | sed 's|^\./||'
    fi | while IFS= read -r file; do [ ! -f "$file" ] || printf '%s\n' "$file"; done | sort -u
}
files >"$scratch/all"
of() { grep -E "$1" "$scratch/all"; } # of REGEX: the files whose path matches
c_files=$(of '^(base|data|topk|comm|nets|cli)/.*\.([ch]|cu|cc)$|^tests/(base|data|topk|comm|exchanges|nets|cli|files|fuzz|gpu|hostcuda|lib|preload)/.*\.([ch]|cu|cc)$|^scripts/.*\.[ch]$')
c_sources=$(printf '%s\n' "$c_files" | grep '\.c$')
# What includes headers of the CUDA toolkit: the plugin and its stand-in.
plugin_sources=$(printf '%s\n' "$c_sources" | grep -E '^([a-z]+/cuda/|nets/cudnn/|nets/optimisers/cuda_|tests/(hostcuda/|gpu/(hostcuda|cudnn)_))')
cuda_home=$(command -v nvcc 2>/dev/null) && cuda_home=$(readlink -f "$cuda_home") && cuda_home=${cuda_home%/bin/nvcc}
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

# report NAME: fails when $found is not empty
report() {
    if [ -s "$found" ]; then
        printf 'FAIL  %s\n' "$1"
        head -n 40 "$found" | sed 's/^/      /'
        failures=$((failures + 1))
    else
        printf 'ok    %s\n' "$1"
    fi
}
# needs TOOL NAME: is the tool there? If not, the check is skipped by name.
needs() {
    if has "$1"; then return 0; fi
    printf 'skip  %s: %s is not installed (sh scripts/deps.sh lint)\n' "$2" "$1"
    return 1
}

# A C file without comments and without what stands in quotes, lines kept: "path:line:code".
bare() {
    awk '
        FNR == 1 { inside = 0 }
        {
            line = $0; code = ""
            include = line ~ /^[ \t]*#[ \t]*include/
            while (line != "") {
                if (inside) {
                    end = index(line, "*/")
                    if (!end) { line = ""; break }
                    line = substr(line, end + 2); inside = 0; code = code " "
                } else if (!include && match(line, /^"([^"\\]|\\.)*"/)) {
                    code = code "\"\""; line = substr(line, RLENGTH + 1)
                } else if (match(line, /^\047([^\047\\]|\\.)+\047/)) {
                    code = code "0"; line = substr(line, RLENGTH + 1)
                } else if (substr(line, 1, 2) == "/*") {
                    inside = 1; line = substr(line, 3)
                } else if (substr(line, 1, 2) == "//") {
                    line = ""
                } else {
                    code = code substr(line, 1, 1); line = substr(line, 2)
                }
            }
            if (code !~ /^[ \t]*$/) print FILENAME ":" FNR ":" code
        }' "$@"
}
# shellcheck disable=SC2086 # paths of this project hold no blanks
bare $c_files >"$scratch/bare"

# -- format ----------------------------------------------------------------------------------------------------------------
if needs clang-format 'clang-format'; then
    # shellcheck disable=SC2086
    clang-format --dry-run --Werror $c_files 2>&1 | grep -E '(error|warning):' |
        awk -F: '{ n[$1]++ } END { for (file in n) printf "%s: %d places\n", file, n[file] }' | sort >"$found"
    report 'clang-format (make format repairs it)'
fi

# -- folders: who may include whom ----------------------------------------------
awk -F: '
    BEGIN {
        may["base"] = "base"; may["data"] = "base data"; may["topk"] = "base topk"
        may["comm"] = "base topk comm"; may["nets"] = "base nets"; may["cli"] = "base data topk comm nets cli"
        may["scripts"] = "base scripts"
    }
    match($0, /#[ \t]*include[ \t]*"[^"]*"/) {
        included = substr($0, RSTART, RLENGTH); sub(/^[^"]*"/, "", included); sub(/".*/, "", included)
        folder = included; sub(/\/.*/, "", folder)
        owner = $1; sub(/\/.*/, "", owner)
        if ($1 ~ /^tests\/hostcuda\//) { # the libraries under the plugin: itself, and helpers of base
            if (folder != "base" && included !~ /^tests\/hostcuda\//)
                print $1 ":" $2 ": the stand-in may not include \"" included "\""
            next
        }
        if ($1 == "base/cuda/cuda_kernel.h" && included ~ /^tests\/hostcuda\//) next # what takes the place of CUDA
        if (owner == "tests") { # a test may include what its module may, and helpers of the tests
            owner = $1; sub(/.*\//, "", owner); sub(/[_.].*/, "", owner)
            if (folder == "tests" || included !~ /\//) next
            if (!(owner in may)) next
        }
        if (index(" " may[owner] " ", " " folder " ") == 0)
            print $1 ":" $2 ": " owner " may not include \"" included "\""
    }' "$scratch/bare" >"$found"
report 'folders include only from those below them'

# libraries: each behind one door
awk -F: '
    function door(header, path,   pattern) {
        pattern = ""
        if (header ~ /^(mpi\.h|smpi\/|simgrid\/)/) pattern = "^comm/(transport/transport_mpi|sim/)[a-z_]*\\.[ch]$"
        else if (header ~ /dnnl/) pattern = "^nets/onednn/"
        else if (header ~ /^(cudnn|cublas)/) pattern = "^(nets/cudnn/|tests/hostcuda/|tests/gpu/(hostcuda|cudnn)_)"
        else if (header ~ /^(cuda|base\/cuda\/cuda_(device|kernel)\.h)/) pattern = "^([a-z]+/cuda/|nets/cudnn/|nets/optimisers/cuda_|tests/hostcuda/|tests/gpu/(hostcuda|cudnn)_)"
        else if (header ~ /^png\.h/) pattern = "^(data/.*\\.c|tests/data/.*\\.[ch])$"
        else if (header ~ /^utf8proc\.h/) pattern = "^data/pairs/unicode\\.c$"
        else if (header ~ /^fftw3/) pattern = "^data/speech/spectrogram\\.c$"
        else if (header ~ /^zlib\.h/) pattern = "^((base|data)/.*\\.c|tests/(base|data|fuzz|lib)/.*\\.[ch])$"
        else if (header ~ /^cmocka\.h/) pattern = "^tests/"
        return pattern == "" || path ~ pattern
    }
    match($0, /#[ \t]*include[ \t]*[<"][^>"]*[>"]/) {
        included = substr($0, RSTART, RLENGTH); sub(/^[^<"]*[<"]/, "", included); sub(/[>"].*/, "", included)
        if (!door(included, $1)) print $1 ":" $2 ": <" included "> has another door"
    }' "$scratch/bare" >"$found"
report 'mpi.h, oneDNN, CUDA, libpng, utf8proc, FFTW, zlib each behind their own files'

# -- only cli prints -------------------------------------------------------------------------------------------------------
grep -E '^(base|data|topk|comm|nets)/' "$scratch/bare" | grep -Ev '^(base/(error|progress)|topk/cpu/kernels)\.c:' |
    grep -E -e '(^|[^A-Za-z0-9_])(printf|vprintf|puts|putchar|perror) *\(' \
        -e '\<(fprintf|vfprintf|fputs|fputc|putc|fwrite) *\(.*\<(stdout|stderr)\>' |
    grep -v 'format *(printf' >"$found"
report 'only cli prints (and base/error.c, base/progress.c, a note of topk/cpu/kernels.c)'

# -- a kernel works with what the stand-in can emulate, too ----------------------------------------------------------------
grep -E '^[a-z]+/[a-z]+/[^/]*\.cu:' "$scratch/bare" |
    grep -E -e '#[ \t]*include[ \t]*<(cub|thrust|cooperative_groups|cuda_bf16|cuda_fp16|mma)' -e '<<<' >"$found"
report 'kernels: launched by LAUNCH(), without CUB, Thrust, cooperative groups'

# -- words and paths that must not be there --------------------------------------------------------------------------------
# The brackets keep these patterns from finding themselves.
words='TOD[O]|FIXM[E]|XX[X]|[sS]tu[b]s?|STU[B]|[pP]laceholde[r]s?'
paths='(^|[^A-Za-z0-9_.])/(wor[k]|roo[t]|hom[e]/[a-z])(/|\>)'
hosts='[a-z0-9.-]*(artifactor[y]|nexu[s]\.|\.interna[l]\>)[a-z0-9./-]*'
of '\.(c|h|cc|cu|def|sh|py|gp|md|cff|in|awk)$|^Makefile$|^\.ci/|^[A-Z]+$' | xargs grep -nwE "$words" /dev/null >"$found"
of '\.(c|h|cc|cu|def|sh|py|gp|md|cff|in|awk|csv|jsonl|txt)$|^Makefile$|^\.ci/' | xargs grep -nE "$paths|$hosts" /dev/null >>"$found"
report 'no unfinished-work words, no paths or hosts of one machine'

of '\.(c|h|cc|cu|def|sh|py|gp|md|cff|in|awk)$|^Makefile$|^\.ci/' >"$scratch/text"
xargs grep -nE '[[:blank:]]+$' /dev/null <"$scratch/text" | cut -c1-120 >"$found"
while IFS= read -r file; do
    if [ -s "$file" ] && [ -n "$(tail -c 1 "$file")" ]; then echo "$file: no newline at the end"; fi
done <"$scratch/text" >>"$found"
report 'no blanks at line ends, a newline at the end of every file'

# -- temporary names: who can foresee one can put a link there -------------------------------------------------------------
{
    of '^(scripts|tests)/.*\.(sh|py)$' | xargs grep -nE '(/tmp|TMPDIR(:-[^}]*)?[}])/[a-z]|[a-z}]/[^ ]*\$\$' /dev/null | grep -vE 'mktemp|/tmp/nvidia-mps'
    of '^tests/.*\.[ch]$' | xargs grep -nE '"/tmp/[^"]*%[^s.]' /dev/null
} >"$found"
report 'temporary files by mktemp'

# -- every row of a table that users choose from is where they read of it -------------------------------------------------
# rows MACRO FILE.def: their names, as the command line has them
rows() { sed -n "s/^$1(\([a-z0-9_]*\)).*/\1/p" "$2" | tr _ -; }
# readme MACRO FILE.def OPTION: they are in the line of the option in README.md
readme() {
    for name in $(rows "$1" "$2"); do
        grep "^| \`--$3\`" README.md | grep -q "\`${name}[\`[]" || echo "README.md: the line of --$3 lacks \`$name\`"
    done
}
{
    readme EXCHANGE comm/algorithms/exchanges.def algo
    readme SELECTOR topk/selectors/selectors.def select
    readme WIRE comm/wire/wires.def wire
    readme MODEL nets/models/models.def model
    readme DATASET data/datasets.def data
    for name in $(rows EXCHANGE comm/algorithms/exchanges.def) $(rows SELECTOR topk/selectors/selectors.def); do
        grep -q "^| \`$name\` |" docs/exchanges.md || echo "docs/exchanges.md: no row of \`$name\`"
    done
    for name in $(rows WIRE comm/wire/wires.def); do
        grep -q "\`$name\`" docs/exchanges.md || echo "docs/exchanges.md lacks \`$name\`"
    done
} >"$found"
report 'README.md and docs/exchanges.md name every row'

# -- shell -----------------------------------------------------------------------------------------------------------------
if needs shellcheck 'shellcheck'; then
    of '\.sh$|^\.ci/run$' | xargs shellcheck -x -f gcc >"$found" 2>&1
    # Jobs as they are written, in every shape.
    jobs_of() { # OPTION...
        sh scripts/slurm/generate.sh --model vgg16 --nodes 2 --ranks-per-node 4 --out "$scratch/jobs" "$@" >/dev/null &&
            shellcheck -s sh -f gcc "$scratch"/jobs/*.sbatch "$scratch/jobs/submit.sh"
    }
    {
        jobs_of --program sparsetrain --algos 'dense gtopk'
        jobs_of --program sparsetrain --algos oktopk --launcher mpirun --modules 'openmpi cuda' --serial --time 1:00:00 --sparse '--wire packed'
        jobs_of --container image.sif --algos topka --gpus-per-node 4 --cpus-per-rank 2 --density 0.01 -- --data "it's here"
    } >>"$found" 2>&1
    report 'shellcheck'
fi

# -- C, by tools that read all of it ---------------------------------------------------------------------------------------
if needs cppcheck 'cppcheck'; then
    # cppcheck 2.10 overlooks _Noreturn, and would follow paths behind die(); it takes loops over ranks
    # or classes in tests for loops that may not run.
    printf '%s\n' "$c_sources" | cppcheck --quiet --file-list=- --std=c11 -I . -D_GNU_SOURCE -D__GNUC__ -D__x86_64__ \
        '-D_Noreturn=__attribute__((noreturn))' -j "$jobs" --enable=warning,performance,portability \
        --inline-suppr --suppress='uninitvar:tests/*' --suppress='invalidFunctionArg:tests/*' \
        --suppress=missingInclude \
        --suppress=missingIncludeSystem --suppress=unmatchedSuppression --suppress=unknownMacro \
        --template='{file}:{line}: {severity}: {message} [{id}]' >"$found" 2>&1
    report 'cppcheck'
fi
if needs clang 'clang -Wall -Wextra ... -Werror'; then
    warnings='-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla -Werror'
    mpi=
    for package in ompi-c ompi mpich; do
        [ -n "$mpi" ] || mpi=$(pkg-config --cflags "$package" 2>/dev/null | sed 's/-I/-isystem /g')
    done
    # clang_pass FLAGS: over the files on stdin
    clang_pass() {
        # shellcheck disable=SC2086
        xargs -P "$jobs" -n 8 clang -fsyntax-only -std=c11 -D_GNU_SOURCE -I. \
            -DST_VERSION='"0"' -DST_COMMIT='"0"' -DST_CFLAGS='""' -DST_CUDA_ARCH='"0"' \
            -Wno-unknown-pragmas $warnings "$@" 2>&1 | grep -E '(error|warning):'
    }
    # shellcheck disable=SC2086
    printf '%s\n' $c_sources | grep -vxF "${plugin_sources:-none}" | clang_pass $mpi >"$found"
    if [ -z "$plugin_sources" ]; then
        :
    elif [ -n "$cuda_home" ]; then
        printf '%s\n' "$plugin_sources" | clang_pass -isystem "$cuda_home/include" >>"$found"
    else
        # shellcheck disable=SC2086
        printf 'skip  clang of %s: there is no CUDA toolkit\n' $plugin_sources
    fi
    report 'clang, with the warnings of the Makefile'
fi

# -- advice ----------------------------------------------------------------------------------------------------------------
# shellcheck disable=SC2086
wc -l $c_files | awk '$2 != "total" && $1 > 500 { printf "note  %s has %d lines (the habit is 400)\n", $2, $1 }'

[ "$failures" = 0 ] || {
    printf '%d checks failed\n' "$failures"
    exit 1
}
