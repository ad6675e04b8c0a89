# shellcheck shell=sh
# ranks.sh: sourced by what kills MPI jobs, the soak and the tests.

# ranks_of JOB: the ranks that the mpirun of this process number has begun, a line each
ranks_of() {
    for rank in $(ps -o pid= --ppid "$1"); do
        if [ "$(ps -o comm= -p "$rank")" = sparsetrain ]; then echo "$rank"; fi
    done
}
# gone PROCESS...: all of these are gone, or have become zombies, within a minute
gone() {
    for _ in $(seq 600); do
        gone_alive=
        for gone_process in "$@"; do
            case $(ps -o stat= -p "$gone_process" 2> /dev/null) in '' | Z*) ;; *) gone_alive=yes ;; esac
        done
        [ -n "$gone_alive" ] || return 0
        sleep 0.1
    done
    return 1
}
