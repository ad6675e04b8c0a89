/* bench_exchange.c: `mpirun -np P sparsetrain bench`, see bench_exchange.h. Columns and procedure as in nccl-tests: for
 * each case some steps to warm up, then timed ones, everything verified. Gradients differ from step to step, so that
 * error feedback, estimated thresholds and region boundaries do what they do in training; making them is not timed. */
#include "cli/bench/bench_exchange.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/beat.h"
#include "base/files/out_file.h"
#include "base/files/place.h"
#include "base/mem.h"
#include "cli/options/device_option.h"

static void exchange_step(struct bench_case *b, struct exchange_sum *sum) {
    if (exchange_run(&b->reducer.exchange, b->grad, b->k, sum)) return;
    if (!b->unread)
        die_status(EXIT_NUMERIC, "bench: %s: entry %zu on rank %d is NaN or infinite", b->ops->name, sum->bad,
                   b->comm->rank);
    sum->dense = b->grad;
}

void bench_exchange_step(struct bench_case *b, struct exchange_sum *sum) {
    exchange_step(b, sum);
    exchange_mean(&b->reducer.exchange, sum, b->grad);
}

/* A list of entries is written to another device through the store, so that the host needs no array of n floats; the
 * verification does need one. */
static void case_open(struct bench_case *b, struct pattern *p, struct trace *trace) {
    const struct bench_request *r = b->request;
    bool host = device_is_host(r->device), by_entries = !host && b->ops->sparse && pattern_has_entries(p);
    phases_reset(&b->phases);
    b->phases.trace = trace;
    bench_costs_open(b);
    pattern_case(p, b->n, b->k);
    if (by_entries) sparse_open(&b->entries, p->room);
    if (!r->check && !b->ops->sparse && host) b->host = comm_unread_alloc(b->comm, b->n * sizeof *b->host);
    b->unread = b->host != NULL;
    if (!b->unread && (!by_entries || r->check))
        b->host = mem_pinned_alloc(b->n, sizeof *b->host, "the bench's gradient");
    b->grad =
        host ? b->host : r->device->alloc(b->n * sizeof *b->grad, "the bench's gradient (a smaller --n needs less)");
    b->step = mem_zalloc(r->repeat, sizeof *b->step, "steps of the bench");
    struct reducer_setup setup = {.ops = b->ops, .select = b->select, .seed = (uint64_t)r->seed, .device = r->device};
    setup.exchange = (struct exchange_setup){.comm = b->comm,
                                             .n = b->n,
                                             .k_max = b->k,
                                             .wire = r->wire,
                                             .options = bench_own(r),
                                             .bucket_bytes = r->bucket_bytes,
                                             .wants_sent = bench_wants_sent(b),
                                             .phases = &b->phases};
    reducer_open(&b->reducer, &setup);
    b->reducer.exchange.setup.wants_sent = false; /* in no timed step */
}

static void case_close(struct bench_case *b) {
    reducer_close(&b->reducer);
    mem_free(b->step);
    if (b->grad != b->host) b->request->device->release(b->grad);
    if (b->unread)
        comm_unread_free(b->comm, b->host);
    else
        mem_pinned_free(b->host);
    sparse_close(&b->entries);
}

/* The same from a list of its entries. */
static bool make_from_entries(struct bench_case *b, struct pattern *p, size_t t, struct err *e) {
    if (!pattern_entries(p, t, b->n, &b->entries, e)) return false;
    b->reducer.store.ops->scatter(&b->reducer.store, &b->entries, 1, b->grad);
    if (b->host) b->request->device->to_host(b->host, b->grad, b->n * sizeof *b->host);
    return true;
}

/* Writes this rank's gradient of step t to host and grad. Memory whose contents do not matter (`unread`) is zeroed,
 * since arbitrary contents could become NaN, which an exchange refuses. */
static bool make_gradient(struct bench_case *b, struct pattern *p, size_t t, struct err *e) {
    if (b->unread) memset(b->host, 0, b->n * sizeof *b->host);
    if (b->unread) return true;
    if (b->entries.idx) return make_from_entries(b, p, t, e);
    if (!pattern_gradient(p, t, b->n, b->host, e)) return false;
    if (b->grad != b->host) b->request->device->to_device(b->grad, b->host, b->n * sizeof *b->grad);
    return true;
}

