/* comm_exempt.c: entries that are exempt from selection (exempt.h), in every sparse row: they get the dense sum, and
 * the others what the row makes of a gradient that is zero in their place, to the bit; with overlap by layers, too.
 * ranks: 1 2 3 4 5 7 8
 * faults: 3
 * devices: cuda ranks 1 3 */
#include "tests/lib/exchange_rig.h"

#include <sys/wait.h>

#include "comm/parts/peers.h"

enum { STEPS = 4 };

/* -- which entries are exempt ------------------------------------------------------------------------------------- */
enum set { NONE, SCATTERED, RUN_AT_END, ALL_BUT_ONE, FIRST_AND_LAST, ALL, SETS };

static uint32_t exempt[RIG_N];
static size_t exempts;
static bool is_exempt[RIG_N];

static void exempt_set(enum set set, size_t n) {
    struct rng r = rng_open(31, RNG_TEST, n);
    exempts = 0;
    for (size_t i = 0; i < n; i++) {
        const bool in[SETS] = {
            [SCATTERED] = rng_below(&r, 20) == 0,
            [RUN_AT_END] = i >= n - n / 5,
            [ALL_BUT_ONE] = i != n / 2,
            [FIRST_AND_LAST] = i == 0 || i == n - 1,
            [ALL] = true,
        };
        is_exempt[i] = in[set];
        if (in[set]) exempt[exempts++] = (uint32_t)i;
    }
}

/* -- what is exchanged -------------------------------------------------------------------------------------------- */
enum { GROUPS_MAX = 8 };
static const struct shape {
    size_t n, k, groups, group[GROUPS_MAX]; /* groups: by layers */
} shapes[] = {{1, 1, 0, {0}}, {7, 2, 0, {0}}, {1009, 5, 0, {0}}, {1009, 100, 0, {0}}, {1009, 1009, 0, {0}}},
  splits[] = {{7, 2, 3, {0, 1, 4}},
              {1009, 100, 5, {0, 10, 17, 500, 1008}},
              {1009, 3, 8, {0, 100, 200, 300, 301, 302, 700, 900}}};
enum { SHAPES = sizeof shapes / sizeof *shapes, SPLITS = sizeof splits / sizeof *splits };

static void open_shape(struct comm *c, const struct exchange_ops *ops, const struct shape *s,
                       const struct wire_ops *wire, bool with_exempt) {
    const struct exchange_setup extra = {.wire = wire,
                                         .options = rig_options("tau-prime=1,tau=2", GTOPK_CONSERVE),
                                         .group = s->group,
                                         .groups = s->groups,
                                         .exempt = with_exempt ? exempt : NULL,
                                         .exempts = with_exempt ? exempts : 0};
    rig_open_with(c, ops, exact(), s->n, s->k, &extra);
}

static size_t k_of_step(const struct shape *s, int step) {
    return step % 2 == 0 ? s->k : (s->k + 1) / 2;
}

/* -- the row without any ------------------------------------------------------------------------------------------ */
/* Of each step over gradients that are zero where entries are exempt. */
static struct plain {
    float u[RIG_N], residual[RIG_N];
    size_t local_nnz, global_nnz;
    uint64_t bytes, messages;
} plain[STEPS];

static void run_plain(struct comm *c, const struct exchange_ops *ops, const struct shape *s, enum kind kind,
                      const struct wire_ops *wire) {
    open_shape(c, ops, s, wire, false);
    for (int step = 0; step < STEPS; step++) {
        struct comm_counters before = c->counters[TRAFFIC_EXCHANGE];
        make_gradient(kind, c->rank, c->size, step, s->n, rig.grad);
        for (size_t i = 0; i < exempts; i++) rig.grad[exempt[i]] = 0;
        rig_step(k_of_step(s, step));
        assert_null(rig.sum.exempt);
        memcpy(plain[step].u, rig.u, sizeof rig.u);
        memcpy(plain[step].residual, rig.residual, sizeof rig.residual);
        plain[step].local_nnz = rig.sum.local_nnz;
        plain[step].global_nnz = rig.sum.global_nnz;
        plain[step].bytes = c->counters[TRAFFIC_EXCHANGE].bytes_sent - before.bytes_sent;
        plain[step].messages = c->counters[TRAFFIC_EXCHANGE].messages_sent - before.messages_sent;
    }
    rig_close();
}

