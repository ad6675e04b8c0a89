/* local_measure.c: local work measured on this process: see local_costs.h. Each part as the exchanges do it: in a step
 * a gradient is added to the residual and selected from, the selection is rounded and packed, a message is unpacked,
 * merged with the selection and cut to k. So the caches hold what they would hold in a step, not the message that was
 * packed before; with the same entries again and again a packed one takes a quarter of the time. What is reused for
 * `period` steps counts once in so many. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/table.h"
#include "cli/network/local_costs.h"

enum {
    RUNS = 4,              /* of each part; the first is warm-up, and finds what is reused */
    SHIFT = 16,            /* entries between the gradients of two runs */
    DRAWN = 1 << 20,       /* different numbers */
    MESSAGE_MAX = 1 << 16, /* entries that are packed and merged */
    SUM_MAX = 1 << 24      /* entries of a dense sum, more than caches hold */
};

/* A gradient, a residual, and what is made of them. */
struct bench {
    const struct local_request *request;
    size_t n, k, run;
    float *grad; /* device, [n + SHIFT * RUNS] */
    struct store store;
};

static double done(const struct bench *b) {
    b->request->device->sync();
    return clock_now();
}

/* Normal numbers, again and again where there are many of them, each time a little larger. */
static void fill(struct bench *b) {
    const struct device_ops *device = b->request->device;
    size_t all = b->n + SHIFT * RUNS, drawn = all < DRAWN ? all : DRAWN;
    struct rng rng = rng_open(1, RNG_TEST, 3);
    float *block = mem_alloc(drawn, sizeof *block, "numbers to measure with");
    rng_normals(&rng, 1, block, drawn);
    b->grad = device->alloc(all * sizeof *b->grad, "a gradient to measure with");
    for (size_t from = 0; from < all; from += drawn) {
        size_t count = all - from < drawn ? all - from : drawn;
        device->to_device(b->grad + from, block, count * sizeof *block);
        for (size_t i = 0; i < drawn; i++) block[i] *= 1.001f;
    }
    mem_free(block);
}

static void bench_open(struct bench *b, const struct local_request *request) {
    size_t n = request->n;
    if (device_is_host(request->device) && n > LOCAL_ENTRIES) n = LOCAL_ENTRIES;
    double k = (double)request->k * ((double)n / (double)request->n);
    *b = (struct bench){.request = request, .n = n, .k = k < 1 ? 1 : (size_t)k};
    fill(b);
    store_open(&b->store, n, request->device);
}

static void bench_close(struct bench *b) {
    store_close(&b->store);
    b->request->device->release(b->grad);
}

static const float *next_gradient(struct bench *b) {
    return b->grad + SHIFT * (b->run++ % RUNS);
}

/* -- selecting ------------------------------------------------------------------------------------- */
static void select_entries(struct bench *b, struct selector *s, struct sparse *out) {
    size_t bad;
    if (!selector_run(s, next_gradient(b), b->k, out, &bad)) die("entry %zu of normal numbers is not finite", bad);
    b->store.ops->zero_at(&b->store, out->idx, out->nnz);
}

/* A first step is one in so many. */
static double period_of(const struct selector *s) {
    struct use {
        int period;
        enum reuse_rule rule;
    } use;
    static const struct option_row rows[] = {REUSE_OPTIONS(struct use, period, rule)};
    option_take(&(struct option_part)OPTION_PART(rows), &use, &s->settings.options);
    return use.period;
}

/* Seconds of a step with this selector. */
static double time_selector(struct bench *b, const struct selector_ops *ops) {
    struct selector *s = selector_open(ops, &b->store, b->k, b->request->settings);
    double period = period_of(s), first = 0, later = INFINITY;
    struct sparse out;
    sparse_open(&out, s->room);
    for (int run = 0; run < RUNS; run++) {
        double begin = done(b);
        select_entries(b, s, &out);
        double seconds = done(b) - begin;
        if (run == 0)
            first = seconds;
        else
            later = fmin(later, seconds);
    }
    sparse_close(&out);
    selector_close(s);
    return (first + (period - 1) * later) / period;
}

/* One pass that accumulates and selects with a threshold that is known. */
static double time_own(struct bench *b, float threshold) {
    struct sparse out;
    double least = INFINITY;
    sparse_open(&out, selector_capacity_common(b->n, b->k));
    for (int run = 0; run < RUNS; run++) {
        double begin = done(b);
        b->store.ops->accumulate_select(&b->store, next_gradient(b), magnitude_key(threshold), &out);
        b->store.ops->zero_at(&b->store, out.idx, out.nnz);
        least = fmin(least, done(b) - begin);
    }
    sparse_close(&out);
    return least;
}

/* -- packing and merging --------------------------------------------------------------------------- */
/* What a step works with, as gtopk-rd does: room for `cap` entries, twice as many in `sum` and `keys`. */
struct desk {
    struct sparse local, error, buffer, sum, dropped;
    void *message[2]; /* this step's, and the one before: what comes in */
    size_t bytes[2], end[2];
    uint32_t *keys;
};

