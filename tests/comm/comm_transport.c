/* comm_transport.c: every call of comm.h, and what it counts.
 * ranks: 1 2 3 4 5 6 7 8 */
#include "tests/lib/mpi_harness.h"

#include <sched.h>

#include "comm/parts/peers.h"
#include "tests/lib/comm_counting.h"

/* Stands in for the C library's, which only the injected delays use: how often, how long at most. */
static size_t sleeps;
static useconds_t longest_sleep;
int usleep(useconds_t microseconds) {
    sleeps++;
    if (microseconds > longest_sleep) longest_sleep = microseconds;
    for (useconds_t i = 0; i < microseconds / 16; i++) sched_yield(); /* the others come to do something */
    return 0;
}

#ifdef PART_BYTES
enum { LONGEST = 300 };
#else
enum { LONGEST = 5000 };
#endif

/* What was counted must be this. Over all ranks what is sent is received. */
static void end(struct comm *c, struct comm_counters before, struct comm_counters want) {
    counted(c, before, want);
    uint64_t sum[4] = {want.messages_sent, want.messages_received, want.bytes_sent, want.bytes_received};
    comm_allreduce_u64(c, sum, 4, COMM_SUM);
    assert_int_equal(sum[0], sum[1]);
    assert_int_equal(sum[2], sum[3]);
}

static void who_is_who(struct comm *c) {
    assert_in_range(c->rank, 0, c->size - 1);
    assert_in_range(c->local_rank, 0, c->local_size - 1);
    assert_in_range(c->local_size, 1, c->size);
    assert_in_range(c->node, 0, c->nodes - 1);
    uint64_t sum[2] = {(uint64_t)c->rank, c->local_rank == 0};
    comm_allreduce_u64(c, sum, 2, COMM_SUM);
    assert_int_equal(sum[0], c->size * (c->size - 1) / 2);
    assert_int_equal(sum[1], c->nodes);
    assert_true(strncmp(comm_library(), "Open MPI ", 9) == 0 || strncmp(comm_library(), "MPICH ", 6) == 0);
    assert_true(comm_library()[strlen(comm_library()) - 1] >= '0' && comm_library()[strlen(comm_library()) - 1] <= '9');
    assert_true(strlen(comm_host()) > 0);
}

static const size_t sizes[] = {0, 1, 63, 64, 65, 128, LONGEST};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* Round the ring, rank 0 first: more room at the receiver than comes. */
static void blocking_ring(struct comm *c) {
    static unsigned char out[LONGEST], in[2 * LONGEST];
    int right = (c->rank + 1) % c->size, left = (c->rank + c->size - 1) % c->size;
    if (c->size == 1) return;
    for (int s = 0; s < SIZES; s++) {
        struct comm_counters before = begin(c);
        fill(out, sizes[s], c->rank, s);
        if (c->rank == 0) comm_send(c, right, s, out, sizes[s]);
        assert_int_equal(comm_recv(c, left, s, in, sizeof in), sizes[s]);
        if (c->rank > 0) comm_send(c, right, s, out, sizes[s]);
        check(in, sizes[s], left, s);
        end(c, before, (struct comm_counters){1, 1, sizes[s], sizes[s]});
    }
}

/* All sizes to all ranks at once, itself included. */
static void non_blocking_all_to_all(struct comm *c) {
    static unsigned char out[SIZES][LONGEST], in[8][SIZES][LONGEST];
    struct comm_request sends[8][SIZES], receives[8][SIZES];
    size_t total = 0;
    assert_true(c->size <= 8);
    for (int round = 0; round < 3; round++) {
        struct comm_counters before = begin(c);
        total = 0;
        for (int r = 0; r < c->size; r++)
            for (int s = 0; s < SIZES; s++) comm_irecv(c, r, s, in[r][s], sizes[s], &receives[r][s]);
        for (int s = 0; s < SIZES; s++) fill(out[s], sizes[s], c->rank, s + round);
        for (int r = 0; r < c->size; r++)
            for (int s = 0; s < SIZES; s++) comm_isend(c, r, s, out[s], sizes[s], &sends[r][s]);
        for (int r = c->size - 1; r >= 0; r--) {
            for (int s = 0; s < SIZES; s++) {
                assert_int_equal(comm_wait(c, &sends[r][s]), 0);
                assert_int_equal(comm_wait(c, &receives[r][s]), sizes[s]);
                check(in[r][s], sizes[s], r, s + round);
                total += sizes[s];
            }
        }
        uint64_t messages = (uint64_t)(c->size * SIZES);
        end(c, before, (struct comm_counters){messages, messages, total, total});
    }
}

