/* comm_wire_check.c: a bit that changes on the wire (SPARSETRAIN_FLIP) ends the job with a line that names step, ranks
 * and bytes, in every call of the transport and in every row of the exchanges; without checks nobody notices it. The
 * program starts itself under mpirun. That checks change no bit of a result and no count is what the other tests of
 * comm say, which run with them. */
/* long: more than ten seconds */
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

#include "base/hash.h"
#include "base/mem.h"
#include "comm/exchange.h"

enum { N = 1000, K = 60, STEPS = 2, SECONDS = 120, P_LEAST = 2, P_MOST = 4 };

/* -- the child: one rank of the job -------------------------------------------------------------------------------- */
static float vector[N], other[N];
static unsigned char bytes[4 * N * sizeof(float)];

static void call_send(struct comm *c) {
    if (c->rank == c->size - 1) comm_send(c, 0, 1, vector, sizeof vector);
    if (c->rank == 0) comm_recv(c, c->size - 1, 1, other, sizeof other);
}
static void call_isend(struct comm *c) {
    struct comm_request in, out;
    comm_irecv(c, (c->rank + c->size - 1) % c->size, 1, other, sizeof other, &in);
    comm_isend(c, (c->rank + 1) % c->size, 1, vector, 17, &out); /* shorter than there is room for */
    assert_int_equal(comm_wait(c, &in), 17);
    while (!comm_test(c, &out)) {
    }
}
static void call_sendrecv(struct comm *c) {
    int right = (c->rank + 1) % c->size, left = (c->rank + c->size - 1) % c->size;
    comm_sendrecv(c, right, vector, sizeof vector, left, other, sizeof other, 1);
}
static void call_bcast(struct comm *c) {
    comm_bcast(c, c->size - 1, vector, sizeof vector);
}
static void call_bcast_first(struct comm *c) {
    comm_bcast(c, 0, vector, sizeof vector);
}
static void call_gather(struct comm *c) {
    comm_gather(c, 0, vector, sizeof vector, bytes);
}
static void call_gather_last(struct comm *c) {
    comm_gather(c, c->size - 1, vector, sizeof vector, bytes);
}
static void call_allgather(struct comm *c) {
    comm_allgather(c, vector, sizeof vector, bytes);
}
static void call_allgather_in_place(struct comm *c) {
    comm_allgather(c, bytes + (size_t)c->rank * sizeof vector, sizeof vector, bytes);
}
static void call_allgatherv(struct comm *c) {
    size_t each[P_MOST];
    for (int r = 0; r < c->size; r++) each[r] = 40 * (size_t)(r + 1);
    comm_allgatherv(c, vector, each[c->rank], bytes, each);
}
static void call_reduce_scatter(struct comm *c) {
    static float scratch[2 * N];
    size_t each[P_MOST];
    for (int r = 0; r < c->size; r++) each[r] = N / 4;
    assert_true(comm_reduce_scatter_scratch(c, each) <= sizeof scratch / sizeof *scratch);
    comm_reduce_scatter_f32(c, vector, each, other, scratch);
}
static void call_sum_f32(struct comm *c) {
    comm_allreduce_f32(c, vector, N, COMM_SUM);
}
static void call_sum_begun(struct comm *c) {
    struct comm_request request[2];
    comm_iallreduce_f32(c, vector, N / 2, &request[0]);
    comm_iallreduce_f32(c, vector + N / 2, N / 2, &request[1]);
    comm_wait(c, &request[0]);
    while (!comm_test(c, &request[1])) {
    }
}
static void call_sum_f64(struct comm *c) {
    double sums[5] = {1, 2, 3, 4, (double)vector[1]};
    comm_allreduce_f64(c, sums, 5, COMM_SUM);
}
static void call_least_f64(struct comm *c) {
    double least = 1 + c->rank;
    comm_allreduce_f64(c, &least, 1, COMM_MIN);
}
static void call_most_u64(struct comm *c) {
    uint64_t most[3] = {7, 8, (uint64_t)c->rank};
    comm_allreduce_u64(c, most, 3, COMM_MAX);
}
static void call_sum_u64(struct comm *c) {
    uint64_t sums[3] = {7, 8, (uint64_t)c->rank};
    comm_allreduce_u64(c, sums, 3, COMM_SUM);
}