static void desk_open(struct desk *d, size_t cap) {
    size_t most = 0;
    for (size_t w = 0; wires[w]; w++)
        if (wire_capacity(wires[w], cap) > most) most = wire_capacity(wires[w], cap);
    *d = (struct desk){0};
    for (int i = 0; i < 2; i++) d->message[i] = mem_alloc(1, most, "a message to measure with");
    d->keys = mem_alloc(2 * cap, sizeof *d->keys, "keys of a selection");
    sparse_open(&d->local, cap);
    sparse_open(&d->error, cap);
    sparse_open(&d->buffer, cap);
    sparse_open(&d->sum, 2 * cap);
    sparse_open(&d->dropped, 2 * cap);
}

static void desk_close(struct desk *d) {
    struct sparse *vectors[] = {&d->dropped, &d->sum, &d->buffer, &d->error, &d->local};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) sparse_close(vectors[i]);
    mem_free(d->keys);
    for (int i = 0; i < 2; i++) mem_free(d->message[i]);
}

/* Seconds of a part of the work, and of all of it, for each entry. */
struct spent {
    double part, all;
};

static struct spent spent(double begin, double between, size_t entries) {
    return (struct spent){(between - begin) / (double)entries, (clock_now() - begin) / (double)entries};
}

/* Packing this step's selection; the part is rounding. */
static struct spent pack(struct desk *d, const struct wire_ops *wire, int step) {
    d->end[step] = (size_t)d->local.idx[d->local.nnz - 1] + 1;
    double begin = clock_now();
    wire_round(wire, &d->local, &d->error);
    double rounded = clock_now();
    d->bytes[step] = wire->encode(&d->local, 0, d->end[step], d->message[step]);
    return spent(begin, rounded, d->local.nnz);
}

/* Unpacking a message, the part, and merging it with this step's selection. */
static struct spent unpack(struct desk *d, const struct wire_ops *wire, int message) {
    struct sparse view;
    struct err e = {0};
    double begin = clock_now();
    if (!wire->decode(d->message[message], d->bytes[message], 0, d->end[message], &d->buffer, &view, &e))
        die("%s: %s", wire->name, e.text);
    double decoded = clock_now();
    sparse_merge(&d->local, &view, &d->sum);
    sparse_keep_top(&d->sum, d->local.nnz, &d->dropped, d->keys);
    return spent(begin, decoded, view.nnz);
}

/* Of the two runs with the shorter time in all; so that the part is never more than that. */
static void least(struct spent *so_far, struct spent now) {
    if (now.all < so_far->all) *so_far = now;
}

static void time_format(struct bench *b, struct selector *s, struct sparse *out, struct desk *d, size_t w,
                        struct local_times *times) {
    struct spent packed = {INFINITY, INFINITY}, unpacked = {INFINITY, INFINITY};
    for (int run = 0; run < RUNS; run++) {
        select_entries(b, s, out);
        const struct sparse some = sparse_slice(out, 0, out->nnz < d->local.cap ? out->nnz : d->local.cap);
        d->local.nnz = 0;
        sparse_append(&d->local, &some);
        struct spent now = pack(d, wires[w], run % 2);
        if (run == 0) continue;
        least(&packed, now);
        least(&unpacked, unpack(d, wires[w], (run - 1) % 2));
    }
    times->pack[w] = packed.all;
    times->round[w] = packed.part;
    times->unpack[w] = unpacked.all;
    times->decode[w] = unpacked.part;
}

/* Seconds of reading the residual at these entries and adding that to something, for each of them. */
static double time_add(struct bench *b, const struct sparse *at) {
    float *val = mem_zalloc(at->nnz, sizeof *val, "values to measure with");
    float *sum = mem_zalloc(at->nnz, sizeof *sum, "sums to measure with");
    double least = INFINITY;
    for (int run = 0; run < RUNS; run++) {
        double begin = done(b);
        b->store.ops->gather_at(&b->store, at->idx, at->nnz, val);
        for (size_t i = 0; i < at->nnz; i++) sum[i] += val[i];
        least = fmin(least, done(b) - begin);
    }
    mem_free(sum);
    mem_free(val);
    return least / (double)at->nnz;
}

/* Seconds of rounding and packing a dense value and of unpacking and adding it, half of both. */
static double time_half(const struct wire_ops *wire) {
    float *val = mem_zalloc(MESSAGE_MAX, sizeof *val, "values to measure with");
    float *cut = mem_zalloc(MESSAGE_MAX, sizeof *cut, "values to measure with");
    uint16_t *half = mem_zalloc(MESSAGE_MAX, sizeof *half, "values to measure with");
    double least = INFINITY;
    for (int run = 0; run < RUNS; run++) {
        for (size_t i = 0; i < MESSAGE_MAX; i++) val[i] = (float)i + 0.1f * (float)run;
        double begin = clock_now();
        wire->round_all(val, MESSAGE_MAX, cut);
        wire->pack(val, MESSAGE_MAX, half);
        wire->unpack(half, MESSAGE_MAX, val);
        for (size_t i = 0; i < MESSAGE_MAX; i++) cut[i] += val[i];
        least = fmin(least, clock_now() - begin);
    }
    mem_free(half);
    mem_free(cut);
    mem_free(val);
    return least / MESSAGE_MAX / 2;
}