/* More requests than the pool holds at first. */
static void very_many_requests(struct comm *c) {
    enum { MANY = 1500 };
    static struct comm_request sends[MANY], receives[MANY];
    static int out[MANY], in[MANY];
    for (int i = 0; i < MANY; i++) comm_irecv(c, c->rank, i % 100, &in[i], sizeof in[i], &receives[i]);
    for (int i = 0; i < MANY; i++) {
        out[i] = i * 3;
        comm_isend(c, c->rank, i % 100, &out[i], sizeof out[i], &sends[i]);
    }
    for (int i = MANY - 1; i >= 0; i--) {
        comm_wait(c, &sends[i]);
        assert_int_equal(comm_wait(c, &receives[i]), sizeof in[i]);
        assert_int_equal(in[i], i * 3);
    }
}

static void messages_of_one_tag_keep_their_order(struct comm *c) {
    unsigned char in[4][200];
    struct comm_request receive[2];
    if (c->size == 1) return;
    if (c->rank == c->size - 1) {
        for (int i = 0; i < 4; i++) {
            fill(in[i], 50 * (size_t)(i + 1), c->rank, i);
            comm_send(c, 0, 9, in[i], 50 * (size_t)(i + 1));
        }
    } else if (c->rank == 0) {
        for (int i = 0; i < 2; i++) comm_irecv(c, c->size - 1, 9, in[i], sizeof in[i], &receive[i]);
        for (int i = 0; i < 2; i++) assert_int_equal(comm_wait(c, &receive[i]), 50 * (i + 1));
        for (int i = 2; i < 4; i++) assert_int_equal(comm_recv(c, c->size - 1, 9, in[i], sizeof in[i]), 50 * (i + 1));
        for (int i = 0; i < 4; i++) check(in[i], 50 * (size_t)(i + 1), c->size - 1, i);
    }
}

/* Children and subtree of this rank in the binomial tree, counted in another way than the transport does: rank v
 * (from the root) hangs below v without its lowest bit. */
static void place(const struct comm *c, int root, uint64_t *children, uint64_t *subtree) {
    int me = (c->rank - root + c->size) % c->size;
    *children = 0;
    *subtree = 0;
    for (int v = 0; v < c->size; v++) {
        int at = v;
        if (v != 0 && (v & (v - 1)) == me) ++*children;
        while (at != me && at != 0) at &= at - 1;
        *subtree += at == me;
    }
}

static void broadcast_and_gather(struct comm *c) {
    static unsigned char mine[LONGEST], all[8 * LONGEST];
    for (int root = 0; root < c->size; root++) {
        uint64_t children, subtree, below = c->rank != root;
        place(c, root, &children, &subtree);
        for (int s = 0; s < SIZES; s++) {
            size_t bytes = sizes[s];
            struct comm_counters before = begin(c);
            memset(mine, 0, sizeof mine);
            if (c->rank == root) fill(mine, bytes, root, s);
            comm_bcast(c, root, mine, bytes);
            check(mine, bytes, root, s);
            end(c, before, (struct comm_counters){children, below, children * bytes, below * bytes});

            before = begin(c);
            fill(mine, bytes, c->rank, s);
            comm_gather(c, root, mine, bytes, c->rank == root ? all : NULL);
            for (int r = 0; c->rank == root && r < c->size; r++) check(all + (size_t)r * bytes, bytes, r, s);
            end(c, before, (struct comm_counters){below, children, below * subtree * bytes, (subtree - 1) * bytes});
        }
    }
}