static const struct {
    const char *name, *arrives, *leaves; /* what is said at rank 0 of what it gets, and of what it sends; or NULL */
    void (*run)(struct comm *c);
} calls[] = {
    {"send", "rank 0: a message of 4000 bytes from rank", NULL, call_send},
    {"isend", "rank 0: a message of 17 bytes from rank", "rank 1: a message of 17 bytes from rank 0", call_isend},
    {"sendrecv", "rank 0: a message of 4000 bytes from", "rank 1: a message of 4000 bytes from rank 0", call_sendrecv},
    {"bcast", "rank 0: a broadcast of 4000 bytes from rank", NULL, call_bcast},
    {"bcast-first", NULL, ": a broadcast of 4000 bytes from rank 0 came changed", call_bcast_first},
    {"gather", "rank 0: a block of a gather of 4000 bytes from rank 1", NULL, call_gather},
    {"gather-last", NULL, ": a block of a gather of 4000 bytes from rank 0", call_gather_last},
    {"allgather", "rank 0: a block of an all-gather of 4000", ": a block of an all-gather of 4000 bytes from rank 0",
     call_allgather},
    {"allgather-in-place", "rank 0: a block of an all-gather of 4000", ": a block of an all-gather of 4000 bytes from",
     call_allgather_in_place},
    {"allgatherv", "rank 0: a message of ", " bytes from rank 0 came changed", call_allgatherv},
    {"reduce-scatter", "rank 0: a message of ", " bytes from rank 0 came changed", call_reduce_scatter},
    {"sum-f32", "a sum of 4000 bytes over ", "rank 0: entry 0 of a sum of 4000 bytes over", call_sum_f32},
    {"sum-begun", "a sum of 2000 bytes over ", "rank 0: entry 0 of a sum of 2000 bytes over", call_sum_begun},
    {"sum-f64", "a sum of 40 bytes over ", "rank 0: entry 0 of a sum of 40 bytes over", call_sum_f64},
    {"least-f64", " of a minimum of 8 bytes over ", "rank 0: entry 0 of a minimum of 8 bytes over", call_least_f64},
    {"most-u64", "a maximum of 24 bytes over ", "rank 0: entry 0 of a maximum of 24 bytes over", call_most_u64},
    {"sum-u64", "a sum of 24 bytes over ", "rank 0: entry 0 of a sum of 24 bytes over", call_sum_u64},
};
enum { CALLS = sizeof calls / sizeof *calls };

static struct store store;
static struct selector *selector;

/* Ok-Topk's: everything anew in every step. */
static const int one = 1;
static const struct option_row values[] = {{"tau", "N", OPTION_INT, "64", "", .offset = 0},
                                           {"tau-prime", "N", OPTION_INT, "32", "", .offset = 0}};

static void open_exchange(struct comm *c, const struct exchange_ops *ops, struct exchange *x) {
    struct err e = {0};
    if (c->size % 2 == 0 && ops->by_node && !comm_set_ranks_per_node(c, 2, &e)) die("%s", e.text);
    store_open(&store, N, device_find("cpu"));
    selector = selector_open(selectors[0], &store, K, NULL);
    const struct exchange_setup setup = {.comm = c,
                                         .store = exchange_keeps(ops, &(struct option_values){0}, NULL) ? &store : NULL,
                                         .selector = ops->selects ? selector : NULL,
                                         .n = N,
                                         .k_max = K,
                                         .bucket_bytes = 1200,
                                         .options = {values, 2, &one}};
    exchange_open(x, ops, &setup);
}

