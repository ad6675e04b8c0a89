/* bench_select.c: how long it takes to add a gradient to the residual and select about k entries, against the two
 * passes that bound it from below: acc += grad, and a read of acc; on a device also how long the selection alone takes,
 * without the accumulation, against that read. Steps as in training: each has another gradient, and
 * what was selected is taken out. The three passes run in turn, step after step, so that a machine whose speed wanders
 * slows all alike. A last step, not timed, is compared entry by entry with a plain definition (columns as in
 * nccl-tests). */
#include "cli/bench/bench_select.h"
#include "cli/bench/bench_exchange.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/rng.h"
#include "cli/bench/median.h"
#include "cli/options/device_option.h"
#include "topk/cpu/kernels.h"

enum {
    WARM_UP = 8,     /* steps before the clock counts: reuse finds a threshold and corrects it */
    GRADIENTS = 256, /* different ones: the same numbers, shifted */
    SHIFT = 16,      /* entries */
    REPEAT_MAX = 10000
};

struct request {
    struct option_numbers n, density;
    struct option_names selector;
    size_t repeat;           /* timed steps */
    struct exchange_own own; /* what selectors declare */
    bool json;
    const char *device_name;
    const struct device_ops *device;
};

static const struct option_row rows[] = {
    {"select", "LIST|all", OPTION_NAMES, "all", "selectors", OPTION_AT(struct request, selector),
     .choice = selector_name},
    {"n", "LIST|MIN:MAX:FACTOR", OPTION_NUMBERS, "1000000,14728266",
     "gradient lengths (VGG-16 has 14728266, BERT 133547324); MIN:MAX:FACTOR: MIN, MIN * FACTOR, ... up to MAX. 18 "
     "bytes of memory per entry and more",
     OPTION_AT(struct request, n), .min = 1, .max = UINT32_MAX, .whole = true, .sweep = true},
    {"density", "LIST", OPTION_NUMBERS, "0.001,0.02", "shares selected", OPTION_AT(struct request, density), .max = 1,
     .above_min = true},
    {"repeat", "N", OPTION_SIZE, "40", "timed steps, each with all three passes in turn",
     OPTION_AT(struct request, repeat), .min = 1, .max = REPEAT_MAX},
    {NULL, OPTION_AT(struct request, own)},
    {"device", "NAME", OPTION_WORD, "auto", "auto, cpu, cuda or sparse; auto: a GPU where one can be used",
     OPTION_AT(struct request, device_name)},
    {"json", NULL, OPTION_FLAG, NULL, "one JSON object per row instead of the table", OPTION_AT(struct request, json)},
};

/* With what selectors declare. */
static struct option_row options[OPTION_ROWS_MAX];

struct option_table select_options = {
    .verb = "bench select",
    .row = options,
    .call = "sparsetrain bench select",
    .about =
        "Steps of accumulate, select about k = density * n, take out what was selected, one thread, next to a plain "
        "acc += grad and a read scan of the same length (on a GPU also: what is selected alone). LIST: values with "
        "commas between them.",
};

/* Before main: the table of verbs has it in it. */
__attribute__((constructor)) static void gather(void) {
    select_options.rows = exchange_options_gather(options, rows, sizeof rows / sizeof *rows, false);
}

/* Arrays of one n. */
struct arrays {
    size_t n;
    const struct device_ops *device;
    float *grad;        /* [n + GRADIENTS * SHIFT], device */
    float *host;        /* the same, host; grad itself where that is the device */
    float *check;       /* [n] host: what a check adds up in; the memory of plain where that is the host's */
    struct store plain; /* what the plain passes work on */
    struct store store;
};

/* Seconds of each timed step. */
struct times {
    double select[REPEAT_MAX], accumulate[REPEAT_MAX], scan[REPEAT_MAX], alone[REPEAT_MAX];
    bool reevaluated[REPEAT_MAX];
};

struct row {
    size_t n, k, wrong, missed;
    double density;
    double select, least, accumulate, scan; /* [s], medians and the least of ordinary steps */
    double alone;                           /* [s], median of the selection without accumulation; NaN: not measured */
    double mean;                            /* [s], of all steps */
    double reevaluated;                     /* [s], median of the steps with a new exact threshold; NaN: none */
    double found;                           /* entries per step, mean */
    float threshold, exact;                 /* of the last step; exact: the k-th magnitude */
    const char *selector;
};

enum { LAYER = 1 << 14 };

