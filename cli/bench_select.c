/* bench_select.c: how long it takes to add a gradient to the residual and select the k largest magnitudes,
 * against the two passes that bound it from below: acc += grad, and a read of acc. The three run in turn, round
 * after round, on the same arrays restored before each, so that a machine whose speed wanders slows all alike.
 * The result is compared entry by entry with a plain definition of top-k (columns as in nccl-tests). */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/rng.h"
#include "cli/bench.h"
#include "topk/kernels.h"
#include "topk/selector.h"

enum { LIST_MAX = 16, REPEAT_MAX = 1000 };

struct request {
    double n[LIST_MAX], density[LIST_MAX];
    size_t n_count, density_count, repeat;
    bool json;
};

/* Arrays of one n, all [n]. */
struct arrays {
    size_t n;
    float *residual, *grad;
    struct store store; /* restored from residual before each run */
};

/* Seconds of each round. */
struct times {
    double select[REPEAT_MAX], accumulate[REPEAT_MAX], scan[REPEAT_MAX];
};

static const char usage[] =
    "usage: sparsetrain bench select [--n LIST] [--density LIST] [--repeat N] [--json]\n"
    "Accumulate and select the k = density * n largest magnitudes, one thread, next to a plain acc += grad and a\n"
    "read scan of the same array. LIST: numbers with commas between them.\n"
    "  --n LIST         gradient lengths (default 269722,14728266: ResNet-20, VGG-16)\n"
    "  --density LIST   shares selected (default 0.001,0.02)\n"
    "  --repeat N       rounds, each times all three in turn (default 15)\n"
    "  --json           one JSON object per row instead of the table\n";

/* Numbers with commas between them, each in [least, most]; whole ones where least is. */
static bool parse_list(const char *option, const char *text, double least, double most, double *list, size_t *count,
                       struct err *e) {
    bool whole = least == floor(least);
    *count = 0;
    for (const char *at = text;; at++) {
        char *end;
        errno = 0;
        double x = strtod(at, &end);
        if (end == at || errno || !(x >= least && x <= most) || (*end && *end != ',') || (whole && x != floor(x)))
            return err_set(e, "bench select: %s %s: %snumbers from %g to %.10g with commas between them are needed",
                           option, text, whole ? "whole " : "", least, most);
        if (*count == LIST_MAX) return err_set(e, "bench select: %s %s: at most %d numbers", option, text, LIST_MAX);
        list[(*count)++] = x;
        at = end;
        if (!*at) return true;
    }
}

static bool parse(int argc, char **argv, struct request *r, struct err *e) {
    *r = (struct request){.n = {269722, 14728266}, .density = {0.001, 0.02}, 2, 2, .repeat = 15};
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i], *value = argv[i + 1];
        double rounds[LIST_MAX];
        size_t numbers = 0;
        bool ok = true;
        if (strcmp(option, "--json") == 0) {
            r->json = true;
            continue;
        }
        if (strcmp(option, "--n") && strcmp(option, "--density") && strcmp(option, "--repeat"))
            return err_set(e, "bench select: unknown option %s; --help shows them all", option);
        if (!value) return err_set(e, "bench select: %s needs a value", option);
        if (strcmp(option, "--n") == 0)
            ok = parse_list(option, value, 1, 4294967295.0, r->n, &r->n_count, e);
        else if (strcmp(option, "--density") == 0)
            ok = parse_list(option, value, 1e-12, 1, r->density, &r->density_count, e);
        else
            ok = parse_list(option, value, 1, REPEAT_MAX, rounds, &numbers, e);
        if (!ok) return false;
        if (numbers > 1) return err_set(e, "bench select: %s %s: one number is needed", option, value);
        if (numbers == 1) r->repeat = (size_t)rounds[0];
        i++;
    }
    return true;
}

/* Normal numbers whose scale wanders from layer to layer as in a network; cheap, as n is large. */
static void fill(float *x, size_t n, double scale, uint64_t stream) {
    struct rng rng = rng_open(1, RNG_TEST, stream);
    for (size_t i = 0; i < n; i++) {
        double layer = exp(2.0 * (double)(i >> 14 & 63) / 64.0);
        x[i] = (float)(scale * layer * rng_normal(&rng));
    }
}

static void arrays_open(struct arrays *a, size_t n) {
    a->n = n;
    a->residual = mem_alloc(n, sizeof *a->residual, "the bench's residual");
    a->grad = mem_alloc(n, sizeof *a->grad, "the bench's gradient");
    fill(a->residual, n, 3e-3, 1);
    fill(a->grad, n, 1e-3, 2);
    store_open(&a->store, n, device_find("cpu"));
}

static void arrays_close(struct arrays *a) {
    store_close(&a->store);
    mem_free(a->residual);
    mem_free(a->grad);
}

static void restore(struct arrays *a) {
    a->store.ops->write(&a->store, 0, a->n, a->residual);
}