/* What all steps of a row give, on this rank. */
static uint64_t run_row(struct comm *c, const struct exchange_ops *ops) {
    struct exchange x;
    struct exchange_sum sum;
    uint64_t hash = 0;
    open_exchange(c, ops, &x);
    for (c->step = 1; c->step <= STEPS; c->step++) {
        for (size_t i = 0; i < N; i++) vector[i] = (float)(hash_word(c->step, i + N * (size_t)c->rank) % 999) / 7 - 71;
        if (!exchange_run(&x, vector, K, &sum)) die("not finite");
        if (sum.dense) hash = hash64(hash, sum.dense, N * sizeof *sum.dense);
        if (sum.sparse) hash = hash64(hash, sum.sparse->idx, sum.sparse->nnz * sizeof *sum.sparse->idx);
        if (sum.sparse) hash = hash64(hash, sum.sparse->val, sum.sparse->nnz * sizeof *sum.sparse->val);
    }
    c->step = 0;
    exchange_close(&x);
    selector_close(selector);
    store_close(&store);
    return hash;
}

static uint64_t run_call(struct comm *c, size_t call) {
    for (size_t i = 0; i < N; i++) vector[i] = 1 + (float)i / 100;
    memset(bytes, 0, sizeof bytes);
    c->traffic = TRAFFIC_EXCHANGE;
    c->step = 7;
    calls[call].run(c);
    c->traffic = TRAFFIC_CONTROL;
    return 0;
}

/* "same HASH" or "differ", from rank 0; and whether there was anything to check with. */
static void report(struct comm *c, uint64_t hash) {
    uint64_t all[P_MOST], same = 0;
    comm_allgather(c, &hash, sizeof hash, all);
    for (int r = 0; r < c->size; r++) same += all[r] == all[0];
    const struct comm_counters *check = &c->counters[TRAFFIC_CHECK];
    uint64_t sum[4] = {check->messages_sent, check->messages_received, check->bytes_sent, check->bytes_received};
    comm_allreduce_u64(c, sum, 4, COMM_SUM);
    if (sum[0] != sum[1] || sum[2] != sum[3] || (sum[2] > 0) != c->wire_check) die("checks are counted wrongly");
    if (c->rank == 0) printf("%s %016llx\n", same == (uint64_t)c->size ? "same" : "differ", (unsigned long long)hash);
}

static int child(int argc, char **argv) {
    const char *what = argv[2];
    struct comm *c = comm_open(&argc, &argv);
    for (size_t row = 0; exchanges[row]; row++)
        if (strcmp(exchanges[row]->name, what) == 0) report(c, run_row(c, exchanges[row]));
    for (size_t i = 0; i < CALLS; i++)
        if (strncmp(what, "call-", 5) == 0 && strcmp(calls[i].name, what + 5) == 0) report(c, run_call(c, i));
    comm_close(c);
    return 0;
}

/* -- the parent ---------------------------------------------------------------------------------------------------- */
static char self[4096], output[1 << 16];

