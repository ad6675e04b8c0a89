/* netlab_links.c: when packets arrive on the links of the emulated network: each rule by itself, with times that are
 * exact in binary, and all of them together against a naive calculation over thousands of random packets. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "scripts/netlab/links.h"

/* 512 bytes take half a second and fly for a quarter. */
static const double rate = 1024, delay = 0.25;

static void send(struct links *l, size_t from, size_t to, double wire, double now) {
    struct packet *p = links_packet(sizeof now);
    p->from = from;
    p->to = to;
    p->wire = wire;
    memcpy(p->data, &now, sizeof now);
    links_send(l, p, now);
}

/* The next packet is there at exactly this time, as links_wake has promised, at this node, from that one. */
static void comes(struct links *l, double due, size_t from, size_t to) {
    struct packet *p = NULL;
    double now = 0;
    for (int steps = 0; !p && steps < 10; steps++) {
        now = fmin(links_wake(l, now), 1e9);
        p = links_due(l, now);
    }
    assert_non_null(p);
    assert_true(now == due && p->due == due);
    assert_true(p->from == from && p->to == to && p->bytes == sizeof now);
    mem_free(p);
}

static void nothing_more(struct links *l) {
    assert_null(links_due(l, 1e9));
    assert_true(isinf(links_wake(l, 1e9)));
    assert_int_equal(l->dropped, 0);
    links_close(l);
    assert_int_equal(mem_live(), 0);
}

static void alone(void **state) {
    (void)state;
    struct links l;
    links_open(&l, 2, rate, delay);
    assert_true(isinf(links_wake(&l, 0)));
    send(&l, 0, 1, 512, 1);
    assert_null(links_due(&l, 1.75 - 1e-9));
    comes(&l, 1.75, 0, 1);
    send(&l, 0, 1, 512, 9); /* long after: no trace of the first */
    comes(&l, 9.75, 0, 1);
    nothing_more(&l);
}

static void one_after_the_other(void **state) {
    (void)state;
    struct links l;
    links_open(&l, 3, rate, delay);
    send(&l, 0, 1, 512, 0);
    send(&l, 0, 2, 512, 0);
    send(&l, 0, 1, 256, 0.125);
    comes(&l, 0.75, 0, 1);
    comes(&l, 1.25, 0, 2);
    comes(&l, 1.5, 0, 1);
    nothing_more(&l);
}

static void both_ways_at_once(void **state) {
    (void)state;
    struct links l;
    links_open(&l, 2, rate, delay);
    for (size_t i = 0; i < 4; i++) send(&l, i % 2, 1 - i % 2, 512, 0);
    comes(&l, 0.75, 0, 1);
    comes(&l, 0.75, 1, 0);
    comes(&l, 1.25, 0, 1);
    comes(&l, 1.25, 1, 0);
    nothing_more(&l);
}

/* Two senders share a receiver's link; whose packet arrives first is served first, however much was sent before it. */
static void many_to_one(void **state) {
    (void)state;
    struct links l;
    links_open(&l, 4, rate, delay);
    send(&l, 1, 0, 512, 0);
    send(&l, 1, 0, 512, 0);
    send(&l, 2, 0, 512, 0);
    send(&l, 3, 0, 256, 0);
    comes(&l, 0.5, 3, 0);
    comes(&l, 1, 1, 0); /* arrived at 0.75, but the wire has been busy until 0.5 and is again for 0.5 */
    comes(&l, 1.5, 2, 0);
    comes(&l, 2, 1, 0);
    nothing_more(&l);
}

static void held_back(void **state) {
    (void)state;
    struct links l;
    links_open(&l, 2, 1e6, 0);
    assert_true(links_ready(&l, 0, 0));
    send(&l, 0, 1, 1999, 0);
    assert_true(links_ready(&l, 0, 0));
    send(&l, 0, 1, 1001, 0); /* booked until 3 ms */
    assert_false(links_ready(&l, 0, 0));
    assert_true(links_ready(&l, 1, 0));
    assert_false(links_ready(&l, 0, 0.9e-3));
    assert_true(links_ready(&l, 0, 1.1e-3));
    assert_true(links_wake(&l, 0) <= 2e-3 + 1e-9);
    links_close(&l);
    assert_int_equal(mem_live(), 0);
}

