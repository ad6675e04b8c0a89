/* base_device_sparse.c: the device that keeps lists of what is not zero, against plain arrays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sim/device_sparse.h"

#include "base/device/device.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"
#include "tests/lib/in_child.h"

static const struct device_ops *sparse;

static float value_of(struct rng *r) {
    static const uint32_t hard[] = {0x80000000, 1, 0x7f800000, 0xffc0dead, 0x7f7fffff};
    float value;
    memcpy(&value, &hard[rng_below(r, 5)], sizeof value);
    return rng_below(r, 8) ? (float)rng_normal(r) : value;
}

/* [n], of which about one in `rare` is not zero. */
static void fill(float *x, size_t n, uint32_t rare, struct rng *r) {
    for (size_t i = 0; i < n; i++) x[i] = rng_below(r, rare) ? 0 : value_of(r);
}

/* -- against arrays ------------------------------------------------------------------------------------------------ */

enum { LENGTH = 3000, BLOCKS = 3 };

struct model {
    float *device[BLOCKS]; /* [LENGTH] */
    float host[BLOCKS][LENGTH], part[LENGTH], back[LENGTH];
    struct rng rng;
};

static void check_all(struct model *m, const char *after) {
    for (int b = 0; b < BLOCKS; b++) {
        for (size_t i = 0; i < LENGTH; i++) m->back[i] = NAN;
        sparse->to_host(m->back, m->device[b], sizeof m->back);
        if (memcmp(m->back, m->host[b], sizeof m->back) != 0) fail_msg("block %d is another after %s", b, after);
    }
}

/* A range anywhere; now and then the whole, or one that begins or ends with the block, or nothing. */
static size_t some_range(struct model *m, size_t *from) {
    size_t count = rng_below(&m->rng, LENGTH + 1);
    *from = rng_below(&m->rng, (uint32_t)(LENGTH - count + 1));
    switch (rng_below(&m->rng, 8)) {
    case 0:
        return *from = 0, LENGTH;
    case 1:
        return LENGTH - *from;
    case 2:
        return *from = 0, count;
    case 3:
        return 0;
    default:
        return count;
    }
}

static void one_operation(struct model *m) {
    size_t b = rng_below(&m->rng, BLOCKS), a = rng_below(&m->rng, BLOCKS), from, to;
    size_t count = some_range(m, &from), bytes = count * sizeof(float);
    float *device = m->device[b] + from, *host = m->host[b] + from;
    switch (rng_below(&m->rng, 5)) {
    case 0:
        sparse->zero(device, bytes), memset(host, 0, bytes);
        break;
    case 1:
        to = rng_below(&m->rng, (uint32_t)(LENGTH - count + 1));
        if (a == b && to < from + count && from < to + count) { /* in one block they must not overlap */
            bytes = (to < from ? from - to : to - from) * sizeof(float);
        }
        sparse->copy(m->device[a] + to, device, bytes), memcpy(m->host[a] + to, host, bytes);
        break;
    case 2:
        fill(m->part, count, 1, &m->rng); /* nothing is zero */
        sparse->wait(sparse->to_device_begin(device, m->part, bytes)), memcpy(host, m->part, bytes);
        break;
    default:
        fill(m->part, count, 20, &m->rng);
        sparse->to_device(device, m->part, bytes), memcpy(host, m->part, bytes);
    }
    count = some_range(m, &from), bytes = count * sizeof(float);
    for (size_t i = 0; i < LENGTH; i++) m->back[i] = 7;
    sparse->wait(sparse->to_host_begin(m->back, m->device[b] + from, bytes));
    assert_memory_equal(m->back, m->host[b] + from, bytes);
    for (size_t i = count; i < LENGTH; i++) assert_true(m->back[i] == 7);
}

static void operations_are_those_of_arrays(void **state) {
    (void)state;
    static struct model m;
    long before = mem_live();
    for (int round = 0; round < 20; round++) {
        m.rng = rng_open((uint64_t)round, RNG_TEST, 5);
        memset(m.host, 0, sizeof m.host);
        for (int b = 0; b < BLOCKS; b++) m.device[b] = sparse->alloc(sizeof m.host[b], "a test");
        check_all(&m, "nothing");
        mem_fail_at(1); /* no operation allocates */
        for (int i = 0; i < 60; i++) {
            one_operation(&m);
            if (i % 8 == 0) check_all(&m, "an operation");
        }
        mem_fail_at(0);
        sparse->sync();
        check_all(&m, "the last operation");
        for (int b = 0; b < BLOCKS; b++) sparse->release(m.device[(b + round) % BLOCKS]);
    }
    sparse->release(NULL);
    assert_int_equal(mem_live(), before);
}

