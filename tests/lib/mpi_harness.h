/* mpi_harness.h: cmocka under mpirun. Rank 0 alone prints TAP. A case may be collective, so an assertion that
 * fails on one rank must not leave the others waiting: it ends the whole job (CMOCKA_TEST_ABORT turns a failure
 * into abort(), on which mpirun ends every rank), and the runner counts a program that died as failed.
 *
 *        static void adds_up(struct comm *c) { ... assert_int_equal(...); }
 *        int main(int argc, char **argv) {
 *            const struct mpi_case cases[] = {{"adds_up", adds_up}};
 *            return mpi_test_main(argc, argv, "comm_example", cases, 1);
 *        }
 */
#ifndef ST_TESTS_MPI_HARNESS_H
#define ST_TESTS_MPI_HARNESS_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "comm/comm.h"

struct mpi_case {
    const char *name;
    void (*run)(struct comm *c);
};

enum { MPI_CASES_MAX = 64 };
static struct comm *mpi_test_comm;

static void mpi_test_run_case(void **state) {
    const struct mpi_case *test = *state;
    /* cmocka turns a crash into a failed case and goes on; the other ranks would wait for this one. */
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++) signal(fatal[i], SIG_DFL);
    test->run(mpi_test_comm);
    comm_barrier(mpi_test_comm);
}

/* A failed assertion reaches here as SIGABRT, its text already on stderr; say who and where. */
static const char *mpi_test_who;
static void mpi_test_aborted(int number) {
    if (write(STDERR_FILENO, mpi_test_who, strlen(mpi_test_who)) < 0) _exit(1);
    signal(number, SIG_DFL);
    raise(number);
}

/* Collective: the same path for all ranks, of a file that is not there; what: which kind of file. */
static inline void mpi_test_path(struct comm *c, const char *what, char path[64]) {
    snprintf(path, 64, "/tmp/sparsetrain-%.30s-XXXXXX", what);
    int file = c->rank == 0 ? mkstemp(path) : -1;
    if (file >= 0) close(file);
    if (file >= 0) remove(path);
    comm_bcast(c, 0, path, 64);
}

static inline int mpi_test_main(int argc, char **argv, const char *group, const struct mpi_case *cases, size_t count) {
    static struct CMUnitTest tests[MPI_CASES_MAX];
    static char who[128];
    struct mpi_case copy[MPI_CASES_MAX];
    if (count > MPI_CASES_MAX) return 1;
    for (size_t i = 0; i < count; i++) {
        copy[i] = cases[i];
        tests[i] =
            (struct CMUnitTest){.name = cases[i].name, .test_func = mpi_test_run_case, .initial_state = &copy[i]};
    }
    mpi_test_comm = comm_open(&argc, &argv);
    struct comm *c = mpi_test_comm;
    if (c->rank > 0 && !freopen("/dev/null", "w", stdout)) return 1;
    snprintf(who, sizeof who, "%s: rank %d of %d gives up\n", group, c->rank, c->size);
    mpi_test_who = who;
    signal(SIGABRT, mpi_test_aborted);
    setenv("CMOCKA_TEST_ABORT", "1", 1);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int failed = _cmocka_run_group_tests(group, tests, count, NULL, NULL);
    double worst = failed;
    comm_allreduce_f64(c, &worst, 1, COMM_MAX);
    comm_close(c);
    return worst > 0 ? 1 : 0;
}

#endif
