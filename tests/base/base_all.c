/* base_all.c: random numbers against published vectors, checksums, JSON, phases, memory, the ways to end, where
 * parts of the program lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cuda/cuda_arch.h"
#include "base/device/device.h"
#include "base/error.h"
#include "base/files/place.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/progress.h"
#include "base/rng.h"
#include "base/trace.h"
#include "tests/lib/in_child.h"

/* Code of an architecture for later minor versions of its major one alone, PTX of the last for all after it. */
static void kernels_for_gpus(void **state) {
    (void)state;
    static const struct {
        const char *compiled;
        int major, minor;
        bool serves;
    } cases[] = {{"80 90", 8, 0, true},  {"80 90", 8, 9, true},   {"80 90", 9, 0, true},   {"80 90", 10, 3, true},
                 {"90", 8, 0, false},    {"90", 8, 9, false},     {"90", 9, 0, true},      {"90", 12, 0, true},
                 {"86 89", 8, 0, false}, {"89", 8, 6, false},     {"89", 9, 0, true},      {"100 120", 9, 0, false},
                 {"120 80", 8, 6, true}, {"120 80", 9, 0, true},  {"90a", 9, 0, true},     {"", 9, 0, false},
                 {"86", 8, 9, true},     {"80 100", 9, 0, false}, {" 80  90", 8, 6, true}, {"native", 9, 0, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (cuda_arch_serves(cases[i].compiled, cases[i].major, cases[i].minor) != cases[i].serves)
            fail_msg("CUDA_ARCH=\"%s\", %d.%d", cases[i].compiled, cases[i].major, cases[i].minor);
}

/* Known answers of Philox4x32-10 from the Random123 distribution (kat_vectors). */
static void philox_known_answers(void **state) {
    (void)state;
    static const uint32_t cases[3][10] = {{0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
                                          {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff,
                                           0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
                                          {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0,
                                           0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}};
    for (int i = 0; i < 3; i++) {
        uint32_t out[4];
        philox4x32(cases[i], cases[i] + 4, out);
        assert_memory_equal(out, cases[i] + 6, sizeof out);
    }
}

static void rng_is_a_function_of_its_place(void **state) {
    (void)state;
    struct rng a = rng_open(7, RNG_TEST, 3), b = rng_open(7, RNG_TEST, 3), c = rng_open(7, RNG_TEST, 4),
               d = rng_open(8, RNG_TEST, 3), e = rng_open(7, RNG_INIT, 3);
    int same_c = 0, same_d = 0, same_e = 0;
    for (int i = 0; i < 100; i++) {
        uint32_t x = rng_u32(&a);
        assert_int_equal(x, rng_u32(&b));
        same_c += x == rng_u32(&c);
        same_d += x == rng_u32(&d);
        same_e += x == rng_u32(&e);
    }
    assert_true(same_c + same_d + same_e < 3);
}

static void rng_distributions(void **state) {
    (void)state;
    struct rng r = rng_open(1, RNG_TEST, 0);
    enum { N = 100000 };
    int seen[7] = {0};
    double sum = 0, squares = 0, uniform = 0;
    for (int i = 0; i < N; i++) {
        uint32_t j = rng_below(&r, 7);
        assert_true(j < 7);
        seen[j]++;
        double z = rng_normal(&r), u = rng_uniform(&r);
        assert_true(u >= 0 && u < 1 && isfinite(z));
        sum += z;
        squares += z * z;
        uniform += u;
    }
    for (int j = 0; j < 7; j++) assert_true(abs(seen[j] - N / 7) < 600);
    assert_true(fabs(sum / N) < 0.015 && fabs(squares / N - 1) < 0.02 && fabs(uniform / N - 0.5) < 0.005);
    assert_int_equal(rng_below(&r, 1), 0);
}

/* All places in a block, all remainders of four, the end of the counter, and scales for which floats are subnormal. */
static void many_normals_are_those_one_by_one(void **state) {
    (void)state;
    static const double scales[] = {1, 0.1, 3e7, 1e-38, 1e-45, 0, -2.5};
    enum { MOST = 1 << 19 };
    static float x[MOST];
    for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
        for (int before = 0; before < 6; before++) {
            struct rng all = rng_open(3 + s, RNG_TEST, (uint64_t)before << 32), each;
            const size_t n = before == 0 ? MOST : before == 4 ? MOST - 3 : (size_t)(8 + before);
            if (before == 4) all.counter[0] = UINT32_MAX - 9;
            for (int i = 0; i < before; i++) rng_u32(&all);
            each = all;
            x[n < MOST ? n : 0] = 7;
            rng_normals(&all, scales[s], x, n);
            for (size_t i = 0; i < n; i++) {
                const float expected = (float)(scales[s] * rng_normal(&each));
                if (memcmp(&x[i], &expected, sizeof expected) != 0)
                    fail_msg("number %zu of %zu, scale %g: %a for %a", i, n, scales[s], (double)x[i], (double)expected);
            }
            if (n < MOST) assert_true(x[n] == 7);
            for (int i = 0; i < 5; i++) assert_int_equal(rng_u32(&all), rng_u32(&each));
        }
    }
}

static void checksums(void **state) {
    (void)state;
    assert_int_equal(crc32_of(0, "123456789", 9), 0xcbf43926);
    assert_int_equal(crc32_of(crc32_of(0, "1234", 4), "56789", 5), 0xcbf43926);
    char text[] = "0123456789abcdefg";
    uint64_t whole = hash64(0, text, sizeof text);
    for (size_t bit = 0; bit < 8 * sizeof text; bit++) {
        text[bit / 8] ^= (char)(1 << bit % 8);
        assert_true(hash64(0, text, sizeof text) != whole);
        text[bit / 8] ^= (char)(1 << bit % 8);
    }
    assert_true(hash64(0, text, 8) != hash64(0, text, 7) && hash64(1, text, 8) != hash64(0, text, 8));
    assert_true(hash64(0, "\0\0", 1) != hash64(0, "\0\0", 2));
}

static void json_text_is_right(void **state) {
    (void)state;
    struct json j;
    json_open(&j);
    json_object(&j, NULL);
    json_string(&j, "a\"b", "line\nback\\slash");
    json_array(&j, "list");
    json_number(&j, NULL, 0.1);
    json_number(&j, NULL, 1.0 / 3);
    json_number(&j, NULL, NAN);
    json_number(&j, NULL, -INFINITY);
    json_number(&j, NULL, 1973830);
    json_number(&j, NULL, -2e7);
    json_number(&j, NULL, 1e15);
    json_integer(&j, NULL, -9007199254740993);
    json_end(&j);
    json_object(&j, "empty");
    json_end(&j);
    json_boolean(&j, "yes", true);
    json_null(&j, "none");
    json_end(&j);
    assert_string_equal(json_text(&j),
                        "{\"a\\\"b\":\"line\\u000aback\\\\slash\",\"list\":[0.1,0.3333333333333333,null,null,"
                        "1973830,-20000000,1e+15,-9007199254740993],\"empty\":{},\"yes\":true,\"none\":null}");
    json_reset(&j);
    for (int i = 0; i < 1000; i++) json_integer(&j, NULL, i);
    assert_int_equal(strlen(json_text(&j)), 10 + 2 * 90 + 3 * 900 + 999);
    json_close(&j);
}

/* What a phase is made to spend as it is left is charged to it, once, and not where it goes over into itself. */
struct spendings {
    int of[PHASE_COUNT];
    enum phase next; /* what followed on the last */
    double last;     /* when that ended [s] */
};

static void spend_a_while(void *spender, enum phase left, enum phase next) {
    struct spendings *s = spender;
    double end = clock_now() + 1e-5;
    s->of[left]++;
    s->next = next;
    while ((s->last = clock_now()) < end) {
    }
}

static void what_a_phase_spends_is_charged_to_it(void **state) {
    (void)state;
    struct spendings s = {.last = 0};
    struct phases t;
    phases_reset(&t);
    t.spend = spend_a_while;
    t.spender = &s;
    phases_restart(&t); /* keeps both */
    phase_enter(&t, PHASE_SELECT);
    phase_enter(&t, PHASE_SELECT);
    phase_enter(&t, PHASE_MERGE);
    assert_true(t.since >= s.last);
    assert_int_equal(s.of[PHASE_OTHER], 1);
    assert_int_equal(s.of[PHASE_SELECT], 1);
    assert_int_equal(s.of[PHASE_MERGE], 0);
    assert_int_equal(s.next, PHASE_MERGE);
    assert_true(t.seconds[PHASE_SELECT] >= 1e-5);
    phases_reset(&t);
    assert_true(!t.spend);
}

static void phases_cut_time_without_gaps(void **state) {
    (void)state;
    struct phases t;
    double begin = clock_now(), sum = 0;
    phases_reset(&t);
    assert_int_equal(phase_enter(&t, PHASE_SELECT), PHASE_OTHER);
    assert_int_equal(phase_enter(&t, PHASE_MERGE), PHASE_SELECT);
    for (int i = 0; i < 1000; i++) phase_enter(&t, i % 2 ? PHASE_MERGE : PHASE_PACK);
    phase_enter(&t, PHASE_OTHER);
    for (int i = 0; i < PHASE_COUNT; i++) {
        assert_true(t.seconds[i] >= 0);
        sum += t.seconds[i];
    }
    assert_true(sum <= clock_now() - begin && t.seconds[PHASE_IO] == 0);
    assert_true(fabs(sum - (t.since - begin)) <= t.since - begin);
    phase_enter(NULL, PHASE_IO);
}

/* What a callee does is charged to its own phase, and its caller's is restored by whichever way it returns. */
static int packs(struct phases *t, bool early) {
    PHASE_SCOPE(t, PHASE_PACK);
    if (t) assert_int_equal(t->current, PHASE_PACK);
    if (early) return 1;
    for (int i = 0; i < 2; i++) {
        PHASE_SCOPE(t, i == 0 ? PHASE_PACK : PHASE_COMMUNICATE);
        if (t) assert_int_equal(t->current, i == 0 ? PHASE_PACK : PHASE_COMMUNICATE);
    }
    if (t) assert_int_equal(t->current, PHASE_PACK);
    return 2;
}

static void a_scope_restores_what_it_found(void **state) {
    (void)state;
    struct spendings s = {.last = 0};
    struct phases t;
    phases_reset(&t);
    t.spend = spend_a_while;
    t.spender = &s;
    phase_enter(&t, PHASE_MERGE);
    assert_int_equal(packs(&t, true), 1);
    assert_int_equal(t.current, PHASE_MERGE);
    assert_int_equal(packs(&t, false), 2);
    assert_int_equal(t.current, PHASE_MERGE);
    assert_int_equal(s.of[PHASE_PACK], 3);
    assert_int_equal(s.of[PHASE_COMMUNICATE], 1);
    assert_int_equal(s.of[PHASE_MERGE], 2);
    assert_true(t.seconds[PHASE_PACK] >= 3e-5 && t.seconds[PHASE_COMMUNICATE] >= 1e-5);
    assert_int_equal(packs(NULL, false), 2);
}

static void memory_is_aligned_and_zeroed(void **state) {
    (void)state;
    for (size_t bytes = 0; bytes < 9u << 20; bytes = bytes * 3 + 1) {
        unsigned char *p = mem_zalloc(bytes, 1, "a test");
        assert_int_equal((uintptr_t)p % 64, 0);
        for (size_t i = 0; i < bytes; i++) assert_int_equal(p[i], 0);
        mem_free(p);
    }
    mem_free(NULL);
    char *text = mem_printf("%d-%s", 5, "x");
    assert_string_equal(text, "5-x");
    mem_free(text);
    /* The kernel counts pages in batches: the two may differ by some of them. */
    assert_true(mem_resident() > 0 && mem_resident_peak() + (1 << 20) > mem_resident());
    enum { LARGE = 64 << 20, SLACK = 8 << 20 };
    size_t before = mem_untouched();
    char *large = mem_alloc(LARGE, 1, "a test");
    size_t asked = mem_untouched();
    memset(large, 1, LARGE);
    size_t touched = mem_untouched(), anonymous = mem_resident_private();
    assert_in_range(anonymous, LARGE - SLACK, mem_resident() + SLACK);
    mem_free(large);
    assert_true(mem_available() > 0);
    assert_in_range(asked, before + LARGE - SLACK, before + LARGE + SLACK);
    assert_in_range(touched, before < SLACK ? 0 : before - SLACK, before + SLACK);
}

/* Blocks of a device's own, which are given back to it and to nobody else. */
static int pinned, unpinned;

static void *pin_some(size_t bytes) {
    pinned++;
    return pinned <= 2 ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
}
static void unpin(void *block) {
    unpinned++;
    free(block);
}

static void memory_may_be_pinned(void **state) {
    (void)state;
    long live = mem_live();
    char *block[4];
    block[0] = mem_pinned_alloc(3, 5, "a test");
    mem_pin_with(pin_some, unpin);
    for (int i = 1; i < 4; i++) block[i] = mem_pinned_alloc(3, 5, "a test"); /* the last is plain: there is no more */
    assert_int_equal(pinned, 3);
    for (int i = 0; i < 4; i++) {
        assert_int_equal((uintptr_t)block[i] % 64, 0);
        memset(block[i], i, 15);
    }
    assert_int_equal(mem_live(), live + 4);
    mem_pin_with(NULL, NULL); /* what was given out before stays what it was */
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 15; j++) assert_int_equal(block[i][j], i);
        mem_pinned_free(block[i]);
    }
    mem_pinned_free(NULL);
    assert_int_equal(unpinned, 2);
    assert_int_equal(mem_live(), live);
}

/* A stretch goes on where the last one ended in the same phase; what has no place is counted. */
static void traces(void **state) {
    (void)state;
    struct trace t;
    trace_open(&t, 3);
    trace_add(&t, PHASE_SELECT, 1, 2);
    trace_add(&t, PHASE_SELECT, 2, 3);
    trace_add(&t, PHASE_MERGE, 3, 4);
    trace_add(&t, PHASE_MERGE, 5, 6); /* after a gap */
    trace_add(&t, PHASE_SELECT, 6, 7);
    trace_add(&t, PHASE_SELECT, 7, 8);
    trace_add(&t, PHASE_MERGE, 8, 9);
    static const struct trace_event wanted[] = {
        {1, 3, PHASE_SELECT, 0}, {3, 4, PHASE_MERGE, 0}, {5, 6, PHASE_MERGE, 0}};
    assert_int_equal(t.count, 3);
    assert_int_equal(t.dropped, 3);
    assert_memory_equal(t.event, wanted, sizeof wanted);
    trace_close(&t);
    trace_open(&t, 3); /* what takes next to no time has no stretch of its own */
    trace_add(&t, PHASE_MERGE, 1, 1 + 1e-7);
    trace_add(&t, PHASE_COMMUNICATE, 1 + 1e-7, 2);
    trace_add(&t, PHASE_MERGE, 2, 2 + 1e-7);
    trace_add(&t, PHASE_COMMUNICATE, 2 + 1e-7, 3);
    trace_add(&t, PHASE_PACK, 3, 3 + 1e-5);
    trace_add(&t, PHASE_MERGE, 3.5, 3.5 + 1e-7); /* after a gap */
    static const struct trace_event longer[] = {
        {1, 3, PHASE_COMMUNICATE, 0}, {3, 3 + 1e-5, PHASE_PACK, 0}, {3.5, 3.5 + 1e-7, PHASE_MERGE, 0}};
    assert_int_equal(t.count, 3);
    assert_memory_equal(t.event, longer, sizeof longer);
    trace_close(&t);
    assert_true(!t.event && t.count == 0 && t.cap == 0 && t.dropped == 0);
}

static void dies(void) {
    die("the number %d", 5);
}
static void dies_as_rank(void) {
    error_set_rank(3, 8);
    die("the number %d", 5);
}
static void dies_numeric(void) {
    die_status(EXIT_NUMERIC, "step 4");
}
static void third_allocation_fails(void) {
    mem_fail_at(3);
    for (int i = 0; i < 3; i++) mem_free(mem_alloc(1 << 20, 1, "the table"));
}
static void overflows(void) {
    mem_alloc((size_t)1 << 40, (size_t)1 << 40, "the moon");
}
static void overflows_pinned(void) {
    mem_pinned_alloc(SIZE_MAX - 32, 1, "the sun"); /* a number of bytes, but not with a header before them */
}
static void is_all_there_is(void) {
    mem_alloc(SIZE_MAX, 1, "the sky");
}
static void has_no_such_letter(void) {
    mem_printf("%ls", L"\x20ac"); /* in the locale "C" */
}
static void leave_with_seven(int status) {
    _exit(status + 7);
}
static void aborts_all(void) {
    error_set_abort(leave_with_seven);
    die("x");
}

static void ways_to_end(void **state) {
    (void)state;
    char text[2048];
    assert_int_equal(in_child(dies, text, sizeof text), EXIT_SYSTEM);
    assert_non_null(strstr(text, "base_all.c"));
    assert_non_null(strstr(text, "the number 5\n"));
    assert_int_equal(in_child(dies_as_rank, text, sizeof text), EXIT_SYSTEM);
    assert_non_null(strstr(text, "rank 3"));
    assert_int_equal(in_child(dies_numeric, text, sizeof text), EXIT_NUMERIC);
    assert_string_equal(text, "sparsetrain: step 4\n");
    assert_int_equal(in_child(third_allocation_fails, text, sizeof text), EXIT_SYSTEM);
    assert_non_null(strstr(text, "no memory for the table: 1.0 MiB"));
    assert_int_equal(in_child(overflows, text, sizeof text), EXIT_SYSTEM);
    assert_non_null(strstr(text, "the moon"));
    assert_int_equal(in_child(overflows_pinned, text, sizeof text), EXIT_SYSTEM);
    assert_non_null(strstr(text, "the size of the sun overflows"));
    assert_int_equal(in_child(is_all_there_is, text, sizeof text), EXIT_SYSTEM);
    assert_non_null(strstr(text, "no memory for the sky"));
    assert_int_equal(in_child(has_no_such_letter, text, sizeof text), EXIT_SYSTEM);
    assert_non_null(strstr(text, "cannot format \"%ls\""));
    assert_int_equal(in_child(aborts_all, text, sizeof text), EXIT_SYSTEM + 7);
}

static void first_error_wins(void **state) {
    (void)state;
    struct err e = {0};
    assert_false(err_set(&e, "one %d", 1));
    assert_false(err_set(&e, "two"));
    assert_false(err_system(&e, "three"));
    assert_string_equal(e.text, "one 1");
    assert_int_equal(err_status(&e), EXIT_USER);
    e = (struct err){0};
    assert_false(err_system(&e, "the disk is full after %d bytes", 7));
    assert_false(err_set(&e, "two"));
    assert_string_equal(e.text, "the disk is full after 7 bytes");
    assert_int_equal(err_status(&e), EXIT_SYSTEM);
}

/* What another name would help against is the user's; what no name helps against is the system's. */
static void whose_error(void **state) {
    (void)state;
    const int user[] = {ENOENT, ENOTDIR, EISDIR, EACCES, EPERM, EROFS, EEXIST, ELOOP, ENAMETOOLONG};
    const int system[] = {ENOSPC, EDQUOT, EFBIG, EIO, EMFILE, ENFILE, ENOMEM, ESTALE, ENOTSUP};
    for (size_t i = 0; i < sizeof user / sizeof *user; i++) assert_int_equal(err_of_errno(user[i]), EXIT_USER);
    for (size_t i = 0; i < sizeof system / sizeof *system; i++) assert_int_equal(err_of_errno(system[i]), EXIT_SYSTEM);
    struct err e = {0};
    assert_false(err_with(&e, err_of_errno(EMFILE), "cannot open %s", "x"));
    assert_string_equal(e.text, "cannot open x");
    assert_int_equal(err_status(&e), EXIT_SYSTEM);
}

/* Of a crafted file: a message stays one line, and no terminal takes orders from it. */
static void messages_quote_no_control_characters(void **state) {
    (void)state;
    struct err e = {0};
    assert_false(err_set(&e, "section %s of \xc3\xa9", "a\nb\x1b[2J\x7f"));
    assert_string_equal(e.text, "section a?b?[2J? of \xc3\xa9");
}

static void devices_are_listed(void **state) {
    (void)state;
    struct err why = {0};
    const struct device_ops *cpu = device_find("cpu");
    assert_non_null(cpu);
    assert_true(cpu->available(&why));
    assert_null(device_find("abacus"));
    assert_non_null(device_find("cuda"));
    float host[5] = {1, 2, 3, 4, 5}, back[5];
    float *block = cpu->alloc(sizeof host, "a test");
    cpu->to_device(block, host, sizeof host);
    cpu->to_host(back, block, sizeof host);
    assert_memory_equal(host, back, sizeof host);
    cpu->zero(block, sizeof host);
    cpu->sync();
    cpu->to_host(back, block, sizeof host);
    for (int i = 0; i < 5; i++) assert_true(back[i] == 0);
    uint32_t to = cpu->to_device_begin(block, host, sizeof host);
    cpu->wait(to);
    uint32_t from = cpu->to_host_begin(back, block, sizeof host);
    cpu->wait(from);
    assert_memory_equal(host, back, sizeof host);
    cpu->release(block);
}

static void progress_draws_a_bar(void **state) {
    (void)state;
    static const struct {
        const char *columns, *line; /* no terminal: $COLUMNS, else 80 */
    } cases[] = {{"", "\r\033[K[############............]  50%  1:05 left  half\r\033[K"},
                 {"40", "\r\033[K[#######........]  50%  1:05 left  half\r\033[K"},
                 {"x", "\r\033[K[############............]  50%  1:05 left  half\r\033[K"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512] = "";
        FILE *f = fmemopen(text, sizeof text, "w");
        struct progress p;
        setenv("COLUMNS", cases[i].columns, 1);
        progress_open(&p, f, -1);
        progress_show(&p, 0.5, 65, (const char *const[]){"half", NULL});
        progress_clear(&p);
        fclose(f);
        assert_string_equal(text, cases[i].line);
    }
}

static void progress_fits_the_terminal(void **state) {
    (void)state;
    static const char *const note[] = {"step 120/54688", "loss 1.234", "accuracy 34.5%", "691 images/s", NULL};
    static const struct {
        int columns;
        double part, left;
        const char *line;
    } cases[] = {
        {200, 0.25, 12011,
         "[######..................]  25%  3:20:11 left  step 120/54688  loss 1.234  accuracy 34.5%  691 images/s"},
        {80, 0.5, 12011, "[#######.......]  50%  3:20:11 left  step 120/54688  loss 1.234  accuracy 34.5%"},
        {60, 0.999, 59.4, "[############.]  99%  0:59 left  step 120/54688  loss 1.234"},
        {40, 1, 0, "100%  0:00 left  step 120/54688"},
        {40, 0, NAN, "  0%  -:-- left  step 120/54688"},
        {20, 0.5, 12011, " 50%  3:20:11 left"},
        {10, 0.5, 12011, " 50%  3:2"},
        {1, 0.5, 12011, " "},
        {0, 2, 1, "1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[401];
        progress_line(line, sizeof line, cases[i].columns, cases[i].part, cases[i].left, note);
        assert_string_equal(line, cases[i].line);
    }
    for (int columns = 2; columns <= 400; columns++) { /* no width at which it is too wide */
        char line[401];
        progress_line(line, sizeof line, columns, 0.7, 12011, note);
        assert_true(strlen(line) < (size_t)columns);
    }
}

static void times_are_rounded(void **state) {
    (void)state;
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {{0, "0 s"},           {49.6, "50 s"},        {89.4, "89 s"},
                 {90, "2 min"},        {3599, "60 min"},      {5369, "89 min"},
                 {5399, "1 h 30 min"}, {12000, "3 h 20 min"}, {12595, "3 h 30 min"},
                 {36010, "10 h"},      {172000, "2 days"},    {1e6, "12 days"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[32];
        progress_time(text, sizeof text, cases[i].seconds);
        assert_string_equal(text, cases[i].text);
    }
}

/* From the top of the tree the parts of a clone have the names that they have in the sources. */
static void parts_are_where_they_are(void **state) {
    (void)state;
    static const char *const texts[][2] = {
        {"", ""},
        {"see docs/bench.md.", "see docs/bench.md."},
        {"(docs/no-such-page.md), sh scripts/plot.sh RUN", "(docs/no-such-page.md), sh scripts/plot.sh RUN"},
        {"docs/ scripts/ docs/.md scripts/sh docs/bench", "docs/ scripts/ docs/.md scripts/sh docs/bench"},
    };
    char path[PLACE_MAX], here[PLACE_MAX];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *text = place_text(texts[i][0]);
        assert_string_equal(text, texts[i][1]);
        mem_free(text);
    }
    assert_string_equal(place_script("plot.sh"), "sh scripts/plot.sh");
    assert_string_equal(place_fetch("ptb"), "sh scripts/fetch-data.sh ptb");
    assert_string_equal(place_of("docs/bench.md", path), "docs/bench.md");
    assert_non_null(getcwd(here, sizeof here));
    place_program(path);
    if (strncmp(path, here, strlen(here)) != 0) return; /* built outside of the tree: from elsewhere nothing is found */

    /* From elsewhere, in full. */
    assert_int_equal(chdir("/"), 0);
    char *full = mem_printf("see %s/docs/bench.md, docs/no-such-page.md.", here);
    char *text = place_text("see docs/bench.md, docs/no-such-page.md.");
    assert_string_equal(text, full);
    mem_free(text);
    mem_free(full);
    assert_int_equal(access(place_of("scripts/slurm/generate.sh", path), R_OK), 0);
    assert_int_equal(chdir(here), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_for_gpus),
        cmocka_unit_test(philox_known_answers),
        cmocka_unit_test(rng_is_a_function_of_its_place),
        cmocka_unit_test(rng_distributions),
        cmocka_unit_test(many_normals_are_those_one_by_one),
        cmocka_unit_test(checksums),
        cmocka_unit_test(json_text_is_right),
        cmocka_unit_test(phases_cut_time_without_gaps),
        cmocka_unit_test(a_scope_restores_what_it_found),
        cmocka_unit_test(what_a_phase_spends_is_charged_to_it),
        cmocka_unit_test(memory_is_aligned_and_zeroed),
        cmocka_unit_test(memory_may_be_pinned),
        cmocka_unit_test(traces),
        cmocka_unit_test(ways_to_end),
        cmocka_unit_test(first_error_wins),
        cmocka_unit_test(whose_error),
        cmocka_unit_test(messages_quote_no_control_characters),
        cmocka_unit_test(devices_are_listed),
        cmocka_unit_test(progress_draws_a_bar),
        cmocka_unit_test(progress_fits_the_terminal),
        cmocka_unit_test(times_are_rounded),
        cmocka_unit_test(parts_are_where_they_are),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