/* The exit status of mpirun -np P of this program; its output goes to `output`. flip: none where it is empty. */
static int job(int P, const char *what, bool checked, const char *flip) {
    char command[5000];
    const char *mpirun = getenv("MPIRUN");
    snprintf(command, sizeof command,
             "SPARSETRAIN_FLIP=%s SPARSETRAIN_WIRE_CHECK=%d timeout -k 5 %d %s -np %d '%s' child '%s' 2>&1 < /dev/null",
             flip, checked, SECONDS, mpirun ? mpirun : "mpirun", P, self, what);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t length = fread(output, 1, sizeof output - 1, pipe);
    output[length] = '\0';
    int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static bool says(const char *text) {
    return strstr(output, text) != NULL;
}

static void found(int P, const char *what, const char *flip, const char *place, const char *text) {
    int status = job(P, what, true, flip);
    if (status != EXIT_SYSTEM || !says("sparsetrain: ") || !says(place) || !says(text) || !says("(--wire-check)"))
        fail_msg("P = %d, %s, flip %s: status %d, or no \"%s\" or \"%s\" in:\n%s", P, what, flip, status, place, text,
                 output);
}

static void what_arrives_changed_is_found(void **state) {
    (void)state;
    for (int P = P_LEAST; P <= P_MOST; P++)
        for (size_t i = 0; i < CALLS; i++) {
            char name[64];
            snprintf(name, sizeof name, "call-%s", calls[i].name);
            /* Of a gather the first block is rank 0's own. */
            const char *flip = strncmp(calls[i].name, "gather", 6) == 0 ? "0:0:32000:in" : "0:0:0:in";
            if (calls[i].arrives) found(P, name, flip, "step 7, rank 0: ", calls[i].arrives);
        }
}

/* The highest bits of the first number: as small a change as rounding makes is none, see below. */
static void what_leaves_changed_is_found(void **state) {
    (void)state;
    for (size_t i = 0; i < CALLS; i++) {
        char name[64];
        snprintf(name, sizeof name, "call-%s", calls[i].name);
        const char *flip = strstr(name, "f64") || strstr(name, "u64") ? "0:0:62" : "0:0:30";
        if (calls[i].leaves) found(3, name, flip, "step 7, rank ", calls[i].leaves);
    }
}

/* Messages 0 and 5 that come to rank 0, where there are so many. */
static void every_row_is_checked(void **state) {
    (void)state;
    for (int P = P_LEAST; P <= P_MOST; P++)
        for (size_t row = 0; exchanges[row]; row++) {
            const char *name = exchanges[row]->name;
            if (exchanges[row]->drifts) continue; /* it sends nothing */
            found(P, name, "0:0:3:in", "step 1, rank 0: ", " bytes ");
            int status = job(P, name, true, "0:5:11:in");
            if (status != 0 && !(status == EXIT_SYSTEM && says("step ") && says("(--wire-check)")))
                fail_msg("P = %d, %s: status %d:\n%s", P, name, status, output);
        }
}

/* The second message of the last rank. */
static void what_a_row_sends_is_checked(void **state) {
    (void)state;
    for (size_t row = 0; exchanges[row]; row++)
        if (!exchanges[row]->drifts) found(3, exchanges[row]->name, "2:1:30", "step ", " bytes ");
}

/* What a job says at its end, without a flip and without checks, must be this and a hash. */
static void told(int P, const char *row, bool checked, const char *flip, const char *word, char hash[17]) {
    int status = job(P, row, checked, flip);
    if (status != 0 || sscanf(output, word[0] == 's' ? "same %16s" : "differ %16s", hash) != 1)
        fail_msg("P = %d, %s, flip %s: status %d, not \"%s\":\n%s", P, row, flip, status, word, output);
}

static void without_checks_nobody_notices(void **state) {
    static const char *const rows[] = {"dense", "dense-ovlp", "torus2d", "micro"};
    char clean[17], hash[17];
    (void)state;
    for (int P = P_LEAST; P <= P_MOST; P++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            told(P, rows[i], false, "", "same", clean);
            told(P, rows[i], true, "", "same", hash);
            assert_string_equal(hash, clean); /* checks change no bit */
        }
    told(3, "dense", false, "", "same", clean);
    told(3, "dense", false, "1:0:30", "same", hash); /* on all ranks alike: no hash of replicas would find it */
    assert_string_not_equal(hash, clean);
    told(3, "dense", false, "0:0:30:in", "differ", hash);
}

/* What is said not to be found: the lowest bit of one of three numbers in a sum, seen by all alike. */
static void less_than_rounding_is_not_found(void **state) {
    char hash[17];
    (void)state;
    told(3, "dense", true, "1:0:0", "same", hash);
}

static void a_flip_is_asked_for_as_documented(void **state) {
    (void)state;
    assert_int_equal(job(2, "dense", true, "0:x"), EXIT_SYSTEM);
    assert_true(says("SPARSETRAIN_FLIP=0:x is not RANK:MESSAGE:BIT"));
    assert_int_equal(job(2, "dense", true, "0:9999:1:in"), 0); /* there is no such message */
    assert_int_equal(job(2, "dense", true, "1:0:1:out:100000"), 0);
    found(2, "call-sum-u64", "1:0:3:out:24", "step 7, rank ", "sum");
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "child") == 0) return child(argc, argv);
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_arrives_changed_is_found),
        cmocka_unit_test(what_leaves_changed_is_found),
        cmocka_unit_test(every_row_is_checked),
        cmocka_unit_test(what_a_row_sends_is_checked),
        cmocka_unit_test(without_checks_nobody_notices),
        cmocka_unit_test(less_than_rounding_is_not_found),
        cmocka_unit_test(a_flip_is_asked_for_as_documented),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
