/* cli_launcher.c: which environments belong to a launcher that started more processes than MPI finds, which of them
 * speaks, and which environments only look so: a job's script or shell, or a launcher inside another's job. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/launcher.h"

static const char *const variables[] = {
    "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMIX_RANK",      "PMI_SIZE",      "PMI_RANK",
    "MV2_COMM_WORLD_SIZE",  "MV2_COMM_WORLD_RANK",  "SLURM_NTASKS",   "SLURM_PROCID",  "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_ID",        "SLURM_JOB_ID",         "SLURM_PTY_PORT", "SLURM_TASK_PID"};

/* "NAME=VALUE NAME=VALUE", and nothing else of a launcher. PID stands for this process. */
static void set_environment(const char *text) {
    char copy[256], pid[24];
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) unsetenv(variables[i]);
    snprintf(copy, sizeof copy, "%s", text);
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        char *value = strchr(word, '=');
        *value++ = '\0';
        setenv(word, strcmp(value, "PID") == 0 ? pid : value, 1);
    }
}

static void of_one_rank(void **state) {
    (void)state;
    static const struct {
        const char *environment, *told; /* NULL: it fits */
        bool speaks;
    } cases[] = {
        {"", NULL, false},
        {"OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0 PMIX_RANK=0", NULL, false},
        {"OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=0", "Open MPI's mpirun started 4 processes", true},
        {"OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE", false},
        {"PMI_SIZE=1 PMI_RANK=0", NULL, false},
        {"PMI_SIZE=3 PMI_RANK=0", "MPICH or Intel MPI started 3 processes (PMI_SIZE is set)", true},
        {"PMI_SIZE=3 PMI_RANK=1", "PMI_SIZE", false},
        {"MV2_COMM_WORLD_SIZE=2 MV2_COMM_WORLD_RANK=0", "MVAPICH's mpirun started 2 processes", true},
        {"PMIX_RANK=0", NULL, false}, /* it may be the only one */
        {"PMIX_RANK=1", "PMIx started at least 2 processes (PMIX_RANK is set)", true},
        {"PMIX_RANK=2", "at least 3 processes", false},
        /* in a job of four tasks: its script or salloc's shell, a task, what an interactive shell starts */
        {"SLURM_JOB_ID=7 SLURM_NTASKS=4", NULL, false},
        {"SLURM_JOB_ID=7 SLURM_NTASKS=4 SLURM_PROCID=0", NULL, false},
        {"SLURM_NTASKS=4 SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4", "srun started 4 processes", true},
        {"SLURM_NTASKS=4 SLURM_PROCID=3 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4", "try srun --mpi=pmix", false},
        {"SLURM_NTASKS=4 SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1", NULL, false},
        {"SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4 SLURM_PTY_PORT=5 SLURM_TASK_PID=1", NULL, false},
        {"SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4 SLURM_PTY_PORT=5 SLURM_TASK_PID=PID", "srun started 4", true},
        /* mpirun -np 1 in such a job, whose variables it hands down */
        {"SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4 OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0", NULL, false},
        {"SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4 PMI_SIZE=1 PMI_RANK=0", NULL, false},
        {"OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=1 PMI_SIZE=1 PMI_RANK=0", NULL, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = {0};
        set_environment(cases[i].environment);
        struct launcher l = launcher_look();
        bool fits = launcher_fits(&l, 1, "Some MPI 1.0", &e);
        if (fits != !cases[i].told) fail_msg("%s: %s", cases[i].environment, e.text);
        if (fits) continue;
        if (!strstr(e.text, cases[i].told)) fail_msg("%s: %s", cases[i].environment, e.text);
        assert_non_null(strstr(e.text, "Some MPI 1.0, finds one rank in each; "));
        assert_null(strchr(e.text, '\n'));
        assert_true(l.speaks == cases[i].speaks);
        assert_true(launcher_fits(&l, 4, "Some MPI 1.0", &e)); /* where MPI finds more it has been understood */
    }
    set_environment("");
}

static void ranks_of_verbs_without_mpi(void **state) {
    (void)state;
    set_environment("");
    assert_int_equal(launcher_rank(), 0);
    set_environment("PMI_SIZE=3 PMI_RANK=2");
    assert_int_equal(launcher_rank(), 2);
    set_environment("SLURM_PROCID=5 OMPI_COMM_WORLD_RANK=1");
    assert_int_equal(launcher_rank(), 1);
    set_environment("");
}

static void which_kills_after_ctrl_c(void **state) {
    (void)state;
    static const char *const waits[] = {"", "PMI_SIZE=3 PMI_RANK=2", "PMIX_RANK=1",
                                        "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4"};
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        set_environment(waits[i]);
        if (launcher_kills()) fail_msg("%s", waits[i]);
    }
    set_environment("OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0 PMIX_RANK=0");
    assert_true(launcher_kills());
    set_environment("");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_one_rank),
        cmocka_unit_test(ranks_of_verbs_without_mpi),
        cmocka_unit_test(which_kills_after_ctrl_c),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