static void all_gather(struct comm *c) {
    static unsigned char mine[LONGEST], all[8 * LONGEST];
    uint64_t messages = (uint64_t)ceil_log2(c->size), others = (uint64_t)c->size - 1;
    for (int s = 0; s < SIZES; s++) {
        for (int in_place = 0; in_place < 2; in_place++) {
            size_t bytes = sizes[s];
            unsigned char *from = in_place ? all + (size_t)c->rank * bytes : mine;
            struct comm_counters before = begin(c);
            memset(all, 0, sizeof all);
            fill(from, bytes, c->rank, s);
            comm_allgather(c, from, bytes, all);
            for (int r = 0; r < c->size; r++) check(all + (size_t)r * bytes, bytes, r, s);
            end(c, before, (struct comm_counters){messages, messages, others * bytes, others * bytes});
        }
    }
}

static void all_reduce(struct comm *c) {
    static float f[LONGEST];
    static double d[LONGEST];
    static uint64_t u[LONGEST];
    const size_t counts[] = {0, 1, 7, 8, 9, LONGEST};
    const enum comm_op ops[] = {COMM_SUM, COMM_MIN, COMM_MAX};
    int P = c->size;
    uint64_t messages = 2 * (uint64_t)ceil_log2(P);
    for (size_t n = 0; n < sizeof counts / sizeof counts[0]; n++) {
        for (size_t o = 0; o < 3; o++) {
            size_t count = counts[n];
            struct comm_counters before = begin(c);
            for (size_t i = 0; i < count; i++) {
                u[i] = i + (uint64_t)c->rank;
                f[i] = (float)u[i];
                d[i] = (double)u[i] + 0x1p40;
            }
            comm_allreduce_f32(c, f, count, ops[o]);
            comm_allreduce_f64(c, d, count, ops[o]);
            comm_allreduce_u64(c, u, count, ops[o]);
            for (size_t i = 0; i < count; i++) {
                uint64_t sum = i * (uint64_t)P + (uint64_t)(P * (P - 1) / 2), most = i + (uint64_t)P - 1;
                uint64_t want = ops[o] == COMM_SUM ? sum : ops[o] == COMM_MIN ? i : most;
                assert_int_equal(u[i], want);
                assert_true(f[i] == (float)want);
                assert_true(d[i] == (double)want + 0x1p40 * (ops[o] == COMM_SUM ? P : 1));
            }
            uint64_t words = 2 * (uint64_t)(P - 1) * count,
                     bytes = words * 4 / (uint64_t)P + 2 * (words * 8 / (uint64_t)P);
            end(c, before, (struct comm_counters){3 * messages, 3 * messages, bytes, bytes});
        }
    }
}

static void barrier_counts_no_bytes(struct comm *c) {
    uint64_t messages = (uint64_t)ceil_log2(c->size);
    struct comm_counters before = begin(c);
    comm_barrier(c);
    end(c, before, (struct comm_counters){messages, messages, 0, 0});
}

/* The lowest rank's text wins, whoever else complains; agreement is control traffic in any case. */
static void agreement(struct comm *c) {
    struct err none = {0};
    struct comm_counters before = begin(c);
    assert_false(comm_agree(c, &none));
    assert_string_equal(none.text, "");
    for (int lowest = 0; lowest < c->size; lowest++) {
        for (int step = 1; step <= c->size; step++) {
            struct err e = {0};
            char want[64];
            const int status = lowest % 2 == 0 ? EXIT_SYSTEM : EXIT_USER; /* of that rank, and another of the others */
            if (c->rank >= lowest && (c->rank - lowest) % step == 0)
                err_with(&e, c->rank == lowest ? status : EXIT_NUMERIC, "rank %d has trouble", c->rank);
            assert_true(comm_agree(c, &e));
            assert_int_equal(err_status(&e), status);
            snprintf(want, sizeof want, "rank %d has trouble", lowest);
            assert_string_equal(e.text, want);
        }
    }
    assert_int_equal(c->traffic, TRAFFIC_EXCHANGE);
    end(c, before, (struct comm_counters){0});
}

