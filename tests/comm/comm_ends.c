/* comm_ends.c: how a job ends when one rank meets trouble in the middle of a step: every rank ends, with the right
 * exit status and a line that names the culprit, and nothing hangs. The program starts itself under mpirun.
 *
 * devices: cuda
 */
/* long: more than ten seconds at one P */
/* waits: for jobs that end */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "comm/exchange.h"
#include "comm/wire/wire.h"
#include "tests/lib/test_device.h"

enum { N = 1000, K = 10, BAD_INDEX = 17, SECONDS = 60 };

/* -- the child: one rank of the job -------------------------------------------------------------------- */
/* What the last rank (or the only one) does wrong is named by `trouble`. */
static void meet_nan(struct comm *c, const struct exchange_ops *ops, float bad, bool exempt) {
    static const uint32_t entries[] = {BAD_INDEX, BAD_INDEX + 500};
    static float grad[N];
    struct store store;
    struct exchange x;
    struct exchange_sum sum;
    store_open(&store, N, test_device());
    float *device_grad = device_twin(grad, N);
    struct selector *selector = selector_open(selectors[0], &store, K, NULL);
    struct exchange_setup setup = {.comm = c, .store = &store, .selector = selector, .n = N, .k_max = K};
    setup.exempt = entries;
    setup.exempts = exempt ? 2 : 0;
    exchange_open(&x, ops, &setup);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < N; i++) grad[i] = (float)((i * 7 + c->rank + step) % 11 - 5);
        if (step == 2 && c->rank == c->size - 1) grad[BAD_INDEX] = grad[BAD_INDEX + 500] = bad;
        device_fill(device_grad, grad, N);
        if (!exchange_run(&x, device_grad, K, &sum))
            die_status(EXIT_NUMERIC, "step %d, rank %d: not finite at index %zu", step, c->rank, sum.bad);
    }
}

/* Waits for a message that never comes. No rank may reach MPI_Finalize meanwhile: Open MPI 4.1's mpirun crashes or
 * hangs about every third time when a rank aborts while another one is in there. */
static void wait_forever(struct comm *c) {
    char byte;
    comm_recv(c, (c->rank + 1) % c->size, 1, &byte, 1);
}

static void send_too_much(struct comm *c) {
    char bytes[100] = {0};
    if (c->rank == c->size - 1) comm_send(c, 0, 2, bytes, sizeof bytes);
    if (c->rank == 0) comm_recv(c, c->size - 1, 2, bytes, sizeof bytes - 1);
    wait_forever(c);
}

static void view_bad_message(const char *trouble) {
    struct sparse view;
    uint32_t bad_order[4] = {5, 5}, out_of_range[4] = {5, N};
    if (strcmp(trouble, "length") == 0) wire_read(wires[0], bad_order, 12, 0, N, 3, NULL, &view);
    if (strcmp(trouble, "order") == 0) wire_read(wires[0], bad_order, 16, 0, N, 3, NULL, &view);
    if (strcmp(trouble, "range") == 0) wire_read(wires[0], out_of_range, 16, 0, N, 3, NULL, &view);
}

/* trouble: "FORMAT-KIND", a message of three entries as FORMAT packs them, damaged or read for another range. */
static void read_bad_packed(const char *trouble) {
    uint32_t idx[3] = {5, 7, N - 1}, idx2[8], message[64] = {0};
    float val[3] = {1, 2, 3}, val2[8];
    struct sparse s = {idx, val, 3, 3}, buffer = {idx2, val2, 0, 8}, view;
    for (size_t w = 0; wires[w]; w++) {
        size_t length = strlen(wires[w]->name);
        if (strncmp(trouble, wires[w]->name, length) != 0 || trouble[length] != '+') continue;
        const char *kind = trouble + length + 1;
        size_t bytes = wires[w]->encode(&s, 0, N, message);
        if (strcmp(kind, "length") == 0) bytes -= 4;
        if (strcmp(kind, "name") == 0) message[0] ^= 1;
        if (strcmp(kind, "count") == 0) message[1] = 9;
        wire_read(wires[w], message, bytes, 0, strcmp(kind, "range") == 0 ? N - 1 : N, 3, &buffer, &view);
    }
}

static int child(int argc, char **argv) {
    const char *trouble = argv[2];
    test_device();
    struct comm *c = comm_open(&argc, &argv);
    bool last = c->rank == c->size - 1, exempt = strncmp(trouble, "exempt+", 7) == 0;
    if (exempt) trouble += 7;
    for (size_t row = 0; exchanges[row]; row++) {
        size_t length = strlen(exchanges[row]->name);
        if (strncmp(trouble, exchanges[row]->name, length) != 0 || trouble[length] != '+') continue;
        meet_nan(c, exchanges[row], (float)atof(trouble + length + 1), exempt);
    }
    if (last) view_bad_message(trouble);
    if (last) read_bad_packed(trouble);
    if (last && strcmp(trouble, "die") == 0) die("this rank is ill");
    if (last && strcmp(trouble, "memory") == 0) {
        mem_fail_at(1);
        mem_free(mem_alloc(1, 1 << 20, "a large thing"));
    }
    if (strcmp(trouble, "long") == 0) send_too_much(c);
    if (last && strcmp(trouble, "tag") == 0) comm_send(c, 0, -5, "x", 1);
    if (strcmp(trouble, "none") != 0) wait_forever(c);
    comm_close(c);
    return 0;
}

