/* bench_exchange_print.c: statistics over ranks and steps, and their two forms, see bench_exchange.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli/bench/bench_exchange.h"
#include "cli/bench/median.h"
#include "cli/options/device_option.h"
#include "cli/version.h"
#include "topk/cpu/kernels.h"

/* A row, the same on every rank. Times in seconds, traffic in 4-byte words a step. */
struct row {
    double median, p99, least, mean;
    double algbw, busbw; /* [bytes/s] */
    double sent_max, sent_mean, received_max, received_mean, messages_max;
    double bound, ratio; /* ratio: NaN where nothing may pass */
    double local_nnz;
    double phase[PHASE_COUNT], total; /* mean over ranks and steps; their sum without compute and update */
    double outside;                   /* part of the total that is not select, merge or communicate */
    double select;                    /* median over the steps of the mean over the ranks */
    double whole;                     /* median of the steps with forward and backward */
    size_t memory;                    /* simulation, rank 0: bytes of all ranks, whose cases are all still open */
};

/* The slowest rank of each step. */
static void time_statistics(const struct bench_case *b, struct row *row) {
    size_t steps = b->request->repeat;
    double *t = mem_alloc(steps, sizeof *t, "times of the bench");
    for (size_t i = 0; i < steps; i++) t[i] = b->step[i].seconds;
    comm_allreduce_f64(b->comm, t, steps, COMM_MAX);
    for (size_t i = 0; i < steps; i++) row->mean += t[i] / (double)steps;
    row->median = median(t, steps);
    row->least = t[0];
    row->p99 = t[(size_t)ceil(0.99 * (double)steps) - 1];
    for (size_t i = 0; i < steps; i++) t[i] = b->step[i].whole;
    comm_allreduce_f64(b->comm, t, steps, COMM_MAX);
    row->whole = median(t, steps);
    mem_free(t);
}

/* Most words in a step over the most allowed in it; 0 where none passed. */
static double ratio_to(double words, double allowed) {
    if (words <= 0) return 0;
    return allowed > 0 ? words / allowed : INFINITY;
}

static void traffic_statistics(const struct bench_case *b, struct row *row) {
    struct comm *c = b->comm;
    double most[4] = {0}, sum[3] = {0}, count = (double)b->request->repeat * c->size;
    row->bound = exchange_max_words(&b->reducer.exchange, b->k);
    for (size_t i = 0; i < b->request->repeat; i++) {
        const struct bench_step *s = &b->step[i];
        most[0] = fmax(most[0], s->sent);
        most[1] = fmax(most[1], s->received);
        most[2] = fmax(most[2], s->messages);
        most[3] = fmax(most[3], ratio_to(fmax(s->sent, s->received), row->bound + s->extra_words));
        sum[0] += s->sent / count;
        sum[1] += s->received / count;
        sum[2] += s->local_nnz / count;
    }
    comm_allreduce_f64(c, most, 4, COMM_MAX);
    comm_allreduce_f64(c, sum, 3, COMM_SUM);
    row->sent_max = most[0];
    row->received_max = most[1];
    row->messages_max = most[2];
    row->ratio = row->bound > 0 || isinf(most[3]) ? most[3] : NAN;
    row->sent_mean = sum[0];
    row->received_mean = sum[1];
    row->local_nnz = sum[2];
}

/* Like the time of a step, a median: the mean of a few steps on a busy machine may be above that time. */
static void selection_statistics(const struct bench_case *b, struct row *row) {
    size_t steps = b->request->repeat;
    double *t = mem_alloc(steps, sizeof *t, "times of the bench");
    for (size_t i = 0; i < steps; i++) t[i] = b->step[i].phase[PHASE_SELECT] / b->comm->size;
    comm_allreduce_f64(b->comm, t, steps, COMM_SUM);
    row->select = median(t, steps);
    mem_free(t);
}

static void phase_statistics(const struct bench_case *b, struct row *row) {
    double count = (double)b->request->repeat * b->comm->size;
    for (size_t i = 0; i < b->request->repeat; i++)
        for (int p = 0; p < PHASE_COUNT; p++) row->phase[p] += b->step[i].phase[p] / count;
    comm_allreduce_f64(b->comm, row->phase, PHASE_COUNT, COMM_SUM);
    for (int p = 0; p < PHASE_COUNT; p++) row->total += row->phase[p];
    row->total -= row->phase[PHASE_UPDATE] + row->phase[PHASE_COMPUTE];
    double inside = row->phase[PHASE_SELECT] + row->phase[PHASE_MERGE] + row->phase[PHASE_COMMUNICATE];
    row->outside = row->total > 0 ? 1 - inside / row->total : 0;
}

static void statistics(const struct bench_case *b, struct row *row) {
    double bytes = 4 * (double)b->n, P = b->comm->size;
    *row = (struct row){.memory = comm_simulated() ? mem_resident_private() : 0};
    time_statistics(b, row);
    traffic_statistics(b, row);
    phase_statistics(b, row);
    selection_statistics(b, row);
    row->algbw = bytes / row->median;
    row->busbw = bytes * 2 * (P - 1) / P / row->median;
}