static void counters_are_kept_apart(struct comm *c) {
    struct comm_counters exchange = c->counters[TRAFFIC_EXCHANGE], control = c->counters[TRAFFIC_CONTROL];
    double x = 1;
    c->traffic = TRAFFIC_CONTROL;
    comm_allreduce_f64(c, &x, 1, COMM_SUM);
    assert_memory_equal(&exchange, &c->counters[TRAFFIC_EXCHANGE], sizeof exchange);
    if (c->size > 1) assert_true(c->counters[TRAFFIC_CONTROL].bytes_sent > control.bytes_sent);
}

static void fill_and_read(struct comm *c, size_t bytes, bool may_share) {
    struct comm_shared s;
    comm_shared_open(c, bytes, &s);
    assert_int_equal(s.bytes, bytes);
    assert_int_equal((uintptr_t)s.memory % 64, 0);
    if (!may_share || c->local_size == 1) assert_false(s.shared);
    assert_int_equal(s.filler, !s.shared || c->local_rank == 0);
    int from = s.shared ? c->rank - c->local_rank : c->rank; /* ranks of a node follow each other under mpirun */
    if (s.filler) fill(s.memory, bytes, c->rank, 5);
    comm_shared_ready(c, &s);
    check(s.memory, bytes, from, 5);
    comm_barrier(c);
    comm_shared_close(c, &s);
    assert_null(s.memory);
}

static void shared_memory(struct comm *c) {
    fill_and_read(c, 1, true);
    fill_and_read(c, 0, true);
    fill_and_read(c, 1 << 20, true);
}

/* Where the machine has room, ranks of a node do share: one writes, the other sees it. */
static void shared_memory_is_shared(struct comm *c) {
    struct comm_shared s;
    comm_shared_open(c, sizeof(uint64_t), &s);
    if (s.shared) {
        uint64_t *word = s.memory;
        if (s.filler) *word = 1;
        comm_shared_ready(c, &s);
        if (c->local_rank == c->local_size - 1) *word = 42;
        comm_shared_ready(c, &s);
        assert_int_equal(*word, 42);
    }
    comm_shared_ready(c, &s);
    comm_shared_close(c, &s);
}

static void shared_memory_forbidden(struct comm *c) {
    setenv("SPARSETRAIN_NO_SHARED", "1", 1);
    fill_and_read(c, 1000, false);
    unsetenv("SPARSETRAIN_NO_SHARED");
    /* One rank of a node that cannot is enough. */
    if (c->rank == c->size - 1) setenv("SPARSETRAIN_NO_SHARED", "1", 1);
    fill_and_read(c, 1000, c->nodes > 1);
    unsetenv("SPARSETRAIN_NO_SHARED");
}

/* More than /dev/shm can hold: every rank gets its own, and nobody is killed. */
static void shared_memory_without_room(struct comm *c) {
    setenv("SPARSETRAIN_SHM_FREE", "3000000", 1);
    fill_and_read(c, 1 << 20, true);
    fill_and_read(c, 2 << 20, false);
    fill_and_read(c, 4 << 20, false);
    unsetenv("SPARSETRAIN_SHM_FREE");
}

/* To the right and from the left at once, by `shift`: everybody blocks, so a sendrecv that first sends and then
 * receives would hang with synchronous sends. */
