/* auto.c: see auto.h.
 *
 * A prediction uses a line fitted to an idle network and local work measured in isolation; real steps differ from
 * both. So the best three by prediction are tried, each opened exactly as training would open it, with gradients of
 * independent normal numbers (drawn once and rotated by some places from step to step). A step is selection, exchange
 * and the update's mean; what counts is the median over the timed steps of the slowest rank's time. All ranks work
 * with rank 0's network and with maxima over the ranks, and so come to the same decision. Everything is closed again:
 * the run that follows has the same bits as one in which the choice was asked for by name. */
#include "cli/network/auto.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/table.h"
#include "cli/bench/median.h"
#include "cli/gradients/pattern.h"
#include "cli/network/ping_pong.h"
#include "cli/network/step_cost.h"

/* -- the network ----------------------------------------------------------------------------------- */
/* A short sweep: about a second for each of at most two pairs of ranks, between nodes and inside one. */
static void measure_network(struct comm *c, struct network *net) {
    struct ping_pong p = {.repeat = 10, .seconds = 0.5, .least = true};
    struct ping_pair *pair;
    ping_pong_sizes(&p, 4, 1 << 20, 4);
    size_t count = ping_pong_measure(c, &p, &pair);
    *net = (struct network){.name = ""};
    if (c->rank == 0) ping_pong_network(&p, pair, count, net);
    comm_bcast(c, 0, net, sizeof *net);
    mem_free(pair);
}

/* -- predictions ----------------------------------------------------------------------------------- */
/* Of each row of exchanges: does it go with the options and serve these ranks, and who selects for it then? */
struct rows {
    bool allowed[BEST_ALGORITHMS];
    local_selectors selector;
};

static void find_rows(struct run *r, struct rows *rows) {
    for (size_t i = 0; exchanges[i]; i++) {
        struct options with;
        struct err why = {0};
        rows->allowed[i] = options_candidate(&r->options, exchanges[i], NULL, &with, &why) &&
                           exchange_serves(exchanges[i], r->comm, &why);
        rows->selector[i] = rows->allowed[i] ? options_selector(&with) : NULL;
    }
}

/* What local work takes on the slowest rank, all at work at once. */
static void measure_local(struct run *r, const struct device_ops *device, struct auto_choice *a,
                          const struct rows *rows) {
    const struct selector_settings settings = {.options = options_own(&r->options)};
    const struct local_request request = {
        .device = device, .n = a->n, .k = a->k, .settings = &settings, .selector = rows->selector};
    double begin = clock_now();
    comm_barrier(r->comm);
    local_measure(&request, &a->local);
    comm_allreduce_f64(r->comm, (double *)&a->local, sizeof a->local / sizeof(double), COMM_MAX);
    a->local_seconds = clock_now() - begin;
}

/* An algorithm may go with the options, and not in every format: rounded without error feedback it loses gradient. */
static void keep_possible(struct run *r, struct auto_choice *a) {
    size_t kept = 0;
    for (size_t i = 0; i < a->count; i++) {
        struct options with;
        struct err why = {0};
        if (options_candidate(&r->options, a->list[i].ops, a->list[i].wire, &with, &why)) a->list[kept++] = a->list[i];
    }
    a->count = kept;
}

static bool rank_all(struct run *r, const struct device_ops *device, struct auto_choice *a, const struct rows *rows,
                     struct err *e) {
    struct cost_case *cases;
    struct local_costs local = {0};
    if (!run_cut_gradient(r, e)) return false;
    a->groups = (int)r->path.groups;
    a->n = r->model.n - r->path.exempts;
    a->k = density_to_k(r->options.density, a->n);
    if (a->measured && a->n > 0) {
        measure_local(r, device, a, rows);
        local_from_times(&a->local, rows->selector, &local);
    }
    size_t count = step_cost_cases(r, a->k, &cases);
    a->count = best_rank(cases, count, &a->net, a->only, rows->allowed, &local, r->options.local_update, a->list);
    mem_free(cases);
    run_close_exchange(r);
    keep_possible(r, a);
    return a->count > 0 || err_set(e, "--algo auto: no algorithm serves these ranks with these options");
}

/* -- trials ---------------------------------------------------------------------------------------- */
struct trial {
    float *drawn; /* host, [n] */
    float *host;  /* [n] a gradient on its way to the device; the gradient itself where that is the host */
};