/* Normal numbers whose scale wanders from layer to layer as in a network. */
static void fill(float *x, size_t n) {
    struct rng rng = rng_open(1, RNG_TEST, 2);
    for (size_t from = 0; from < n; from += LAYER) {
        double scale = exp(2.0 * (double)(from / LAYER % 64) / 64.0);
        rng_normals(&rng, 1e-3 * scale, x + from, n - from < LAYER ? n - from : LAYER);
    }
}

static void arrays_open(struct arrays *a, size_t n, const struct device_ops *device) {
    size_t floats = n + GRADIENTS * SHIFT;
    *a = (struct arrays){.n = n, .device = device};
    a->host = mem_alloc(floats, sizeof *a->host, "the bench's gradient");
    fill(a->host, floats);
    store_open(&a->plain, n, device);
    store_open(&a->store, n, device);
    if (device_is_host(device)) {
        a->grad = a->host;
        a->check = a->plain.acc;
        return;
    }
    a->grad = device->alloc(floats * sizeof *a->grad, "the bench's gradient (a smaller --n needs less)");
    device->to_device(a->grad, a->host, floats * sizeof *a->grad);
    a->check = mem_alloc(n, sizeof *a->check, "what the bench's check adds up");
}

static void arrays_close(struct arrays *a) {
    store_close(&a->store);
    if (a->check != a->plain.acc) mem_free(a->check);
    if (a->grad != a->host) a->device->release(a->grad);
    store_close(&a->plain);
    mem_free(a->host);
}

/* Where in grad a step's gradient begins: neighbours in time are not neighbours in memory. */
static size_t gradient_at(size_t step) {
    return step * 37 % GRADIENTS * SHIFT;
}

/* The residual of a run that has gone on for a while: three gradients at once. */
static void restore(struct arrays *a) {
    for (size_t i = 0; i < a->n; i++) a->check[i] = 3 * a->host[i + 5];
    a->store.ops->write(&a->store, 0, a->n, a->check);
    if (a->check != a->plain.acc) a->plain.ops->write(&a->plain, 0, a->n, a->check);
}

static void run(struct selector *s, const float *grad, size_t k, struct sparse *out) {
    size_t bad;
    if (!selector_run(s, grad, k, out, &bad)) die("entry %zu of the bench's data is not finite", bad);
}

/* The time when the device has done all that it was given. */
static double done(const struct arrays *a) {
    a->device->sync();
    return clock_now();
}

static void one_step(struct arrays *a, struct selector *s, size_t k, size_t step, struct sparse *out, struct times *t,
                     size_t at) {
    const float *grad = a->grad + gradient_at(step);
    double begin = done(a);
    a->plain.ops->accumulate(&a->plain, grad);
    double accumulated = done(a);
    run(s, grad, k, out);
    double selected = done(a);
    a->plain.ops->count(&a->plain, KEY_INFINITE);
    double scanned = done(a);
    if (!device_is_host(a->device)) {
        a->store.ops->select(&a->store, magnitude_key(s->stats.threshold), out); /* again what it has just found */
        t->alone[at] = done(a) - scanned;
    }
    t->scan[at] = scanned - selected;
    t->select[at] = selected - accumulated;
    t->accumulate[at] = accumulated - begin;
    t->reevaluated[at] = s->stats.evaluated != 0;
    a->store.ops->zero_at(&a->store, out->idx, out->nnz);
}

/* The definition of the k largest of acc + grad (host), ties to the lower index, entry by entry. missed: of these, not
 * returned. wrong: returned with another value or below the stated threshold, or not of these where `exact`. */
static void compare(const struct arrays *a, const float *acc, const float *grad, const struct selector *s,
                    const struct sparse *out, struct row *row) {
    uint32_t *key = mem_alloc(a->n, sizeof *key, "keys of the reference"), least = magnitude_key(s->stats.threshold);
    for (size_t i = 0; i < a->n; i++) key[i] = magnitude_key(acc[i] + grad[i]);
    uint32_t kth = key_kth_largest(key, a->n, row->k);
    mem_free(key);
    memcpy(&row->exact, &kth, sizeof kth);
    size_t ties = row->k, at = 0, extra = 0;
    for (size_t i = 0; i < a->n; i++) ties -= magnitude_key(acc[i] + grad[i]) > kth;
    for (size_t i = 0; i < a->n; i++) {
        float value = acc[i] + grad[i];
        uint32_t own = magnitude_key(value);
        bool returned = at < out->nnz && out->idx[at] == i, among = own > kth || (own == kth && ties > 0);
        ties -= own == kth && ties > 0;
        row->missed += among && !returned;
        extra += !among && returned;
        if (!returned) continue;
        row->wrong += own < least || memcmp(&out->val[at], &value, sizeof value) != 0;
        at++;
    }
    row->wrong += out->nnz - at;
    if (s->ops->exact_count) row->wrong += out->nnz > row->k ? out->nnz - row->k : row->k - out->nnz;
    if (s->ops->exact) row->wrong += row->missed + extra;
}