/* The same out of it, but for the exempt entries. */
static void selects_as(const struct plain *p) {
    assert_memory_equal(rig.u, p->u, rig.n * sizeof(float));
    assert_memory_equal(rig.residual, p->residual, rig.n * sizeof(float));
    assert_int_equal(rig.sum.local_nnz, p->local_nnz);
    assert_int_equal(rig.sum.global_nnz, p->global_nnz);
}

/* -- one step with them ------------------------------------------------------------------------------------------- */
/* sum over the ranks of the step's gradient, in double: exact for the kinds that are integers. */
static void dense_sum(enum kind kind, int step, double *sum) {
    static float grad[RIG_N];
    memset(sum, 0, rig.n * sizeof *sum);
    for (int r = 0; r < rig.comm->size; r++) {
        make_gradient(kind, r, rig.comm->size, step, rig.n, grad);
        for (size_t i = 0; i < rig.n; i++) sum[i] += (double)grad[i];
    }
}

/* e is the dense sum; nothing of the exempt entries is in u, in what this rank sent, in the residual. */
static void exempt_are_dense(enum kind kind, int step) {
    static double dense[RIG_N];
    const struct sparse *e = rig.sum.exempt, *sent = rig.sum.sent;
    assert_true((e != NULL) == (exempts > 0));
    if (!e) return;
    dense_sum(kind, step, dense);
    assert_int_equal(e->nnz, exempts);
    for (size_t i = 0; i < exempts; i++) {
        uint32_t at = exempt[i];
        assert_int_equal(e->idx[i], at);
        assert_true(fabs((double)e->val[i] - dense[at]) <= (exact_sums(kind) ? 0 : 1e-5));
        assert_true(rig.u[at] == 0 && rig.residual[at] == 0);
    }
    for (size_t i = 0; sent && i < sent->nnz; i++) assert_true(!is_exempt[sent->idx[i]] || sent->val[i] == 0);
}

/* From run to combine and mean: (u - sent + grad) / P and (u + e) / P; e / P in both where entries are exempt, where
 * grad has been emptied. Else it stays as it is, but in rows that add up gradients in 16 bits. */
static void updates_are_right(enum kind kind, int step) {
    static float update[RIG_N], want[RIG_N], grad[RIG_N];
    const struct sparse *e = rig.sum.exempt, *sent = rig.sum.sent;
    float scale = 1.0f / (float)rig.comm->size;
    make_gradient(kind, rig.comm->rank, rig.comm->size, step, rig.n, grad);
    const struct exchange *x = &rig.reducer.exchange;
    bool kept = !(x->ops->halves && x->setup.wire && x->setup.wire->pack);
    for (size_t i = 0; i < rig.n; i++)
        if (kept || is_exempt[i]) assert_true(rig.grad[i] == (is_exempt[i] ? 0 : grad[i]));
    memset(update, 0xff, sizeof update);
    float *there = device_twin(update, rig.n);
    exchange_mean(&rig.reducer.exchange, &rig.sum, there);
    device_download(update, there, rig.n);
    device_twin_free(there, update);
    for (size_t i = 0; i < rig.n; i++) want[i] = scale * rig.u[i];
    for (size_t i = 0; e && i < e->nnz; i++) want[e->idx[i]] = scale * e->val[i];
    for (size_t i = 0; i < rig.n; i++) assert_true(update[i] == want[i]);
    if (!sent) return; /* nodes add up before they select */
    exchange_combine(&rig.reducer.exchange, &rig.sum, rig.device_grad);
    device_download(update, rig.device_grad, rig.n);
    for (size_t i = 0; i < rig.n; i++) grad[i] += rig.u[i];
    for (size_t i = 0; i < sent->nnz; i++) grad[sent->idx[i]] -= sent->val[i];
    for (size_t i = 0; i < rig.n; i++)
        assert_true(is_exempt[i] ? update[i] == want[i]
                                 : fabsf(update[i] - scale * grad[i]) <= 1e-5f * (1 + fabsf(rig.u[i])));
}