/* One step from b->grad, which all ranks begin together; s: what it took on this rank. What is timed ends with u on
 * this rank, and what the device was given done, and has no computing in it, but what an exchange that overlaps keeps
 * backward waiting; writing u/P into the dense update comes after it, in a phase of its own. */
static void timed_step(struct bench_case *b, struct bench_step *s, struct exchange_sum *sum) {
    struct comm *c = b->comm;
    const struct comm_counters before = c->counters[TRAFFIC_EXCHANGE];
    const struct device_ops *device = b->request->device;
    device->sync();
    comm_barrier(c);
    phases_restart(&b->phases);
    bench_costs_restart(b);
    double start = b->phases.since;
    bench_compute(b);
    exchange_step(b, sum);
    phase_enter(&b->phases, PHASE_SELECT);
    device->sync();
    phase_enter(&b->phases, PHASE_OTHER);
    double end = b->phases.since;
    exchange_mean(&b->reducer.exchange, sum, b->grad);
    phase_enter(&b->phases, PHASE_UPDATE);
    device->sync();
    phase_enter(&b->phases, PHASE_OTHER);
    const struct comm_counters *after = &c->counters[TRAFFIC_EXCHANGE];
    *s = (struct bench_step){.seconds = end - start - b->phases.seconds[PHASE_COMPUTE],
                             .whole = end - start,
                             .sent = (double)(after->bytes_sent - before.bytes_sent) / 4,
                             .received = (double)(after->bytes_received - before.bytes_received) / 4,
                             .messages = (double)(after->messages_sent - before.messages_sent),
                             .extra_words = sum->extra_words,
                             .local_nnz = (double)sum->local_nnz};
    memcpy(s->phase, b->phases.seconds, sizeof s->phase);
}

/* Warm-up, timed steps, and one that is held against the definition. */
static bool run_steps(struct bench_case *b, struct pattern *p, struct bench_check *check, struct err *e) {
    const struct bench_request *r = b->request;
    struct bench_step unused;
    struct exchange_sum sum;
    size_t steps = r->warmup + r->repeat;
    beat_activity(ACTIVITY_MEASURE, 0);
    for (size_t t = 0; t < steps; t++) {
        if (!make_gradient(b, p, t, e)) return false;
        if (r->check) bench_check_before(check, b);
        timed_step(b, t < r->warmup ? &unused : &b->step[t - r->warmup], &sum);
        if (r->check) bench_check_after(check, b, &sum);
        if (t >= r->warmup) b->global_nnz += (double)sum.global_nnz / (double)r->repeat;
    }
    if (!r->check) return true;
    if (!make_gradient(b, p, steps, e)) return false;
    b->wrong = bench_check_step(check, b);
    b->wrong += bench_check_end(check, b);
    return true;
}

static bool run_case(struct bench_case *b, struct pattern *p, struct trace *trace, struct err *e) {
    struct bench_check check = {0};
    case_open(b, p, trace);
    if (b->request->check) bench_check_open(&check, b->n);
    bool good = run_steps(b, p, &check, e);
    bench_check_close(&check);
    if (good) bench_print_row(b);
    case_close(b);
    return good;
}

/* With `all`, rows that cannot work over these ranks are left out, with their reason. */
static bool leave_out_unserved(struct comm *c, struct bench_request *r, struct err *e) {
    size_t kept = 0;
    for (size_t i = 0; i < r->algos; i++) {
        struct err why = {0};
        bool serves = exchange_serves(r->algo[i], c, &why);
        if (serves) r->algo[kept++] = r->algo[i];
        if (serves) continue;
        if (!r->algo_names.all) return err_set(e, "bench: %s", why.text);
        if (c->rank == 0) fprintf(stderr, "# %s is left out: %s\n", r->algo[i]->name, why.text);
    }
    r->algos = kept;
    return true;
}

/* Of all rows so far. */
struct tally {
    size_t rows, wrong, above_bound;
};

/* A row, and with --wire-check a second one that has the checks in its times. */
static bool run_rows(const struct bench_case *asked, struct pattern *p, struct trace *trace, struct tally *all,
                     struct err *e) {
    double bare = NAN;
    bool good = true;
    for (int checks = 0; good && checks < (asked->request->wire_check ? 2 : 1); checks++) {
        struct bench_case b = *asked;
        b.bare = bare;
        comm_set_wire_check(b.comm, checks > 0);
        good = run_case(&b, p, trace, e);
        bare = b.median;
        all->wrong += b.wrong > 0;
        all->above_bound += b.above_bound;
        all->rows++;
    }
    comm_set_wire_check(asked->comm, false);
    return good;
}