/* -- table --------------------------------------------------------------------------------------------------------- */

void bench_print_head(const struct bench_request *r, const struct comm *c, const struct pattern *p) {
    if (r->json || c->rank > 0) return;
    printf("# bench: %d rank%s on %d node%s%s; %s; sparsetrain %s (commit %s), %s kernels\n", c->size,
           c->size == 1 ? "" : "s", c->nodes, c->nodes == 1 ? "" : "s", r->ranks_per_node ? " (emulated)" : "",
           comm_library(), version_number(), version_commit(), topk_kernels()->name);
    if (!device_is_host(r->device)) {
        char *text = device_option_text(r->device);
        printf("# device %s: %s%s\n", r->device->label(), text, c->device_pointers ? "; MPI takes its pointers" : "");
        mem_free(text);
    }
    printf("# pattern %s", r->pattern);
    if (p->kind == PATTERN_REAL || p->kind == PATTERN_SELECTED)
        printf(" (%llu steps of %llu ranks%s)", (unsigned long long)p->steps, (unsigned long long)p->ranks,
               p->incomplete ? "; an incomplete last step is left out" : "");
    printf(", wire %s; %zu timed steps after %zu; %s\n", r->wire->name, r->repeat, r->warmup,
           r->check ? "verified" : "not verified (--no-check)");
    printf("# times in ms, of the slowest rank; algbw, effbw in GB/s; words of 4 bytes a step and rank; "
           "sparsetrain bench --help explains the columns\n");
    printf("#%40s %29s %15s %15s %15s\n", "", "----------- time ------------", "-- bandwidth --", "-- words sent -",
           "--- received --");
    printf("#%9s %9s %-11s %-8s %9s %9s %9s %7s %7s %7s %7s %7s %7s %7s %6s %7s %7s %6s\n", "n", "k", "algorithm",
           "select", "median", "p99", "min", "algbw", "effbw", "max", "mean", "max", "mean", "bound", "ratio", "local",
           "global", "wrong");
}

/* 4 significant digits: "9999", "14.73M". */
static const char *brief(double x, char text[16]) {
    static const char unit[] = " KMGT";
    int u = 0;
    for (double limit = 9999.5; u < 4 && x >= limit; x /= 1000, limit = 999.95) u++;
    if (u == 0)
        snprintf(text, 16, "%.4g", x);
    else
        snprintf(text, 16, "%.*f%c", x < 10 ? 3 : x < 100 ? 2 : 1, x, unit[u]);
    return text;
}

static void print_compute(const struct bench_case *b, const struct row *row) {
    double compute = b->request->compute;
    if (compute > 0)
        printf("# %19s compute %.3f ms, step with it %.3f ms: efficiency %.1f%%\n", "", compute * 1e3, row->whole * 1e3,
               100 * compute / row->whole);
}

static void print_wire_check(const struct bench_case *b, const struct row *row) {
    if (!isnan(b->bare)) printf("# %19s with --wire-check: %.2f times the row above\n", "", row->median / b->bare);
}

static void print_table_row(const struct bench_case *b, const struct row *row) {
    char text[7][16], ratio[16] = "-";
    if (!isnan(row->ratio)) snprintf(ratio, sizeof ratio, "%.3f", row->ratio);
    printf("%10zu %9zu %-11s %-8s %9.3f %9.3f %9.3f %7.3f %7.3f %7s %7s %7s %7s %7s %6s %7s %7s %6llu\n", b->n, b->k,
           b->ops->name, b->select ? b->select->name : "-", row->median * 1e3, row->p99 * 1e3, row->least * 1e3,
           row->algbw * 1e-9, row->busbw * 1e-9, brief(row->sent_max, text[0]), brief(row->sent_mean, text[1]),
           brief(row->received_max, text[2]), brief(row->received_mean, text[3]), brief(row->bound, text[4]), ratio,
           brief(row->local_nnz, text[5]), brief(b->global_nnz, text[6]), (unsigned long long)b->wrong);
    print_compute(b, row);
    print_wire_check(b, row);
    if (!b->request->phases) return;
    static const enum phase shown[] = {PHASE_SELECT, PHASE_PACK, PHASE_COMMUNICATE, PHASE_MERGE, PHASE_OTHER};
    printf("# %19s", "");
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        printf(" %s %.3f ms (%.1f%%)", phase_names[shown[i]], row->phase[shown[i]] * 1e3,
               row->total > 0 ? 100 * row->phase[shown[i]] / row->total : 0);
    printf("; outside %.1f%%; then update %.3f ms\n", 100 * row->outside, row->phase[PHASE_UPDATE] * 1e3);
}

/* -- JSON ---------------------------------------------------------------------------------------------------------- */