static uint64_t hash_with_exempt(void) {
    const struct sparse *e = rig.sum.exempt;
    uint64_t sum = hash_of_sum(), hash = hash64(0, &sum, sizeof sum);
    return e ? hash64(hash64(hash, e->idx, e->nnz * sizeof *e->idx), e->val, e->nnz * sizeof *e->val) : hash;
}

/* -- several steps, each with what those before left in the residuals --------------------------------------------- */
/* Of all of them: what all ranks put in is in u, in e or in the residuals. */
static struct ledger {
    double summed[RIG_N];
    float given[RIG_N];
} ledger;

static void enter_step(enum kind kind, int step) {
    static float grad[RIG_N];
    const struct sparse *e = rig.sum.exempt;
    make_gradient(kind, rig.comm->rank, rig.comm->size, step, rig.n, grad);
    for (size_t i = 0; i < rig.n; i++) {
        ledger.given[i] += grad[i];
        ledger.summed[i] += (double)rig.u[i];
    }
    for (size_t i = 0; e && i < e->nnz; i++) ledger.summed[e->idx[i]] += (double)e->val[i];
}

/* Bytes and messages of an allreduce of the exempt entries, on top of those of the row. */
static void sends_an_allreduce_more(struct comm_counters before, const struct plain *without) {
    const struct comm_counters *now = &rig.comm->counters[TRAFFIC_EXCHANGE];
    uint64_t P = (uint64_t)rig.comm->size, messages = 2 * (uint64_t)ceil_log2((int)P);
    assert_int_equal(now->bytes_sent - before.bytes_sent, without->bytes + 2 * (P - 1) * 4 * exempts / P);
    assert_int_equal(now->messages_sent - before.messages_sent, without->messages + (exempts > 0 ? messages : 0));
}

static void several_steps(struct comm *c, const struct exchange_ops *ops, const struct shape *s, enum kind kind,
                          const struct wire_ops *wire) {
    memset(&ledger, 0, sizeof ledger);
    run_plain(c, ops, s, kind, wire);
    open_shape(c, ops, s, wire, true);
    for (int step = 0; step < STEPS; step++) {
        struct comm_counters before = c->counters[TRAFFIC_EXCHANGE], control = c->counters[TRAFFIC_CONTROL];
        make_gradient(kind, c->rank, c->size, step, s->n, rig.grad);
        rig_step(k_of_step(s, step));
        assert_memory_equal(&control, &c->counters[TRAFFIC_CONTROL], sizeof control);
        selects_as(&plain[step]);
        sends_an_allreduce_more(before, &plain[step]);
        if (!wire)
            within_words(before, exchange_max_words(&rig.reducer.exchange, k_of_step(s, step)) + rig.sum.extra_words);
        exempt_are_dense(kind, step);
        all_ranks_hold_the_same(hash_with_exempt());
        enter_step(kind, step);
        updates_are_right(kind, step);
    }
    if (ops->conserves && exact_sums(kind)) conserves(ledger.given, ledger.summed);
    rig_close();
}

/* What is slow gets fewer cases: 0 all, 1 some, 2 as few as there is a point in. */
static int sparing(const struct comm *c) {
    if (getenv("SPARSETRAIN_DELAY") || (!test_device_is_host() && c->size > 1)) return 2;
    return c->size > 4 || !test_device_is_host();
}

static bool wanted(const struct comm *c, const struct shape *s, enum set set, enum kind kind) {
    int less = sparing(c);
    if (less == 2) return s->k == 5 && (set == SCATTERED || set == FIRST_AND_LAST) && kind == WHOLE;
    if (less == 1) return kind == WHOLE && (s->k == 2 || s->k == 100);
    return kind == WHOLE || kind == REAL || (kind == ZEROS && set == SCATTERED) || (kind == ONE_SILENT && s->k == 100);
}

static void every_row_and_set(struct comm *c) {
    for (size_t row = 0; exchanges[row]; row++)
        for (size_t s = 0; exchanges[row]->sparse && s < SHAPES; s++)
            for (enum set set = NONE; set < SETS; set++)
                for (enum kind kind = 0; kind < KINDS; kind++) {
                    if (!wanted(c, &shapes[s], set, kind)) continue;
                    exempt_set(set, shapes[s].n);
                    several_steps(c, exchanges[row], &shapes[s], kind, NULL);
                }
}