static void send_and_receive(struct comm *c) {
    static unsigned char out[LONGEST], in[2 * LONGEST];
    for (int shift = 0; shift < c->size; shift++) {
        int right = (c->rank + shift) % c->size, left = (c->rank + c->size - shift) % c->size;
        for (int s = 0; s < SIZES; s++) {
            struct comm_counters before = begin(c);
            uint64_t counted = right != c->rank;
            memset(in, 0, sizeof in);
            fill(out, sizes[s], c->rank, s);
            assert_int_equal(comm_sendrecv(c, right, out, sizes[s], left, in, sizeof in, 3), sizes[s]);
            check(in, sizes[s], left, s);
            end(c, before, (struct comm_counters){counted, counted, counted * sizes[s], counted * sizes[s]});
        }
    }
}

/* Along a line: the first receives nothing, the last sends nothing; then nobody does anything. */
static void send_and_receive_one_way(struct comm *c) {
    static unsigned char out[LONGEST], in[LONGEST];
    int right = c->rank + 1 < c->size ? c->rank + 1 : -1, left = c->rank - 1;
    struct comm_counters before = begin(c);
    fill(out, LONGEST, c->rank, 1);
    size_t got = comm_sendrecv(c, right, out, LONGEST, left, in, LONGEST, 3);
    assert_int_equal(got, left >= 0 ? LONGEST : 0);
    if (left >= 0) check(in, LONGEST, left, 1);
    assert_int_equal(comm_sendrecv(c, -1, NULL, 0, -1, NULL, 0, 3), 0);
    uint64_t sends = right >= 0, receives = left >= 0;
    end(c, before, (struct comm_counters){sends, receives, sends * LONGEST, receives * LONGEST});
}

/* Requests that end by comm_test, in whatever order; a test that says no leaves the request as it was. */
static void testing_drives_progress(struct comm *c) {
    enum { BYTES = 1 << 20 };
    static unsigned char out[BYTES], in[BYTES];
    struct comm_request send, receive;
    bool sent = false, received = false;
    int right = (c->rank + 1) % c->size, left = (c->rank + c->size - 1) % c->size;
    struct comm_counters before = begin(c);
    fill(out, BYTES, c->rank, 2);
    comm_irecv(c, left, 4, in, BYTES, &receive);
    comm_isend(c, right, 4, out, BYTES, &send);
    while (!sent || !received) {
        if (!sent) sent = comm_test(c, &send);
        if (!received) received = comm_test(c, &receive);
    }
    assert_null(send.impl);
    assert_null(receive.impl);
    check(in, BYTES, left, 2);
    end(c, before, (struct comm_counters){1, 1, BYTES, BYTES});
}

/* A receive whose message cannot have been sent yet is not done. */
static void nothing_is_done_early(struct comm *c) {
    unsigned char byte = 0;
    struct comm_request receive;
    if (c->size == 1) return;
    if (c->rank == 0) {
        comm_irecv(c, 1, 5, &byte, 1, &receive);
        for (int i = 0; i < 10; i++) assert_false(comm_test(c, &receive));
    }
    comm_barrier(c);
    if (c->rank == 1) comm_send(c, 0, 5, &(unsigned char){7}, 1);
    if (c->rank > 0) return;
    assert_int_equal(comm_wait(c, &receive), 1);
    assert_int_equal(byte, 7);
}

/* SPARSETRAIN_SYNC_SENDS: no send, however short, is done before its receive has begun. */
static void sends_are_synchronous(struct comm *c) {
    const char *asked = getenv("SPARSETRAIN_SYNC_SENDS");
    struct comm_request send;
    unsigned char byte = 9, got = 0;
    if (c->size == 1) return;
    if (c->rank == 0) {
        comm_isend(c, 1, 6, &byte, 1, &send);
        for (int i = 0; asked && i < 100; i++) assert_false(comm_test(c, &send));
    }
    comm_barrier(c);
    if (c->rank == 1) assert_int_equal(comm_recv(c, 0, 6, &got, 1), 1);
    if (c->rank == 1) assert_int_equal(got, 9);
    if (c->rank == 0) comm_wait(c, &send);
}