/* Every range of a short block, against every other: writes that overlap, at odd places. */
static void overlapping_writes(void **state) {
    (void)state;
    enum { N = 7 };
    float *device = sparse->alloc(N * sizeof *device, "a test"), one[N], two[N], back[N], want[N];
    for (size_t i = 0; i < N; i++) one[i] = (float)(i + 1), two[i] = i % 2 ? 0 : -(float)(i + 1);
    for (size_t from1 = 0; from1 < N; from1++)
        for (size_t end1 = from1; end1 <= N; end1++)
            for (size_t from2 = 0; from2 < N; from2++)
                for (size_t end2 = from2; end2 <= N; end2++) {
                    memset(want, 0, sizeof want);
                    memcpy(want + from1, one + from1, (end1 - from1) * sizeof *one);
                    memcpy(want + from2, two + from2, (end2 - from2) * sizeof *two);
                    sparse->zero(device, sizeof back);
                    sparse->to_device(device + from1, one + from1, (end1 - from1) * sizeof *one);
                    sparse->to_device(device + from2, two + from2, (end2 - from2) * sizeof *two);
                    sparse->to_host(back, device, sizeof back);
                    assert_memory_equal(back, want, sizeof back);
                }
    sparse->release(device);
}

/* Lists hold what is not zero, the bits of a negative zero among it, and nothing else. */
static void lists_hold_what_is_not_zero(void **state) {
    (void)state;
    const float host[] = {0, -0.0f, 3, 0, NAN, 0, 5};
    const uint32_t places[] = {1, 2, 4, 6};
    float *device = sparse->alloc(sizeof host, "a test");
    sparse->to_device(device, host, sizeof host);
    device_sparse_lock();
    struct device_list l = device_list_of(device, 7);
    assert_int_equal(l.nnz, 4);
    assert_memory_equal(l.idx, places, sizeof places);
    l = device_list_of(device + 2, 3);
    assert_int_equal(l.nnz, 2);
    assert_int_equal(l.first, 2);
    l.val[0] = 0;
    device_list_drop_zeros(&l);
    assert_int_equal(l.nnz, 1);
    assert_int_equal(device_list_of(device, 7).nnz, 3);
    device_sparse_unlock();
    sparse->release(device);
}

/* -- the size of a simulation -------------------------------------------------------------------------------------- */

/* Gradient and residual of 1024 ranks with a model of 14.7 million parameters, then of fewer with 133 million. */
static void memory_is_that_of_the_lists(void **state) {
    (void)state;
    enum { RANKS = 1024, ENTRIES = 500 };
    static float *block[2 * RANKS];
    const size_t lengths[] = {14728266, 133547324};
    const int counts[] = {2 * RANKS, 2 * 256};
    for (int l = 0; l < 2; l++) {
        size_t before = mem_resident(), n = lengths[l];
        for (int b = 0; b < counts[l]; b++) {
            block[b] = sparse->alloc(n * sizeof **block, "a test");
            for (size_t i = 0; i < ENTRIES; i++) {
                float value = (float)(b + 1);
                sparse->to_device(block[b] + n / ENTRIES * i, &value, sizeof value);
            }
        }
        size_t used = mem_resident() - before;
        /* two lists of a page or more each; what sanitizers keep beside it is not counted */
        assert_true(before == 0 || used < (size_t)counts[l] * 32768);
        for (int b = 0; b < counts[l]; b++) {
            float back[3];
            sparse->to_host(back, block[b] + n / ENTRIES * (ENTRIES - 1) - 1, sizeof back);
            assert_true(back[0] == 0 && back[1] == (float)(b + 1) && back[2] == 0);
        }
        for (int b = 0; b < counts[l]; b++) sparse->release(block[b]);
    }
}

/* -- two threads, each in its half of one block -------------------------------------------------------------------- */

enum { HALF = 500, TURNS = 20000 };

static pthread_barrier_t both_are_there;