/* They do not travel in the wire format: nothing is rounded off them. */
static void every_wire_format(struct comm *c) {
    for (size_t row = 0; exchanges[row]; row++)
        for (size_t w = 1; exchanges[row]->sparse && wires[w]; w++) {
            if (!takes_format(wires[w])) continue;
            exempt_set(SCATTERED, shapes[2].n);
            several_steps(c, exchanges[row], &shapes[2], WHOLE, wires[w]);
        }
}

/* Where a node's ranks add up their gradients before they select, zeros add up to zeros. */
static void on_nodes_of_every_size(struct comm *c) {
    struct err e = {0};
    int before = c->local_size;
    for (int ranks = 1; ranks <= c->size; ranks++) {
        if (c->size % ranks != 0) continue;
        if (!comm_set_ranks_per_node(c, ranks, &e)) fail_msg("%s", e.text);
        for (size_t row = 0; exchanges[row]; row++)
            for (enum set set = NONE; exchanges[row]->sparse && exchanges[row]->by_node && set < SETS; set++) {
                exempt_set(set, shapes[3].n);
                several_steps(c, exchanges[row], &shapes[3], WHOLE, NULL);
            }
    }
    if (!comm_set_ranks_per_node(c, before, &e)) fail_msg("%s", e.text);
}

/* -- overlap by layers -------------------------------------------------------------------------------------------- */
/* Returns a hash of all that came out, on this rank. */
static uint64_t steps_by_layers(struct comm *c, const struct exchange_ops *ops, const struct shape *s, enum kind kind,
                                enum how how) {
    uint64_t hash = 0;
    memset(&ledger, 0, sizeof ledger);
    open_shape(c, ops, s, NULL, true);
    for (int step = 0; step < STEPS; step++) {
        struct comm_counters before = c->counters[TRAFFIC_EXCHANGE], control = c->counters[TRAFFIC_CONTROL];
        assert_true(rig_step_with_overlap(kind, step, k_of_step(s, step), how));
        assert_memory_equal(&control, &c->counters[TRAFFIC_CONTROL], sizeof control);
        rig_unfold();
        within_words(before, exchange_max_words(&rig.reducer.exchange, k_of_step(s, step)) + rig.sum.extra_words);
        exempt_are_dense(kind, step);
        uint64_t sum = hash_with_exempt();
        all_ranks_hold_the_same(sum);
        hash = hash64(hash64(hash, &sum, sizeof sum), rig.residual, s->n * sizeof(float));
        enter_step(kind, step);
        updates_are_right(kind, step);
    }
    if (ops->conserves && exact_sums(kind)) conserves(ledger.given, ledger.summed);
    rig_close();
    return hash;
}

static void by_layers(struct comm *c) {
    bool few = sparing(c) > 0;
    for (size_t row = 0; exchanges[row]; row++)
        for (size_t s = 0; exchanges[row]->sparse && s < SPLITS; s++)
            for (enum set set = NONE; set < SETS; set++) {
                if (few && (s != 1 || (set != SCATTERED && set != ALL_BUT_ONE))) continue;
                exempt_set(set, splits[s].n);
                steps_by_layers(c, exchanges[row], &splits[s], WHOLE, RANDOMLY_READY);
                uint64_t hash = steps_by_layers(c, exchanges[row], &splits[s], REAL, WITHOUT_BEGIN);
                assert_true(steps_by_layers(c, exchanges[row], &splits[s], REAL, NEVER_READY) == hash);
                assert_true(steps_by_layers(c, exchanges[row], &splits[s], REAL, RANDOMLY_READY) == hash);
            }
}

/* k is shared out by the entries that are left, at least one to a group. Of k = 30, with all but one of the first group
 * exempt: floor(30/81), so 1, and floor(30 80/81) = 29; with all of it exempt, 1 and 30. No group gives more than it
 * has. */
static void k_goes_to_what_is_left(struct comm *c) {
    const struct shape two = {100, 90, 2, {0, 20}};
    for (uint32_t i = 0; i < 20; i++) exempt[i] = i;
    for (exempts = 19; exempts <= 20; exempts++) {
        open_shape(c, exchange_named("topka"), &two, NULL, true);
        assert_true(rig_step_with_overlap(WHOLE, 1, 30, WITHOUT_BEGIN));
        assert_int_equal(rig.sum.local_nnz, exempts == 19 ? 1 + 29 : 1 + 30);
        assert_true(rig_step_with_overlap(WHOLE, 2, 90, WITHOUT_BEGIN));
        assert_int_equal(rig.sum.local_nnz, 1 + 80);
        rig_close();
    }
}