static void json_case(struct json *j, const struct bench_case *b) {
    const struct bench_request *r = b->request;
    json_string(j, "bench", "exchange");
    json_string(j, "algo", b->ops->name);
    if (b->select)
        json_string(j, "select", b->select->name);
    else
        json_null(j, "select");
    json_string(j, "wire", r->wire->name);
    json_string(j, "pattern", r->pattern);
    json_integer(j, "seed", (int64_t)r->seed);
    json_integer(j, "n", (int64_t)b->n);
    json_integer(j, "k", (int64_t)b->k);
    json_number(j, "density", b->density);
    json_integer(j, "ranks", b->comm->size);
    json_integer(j, "ranks_per_node", b->comm->local_size);
    json_integer(j, "nodes", b->comm->nodes);
    json_integer(j, "warmup", (int64_t)r->warmup);
    json_integer(j, "repeat", (int64_t)r->repeat);
}

static void json_measured(struct json *j, const struct row *row) {
    json_number(j, "median_s", row->median);
    json_number(j, "p99_s", row->p99);
    json_number(j, "min_s", row->least);
    json_number(j, "mean_s", row->mean);
    json_number(j, "algbw", row->algbw);
    json_number(j, "busbw", row->busbw);
    json_number(j, "words_sent_max", row->sent_max);
    json_number(j, "words_sent_mean", row->sent_mean);
    json_number(j, "words_received_max", row->received_max);
    json_number(j, "words_received_mean", row->received_mean);
    json_number(j, "messages_sent_max", row->messages_max);
    json_number(j, "bound_words", row->bound);
    json_number(j, "ratio_bound", row->ratio);
    json_number(j, "local_nnz", row->local_nnz);
}

void bench_own_json(const struct option_values *values, const struct exchange_own *own, struct json *j) {
    for (size_t i = 0; i < values->rows; i++) {
        const struct option_row *row = &values->row[i];
        const unsigned char *at = (const unsigned char *)values->base + row->offset;
        char text[OPTION_TEXT_MAX], key[OPTION_TEXT_MAX];
        if (at < own->bytes || at >= own->bytes + sizeof own->bytes) continue;
        option_value(row, values->base, text);
        if (strcmp(text, row->standard) == 0) continue;
        snprintf(key, sizeof key, "%s", row->name);
        for (char *c = key; *c; c++)
            if (*c == '-') *c = '_';
        json_string(j, key, text);
    }
}

/* Only what was asked for, or what a simulation needs to be understood. memory_bytes: of all ranks. */
static void json_setting(struct json *j, const struct bench_request *r, const struct row *row) {
    if (r->compute > 0) {
        json_number(j, "compute_s", r->compute);
        json_number(j, "step_s", row->whole);
        json_number(j, "efficiency", r->compute / row->whole);
    }
    if (r->network) json_string(j, "network", r->network);
    const struct option_values own = bench_own(r);
    bench_own_json(&own, &r->own, j);
    if (!comm_simulated()) return;
    json_boolean(j, "simulated", true);
    json_number(j, "select_cost_s", fmax(0, r->select_cost));
    json_number(j, "word_cost_s", fmax(0, r->word_cost));
    json_integer(j, "memory_bytes", (int64_t)row->memory);
}

static void print_json_row(const struct bench_case *b, const struct row *row) {
    struct json j;
    json_open(&j);
    json_object(&j, NULL);
    json_case(&j, b);
    json_measured(&j, row);
    json_number(&j, "global_nnz", b->global_nnz);
    json_boolean(&j, "checked", b->request->check);
    json_integer(&j, "wrong", (int64_t)b->wrong);
    json_object(&j, "phases");
    for (int p = 0; p < PHASE_COUNT; p++) json_number(&j, phase_names[p], row->phase[p]);
    json_end(&j);
    json_number(&j, "outside", row->outside);
    json_number(&j, "update_s", row->phase[PHASE_UPDATE]);
    json_number(&j, "select_s", row->select);
    json_setting(&j, b->request, row);
    if (!isnan(b->bare)) {
        json_boolean(&j, "wire_check", true);
        json_number(&j, "without_wire_check_s", b->bare);
    }
    json_string(&j, "device", b->request->device->label());
    json_string(&j, "device_about", b->request->device->describe());
    json_string(&j, "version", version_number());
    json_string(&j, "commit", version_commit());
    json_string(&j, "library", comm_library());
    json_string(&j, "kernels", topk_kernels()->name);
    json_end(&j);
    puts(json_text(&j));
    json_close(&j);
}

void bench_print_row(struct bench_case *b) {
    struct row row;
    statistics(b, &row);
    b->above_bound = row.ratio > 1;
    b->median = row.median;
    if (b->comm->rank > 0) return;
    if (b->request->json)
        print_json_row(b, &row);
    else
        print_table_row(b, &row);
    fflush(stdout);
}

void bench_print_end(const struct bench_request *r, size_t rows, size_t wrong_rows, size_t above_bound) {
    if (r->json) return;
    if (above_bound)
        printf("# %zu row%s sent or received more words than the bound, which counts k entries a rank (see local)\n",
               above_bound, above_bound == 1 ? "" : "s");
    if (wrong_rows)
        printf("# wrong: %zu of %zu rows hold entries that fail the verification\n", wrong_rows, rows);
    else
        printf("# %zu row%s, %s\n", rows, rows == 1 ? "" : "s", r->check ? "all right" : "not verified");
}