/* Seconds of adding a value that has just come in to those of a long vector. */
static double time_sum(size_t n) {
    float *in = mem_zalloc(MESSAGE_MAX, sizeof *in, "values to measure with");
    float *sum = mem_zalloc(n, sizeof *sum, "sums to measure with");
    double least = INFINITY;
    for (int run = 0; run < RUNS; run++) {
        double begin = clock_now();
        for (size_t from = 0; from < n; from += MESSAGE_MAX)
            for (size_t i = 0; i < MESSAGE_MAX && from + i < n; i++) sum[from + i] += in[i];
        least = fmin(least, clock_now() - begin);
    }
    mem_free(sum);
    mem_free(in);
    return least / (double)n;
}

/* Everything but the selectors; with an exact one, which finds k entries whatever the numbers are. */
static void time_messages(struct bench *b, struct local_times *times) {
    struct desk desk;
    struct sparse out;
    struct selector *s = selector_open(&selector_exact, &b->store, b->k, NULL);
    sparse_open(&out, s->room);
    desk_open(&desk, b->k < MESSAGE_MAX ? b->k : MESSAGE_MAX);
    for (size_t w = 0; wires[w]; w++) {
        time_format(b, s, &out, &desk, w, times);
        if (wires[w]->pack) times->half[w] = time_half(wires[w]);
    }
    times->own = time_own(b, s->stats.threshold) / (double)b->n;
    times->add = time_add(b, &desk.local);
    desk_close(&desk);
    sparse_close(&out);
    selector_close(s);
}

/* -- all of it ------------------------------------------------------------------------------------- */
static bool asked_for(const struct local_request *request, const struct selector_ops *selector) {
    for (size_t i = 0; exchanges[i]; i++)
        if (request->selector[i] == selector) return true;
    return false;
}

void local_measure(const struct local_request *request, struct local_times *times) {
    struct bench b;
    *times = (struct local_times){0};
    bench_open(&b, request);
    for (size_t i = 0; selectors[i]; i++) {
        if (i == LOCAL_SELECTORS) die("more than %d selectors", LOCAL_SELECTORS);
        if (asked_for(request, selectors[i])) times->select[i] = time_selector(&b, selectors[i]) / (double)b.n;
    }
    time_messages(&b, times);
    times->sum = time_sum(request->n < SUM_MAX ? request->n : SUM_MAX);
    for (size_t i = 0; exchanges[i]; i++)
        if (exchanges[i]->code_seconds) times->code[i] = exchanges[i]->code_seconds();
    bench_close(&b);
}

void local_default_selectors(local_selectors selector) {
    for (size_t i = 0; exchanges[i]; i++) {
        selector[i] = NULL;
        if (exchanges[i]->selects) TABLE_FIND(selectors, exchanges[i]->default_select, selector[i]);
    }
}

void local_from_times(const struct local_times *times, const local_selectors selector, struct local_costs *costs) {
    *costs = (struct local_costs){0};
    for (size_t i = 0; exchanges[i]; i++) {
        double select = times->own;
        for (size_t s = 0; selectors[s]; s++)
            if (selectors[s] == selector[i]) select = times->select[s];
        for (size_t w = 0; wires[w]; w++) {
            struct local_cost *cost = &costs->of[i][w];
            if (exchanges[i]->sparse)
                *cost = (struct local_cost){.select = select,
                                            .pack = times->pack[w],
                                            .unpack = times->unpack[w],
                                            .round = times->round[w],
                                            .decode = times->decode[w],
                                            .add = times->add};
            cost->half = times->half[w];
            cost->code = times->code[i];
            cost->sum = times->sum;
        }
    }
}

void local_times_json(const struct local_times *times, struct json *j) {
    json_array(j, "selectors");
    for (size_t i = 0; selectors[i]; i++) {
        if (times->select[i] == 0) continue;
        json_object(j, NULL);
        json_string(j, "select", selectors[i]->name);
        json_number(j, "entry_s", times->select[i]);
        json_end(j);
    }
    json_end(j);
    json_number(j, "own_entry_s", times->own);
    json_array(j, "formats");
    for (size_t w = 0; wires[w]; w++) {
        json_object(j, NULL);
        json_string(j, "wire", wires[w]->name);
        json_number(j, "pack_entry_s", times->pack[w]);
        json_number(j, "unpack_entry_s", times->unpack[w]);
        json_number(j, "round_entry_s", times->round[w]);
        json_number(j, "decode_entry_s", times->decode[w]);
        if (wires[w]->pack) json_number(j, "dense_entry_s", times->half[w]);
        json_end(j);
    }
    json_end(j);
    json_array(j, "coders");
    for (size_t i = 0; exchanges[i]; i++) {
        if (!exchanges[i]->code_seconds) continue;
        json_object(j, NULL);
        json_string(j, "algo", exchanges[i]->name);
        json_number(j, "value_s", times->code[i]);
        json_end(j);
    }
    json_end(j);
    json_number(j, "add_word_s", times->add);
    json_number(j, "sum_value_s", times->sum);
}