static void pieces(void **state) {
    (void)state;
    unsigned char tcp[60] = {0x45}, options[60] = {0x46};
    tcp[20 + 12] = 8 << 4;     /* IPv4 of 20 bytes, TCP of 32 */
    options[24 + 12] = 5 << 4; /* 24 and 20 */
    assert_true(links_wire_bytes(tcp, 100, 0) == 138);
    assert_true(links_wire_bytes(tcp, 52, 8948) == 52 + 38);
    assert_true(links_wire_bytes(tcp, 52 + 8948, 8948) == 9038);
    assert_true(links_wire_bytes(tcp, 52 + 8949, 8948) == 9038 + 1 + 52 + 38);
    assert_true(links_wire_bytes(tcp, 52 + 7 * 8948, 8948) == 7 * 9038);
    assert_true(links_wire_bytes(options, 44 + 2 * 1000, 1000) == 2 * 1082);
}

/* -- all together ------------------------------------------------------------------------------------ */
enum { PACKETS = 4000, NODES = 5 };
struct naive {
    size_t from, to;
    double sent, wire, arrival, due; /* due < 0: dropped */
};

static int by_arrival(const void *a, const void *b) {
    const struct naive *x = a, *y = b;
    return x->arrival < y->arrival ? -1 : x->arrival > y->arrival;
}

/* The formulas of the header, over all packets in the order of sending, then in that of arriving. Returns how many are
 * dropped. */
static size_t calculate(struct naive *p, double of_rate, double of_delay) {
    double sends_until[NODES] = {0}, receives_until[NODES] = {0};
    size_t dropped = 0;
    for (size_t i = 0; i < PACKETS; i++) {
        double begin = fmax(p[i].sent, sends_until[p[i].from]);
        sends_until[p[i].from] = begin + p[i].wire / of_rate;
        p[i].arrival = sends_until[p[i].from] + of_delay;
    }
    qsort(p, PACKETS, sizeof *p, by_arrival);
    for (size_t i = 0; i < PACKETS; i++) {
        double waiting = p[i].wire;
        for (size_t k = 0; k < i; k++)
            if (p[k].to == p[i].to && p[k].due > p[i].arrival) waiting += p[k].wire;
        p[i].due = -1;
        dropped += waiting > LINKS_BUFFER;
        if (waiting > LINKS_BUFFER) continue;
        p[i].due = fmax(p[i].arrival, receives_until[p[i].to] + p[i].wire / of_rate);
        receives_until[p[i].to] = p[i].due;
    }
    return dropped;
}

/* Each packet that has come is one of the calculated ones: same way, sent and due at the same time. */
static size_t account(struct links *l, struct naive *p, double now) {
    size_t count = 0;
    for (struct packet *got; (got = links_due(l, now)); count++, mem_free(got)) {
        size_t i = 0;
        double sent;
        memcpy(&sent, got->data, sizeof sent);
        while (i < PACKETS && (p[i].sent != sent || p[i].from != got->from)) i++;
        assert_true(i < PACKETS && p[i].to == got->to && fabs(p[i].due - got->due) < 1e-9);
        p[i].from = NODES; /* not twice */
    }
    return count;
}

/* `hurry` scales the time between packets: much of it, and buffers overflow. `late`: how seldom the links are asked. */
static void as_calculated(double hurry, double late, bool drops) {
    static struct naive p[PACKETS], order[PACKETS];
    struct rng rng = rng_open(7, RNG_TEST, (uint64_t)(1e6 * late));
    double now = 0, asked = 0;
    for (size_t i = 0; i < PACKETS; i++) {
        now += rng_uniform(&rng) / hurry;
        size_t from = rng_below(&rng, NODES), to = rng_below(&rng, 3) > 0 ? 0 : rng_below(&rng, NODES);
        if (to == from) to = (from + 1) % NODES;
        p[i] = order[i] = (struct naive){.from = from, .to = to, .sent = now, .wire = 60 + 65000 * rng_uniform(&rng)};
    }
    size_t dropped = calculate(p, 1e8, 3e-4), count = 0;
    assert_int_equal(dropped > 0, drops);
    struct links l;
    links_open(&l, NODES, 1e8, 3e-4);
    for (size_t i = 0; i < PACKETS; i++) {
        if (order[i].sent - asked > late) count += account(&l, p, asked = order[i].sent);
        send(&l, order[i].from, order[i].to, order[i].wire, order[i].sent);
    }
    count += account(&l, p, 1e9);
    assert_int_equal(l.dropped, dropped);
    assert_int_equal(count + dropped, PACKETS);
    links_close(&l);
    assert_int_equal(mem_live(), 0);
}

static void random_packets(void **state) {
    (void)state;
    as_calculated(1e3, 0, false);
    as_calculated(1e3, 0.02, false);
    as_calculated(5e4, 0, true);
    as_calculated(5e4, 0.01, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone),          cmocka_unit_test(one_after_the_other), cmocka_unit_test(both_ways_at_once),
        cmocka_unit_test(many_to_one),    cmocka_unit_test(held_back),           cmocka_unit_test(pieces),
        cmocka_unit_test(random_packets),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