static void summarise(struct times *t, size_t repeat, bool alone, struct row *row) {
    double *renewed = mem_alloc(repeat, sizeof *renewed, "times of the bench"), sum = 0;
    size_t ordinary = 0, anew = 0;
    for (size_t i = 0; i < repeat; i++) {
        sum += t->select[i];
        if (t->reevaluated[i])
            renewed[anew++] = t->select[i];
        else
            t->select[ordinary++] = t->select[i];
    }
    row->mean = sum / (double)repeat;
    row->reevaluated = median(renewed, anew);
    row->select = ordinary ? median(t->select, ordinary) : row->reevaluated;
    row->least = ordinary ? t->select[0] : renewed[0];
    row->accumulate = median(t->accumulate, repeat);
    row->scan = median(t->scan, repeat);
    row->alone = alone ? median(t->alone, repeat) : NAN;
    mem_free(renewed);
}

static struct row measure(struct arrays *a, double density, const struct selector_ops *ops, const struct request *r) {
    struct row row = {.n = a->n, .k = density_to_k(density, a->n), .density = density, .selector = ops->name};
    const struct selector_settings settings = {.options = {options, select_options.rows, r}};
    struct times *t = mem_alloc(1, sizeof *t, "times of the bench");
    struct selector *s = selector_open(ops, &a->store, row.k, &settings);
    struct sparse out;
    size_t step = 0;
    sparse_open(&out, selector_capacity(ops, a->n, row.k));
    restore(a);
    for (; step < WARM_UP; step++) one_step(a, s, row.k, step, &out, t, 0);
    for (; step < WARM_UP + r->repeat; step++) {
        one_step(a, s, row.k, step, &out, t, step - WARM_UP);
        row.found += (double)out.nnz / (double)r->repeat;
    }
    summarise(t, r->repeat, !device_is_host(a->device), &row);
    a->store.ops->read(&a->store, 0, a->n, a->check);
    run(s, a->grad + gradient_at(step), row.k, &out);
    compare(a, a->check, a->host + gradient_at(step), s, &out, &row);
    row.threshold = s->stats.threshold;
    sparse_close(&out);
    selector_close(s);
    mem_free(t);
    return row;
}

static void print_json(const struct row *r, const struct request *request) {
    struct json j;
    json_open(&j);
    json_object(&j, NULL);
    json_string(&j, "bench", "select");
    json_integer(&j, "n", (int64_t)r->n);
    json_number(&j, "density", r->density);
    json_integer(&j, "k", (int64_t)r->k);
    json_string(&j, "selector", r->selector);
    bench_own_json(&(struct option_values){options, select_options.rows, request}, &request->own, &j);
    json_string(&j, "kernels", topk_kernels()->name);
    json_string(&j, "device", request->device->label());
    json_string(&j, "device_about", request->device->describe());
    json_integer(&j, "repeat", (int64_t)request->repeat);
    json_number(&j, "median_s", r->select);
    json_number(&j, "min_s", r->least);
    json_number(&j, "mean_s", r->mean);
    json_number(&j, "reevaluated_s", r->reevaluated);
    json_number(&j, "accumulate_s", r->accumulate);
    json_number(&j, "scan_s", r->scan);
    json_number(&j, "ratio_accumulate", r->select / r->accumulate);
    json_number(&j, "ratio_accumulate_mean", r->mean / r->accumulate);
    json_number(&j, "ratio_scan", r->select / r->scan);
    json_number(&j, "select_alone_s", r->alone);
    json_number(&j, "ratio_select_alone_scan", r->alone / r->scan);
    json_number(&j, "found_mean", r->found);
    json_number(&j, "threshold", (double)r->threshold);
    json_number(&j, "threshold_exact", (double)r->exact);
    json_integer(&j, "missed", (int64_t)r->missed);
    json_integer(&j, "wrong", (int64_t)r->wrong);
    json_end(&j);
    puts(json_text(&j));
    json_close(&j);
}