/* -- the parent ------------------------------------------------------------------------------------------- */
static char self[4096], output[1 << 16];

static void read_all(FILE *from) {
    size_t length = fread(output, 1, sizeof output - 1, from);
    output[length] = '\0';
}

/* The exit status of mpirun -np P of this program with this trouble; its output goes to `output`. */
static int job(int P, const char *trouble) {
    char command[5000];
    const char *mpirun = getenv("MPIRUN");
    snprintf(command, sizeof command, "timeout -k 5 %d %s -np %d '%s' child '%s' 2>&1 < /dev/null", SECONDS,
             mpirun ? mpirun : "mpirun", P, self, trouble);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    read_all(pipe);
    int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void expect(int P, const char *trouble, int status, const char *text) {
    int got = job(P, trouble);
    if (got != status || !strstr(output, text))
        fail_msg("P = %d, %s: status %d instead of %d, or no \"%s\" in:\n%s", P, trouble, got, status, text, output);
}

static void not_finite(int P, const char *prefix, const char *bad) {
    for (size_t row = 0; exchanges[row]; row++) {
        char trouble[64], text[128];
        if (*prefix && !exchanges[row]->sparse) continue; /* nothing is selected, so nothing is exempt */
        snprintf(trouble, sizeof trouble, "%s%s+%s", prefix, exchanges[row]->name, bad);
        snprintf(text, sizeof text, "sparsetrain: step 2, rank %d: not finite at index %d\n", P - 1, BAD_INDEX);
        expect(P, trouble, EXIT_NUMERIC, text);
    }
}

static void nan_ends_every_rank(void **state) {
    (void)state;
    not_finite(1, "", "nan");
    if (!test_device_is_host()) return; /* the GPU's messages are the host's; P = 3 is with the infinity */
    not_finite(2, "", "nan");
    not_finite(5, "", "nan");
}
static void infinity_ends_every_rank(void **state) {
    (void)state;
    not_finite(3, "", "-inf");
}

/* The others have finished the row's own exchange, or are in it, and wait for the sum of the exempt entries. */
static void an_exempt_nan_ends_every_rank(void **state) {
    (void)state;
    not_finite(3, "exempt+", "nan");
}

static void no_trouble(void **state) {
    (void)state;
    expect(1, "none", 0, "");
    expect(3, "none", 0, "");
}

static void dying_ends_every_rank(void **state) {
    (void)state;
    expect(1, "die", EXIT_SYSTEM, "this rank is ill");
    expect(4, "die", EXIT_SYSTEM, "sparsetrain: rank 3: tests/comm/comm_ends.c:");
    expect(4, "memory", EXIT_SYSTEM, "no memory for a large thing");
}

static void a_message_that_is_too_long_names_its_sender(void **state) {
    (void)state;
    expect(3, "long", EXIT_SYSTEM, "rank 2 sent a message of more than the expected 99 bytes");
}

/* What MPI refuses, by its own words. */
static void an_error_of_mpi_ends_every_rank(void **state) {
    (void)state;
    expect(3, "tag", EXIT_SYSTEM, "sparsetrain: rank 2: comm/transport/transport_mpi.c:");
    expect(2, "tag", EXIT_SYSTEM, "MPI_Send of 1 bytes to rank 0 failed: ");
}

static void a_bad_sparse_message_names_its_sender(void **state) {
    (void)state;
    expect(2, "length", EXIT_SYSTEM,
           "rank 3 sent a message that is not coo32: 12 bytes are no whole number of 8-byte entries");
    expect(2, "packed+length", EXIT_SYSTEM, "rank 3 sent a message that is not packed: ");
    expect(2, "packed+name", EXIT_SYSTEM, "rank 3 sent a message that is not packed: it begins with");
    expect(2, "packed+count", EXIT_SYSTEM, "rank 3 sent a message that is not packed: 9 entries where 1 to 8");
    expect(2, "packed+range", EXIT_SYSTEM, "rank 3 sent a message that is not packed: its indices reach 999");
    expect(2, "packed-f32+range", EXIT_SYSTEM, "rank 3 sent a message that is not packed-f32: its indices reach 999");
    expect(2, "order", EXIT_SYSTEM, "rank 3 sent a message that is not coo32: its indices");
    expect(2, "range", EXIT_SYSTEM, "rank 3 sent a message that is not coo32: its indices");
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "child") == 0) return child(argc, argv);
    test_device_in_children();
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_trouble),
        cmocka_unit_test(nan_ends_every_rank),
        cmocka_unit_test(infinity_ends_every_rank),
        cmocka_unit_test(an_exempt_nan_ends_every_rank),
        cmocka_unit_test(dying_ends_every_rank),
        cmocka_unit_test(a_message_that_is_too_long_names_its_sender),
        cmocka_unit_test(an_error_of_mpi_ends_every_rank),
        cmocka_unit_test(a_bad_sparse_message_names_its_sender),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (!test_device_is_host()) { /* the others do not touch it */
        const struct CMUnitTest of_device[] = {cmocka_unit_test(nan_ends_every_rank),
                                               cmocka_unit_test(infinity_ends_every_rank)};
        return cmocka_run_group_tests(of_device, NULL, NULL);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