/* How many entries of `found` differ from the definition: all above the k-th magnitude, then ties by index. */
static size_t count_wrong(const struct arrays *a, size_t k, const struct sparse *found) {
    uint32_t *key = mem_alloc(a->n, sizeof *key, "keys of the reference");
    for (size_t i = 0; i < a->n; i++) key[i] = magnitude_key(a->residual[i] + a->grad[i]);
    uint32_t kth = key_kth_largest(key, a->n, k);
    mem_free(key);
    size_t ties = k, wrong = 0, at = 0;
    for (size_t i = 0; i < a->n; i++) ties -= magnitude_key(a->residual[i] + a->grad[i]) > kth;
    for (size_t i = 0; i < a->n; i++) {
        float value = a->residual[i] + a->grad[i];
        bool tie = magnitude_key(value) == kth && ties > 0;
        ties -= tie;
        if (magnitude_key(value) <= kth && !tie) continue;
        wrong += at >= found->nnz || found->idx[at] != i || memcmp(&found->val[at], &value, sizeof value) != 0;
        at++;
    }
    return wrong + (found->nnz > at ? found->nnz - at : 0);
}

static void one_round(struct arrays *a, struct selector *s, size_t k, struct sparse *out, struct times *t, size_t r) {
    const struct topk_kernels *kernels = topk_kernels();
    size_t bad;
    restore(a);
    double begin = clock_now();
    kernels->accumulate(a->store.acc, a->grad, a->n);
    t->accumulate[r] = clock_now() - begin;
    restore(a);
    begin = clock_now();
    if (!selector_run(s, a->grad, k, out, &bad)) die("entry %zu of the bench's data is not finite", bad);
    t->select[r] = clock_now() - begin;
    begin = clock_now();
    kernels->compact(a->store.acc, a->n, 0, KEY_INFINITE, out->idx, out->val, 0); /* finds nothing */
    t->scan[r] = clock_now() - begin;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts x. */
static double median(double *x, size_t count) {
    qsort(x, count, sizeof *x, ascending);
    return (x[(count - 1) / 2] + x[count / 2]) / 2;
}

struct row {
    size_t n, k, wrong;
    double density, select, least, accumulate, scan; /* [s] */
    const char *selector;
};

static void print_row(const struct row *r, const struct request *request) {
    if (!request->json) {
        printf("%12zu %9g %11zu  %-10s %10.3f %10.3f %10.3f %10.3f %8.2f %8.2f %6zu\n", r->n, r->density, r->k,
               r->selector, r->select * 1e3, r->least * 1e3, r->accumulate * 1e3, r->scan * 1e3,
               r->select / r->accumulate, r->select / r->scan, r->wrong);
        return;
    }
    struct json j;
    json_open(&j);
    json_object(&j, NULL);
    json_string(&j, "bench", "select");
    json_integer(&j, "n", (int64_t)r->n);
    json_number(&j, "density", r->density);
    json_integer(&j, "k", (int64_t)r->k);
    json_string(&j, "selector", r->selector);
    json_string(&j, "kernels", topk_kernels()->name);
    json_integer(&j, "repeat", (int64_t)request->repeat);
    json_number(&j, "median_s", r->select);
    json_number(&j, "min_s", r->least);
    json_number(&j, "accumulate_s", r->accumulate);
    json_number(&j, "scan_s", r->scan);
    json_number(&j, "ratio_accumulate", r->select / r->accumulate);
    json_number(&j, "ratio_scan", r->select / r->scan);
    json_integer(&j, "wrong", (int64_t)r->wrong);
    json_end(&j);
    puts(json_text(&j));
    json_close(&j);
}

static struct row measure(struct arrays *a, double density, const struct selector_ops *ops, size_t repeat) {
    struct row row = {.n = a->n, .k = density_to_k(density, a->n), .density = density, .selector = ops->name};
    struct times *t = mem_alloc(1, sizeof *t, "times of the bench");
    struct selector *s = selector_open(ops, &a->store, row.k, NULL);
    struct sparse out;
    sparse_open(&out, selector_capacity(ops, a->n, row.k));
    one_round(a, s, row.k, &out, t, 0); /* warm-up, and what is checked */
    if (ops->exact_count) row.wrong = count_wrong(a, row.k, &out);
    for (size_t r = 0; r < repeat; r++) one_round(a, s, row.k, &out, t, r);
    row.select = median(t->select, repeat);
    row.least = t->select[0];
    row.accumulate = median(t->accumulate, repeat);
    row.scan = median(t->scan, repeat);
    sparse_close(&out);
    selector_close(s);
    mem_free(t);
    return row;
}

int bench_select(int argc, char **argv) {
    struct request request;
    struct err e = {0};
    if (argc > 1 && strcmp(argv[1], "--help") == 0) return fputs(usage, stdout) < 0 ? EXIT_SYSTEM : EXIT_DONE;
    if (!parse(argc, argv, &request, &e)) {
        fprintf(stderr, "sparsetrain: %s\n", e.text);
        return EXIT_USER;
    }
    if (!request.json)
        printf("# select: acc += grad and top-k, one thread, %s kernels, %zu rounds\n"
               "# ratios: median over that of a plain acc += grad, and of a read scan, in the same rounds\n"
               "#          n   density           k  selector    median/ms     min/ms accum/ms   scan/ms  /accum    "
               "/scan  wrong\n",
               topk_kernels()->name, request.repeat);
    size_t wrong = 0;
    for (size_t i = 0; i < request.n_count; i++) {
        struct arrays a;
        arrays_open(&a, (size_t)request.n[i]);
        for (size_t d = 0; d < request.density_count; d++)
            for (size_t s = 0; selectors[s]; s++) {
                struct row row = measure(&a, request.density[d], selectors[s], request.repeat);
                print_row(&row, &request);
                fflush(stdout);
                wrong += row.wrong;
            }
        arrays_close(&a);
    }
    return wrong ? EXIT_SYSTEM : EXIT_DONE;
}
