# shellcheck shell=sh
# mpi-files.sh: sourced by what starts many MPI jobs.

# mpi_files DIR: Open MPI keeps its files there, in a new folder. Jobs side by side would make and remove the same folder in
# /tmp, one under the hands of the other; so would two in a row, where a helper of the first, begun without mpirun or killed,
# ends after it. A folder that has another in it is kept.
mpi_files() {
    mkdir -p "$1/ompi.$(uname -n | cut -d . -f 1).$(id -u)/kept" || exit 1
    export OMPI_MCA_orte_tmpdir_base="$1" PRTE_MCA_prte_tmpdir_base="$1"
}