/* TURNS times as many steps as are tried until the first gradient comes again. */
static void next_gradient(struct run *r, const struct trial *t, size_t step) {
    enum { TURNS = 2 };
    const struct arena *a = &r->model.net->arena;
    size_t n = r->model.n, from = step * (n / (TURNS * (AUTO_WARMUP + AUTO_STEPS)) + 1) % n;
    memcpy(t->host, t->drawn + from, (n - from) * sizeof *t->host);
    memcpy(t->host + n - from, t->drawn, from * sizeof *t->host);
    if (t->host != a->grad) a->device->to_device(a->grad, t->host, n * sizeof *t->host);
}

/* Seconds of a step on the slowest rank: the same number on all of them. */
static double timed_step(struct run *r, const struct trial *t, size_t step) {
    const struct arena *a = &r->model.net->arena;
    struct exchange_sum sum;
    next_gradient(r, t, step);
    a->device->sync();
    comm_barrier(r->comm);
    double begin = clock_now();
    if (!exchange_run(&r->path.reducer.exchange, a->grad,
                      density_to_k(r->options.density, r->model.n - r->path.exempts), &sum))
        die("--algo auto: %s found a number that is not finite", options_exchange(&r->options)->name);
    if (r->options.local_update && r->path.sparse)
        exchange_combine(&r->path.reducer.exchange, &sum, a->grad);
    else
        exchange_mean(&r->path.reducer.exchange, &sum, a->grad);
    a->device->sync();
    double seconds = clock_now() - begin;
    comm_allreduce_f64(r->comm, &seconds, 1, COMM_MAX);
    return seconds;
}

/* The candidate's median step, its timed steps in step, ascending. */
static bool try_one(struct run *r, const struct device_ops *device, const struct candidate *x, const struct trial *t,
                    double step[AUTO_STEPS], double *middle, struct err *e) {
    struct options *asked = mem_alloc(1, sizeof *asked, "the options as given");
    *asked = r->options;
    bool good = options_candidate(asked, x->ops, x->wire, &r->options, e) && run_open_exchange(r, device, e);
    for (size_t i = 0; good && i < AUTO_WARMUP + AUTO_STEPS; i++) {
        double seconds = timed_step(r, t, i);
        if (i >= AUTO_WARMUP) step[i - AUTO_WARMUP] = seconds;
    }
    if (good) *middle = median(step, AUTO_STEPS);
    run_close_exchange(r);
    r->options = *asked;
    mem_free(asked);
    return good;
}

static bool try_best(struct run *r, const struct device_ops *device, struct auto_choice *a, struct err *e) {
    const struct arena *arena = &r->model.net->arena;
    struct trial t = {.host = arena->grad};
    struct pattern pattern;
    bool host = device_is_host(device);
    if (!pattern_open(&pattern, r->comm, "uniform", (uint64_t)r->options.seed, e)) return false;
    t.drawn = mem_alloc(r->model.n, sizeof *t.drawn, "a made-up gradient");
    if (!host) t.host = mem_pinned_alloc(r->model.n, sizeof *t.host, "a made-up gradient");
    if (!pattern_gradient(&pattern, 0, r->model.n, t.drawn, e)) die("%s", e->text);
    pattern_close(&pattern);
    bool good = true;
    a->tries = best_to_try(a->list, a->count, AUTO_TRIES, a->tried);
    for (size_t i = 0; good && i < a->tries; i++) {
        struct candidate *x = &a->list[a->tried[i]];
        good = try_one(r, device, x, &t, a->step[i], &x->measured, e);
    }
    if (!host) mem_pinned_free(t.host);
    mem_free(t.drawn);
    a->takes = best_measured(a->list, a->tried, a->tries);
    return good;
}

/* -- the choice ------------------------------------------------------------------------------------ */
static bool choose(struct run *r, const struct device_ops *device, struct auto_choice *a, struct err *e) {
    struct rows *rows = mem_zalloc(1, sizeof *rows, "which algorithms may be chosen");
    struct options *asked = mem_alloc(1, sizeof *asked, "the options as given");
    *asked = r->options;
    a->measured = r->comm->size > 1;
    if (a->measured) measure_network(r->comm, &a->net);
    find_rows(r, rows);
    bool good = rank_all(r, device, a, rows, e);
    a->takes = a->list; /* of one rank all are equal */
    good = good && (!a->measured || try_best(r, device, a, e)) &&
           options_candidate(asked, a->takes->ops, a->takes->wire, &r->options, e);
    mem_free(asked);
    mem_free(rows);
    return good;
}

