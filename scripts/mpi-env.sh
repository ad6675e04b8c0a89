# shellcheck shell=sh
# mpi-env.sh: sourced, not run: `. scripts/mpi-env.sh`, from the top of the tree. Sets MPIRUN to the launcher of the
# MPI that the Makefile builds with, and exports settings for jobs on ONE machine, each only where it is not
# set already:
#
#   root           Open MPI refuses to start as root unless told; containers are root
#   oversubscribe  more ranks than cores are fine in a test
#   yield          ranks that wait give their core away; without it a tiny allreduce at P = 8 on 2 cores takes
#                  a thousand times longer
#   pml, btl       shared memory only: no probing for network hardware at start-up
#   binding        none: Open MPI binds the ranks of every job of one or two to the cores 0 and 1, so jobs side by side,
#                  and the threads that feed a network, share those two however many there are
#   hwloc          no look at PCI devices and displays: each rank would read the configuration of every device for itself,
#                  which a virtual machine must trap. A job of four that only starts and ends takes half the processor time
#
# odls_base_sigkill_timeout stays at its 1 s on purpose: after Ctrl-C that is time for the checkpoint of a small model,
# and any longer value is also waited for, twice, whenever a rank ends with a status that is not 0. Runs with large
# models are better stopped with `kill -USR1` to mpirun, which passes it on and kills nobody.
#
# MPICH reads none of these variables. Runs over several machines must not use this file.

if [ -z "${MPIRUN:-}" ]; then
    mpi_env_package=${MPI:-auto}
    if [ "$mpi_env_package" = auto ]; then # the Makefile's order
        mpi_env_package=
        for mpi_env_try in ompi-c ompi mpich; do
            if pkg-config --exists "$mpi_env_try" 2>/dev/null; then
                mpi_env_package=$mpi_env_try
                break
            fi
        done
    fi
    case $mpi_env_package in
    ompi*) MPIRUN=$(command -v mpirun.openmpi || command -v mpirun || true) ;;
    mpich*) MPIRUN=$(command -v mpirun.mpich || command -v mpirun || true) ;;
    *) MPIRUN=$(command -v mpirun || true) ;;
    esac
    MPIRUN=${MPIRUN:-mpirun} # not there: the shell's own message names it
    unset mpi_env_package mpi_env_try
fi
export MPIRUN

if [ "$(id -u)" = 0 ]; then
    : "${OMPI_ALLOW_RUN_AS_ROOT:=1}" "${OMPI_ALLOW_RUN_AS_ROOT_CONFIRM:=1}"
    export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
fi
: "${OMPI_MCA_rmaps_base_oversubscribe:=1}" "${OMPI_MCA_mpi_yield_when_idle:=1}"
: "${OMPI_MCA_pml:=ob1}" "${OMPI_MCA_btl:=self,vader}" # Open MPI 5 knows vader as another name of its sm
: "${OMPI_MCA_hwloc_base_binding_policy:=none}"
export OMPI_MCA_rmaps_base_oversubscribe OMPI_MCA_mpi_yield_when_idle OMPI_MCA_pml OMPI_MCA_btl OMPI_MCA_hwloc_base_binding_policy
: "${HWLOC_COMPONENTS:=-linux:0x18}" "${HWLOC_PLUGINS_PATH:=/nonexistent}" # 0x18: the phases PCI and I/O
export HWLOC_COMPONENTS HWLOC_PLUGINS_PATH
# Open MPI 5 starts jobs through PRRTE, which has names of its own.
: "${PRTE_MCA_rmaps_default_mapping_policy:=:oversubscribe}" "${PRTE_MCA_hwloc_default_binding_policy:=none}"
export PRTE_MCA_rmaps_default_mapping_policy PRTE_MCA_hwloc_default_binding_policy