static void print_row(const struct row *r, const struct request *request) {
    if (request->json) {
        print_json(r, request);
        return;
    }
    char anew[32] = "-", alone[48] = "";
    if (!isnan(r->reevaluated)) snprintf(anew, sizeof anew, "%.3f", r->reevaluated * 1e3);
    double off = r->exact != 0 ? 100 * ((double)r->threshold / (double)r->exact - 1) : 0;
    if (!isnan(r->alone)) snprintf(alone, sizeof alone, " %9.3f %7.2f", r->alone * 1e3, r->alone / r->scan);
    printf("%11zu %9g %9zu  %-10s %9.3f %9.3f %9s %9.3f %8.3f %7.2f %7.2f %7.2f%s %8.3f %+9.2f %7.2f %6zu\n", r->n,
           r->density, r->k, r->selector, r->select * 1e3, r->mean * 1e3, anew, r->accumulate * 1e3, r->scan * 1e3,
           r->select / r->accumulate, r->mean / r->accumulate, r->select / r->scan, alone, r->found / (double)r->k, off,
           100 * (double)r->missed / (double)r->k, r->wrong);
}

static void print_head(const struct request *request) {
    bool host = device_is_host(request->device);
    char *where = host ? mem_printf("one thread, %s kernels", topk_kernels()->name)
                       : mem_printf("%s: %s", request->device->label(), request->device->describe());
    printf(
        "# select: accumulate and select, %s; %zu steps after %d\n"
        "# median, mean: of ordinary steps, of all; renew: median of steps that found an exact threshold anew\n"
        "# /accum, mean/a, /scan: over the median of a plain acc += grad, of a read scan, in the same steps\n"
        "%s"
        "# found/k: mean over the steps; thr%%: threshold off the exact one; miss%%: of the k largest, not returned\n"
        "#         n   density         k  selector   median/ms   mean/ms  renew/ms  accum/ms  scan/ms  /accum  "
        "mean/a   /scan%s  found/k      thr%%   miss%%  wrong\n",
        where, request->repeat, (int)WARM_UP,
        host ? "" : "# alone: median of the selection without the accumulation; al/scan: over that of the read scan\n",
        host ? "" : "  alone/ms al/scan");
    mem_free(where);
}

/* Gradient, plain array, residual, keys of the check: 4 bytes per entry each, sidco's candidates, and the lists. */
static double memory_needed(const struct request *r, double n) {
    double most = 0;
    for (size_t s = 0; s < r->selector.count; s++)
        for (size_t d = 0; d < r->density.count; d++)
            most = fmax(most, (double)selector_capacity(selectors[r->selector.at[s]], (size_t)n,
                                                        density_to_k(r->density.x[d], (size_t)n)));
    return 18 * n + 24 * most;
}

static bool fits(const struct request *r, struct err *e) {
    double available = (double)mem_available(), most = 0;
    size_t worst = 0;
    for (size_t i = 0; i < r->n.count; i++)
        if (memory_needed(r, r->n.x[i]) > most) most = memory_needed(r, r->n.x[worst = i]);
    if (available <= 0 || most <= available) return true;
    return err_set(e,
                   "bench select: n = %.0f needs about %.0f MiB and %.0f MiB are free; a smaller --n or --density is "
                   "needed",
                   r->n.x[worst], most / 1048576, available / 1048576);
}

int bench_select(int argc, char **argv) {
    struct request request;
    struct err e = {0};
    option_defaults(&select_options, &request);
    if (!option_parse(&select_options, &request, NULL, argc, argv, 1, &e) ||
        !device_option_alone("bench select: ", request.device_name, DEVICE_EXCHANGES, &request.device, &e) ||
        !fits(&request, &e)) {
        fprintf(stderr, "sparsetrain: %s\n", e.text);
        return err_status(&e);
    }
    if (!request.json) print_head(&request);
    size_t wrong = 0;
    for (size_t i = 0; i < request.n.count; i++) {
        struct arrays a;
        arrays_open(&a, (size_t)request.n.x[i], request.device);
        for (size_t d = 0; d < request.density.count; d++)
            for (size_t s = 0; s < request.selector.count; s++) {
                struct row row = measure(&a, request.density.x[d], selectors[request.selector.at[s]], &request);
                print_row(&row, &request);
                fflush(stdout);
                wrong += row.wrong;
            }
        arrays_close(&a);
    }
    return wrong ? EXIT_SYSTEM : EXIT_DONE;
}
