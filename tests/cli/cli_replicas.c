/* cli_replicas.c: --check-replicas, and every checkpoint, find a single bit that one rank holds differently, of the
 * parameters or of the optimiser's state, and name the rank that is not as most are: among all ranks, or, between two
 * averages of a run whose nodes drift apart, among those of a node. The program starts itself under mpirun, since the
 * job must end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/table.h"
#include "cli/train/run.h"

enum { N = 1000, RANKS = 3, EACH = 2, NODES = 2 };

/* Nodes of EACH ranks drift apart: each has parameters of its own. */
static void drift(struct run *r, float *param) {
    struct err e = {0};
    TABLE_FIND(exchanges, "hitopk", r->path.reducer.exchange.ops);
    if (!comm_set_ranks_per_node(r->comm, EACH, &e)) exit(1);
    r->options.local_update = r->replicas.drifts = true;
    r->replicas.averaged_at = 5;
    param[0] = (float)r->comm->node + 0.5f;
}

/* One rank: the parameters are equal but for the bit of rank `odd`, and between nodes where those drift. */
static int child(int argc, char **argv) {
    static struct run r;
    static struct net net;
    static float param[N], moments[N], *changed = param;
    int odd = atoi(argv[2]);
    r.comm = comm_open(&argc, &argv);
    for (size_t i = 0; i < N; i++) param[i] = (float)i;
    if (strcmp(argv[3], "nodes") == 0) drift(&r, param);
    if (strcmp(argv[3], "optimiser") == 0) changed = moments;
    if (odd >= 0 && (odd >= 10 ? r.comm->rank == odd / 10 || r.comm->rank == odd % 10 : r.comm->rank == odd)) {
        uint32_t bits;
        memcpy(&bits, &changed[N - 1], sizeof bits);
        bits ^= 1;
        memcpy(&changed[N - 1], &bits, sizeof bits);
    }
    r.model.optimiser.device = device_find("cpu");
    r.model.optimiser.state = moments;
    r.model.optimiser.n_state = N;
    net.arena.device = device_find("cpu");
    net.arena.param = param;
    net.arena.n = r.model.n = N;
    r.model.net = &net;
    r.step = 7;
    run_check_replicas(&r);
    comm_close(r.comm);
    return EXIT_DONE;
}

static char self[4096], output[8192];

static int job_of(int ranks, int odd, const char *what) {
    char command[5000];
    const char *mpirun = getenv("MPIRUN");
    snprintf(command, sizeof command, "timeout -k 5 60 %s -np %d '%s' child %d %s 2>&1 < /dev/null",
             mpirun ? mpirun : "mpirun", ranks, self, odd, what);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    output[fread(output, 1, sizeof output - 1, pipe)] = '\0';
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int job(int odd) {
    return job_of(RANKS, odd, "ranks");
}

static void equal_replicas_pass(void **state) {
    (void)state;
    assert_int_equal(job(-1), EXIT_DONE);
}

static void one_bit_is_found(void **state) {
    (void)state;
    for (int odd = 0; odd < RANKS; odd++) {
        char text[128];
        snprintf(text, sizeof text,
                 "sparsetrain: after step 7 the parameters of rank %d differ from those of rank %d\n", odd, odd == 0);
        int status = job(odd);
        if (status != EXIT_SYSTEM || !strstr(output, text))
            fail_msg("status %d, without \"%s\":\n%s", status, text, output);
    }
}

static void so_is_one_of_the_optimiser(void **state) {
    (void)state;
    assert_int_equal(job_of(RANKS, 2, "optimiser"), EXIT_SYSTEM);
    assert_non_null(strstr(output, "after step 7 the states of the optimiser of rank 2 differ from those of rank 0\n"));
}

/* Two digits: two ranks. */
static void all_that_differ_are_named(void **state) {
    (void)state;
    assert_int_equal(job_of(5, 13, "ranks"), EXIT_SYSTEM);
    assert_non_null(strstr(output, "after step 7 the parameters of ranks 1, 3 differ from those of rank 0\n"));
}

/* That the nodes differ is as it should be. */
static void nodes_that_drift_are_compared_inside(void **state) {
    (void)state;
    assert_int_equal(job_of(EACH * NODES, -1, "nodes"), EXIT_DONE);
    for (int node = 0; node < NODES; node++) {
        char text[128];
        snprintf(text, sizeof text, "sparsetrain: after step 7 the parameters of rank %d differ from those of rank %d",
                 EACH * node + 1, EACH * node);
        int status = job_of(EACH * NODES, EACH * node + 1, "nodes");
        if (status != EXIT_SYSTEM || !strstr(output, text))
            fail_msg("status %d, without \"%s\":\n%s", status, text, output);
    }
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "child") == 0) return child(argc, argv);
    if (!realpath(argv[0], self)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_replicas_pass),
        cmocka_unit_test(one_bit_is_found),
        cmocka_unit_test(so_is_one_of_the_optimiser),
        cmocka_unit_test(all_that_differ_are_named),
        cmocka_unit_test(nodes_that_drift_are_compared_inside),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