bool auto_choose(struct run *r, const struct device_ops *device, struct err *e) {
    double begin = clock_now();
    struct auto_choice *a = r->job.choice = mem_zalloc(1, sizeof *a, "the choice of --algo auto");
    a->nodes = r->comm->nodes;
    a->ranks_per_node = step_ranks_per_node(r->comm);
    if (options_given(&r->options, "wire")) a->only = wires[r->options.wire];
    bool good = choose(r, device, a, e);
    phases_reset(&r->phases);
    a->seconds = clock_now() - begin;
    return good;
}

void auto_close(struct auto_choice *choice) {
    mem_free(choice);
}

/* -- what is said ---------------------------------------------------------------------------------- */
enum { TEXT = 1024 };

static void add(char text[TEXT], const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(char text[TEXT], const char *format, ...) {
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, TEXT - used, format, args);
    va_end(args);
}

static void add_name(char text[TEXT], const struct candidate *x) {
    add(text, " %s%s%s", x->ops->name, x->wire ? " " : "", x->wire ? x->wire->name : "");
}

char *auto_text(const struct auto_choice *a) {
    char text[TEXT] = "";
    if (a->measured) {
        add(text, "alpha %.4g us, beta %.4g ns/word", a->net.alpha * 1e6, a->net.beta * 1e9);
        if (a->nodes > 1)
            add(text, " (inside a node %.4g us, %.4g ns)", a->net.node_alpha * 1e6, a->net.node_beta * 1e9);
        for (int part = 0; part < 2; part++) {
            add(text, "; %s", part ? "tried" : "predicted");
            for (size_t i = 0; i < a->tries; i++) {
                const struct candidate *x = &a->list[a->tried[i]];
                add_name(text, x);
                add(text, " %.3g ms%s", 1e3 * (part ? x->measured : x->seconds), i + 1 < a->tries ? "," : "");
            }
        }
    } else {
        add(text, "one rank exchanges nothing");
    }
    add(text, "; takes");
    add_name(text, a->takes);
    return mem_printf("%s", text);
}

static void json_name(struct json *j, const struct candidate *x) {
    json_string(j, "algo", x->ops->name);
    if (x->wire)
        json_string(j, "wire", x->wire->name);
    else
        json_null(j, "wire");
}

static void json_network(struct json *j, const struct auto_choice *a) {
    if (!a->measured) {
        json_null(j, "network");
        return;
    }
    json_object(j, "network");
    json_number(j, "alpha_s", a->net.alpha);
    json_number(j, "beta_s", a->net.beta);
    json_number(j, "node_alpha_s", a->net.node_alpha);
    json_number(j, "node_beta_s", a->net.node_beta);
    json_end(j);
}

static void json_local(struct json *j, const struct auto_choice *a) {
    if (!a->measured) {
        json_null(j, "local");
        return;
    }
    json_object(j, "local");
    local_times_json(&a->local, j);
    json_number(j, "seconds", a->local_seconds);
    json_end(j);
}

static void json_predicted(struct json *j, const struct auto_choice *a) {
    json_array(j, "predicted");
    for (size_t i = 0; i < a->count; i++) {
        json_object(j, NULL);
        json_name(j, &a->list[i]);
        json_number(j, "seconds", a->list[i].seconds);
        json_number(j, "local_s", a->list[i].local);
        json_end(j);
    }
    json_end(j);
}

static void json_tried(struct json *j, const struct auto_choice *a) {
    json_array(j, "tried");
    for (size_t i = 0; i < a->tries; i++) {
        const struct candidate *x = &a->list[a->tried[i]];
        json_object(j, NULL);
        json_name(j, x);
        json_number(j, "predicted_s", x->seconds);
        json_number(j, "median_s", x->measured);
        json_array(j, "steps_s");
        for (size_t s = 0; s < AUTO_STEPS; s++) json_number(j, NULL, a->step[i][s]);
        json_end(j);
        json_end(j);
    }
    json_end(j);
}

void auto_json(const struct auto_choice *a, struct json *j) {
    json_integer(j, "n", (int64_t)a->n);
    json_integer(j, "k", (int64_t)a->k);
    json_integer(j, "nodes", a->nodes);
    json_integer(j, "ranks_per_node", a->ranks_per_node);
    json_integer(j, "groups", a->groups);
    if (a->only)
        json_string(j, "wire_asked", a->only->name);
    else
        json_null(j, "wire_asked");
    json_network(j, a);
    json_local(j, a);
    json_predicted(j, a);
    json_tried(j, a);
    json_object(j, "takes");
    json_name(j, a->takes);
    json_end(j);
    json_number(j, "seconds", a->seconds);
}