/* SPARSETRAIN_DELAY: every kind of call sleeps, never longer than asked, and nobody does unasked. */
static void delays_as_asked(struct comm *c) {
    const char *asked = getenv("SPARSETRAIN_DELAY");
    unsigned char byte = 0, all[8];
    float x = 1;
    size_t one = 1, calls = 0;
    struct comm_request request;
    sleeps = 0;
    comm_irecv(c, c->rank, 7, &all, 1, &request), calls++;
    struct comm_request send;
    comm_isend(c, c->rank, 7, &byte, 1, &send), calls++;
    comm_wait(c, &request), comm_wait(c, &send), calls += 2;
    comm_barrier(c), calls++;
    comm_bcast(c, 0, &byte, 1), calls++;
    comm_gather(c, 0, &byte, 1, all), calls++;
    comm_allgather(c, &byte, 1, all), calls++;
    comm_allreduce_f32(c, &x, one, COMM_SUM), calls++;
    comm_iallreduce_f32(c, &x, one, &request), calls++;
    comm_wait(c, &request), calls++;
    assert_true(asked && c->wire_check ? sleeps > calls : sleeps == (asked ? calls : 0)); /* checks have their own */
    if (asked) assert_in_range(longest_sleep, 1, strtoul(asked, NULL, 10));
}

/* Several sums in flight, of every length, ended by waiting or by testing, the last one begun first. */
static void non_blocking_sums(struct comm *c) {
    enum { SUMS = 7 };
    static float data[SUMS][LONGEST];
    const size_t counts[SUMS] = {0, 1, 7, 16, 17, 33, LONGEST};
    struct comm_request request[SUMS];
    int P = c->size;
    for (int round = 0; round < 3; round++) {
        struct comm_counters before = begin(c);
        uint64_t messages = 2 * (uint64_t)ceil_log2(P) * SUMS, bytes = 0;
        for (int s = 0; s < SUMS; s++) {
            for (size_t i = 0; i < counts[s]; i++) data[s][i] = (float)(i + (size_t)(c->rank * (s + round)));
            comm_iallreduce_f32(c, data[s], counts[s], &request[s]);
            bytes += 2 * (uint64_t)(P - 1) * counts[s] * 4 / (uint64_t)P;
        }
        for (int s = SUMS - 1; s >= 0; s--) {
            if ((s + round) % 2)
                assert_int_equal(comm_wait(c, &request[s]), 0);
            else
                while (!comm_test(c, &request[s])) {
                }
            for (size_t i = 0; i < counts[s]; i++)
                assert_true(data[s][i] == (float)(i * (size_t)P + (size_t)(P * (P - 1) / 2 * (s + round))));
        }
        end(c, before, (struct comm_counters){messages, messages, bytes, bytes});
    }
}

/* Where it takes more than one call of MPI, it is over when the last one is. */
static void one_long_sum(struct comm *c) {
    enum { LONG = 1 << 15 };
    static float data[LONG];
    struct comm_request request;
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < LONG; i++) data[i] = (float)(i + c->rank);
        comm_iallreduce_f32(c, data, LONG, &request);
        if (round % 2)
            comm_wait(c, &request);
        else
            while (!comm_test(c, &request)) {
            }
        for (int i = LONG - 1; i >= 0; i--) assert_true(data[i] == (float)(i * c->size + c->size * (c->size - 1) / 2));
    }
}

