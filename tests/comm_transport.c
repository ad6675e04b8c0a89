/* comm_transport.c: every call of comm.h, and what it counts.
 * ranks: 1 2 3 4 5 6 7 8 */
#include "tests/mpi_harness.h"

#include "comm/peers.h"

#ifdef PART_BYTES
enum { LONGEST = 300 };
#else
enum { LONGEST = 5000 };
#endif

/* The byte that rank r's pattern number `salt` has at i. */
static unsigned char byte_of(int r, int salt, size_t i) {
    return (unsigned char)(i * 7 + (size_t)r * 31 + (size_t)salt * 101 + 1);
}
static void fill(unsigned char *to, size_t bytes, int r, int salt) {
    for (size_t i = 0; i < bytes; i++) to[i] = byte_of(r, salt, i);
}
static void check(const unsigned char *got, size_t bytes, int r, int salt) {
    for (size_t i = 0; i < bytes; i++) assert_int_equal(got[i], byte_of(r, salt, i));
}

static struct comm_counters begin(struct comm *c) {
    c->traffic = TRAFFIC_EXCHANGE;
    return c->counters[TRAFFIC_EXCHANGE];
}

/* What was counted since `before`, on this rank: must be this. Over all ranks what is sent is received. */
static void end(struct comm *c, struct comm_counters before, struct comm_counters want) {
    struct comm_counters now = c->counters[TRAFFIC_EXCHANGE];
    c->traffic = TRAFFIC_CONTROL;
    uint64_t got[4] = {now.messages_sent - before.messages_sent, now.messages_received - before.messages_received,
                       now.bytes_sent - before.bytes_sent, now.bytes_received - before.bytes_received};
    assert_int_equal(got[0], want.messages_sent);
    assert_int_equal(got[1], want.messages_received);
    assert_int_equal(got[2], want.bytes_sent);
    assert_int_equal(got[3], want.bytes_received);
    comm_allreduce_u64(c, got, 4, COMM_SUM);
    assert_int_equal(got[0], got[1]);
    assert_int_equal(got[2], got[3]);
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

/* All sizes to all ranks at once, itself included; more requests than one block of the pool. */
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

/* Different sizes, among them none. */
static void all_gather_of_different_sizes(struct comm *c) {
    static unsigned char mine[LONGEST], all[8 * LONGEST];
    uint64_t messages = (uint64_t)ceil_log2(c->size), others = (uint64_t)c->size - 1;
    for (int s = 0; s < SIZES; s++) {
        size_t each[8], total = 0, before_mine = 0;
        for (int r = 0; r < c->size; r++) {
            each[r] = sizes[(s + r) % SIZES];
            if (r == c->rank) before_mine = total;
            total += each[r];
        }
        size_t bytes = each[c->rank];
        for (int in_place = 0; in_place < 2; in_place++) {
            unsigned char *from = in_place ? all + before_mine : mine, *at = all;
            struct comm_counters before = begin(c);
            memset(all, 0, sizeof all);
            fill(from, bytes, c->rank, s);
            comm_allgatherv(c, from, bytes, all, each);
            for (int r = 0; r < c->size; at += each[r++]) check(at, each[r], r, s);
            end(c, before, (struct comm_counters){messages, messages, others * bytes, total - bytes});
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
            if (c->rank >= lowest && (c->rank - lowest) % step == 0) err_set(&e, "rank %d has trouble", c->rank);
            assert_true(comm_agree(c, &e));
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

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"who_is_who", who_is_who},
        {"blocking_ring", blocking_ring},
        {"non_blocking_all_to_all", non_blocking_all_to_all},
        {"messages_of_one_tag_keep_their_order", messages_of_one_tag_keep_their_order},
        {"broadcast_and_gather", broadcast_and_gather},
        {"all_gather", all_gather},
        {"all_gather_of_different_sizes", all_gather_of_different_sizes},
        {"all_reduce", all_reduce},
        {"barrier_counts_no_bytes", barrier_counts_no_bytes},
        {"agreement", agreement},
        {"counters_are_kept_apart", counters_are_kept_apart},
        {"shared_memory", shared_memory},
        {"shared_memory_is_shared", shared_memory_is_shared},
        {"shared_memory_forbidden", shared_memory_forbidden},
        {"shared_memory_without_room", shared_memory_without_room},
    };
#ifdef PART_BYTES
    setenv("SPARSETRAIN_PART_BYTES", PART_BYTES, 1);
#endif
    return mpi_test_main(argc, argv, "comm_transport", cases, sizeof cases / sizeof cases[0]);
}
