/* launcher.c: see launcher.h. */
#include "cli/launcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/comm.h"

static const char other_mpirun[] = "start it with the mpirun of that MPI",
                  other_srun[] = "try srun --mpi=pmix or --mpi=pmi2 (srun --mpi=list), or the mpirun of that MPI";

/* In the order of launcher_rank. PMIx says no number: ranks above 0 know that there is more than one. */
static const struct {
    const char *ranks, *rank, *name, *advice;
} launchers[] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "Open MPI's mpirun", other_mpirun},
                 {NULL, "PMIX_RANK", "a launcher with PMIx", other_mpirun},
                 {"PMI_SIZE", "PMI_RANK", "the mpirun of MPICH or Intel MPI", other_mpirun},
                 {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "MVAPICH's mpirun", other_mpirun},
                 {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun", other_srun}};
enum { LAUNCHERS = sizeof launchers / sizeof *launchers, SRUN = LAUNCHERS - 1 };

static int number(const char *variable, int missing) {
    const char *value = variable ? getenv(variable) : NULL;
    return value ? atoi(value) : missing;
}

int launcher_rank(void) {
    if (comm_simulated()) return comm_simulated_rank();
    for (size_t i = 0; i < LAUNCHERS; i++)
        if (getenv(launchers[i].rank)) return atoi(getenv(launchers[i].rank));
    return 0;
}

/* A job's script and the shell of salloc are no tasks of a step; a shell that srun --pty started is, but not what it
 * starts in its turn. */
static bool is_srun_task(void) {
    return getenv("SLURM_PROCID") && (!getenv("SLURM_PTY_PORT") || number("SLURM_TASK_PID", 0) == (int)getpid());
}

struct launcher launcher_look(void) {
    struct launcher found = {0};
    for (size_t i = 0; i < LAUNCHERS; i++) {
        int rank = number(launchers[i].rank, 0);
        int ranks = launchers[i].ranks ? number(launchers[i].ranks, 0) : rank > 0 ? rank + 1 : 0;
        if (i == SRUN && !is_srun_task()) ranks = 0;
        if (i != SRUN && launchers[i].ranks && ranks == 1) return (struct launcher){0}; /* one rank was asked for */
        if (ranks < 2 || found.ranks) continue;
        found = (struct launcher){.ranks = ranks,
                                  .at_least = !launchers[i].ranks,
                                  .variable = launchers[i].ranks ? launchers[i].ranks : launchers[i].rank,
                                  .name = launchers[i].name,
                                  .advice = launchers[i].advice,
                                  .speaks = rank == (launchers[i].ranks ? 0 : 1)};
    }
    return found;
}

bool launcher_fits(const struct launcher *l, int size, const char *library, struct err *e) {
    if (l->ranks == 0 || size > 1 || comm_simulated()) return true;
    return err_set(e,
                   "%s started %s%d processes (%s is set), but the MPI of this program, %s, finds one rank in each; "
                   "%s, or unset %s for a run of one rank",
                   l->name, l->at_least ? "at least " : "", l->ranks, l->variable, library, l->advice, l->variable);
}

bool launcher_kills(void) {
    return getenv("OMPI_COMM_WORLD_SIZE") != NULL;
}

/* Was the parent given a rank, too? Then it is a script or the like that the launcher started in our place. Launchers
 * that belong to another user, as Slurm's, cannot be read and are none. */
static bool parent_has(const char *variable) {
    char path[64], *entry = NULL;
    size_t room = 0, length = strlen(variable);
    bool found = false;
    snprintf(path, sizeof path, "/proc/%ld/environ", (long)getppid());
    FILE *f = fopen(path, "re");
    while (f && !found && getdelim(&entry, &room, '\0', f) > 0)
        found = strncmp(entry, variable, length) == 0 && entry[length] == '=';
    if (f) fclose(f);
    free(entry);
    return found;
}

bool launcher_joins(const char *library) {
    static const struct {
        const char *library, *ranks, *rank;
    } own[] = {{"Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"}, {"MPICH", "PMI_SIZE", "PMI_RANK"}};
    if (comm_simulated() || access("/proc/self/environ", R_OK) != 0) return false;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strncmp(library, own[i].library, strlen(own[i].library)) == 0 && number(own[i].ranks, 0) > 1)
            return !parent_has(own[i].rank);
    return false;
}