/* What a group can do, between its own ranks; the job counts it. */
static void use_group(struct comm *job, struct comm *g, int salt) {
    static unsigned char all[8 * 100];
    unsigned char mine[100], in[100];
    uint64_t sum = (uint64_t)g->rank + 1, P = (uint64_t)g->size, rounds = (uint64_t)ceil_log2(g->size);
    struct comm_counters before = begin(job);
    int right = (g->rank + 1) % g->size, left = (g->rank + g->size - 1) % g->size;
    fill(mine, sizeof mine, g->rank, salt);
    assert_int_equal(comm_sendrecv(g, right, mine, sizeof mine, left, in, sizeof in, 1), sizeof in);
    check(in, sizeof in, left, salt);
    comm_allgather(g, mine, sizeof mine, all);
    for (int r = 0; r < g->size; r++) check(all + (size_t)r * sizeof mine, sizeof mine, r, salt);
    comm_allreduce_u64(g, &sum, 1, COMM_SUM);
    assert_int_equal(sum, P * (P + 1) / 2);
    struct err e = {0};
    if (g->rank == g->size - 1) err_set(&e, "trouble %d", salt);
    assert_true(comm_agree(g, &e)); /* control traffic, also in a group */
    uint64_t ring = P > 1, messages = ring + rounds + 2 * rounds;
    uint64_t bytes = ring * 100 + (P - 1) * 100 + 2 * (P - 1) * 8 / P;
    end(job, before, (struct comm_counters){messages, messages, bytes, bytes});
    assert_memory_equal(g->counters, (&(struct comm_counters[TRAFFIC_COUNT]){{0}}), sizeof g->counters);
}

static void groups(struct comm *c) {
    for (int parts = 1; parts <= c->size; parts++) {
        for (int reverse = 0; reverse < 2; reverse++) {
            struct comm *g = comm_split(c, c->rank % parts, reverse ? -c->rank : 0);
            int size = (c->size - c->rank % parts + parts - 1) / parts, at = c->rank / parts;
            assert_ptr_equal(g->parent, c);
            assert_int_equal(g->any_thread, c->any_thread);
            assert_int_equal(g->size, size);
            assert_int_equal(g->rank, reverse ? size - 1 - at : at);
            if (c->nodes == 1) {
                assert_int_equal(g->local_size, size);
                assert_int_equal(g->local_rank, g->rank);
                assert_int_equal(g->nodes, 1);
            }
            use_group(c, g, parts);
            struct err e = {0};
            assert_false(comm_set_ranks_per_node(g, 1, &e)); /* neither of a group nor once there are groups */
            assert_true(strlen(e.text) > 0);
            e.text[0] = 0;
            assert_false(comm_set_ranks_per_node(c, 1, &e));
            assert_true(strlen(e.text) > 0);
            comm_split_close(g);
        }
    }
}

/* Rows and columns of a grid at once, and groups of groups; messages of one do not reach the other. */
static void groups_of_groups(struct comm *c) {
    struct comm *half = comm_split(c, c->rank < c->size / 2, 0), *column = comm_split(c, c->rank % 2, 0);
    struct comm *quarter = comm_split(half, half->rank % 2, -half->rank);
    assert_ptr_equal(quarter->parent, half);
    assert_int_equal(quarter->size, (half->size + 1 - half->rank % 2) / 2);
    assert_int_equal(quarter->rank, quarter->size - 1 - half->rank / 2);
    use_group(c, quarter, 1);
    use_group(c, column, 2);
    struct comm *const in[] = {quarter, c, half, column};
    struct comm_request request[4][2];
    int got[4], sent[4];
    for (int i = 0; i < 4; i++) {
        sent[i] = 100 * i + in[i]->rank;
        comm_irecv(in[i], (in[i]->rank + 1) % in[i]->size, 8, &got[i], sizeof got[i], &request[i][0]);
    }
    for (int i = 3; i >= 0; i--)
        comm_isend(in[i], (in[i]->rank + in[i]->size - 1) % in[i]->size, 8, &sent[i], sizeof sent[i], &request[i][1]);
    for (int i = 0; i < 4; i++) {
        comm_wait(in[i], &request[i][0]);
        comm_wait(in[i], &request[i][1]);
        assert_int_equal(got[i], 100 * i + (in[i]->rank + 1) % in[i]->size);
    }
    comm_split_close(quarter);
    comm_split_close(column);
    comm_split_close(half);
}