/* -- around it -------------------------------------------------------------------------------------------------- */
/* No row of the table overlaps by itself and is sparse; one that did would be given the whole gradient, by run. */
static struct sparse nothing;
static void own_open(struct exchange *x) {
    (void)x;
}
static void own_begin(struct exchange *x, float *grad, size_t k) {
    fail_msg("%s begins at %p, k = %zu, with a gradient that still has its exempt entries", x->ops->name, (void *)grad,
             k);
}
static void own_ready(struct exchange *x, size_t from) {
    fail_msg("%s is told of %zu", x->ops->name, from);
}
static bool own_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    float *host = device_fetch(grad, x->setup.n);
    (void)k;
    for (size_t i = 0; i < x->setup.n; i++) assert_true((host[i] == 0) == is_exempt[i]);
    mem_free(host);
    sum->sparse = &nothing;
    return true;
}

static void a_row_with_a_begin_of_its_own_waits(struct comm *c) {
    static const struct exchange_ops own = {.name = "own",
                                            .sparse = true,
                                            .open = own_open,
                                            .begin = own_begin,
                                            .ready = own_ready,
                                            .run = own_run,
                                            .close = own_open};
    const struct shape ten = {10, 1, 0, {0}};
    exempt_set(FIRST_AND_LAST, 10);
    open_shape(c, &own, &ten, NULL, true);
    for (int i = 0; i < 10; i++) rig.grad[i] = (float)(c->rank + i + 1);
    device_fill(rig.device_grad, rig.grad, 10);
    exchange_begin(&rig.reducer.exchange, rig.device_grad, 1);
    exchange_ready(&rig.reducer.exchange, 0);
    assert_true(exchange_run(&rig.reducer.exchange, rig.device_grad, 1, &rig.sum));
    float ranks = (float)(c->size * (c->size - 1) / 2);
    assert_true(rig.sum.exempt->val[0] == ranks + (float)c->size);
    assert_true(rig.sum.exempt->val[1] == ranks + (float)(10 * c->size));
    rig_close();
}

/* What a residual holds at an exempt entry from before leaves through the row, beside the dense sum. */
static void an_old_residual_is_delivered(struct comm *c) {
    static float update[RIG_N];
    static const float old = 1000;
    const struct shape s = {100, 1, 0, {0}};
    exempt_set(FIRST_AND_LAST, 100);
    open_shape(c, exchange_named("topka"), &s, NULL, true);
    rig.reducer.store.ops->write(&rig.reducer.store, 99, 1, &old);
    for (int i = 0; i < 100; i++) rig.grad[i] = 8;
    rig_step(1);
    float P = (float)c->size;
    assert_true(rig.u[99] == 1000 * P && rig.residual[99] == 0 && rig.sum.exempt->val[1] == 8 * P);
    exchange_mean(&rig.reducer.exchange, &rig.sum, rig.device_grad);
    device_download(update, rig.device_grad, 100);
    for (int i = 0; i < 100; i++) assert_true(fabsf(update[i] - (i == 0 ? 8 : i == 99 ? 1008 : 0)) <= 1e-3f);
    rig_close();
}

/* -- entries that are no numbers -------------------------------------------------------------------------------- */
/* One step of 100 entries, of which 20 and 70 are exempt, with these two values. All ranks have them, so that none
 * waits for another. Returns sum.bad, or 100 where all is well. */
static size_t bad_of(struct comm *c, const struct exchange_ops *ops, bool layers, size_t one, float value, size_t other,
                     float another) {
    const struct shape s = {100, 40, layers ? 2 : 0, {0, 50}};
    exempt[0] = 20, exempt[1] = 70, exempts = 2;
    open_shape(c, ops, &s, NULL, true);
    make_gradient(WHOLE, c->rank, c->size, 1, 100, rig.grad);
    rig.grad[other] = another;
    rig.grad[one] = value;
    device_fill(rig.device_grad, rig.grad, 100);
    exchange_begin(&rig.reducer.exchange, rig.device_grad, 40);
    exchange_ready(&rig.reducer.exchange, 60);
    exchange_ready(&rig.reducer.exchange, 0);
    bool good = exchange_run(&rig.reducer.exchange, rig.device_grad, 40, &rig.sum);
    rig_close();
    return good ? 100 : rig.sum.bad;
}