static void *work_in_half(void *half) {
    static float host[2][HALF], back[2][HALF];
    float *device = *(float **)half;
    size_t which = (size_t)(((float **)half)[1] != NULL);
    struct rng r = rng_open(which, RNG_TEST, 9);
    size_t wrong = 0;
    pthread_barrier_wait(&both_are_there);
    for (int i = 0; i < TURNS; i++) {
        for (int change = 0; change < 5; change++) /* cheap: the more of the time is spent in the device */
            host[which][rng_below(&r, HALF)] = rng_below(&r, 2) ? value_of(&r) : 0;
        sparse->to_device(device, host[which], sizeof host[which]);
        sparse->to_host(back[which], device, sizeof back[which]);
        wrong += memcmp(back[which], host[which], sizeof back[which]) != 0;
    }
    return wrong ? half : NULL;
}

static void halves_of_a_block_belong_to_their_threads(void **state) {
    (void)state;
    float *device = sparse->alloc(2 * HALF * sizeof *device, "a test");
    float *low[] = {device, NULL}, *high[] = {device + HALF, device};
    pthread_t thread;
    void *wrong_high;
    assert_int_equal(pthread_barrier_init(&both_are_there, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, work_in_half, high), 0);
    void *wrong_low = work_in_half(low);
    assert_int_equal(pthread_join(thread, &wrong_high), 0);
    pthread_barrier_destroy(&both_are_there);
    assert_null(wrong_low);
    assert_null(wrong_high);
    sparse->release(device);
}

/* -- mistakes ------------------------------------------------------------------------------------------------------ */

static float *block_of_ten(void) {
    return sparse->alloc(10 * sizeof(float), "a test");
}
static void read_by_the_host(void) {
    signal(SIGSEGV, SIG_DFL); /* a sanitizer would end with a status of its own */
    volatile float *device = block_of_ten();
    exit(device[3] != 0);
}
static void beyond_the_end(void) {
    sparse->zero(block_of_ten() + 5, 6 * sizeof(float));
}
static void before_the_beginning(void) {
    sparse->zero(block_of_ten() - 1, sizeof(float));
}
static void between_words(void) {
    sparse->zero((char *)block_of_ten() + 2, sizeof(float));
}
static void half_a_word(void) {
    sparse->zero(block_of_ten(), 6);
}
static void memory_of_the_host(void) {
    float host[2] = {0};
    block_of_ten();
    sparse->to_device(host, host + 1, sizeof(float));
}
static void after_the_release(void) {
    float *device = block_of_ten();
    block_of_ten();
    sparse->release(device);
    sparse->zero(device, sizeof(float));
}
static void released_twice(void) {
    float *device = block_of_ten();
    sparse->release(device);
    sparse->release(device);
}
static void released_in_its_middle(void) {
    sparse->release(block_of_ten() + 1);
}
static void copied_onto_itself(void) {
    float *device = block_of_ten();
    sparse->copy(device + 1, device, 3 * sizeof(float));
}
static void too_long(void) {
    sparse->alloc(sizeof(float) << 32, "a test");
}
static void without_memory(void) {
    mem_fail_at(1);
    block_of_ten();
}
static void without_memory_for_the_table(void) {
    mem_fail_at(2);
    block_of_ten();
}

static void mistakes_end_the_program(void **state) {
    (void)state;
    static const struct {
        void (*make)(void);
        const char *says;
    } mistakes[] = {{beyond_the_end, "are not within a block"},
                    {before_the_beginning, "are not within a block"},
                    {between_words, "are not within a block"},
                    {half_a_word, "not 6 bytes"},
                    {memory_of_the_host, "are not within a block"},
                    {after_the_release, "are not within a block"},
                    {released_twice, "is no block"},
                    {released_in_its_middle, "is no block"},
                    {copied_onto_itself, "overlaps"},
                    {too_long, "has up to 4294967295 floats"},
                    {without_memory, "no memory for a test"},
                    {without_memory_for_the_table, "no memory for the table"}};
    char said[1024];
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        assert_int_equal(in_child(mistakes[i].make, said, sizeof said), EXIT_SYSTEM);
        if (!strstr(said, mistakes[i].says)) fail_msg("instead of \"%s\": %s", mistakes[i].says, said);
    }
    assert_int_equal(in_child(read_by_the_host, said, sizeof said), -1); /* by a signal */
}

int main(void) {
    sparse = device_find("sparse");
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_end_the_program),    cmocka_unit_test(operations_are_those_of_arrays),
        cmocka_unit_test(overlapping_writes),          cmocka_unit_test(lists_hold_what_is_not_zero),
        cmocka_unit_test(memory_is_that_of_the_lists), cmocka_unit_test(halves_of_a_block_belong_to_their_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