/* Opens memory of the node and closes it again: how many ranks are to fill it. */
static uint64_t count_fillers(struct comm *c) {
    struct comm_shared s;
    comm_shared_open(c, sizeof(int), &s);
    uint64_t fillers = s.filler;
    if (s.filler) *(int *)s.memory = 17;
    comm_shared_ready(c, &s);
    assert_int_equal(*(int *)s.memory, 17);
    comm_shared_close(c, &s);
    comm_allreduce_u64(c, &fillers, 1, COMM_SUM);
    return fillers;
}

/* Comes last: nodes cannot be made real again. */
static void emulated_nodes(struct comm *c) {
    uint64_t fillers = count_fillers(c);
    for (int ranks = -1; ranks <= c->size + 1; ranks++) {
        struct err e = {0};
        if (ranks < 1 || c->size % ranks) {
            struct comm old = *c;
            assert_false(comm_set_ranks_per_node(c, ranks, &e));
            assert_non_null(strstr(e.text, "divide"));
            assert_int_equal(c->nodes, old.nodes);
            continue;
        }
        assert_true(comm_set_ranks_per_node(c, ranks, &e));
        assert_int_equal(c->local_size, ranks);
        assert_int_equal(c->nodes, c->size / ranks);
        assert_int_equal(c->node * ranks + c->local_rank, c->rank);
        struct comm *node = comm_split(c, c->node, 0), *across = comm_split(c, c->local_rank, 0);
        assert_true(node->size == ranks && node->local_size == ranks && node->nodes == 1 && node->node == 0);
        assert_true(node->rank == c->local_rank && node->local_rank == c->local_rank);
        assert_true(across->size == c->nodes && across->nodes == c->nodes && across->node == c->node);
        assert_true(across->local_size == 1 && across->local_rank == 0 && across->rank == c->node);
        use_group(c, node, 1);
        use_group(c, across, 2);
        comm_split_close(node);
        comm_split_close(across);
        assert_int_equal(count_fillers(c), fillers); /* memory is shared as before */
    }
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"who_is_who", who_is_who},
        {"blocking_ring", blocking_ring},
        {"non_blocking_all_to_all", non_blocking_all_to_all},
        {"very_many_requests", very_many_requests},
        {"messages_of_one_tag_keep_their_order", messages_of_one_tag_keep_their_order},
        {"broadcast_and_gather", broadcast_and_gather},
        {"all_gather", all_gather},
        {"all_reduce", all_reduce},
        {"barrier_counts_no_bytes", barrier_counts_no_bytes},
        {"agreement", agreement},
        {"counters_are_kept_apart", counters_are_kept_apart},
        {"shared_memory", shared_memory},
        {"shared_memory_is_shared", shared_memory_is_shared},
        {"shared_memory_forbidden", shared_memory_forbidden},
        {"shared_memory_without_room", shared_memory_without_room},
        {"send_and_receive", send_and_receive},
        {"send_and_receive_one_way", send_and_receive_one_way},
        {"testing_drives_progress", testing_drives_progress},
        {"nothing_is_done_early", nothing_is_done_early},
        {"sends_are_synchronous", sends_are_synchronous},
        {"delays_as_asked", delays_as_asked},
        {"non_blocking_sums", non_blocking_sums},
        {"one_long_sum", one_long_sum},
        {"groups", groups},
        {"groups_of_groups", groups_of_groups},
        {"emulated_nodes", emulated_nodes},
    };
#ifdef PART_BYTES
    setenv("SPARSETRAIN_PART_BYTES", PART_BYTES, 1);
#endif
#ifdef FAULTS
    setenv("SPARSETRAIN_DELAY", "200", 1);
    setenv("SPARSETRAIN_SYNC_SENDS", "1", 1);
#endif
    return mpi_test_main(argc, argv, "comm_transport", cases, sizeof cases / sizeof cases[0]);
}
