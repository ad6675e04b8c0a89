/* comm_counting.h: what tests of the transport share: bytes that tell who sent them, and what one call counts.
 *
 *        struct comm_counters before = begin(c);
 *        comm_bcast(c, 0, bytes, sizeof bytes);
 *        counted(c, before, (struct comm_counters){sent, received, bytes_sent, bytes_received});
 */
#ifndef ST_TESTS_COMM_COUNTING_H
#define ST_TESTS_COMM_COUNTING_H

#include "tests/lib/mpi_harness.h"

/* The byte that rank r's pattern number `salt` has at i. */
static inline unsigned char byte_of(int r, int salt, size_t i) {
    return (unsigned char)(i * 7 + (size_t)r * 31 + (size_t)salt * 101 + 1);
}
static inline void fill(unsigned char *to, size_t bytes, int r, int salt) {
    for (size_t i = 0; i < bytes; i++) to[i] = byte_of(r, salt, i);
}
static inline void check(const unsigned char *got, size_t bytes, int r, int salt) {
    for (size_t i = 0; i < bytes; i++) assert_int_equal(got[i], byte_of(r, salt, i));
}

static inline struct comm_counters begin(struct comm *c) {
    c->traffic = TRAFFIC_EXCHANGE;
    return c->counters[TRAFFIC_EXCHANGE];
}

/* What was counted since `before`, on this rank: must be this. */
static inline void counted(struct comm *c, struct comm_counters before, struct comm_counters want) {
    struct comm_counters now = c->counters[TRAFFIC_EXCHANGE];
    c->traffic = TRAFFIC_CONTROL;
    assert_int_equal(now.messages_sent - before.messages_sent, want.messages_sent);
    assert_int_equal(now.messages_received - before.messages_received, want.messages_received);
    assert_int_equal(now.bytes_sent - before.bytes_sent, want.bytes_sent);
    assert_int_equal(now.bytes_received - before.bytes_received, want.bytes_received);
}

#endif