static bool run_all(struct comm *c, const struct bench_request *r, struct pattern *p, struct trace *trace,
                    struct tally *all, struct err *e) {
    bool own_n = p->n && !(p->scales && r->n_given), own_density = p->density > 0 && !r->density_given;
    bench_print_head(r, c, p);
    for (size_t i = 0; i < (own_n ? 1 : r->n.count); i++)
        for (size_t d = 0; d < (own_density ? 1 : r->density.count); d++)
            for (size_t a = 0; a < r->algos; a++) {
                struct bench_case b = {.comm = c, .request = r, .ops = r->algo[a]};
                b.density = own_density ? p->density : r->density.x[d];
                b.n = own_n ? p->n : (size_t)r->n.x[i];
                b.k = density_to_k(b.density, b.n);
                b.select = bench_selector(r, b.ops);
                if (!run_rows(&b, p, trace, all, e)) return false;
            }
    if (c->rank == 0) bench_print_end(r, all->rows, all->wrong, all->above_bound);
    return true;
}

/* Writes the trace where one was asked for. */
static bool finish_trace(struct trace_file *t, int rank, struct err *e) {
    struct err note = {0};
    if (!t->open) return true;
    if (!trace_file_write(t, &note, e)) return false;
    if (rank == 0 && note.text[0]) fprintf(stderr, "# %s\n", note.text);
    return true;
}

static int measure(struct comm *c, const struct bench_request *r, struct err *e) {
    struct pattern p;
    struct trace_file trace = {0};
    struct tally all = {0};
    bool good = pattern_open(&p, c, r->pattern, (uint64_t)r->seed, e);
    if (good && r->trace) good = trace_file_open(&trace, c, r->trace, e);
    good = good && run_all(c, r, &p, trace_file_thread(&trace, 0), &all, e) && finish_trace(&trace, c->rank, e);
    trace_file_close(&trace);
    pattern_close(&p);
    return !good ? EXIT_USER : all.wrong ? EXIT_SYSTEM : EXIT_DONE;
}

/* --ranks-per-node that does not divide the ranks is a mistake only where an algorithm goes by nodes. */
static bool set_nodes(struct comm *c, struct bench_request *r, struct err *e) {
    bool any = false;
    for (size_t i = 0; i < r->algos; i++) any |= r->algo[i]->by_node;
    if (r->ranks_per_node == 0) return true;
    if (any || c->size % r->ranks_per_node == 0) return comm_set_ranks_per_node(c, r->ranks_per_node, e);
    if (c->rank == 0) fprintf(stderr, "# --ranks-per-node is ignored: it has no effect on these algorithms\n");
    r->ranks_per_node = 0;
    return true;
}

/* What checks cost can be measured where there are any. */
static bool wire_is_there(const struct comm *c, const struct bench_request *r, struct err *e) {
    if (!r->wire_check || (c->size > 1 && !comm_simulated())) return true;
    return err_set(e, "bench: --wire-check has nothing to check %s; leave it out",
                   comm_simulated() ? "in a simulation" : "with one rank");
}

int bench_exchange(struct comm *c, int argc, char **argv, struct err *e) {
    static struct bench_request r; /* large */
    c->traffic = TRAFFIC_CONTROL;
    comm_set_wire_check(c, false); /* SPARSETRAIN_WIRE_CHECK is set: the bench times checks only where it is asked to */
    if (bench_parse(&r, argc, argv, e) && bench_costs_check(&r, e) && wire_is_there(c, &r, e) && r.trace &&
        c->rank == 0)
        out_file_check(r.trace, "--trace", e);
    if (comm_agree(c, e)) return EXIT_USER;
    if (!device_option_job("bench: ", r.device_name, DEVICE_EXCHANGES, c, &r.device, e)) return EXIT_USER;
    set_nodes(c, &r, e);
    if (comm_agree(c, e) || !leave_out_unserved(c, &r, e)) return EXIT_USER;
    return measure(c, &r, e);
}