static void a_bad_entry_is_named(struct comm *c) {
    const struct exchange_ops *topka = exchange_named("topka");
    size_t overflows = c->size > 1 ? 70 : 100;
    for (size_t row = 0; exchanges[row]; row++)
        for (int layers = 0; exchanges[row]->sparse && layers < 2; layers++) {
            const struct exchange_ops *ops = exchanges[row];
            assert_int_equal(bad_of(c, ops, layers, 70, NAN, 30, 1), 70);
            assert_int_equal(bad_of(c, ops, layers, 20, -INFINITY, 70, 2), 20);
            assert_int_equal(bad_of(c, ops, layers, 70, 3e38f, 20, 1), overflows);
        }
    assert_int_equal(bad_of(c, topka, false, 70, NAN, 20, NAN), 20);
    assert_int_equal(bad_of(c, topka, false, 70, NAN, 69, NAN), 69);
    assert_int_equal(bad_of(c, topka, false, 70, NAN, 71, NAN), 70);
    assert_int_equal(bad_of(c, topka, false, 69, 3e38f, 70, NAN), c->size > 1 ? 69 : 70);
}

/* -- a caller's mistakes ---------------------------------------------------------------------------------------- */
static void leave(int status) {
    _exit(status);
}

/* What opening it says, in a process of its own, before it ends. */
static void dies(struct comm *c, const char *row, bool layers, const uint32_t *idx, size_t count, const char *text) {
    char said[1024] = "";
    int ends[2], status;
    struct exchange x;
    struct exchange_setup setup = {.comm = c, .n = 100, .k_max = 1, .exempt = idx, .exempts = count};
    struct selector *selector = selector_open(exact(), &rig.reducer.store, 1, NULL);
    setup.store = &rig.reducer.store;
    setup.selector = selector;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        error_set_abort(leave);
        if (layers) exchange_open_layers(&x, exchange_named(row), &setup);
        if (!layers) exchange_open(&x, exchange_named(row), &setup);
        _exit(0);
    }
    close(ends[1]);
    assert_true(pid > 0 && read(ends[0], said, sizeof said - 1) >= 0);
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    selector_close(selector);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SYSTEM || !strstr(said, text))
        fail_msg("%s: no \"%s\" in: %s", row, text, said);
}

static void mistakes_are_refused(struct comm *c) {
    static const uint32_t increasing[] = {0, 99}, twice[] = {7, 7}, falling[] = {8, 7}, outside[] = {0, 100};
    if (c->size > 1 || !test_device_is_host()) return; /* a GPU, and other ranks, do not follow a fork */
    store_open(&rig.reducer.store, 100, test_device());
    for (int layers = 0; layers < 2; layers++) {
        dies(c, "dense", layers, increasing, 2, "dense exchanges everything densely: no entry can be exempt");
        dies(c, "topka", layers, twice, 2, "topka: exempt entries must increase, but 7 follows on 7");
        dies(c, "topka", layers, falling, 2, "topka: exempt entries must increase, but 7 follows on 8");
        dies(c, "topka", layers, outside, 2, "topka: exempt entry 100 of a gradient of 100");
    }
    store_close(&rig.reducer.store);
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"every_row_and_set", every_row_and_set},
        {"every_wire_format", every_wire_format},
        {"on_nodes_of_every_size", on_nodes_of_every_size},
        {"by_layers", by_layers},
        {"k_goes_to_what_is_left", k_goes_to_what_is_left},
        {"a_row_with_a_begin_of_its_own_waits", a_row_with_a_begin_of_its_own_waits},
        {"an_old_residual_is_delivered", an_old_residual_is_delivered},
        {"a_bad_entry_is_named", a_bad_entry_is_named},
        {"mistakes_are_refused", mistakes_are_refused},
    };
    return rig_test_main(argc, argv, "comm_exempt", cases, sizeof cases / sizeof cases[0]);
}
