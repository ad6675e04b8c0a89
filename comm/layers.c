/* layers.c: overlap by layers: any exchange, group by group of layers, while backward goes on.
 *
 * Idea: backward produces the gradient from the last layer to the first. As soon as a group of layers is complete, a
 * thread of its own selects in it and exchanges it, so that a part of the exchange runs hidden behind the rest of
 * backward. Nearby layers are merged into groups, since every group pays the start-up times again.
 *
 * Source: layer-wise sparsification is the future work of Shi et al. (gTop-k, ICDCS 2019, Section VII); merging layers
 * so that start-up times do not eat the gain: Shi, Chu and Li, "MG-WFBP", INFOCOM 2019.
 *
 * How: a group has a view of the store, a selector and an exchange of its own, so that whatever a row keeps from step
 * to step (thresholds, region boundaries) is kept for each group; it gets max(1, floor(k n_group / n)) of k, n and
 * n_group without exempt entries, which each group takes out and adds up itself. All ranks exchange the groups one
 * after the other, the last first, so that their messages cannot mix. Groups that the thread has not begun when
 * backward is over are exchanged by run itself. The sums of the groups, put end to end, are the sum.
 *
 * Cost: that of the row for each group; words as for the whole (and those of the groups whose share of k is below 1),
 * start-up times once per group.
 * Residual: as the row; each group keeps its own equation of conservation, so the whole does.
 * Restrictions: where MPI allows calls from one thread only, run does all groups. Between begin and run only the
 * thread touches comm, store and selectors. A row with a dense result must leave it in the gradient.
 * Deviation: the k largest of each group are not the k largest of all: a group of small gradients gets its share. With
 * a selector by slices a slice that is a group has the budget that it has without overlap, and so has one whose budget
 * is the least, 1; another slice's may be less by 1, since the group's share of k is rounded down, and then the
 * slice's. */
#include <pthread.h>
#include <signal.h>

#include "base/mem.h"
#include "comm/exempt.h"
#include "topk/by_slice.h"

struct group {
    struct store view;
    struct selector *selector; /* NULL: the row needs none */
    struct exchange inner;
    size_t from, n;  /* entries [from, from + n) of the gradient */
    size_t selected; /* n without exempt entries: from so many k are selected */
    struct exchange_sum sum;
};

struct layers {
    struct exchange_ops ops; /* this exchange's row: the inner one's, with other functions */
    char *name;
    struct group *group; /* [groups] */
    /* Results, written from the end on as the groups come, and what of them is written. u: rows with `sparse`. sent,
     * delivered: where they are wanted. exempt: [exempts] */
    struct sparse u, sent, delivered, exempt;
    struct sparse u_view, sent_view, delivered_view, exempt_view;
    size_t groups;

    /* the step under way; used by the thread while `busy`, else by the caller of begin, ready and run */
    float *grad; /* [n] device */
    size_t k;
    size_t left;     /* groups [0, left) are to be done */
    bool failed;     /* group left - 1 has a NaN or an infinity */
    double hidden;   /* seconds that the thread was busy in this step, up to the last time it stopped */
    struct err dead; /* the error that ended the thread's work, if errors are caught (error.h) */

    pthread_t thread;
    pthread_mutex_t lock; /* protects the members below; taken too when the step passes from one thread to the other */
    pthread_cond_t changed;
    bool taking;  /* from begin to run: the thread may take groups */
    size_t ready; /* those that begin here or later */
    bool busy, stop;
    bool started; /* the thread runs; of the caller alone */
    double since; /* when it became busy */
    bool catches; /* the caller catches errors (error_catch), so the thread does */
};

/* max(1, floor(k n_group / n)), both without exempt entries, of which k may leave too little: at most the whole group.
 * A selector by slices counts the entries of its slices alone. No overflow, since all are below 2^32. */
static size_t share(const struct exchange *x, const struct group *g, size_t k) {
    const struct selector *selector = x->ops->selects ? x->setup.selector : NULL;
    size_t n = x->setup.n - x->setup.exempts, inside = g->selected;
    if (selector && selector->slice) {
        n = selector->covered;
        inside = selector_covers(selector, g->from, g->n);
    }
    uint64_t whole = n > 0 ? (uint64_t)k * inside / n : 0;
    if (whole > g->n) return g->n;
    return whole > 0 ? (size_t)whole : 1;
}

/* -- a group ------------------------------------------------------------------------------------------------ */
/* Copies a group's result in front of those of the groups behind it: `room` is filled from its end. */
static void put_in_front(const struct sparse *room, struct sparse *view, const struct sparse *s, size_t offset) {
    if (s->nnz > room->cap - view->nnz) die("a group of layers has more entries in its sum than its row may return");
    size_t at = room->cap - view->nnz - s->nnz;
    for (size_t i = 0; i < s->nnz; i++) room->idx[at + i] = s->idx[i] + (uint32_t)offset;
    memcpy(room->val + at, s->val, s->nnz * sizeof *s->val);
    *view = (struct sparse){room->idx + at, room->val + at, view->nnz + s->nnz, view->nnz + s->nnz};
}

/* Exchanges group left - 1. */
static void run_group(struct exchange *x, struct phases *phases) {
    struct layers *l = x->state;
    struct group *g = &l->group[l->left - 1];
    g->inner.setup.phases = phases;
    g->inner.setup.wants_sent = x->setup.wants_sent;
    if (g->selector) g->selector->audit = x->setup.selector->audit;
    PHASE_SCOPE(phases, PHASE_MERGE);
    l->failed = !exchange_run(&g->inner, l->grad + g->from, share(x, g, l->k), &g->sum);
    if (l->failed) return;
    if (g->sum.dense && g->sum.dense != l->grad + g->from)
        die("%s does not leave its sum in the gradient: it cannot be run by layers", l->ops.name);
    if (g->sum.sparse) put_in_front(&l->u, &l->u_view, g->sum.sparse, g->from);
    if (g->sum.sent) put_in_front(&l->sent, &l->sent_view, g->sum.sent, g->from);
    if (g->sum.delivered) put_in_front(&l->delivered, &l->delivered_view, g->sum.delivered, g->from);
    if (g->sum.exempt) put_in_front(&l->exempt, &l->exempt_view, g->sum.exempt, g->from);
    l->left--;
}

static void start_step(struct layers *l, float *grad, size_t k) {
    l->grad = grad;
    l->k = k;
    l->left = l->groups;
    l->failed = false;
    l->hidden = 0;
    l->u_view.nnz = l->sent_view.nnz = l->delivered_view.nnz = l->exempt_view.nnz = 0;
}

/* -- the thread --------------------------------------------------------------------------------------------- */
static bool has_work(const struct layers *l) {
    return l->taking && l->left > 0 && !l->failed && l->group[l->left - 1].from >= l->ready;
}

/* The thread exchanges a group. If the caller catches errors, the thread does too; run then raises them in the
 * caller's thread. */
static void run_group_aside(struct exchange *x) {
    struct layers *l = x->state;
    struct error_catch c;
    if (l->catches) {
        error_catch_begin(&c);
        if (setjmp(c.back) != 0) {
            l->dead = c.e;
            l->failed = true;
            return;
        }
    }
    run_group(x, x->setup.hidden_phases);
    if (l->catches) error_catch_end(&c);
}

static void *work(void *exchange) {
    struct exchange *x = exchange;
    struct layers *l = x->state;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (!l->stop && !has_work(l)) pthread_cond_wait(&l->changed, &l->lock);
        if (l->stop) break;
        l->busy = true;
        l->since = clock_now();
        pthread_mutex_unlock(&l->lock);
        run_group_aside(x);
        pthread_mutex_lock(&l->lock);
        l->busy = false;
        l->hidden += clock_now() - l->since;
        pthread_cond_broadcast(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static void layers_begin(struct exchange *x, float *grad, size_t k) {
    struct layers *l = x->state;
    pthread_mutex_lock(&l->lock);
    start_step(l, grad, k);
    l->ready = x->setup.n;
    l->taking = true;
    pthread_mutex_unlock(&l->lock);
}

static void layers_ready(struct exchange *x, size_t from) {
    struct layers *l = x->state;
    pthread_mutex_lock(&l->lock);
    l->ready = from;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

/* Stops the thread from taking further groups. Returns the seconds that it has worked in this step before this call. */
static double take_over(struct exchange *x) {
    struct layers *l = x->state;
    PHASE_SCOPE(x->setup.phases, PHASE_COMMUNICATE);
    pthread_mutex_lock(&l->lock);
    l->taking = false;
    double hidden = l->hidden + (l->busy ? clock_now() - l->since : 0);
    while (l->busy) pthread_cond_wait(&l->changed, &l->lock);
    pthread_mutex_unlock(&l->lock);
    return hidden;
}

/* -- the whole ---------------------------------------------------------------------------------------------- */
static float smaller(float a, float b) {
    return a < b ? a : b;
}

static void add_sums(struct exchange *x, struct exchange_sum *sum) {
    struct layers *l = x->state;
    for (size_t i = 0; i < l->groups; i++) {
        const struct exchange_sum *s = &l->group[i].sum;
        sum->local_nnz += s->local_nnz;
        sum->global_nnz += s->global_nnz;
        sum->mass_lost += s->mass_lost;
        sum->extra_words += s->extra_words;
        sum->evaluated |= s->evaluated;
        sum->threshold = i == 0 ? s->threshold : smaller(sum->threshold, s->threshold);
        sum->exact_threshold = i == 0 ? s->exact_threshold : smaller(sum->exact_threshold, s->exact_threshold);
    }
    if (!l->group[0].sum.sparse)
        sum->dense = l->grad;
    else
        sum->sparse = &l->u_view;
    if (l->group[0].sum.sent) { /* all groups use the same exchange, so either all have a sent or none */
        sum->sent = &l->sent_view;
        sum->delivered = &l->delivered_view;
    }
    if (x->setup.exempts > 0) sum->exempt = &l->exempt_view;
    if (!x->ops->selects) return;
    struct selector_stats *all = &x->setup.selector->stats;
    *all = (struct selector_stats){0};
    for (size_t i = 0; i < l->groups; i++) selector_stats_add(all, &l->group[i].selector->stats);
}

static bool layers_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    struct layers *l = x->state;
    if (x->begun && (grad != l->grad || k != l->k)) die("run got another gradient, or another k, than begin");
    if (x->begun)
        sum->hidden_seconds = take_over(x);
    else
        start_step(l, grad, k);
    if (l->dead.text[0]) die_status(err_status(&l->dead), "%s", l->dead.text);
    while (l->left > 0 && !l->failed) run_group(x, x->setup.phases);
    if (l->failed) {
        sum->bad = l->group[l->left - 1].from + l->group[l->left - 1].sum.bad;
        return false;
    }
    add_sums(x, sum);
    return true;
}

/* Each group's exchange combines its own part of the gradient; its sum is valid until the next step. */
static void layers_combine(struct exchange *x, const struct exchange_sum *sum, float *grad) {
    struct layers *l = x->state;
    (void)sum;
    for (size_t i = 0; i < l->groups; i++) {
        struct group *g = &l->group[i];
        g->inner.setup.phases = x->setup.phases;
        g->inner.ops->combine(&g->inner, &g->sum, grad + g->from);
    }
}

double exchange_layers_words(const struct exchange *x, size_t k) {
    const struct layers *l = x->state;
    double words = 0;
    for (size_t i = 0; i < l->groups; i++) words += exchange_max_words(&l->group[i].inner, share(x, &l->group[i], k));
    return words;
}

/* The pieces of all groups, one group after the other. */
static bool layers_saved(struct exchange *x, size_t piece, void **memory, size_t *bytes) {
    struct layers *l = x->state;
    size_t before = 0;
    for (size_t i = 0; i < l->groups; i++) {
        size_t here = 0;
        for (; exchange_saved(&l->group[i].inner, here, memory, bytes); here++)
            if (before + here == piece) return true;
        before += here;
    }
    return false;
}

static bool layers_check(const struct exchange *x, uint64_t *alike, struct err *e) {
    const struct layers *l = x->state;
    for (size_t i = 0; i < l->groups; i++)
        if (!exchange_check_own(&l->group[i].inner, alike, e)) return false;
    return true;
}

static void layers_skip(struct exchange *x, uint64_t steps) {
    struct layers *l = x->state;
    for (size_t i = 0; i < l->groups; i++) exchange_skip(&l->group[i].inner, steps);
}

/* -- open and close ----------------------------------------------------------------------------------------- */
/* The exempt entries of the next group, as indices from its first entry; stored where their sums will be written. */
static void share_exempt(struct exchange *x, const struct group *g, struct exchange_setup *setup) {
    struct sparse *s = &((struct layers *)x->state)->exempt;
    size_t first = s->nnz;
    for (; s->nnz < x->setup.exempts && x->setup.exempt[s->nnz] < g->from + g->n; s->nnz++)
        s->idx[s->nnz] = x->setup.exempt[s->nnz] - (uint32_t)g->from;
    setup->exempts = s->nnz - first;
    setup->exempt = setup->exempts > 0 ? s->idx + first : NULL;
}

/* The slices of a group, from its first entry; one that lies in several groups is cut into vectors. To be freed. */
static struct exchange_slice *slices_of(const struct exchange_setup *whole, const struct group *g, size_t *count) {
    struct exchange_slice *slice = mem_alloc(whole->slices, sizeof *slice, "the slices of a group");
    *count = 0;
    for (size_t i = 0; i < whole->slices; i++) {
        struct exchange_slice s = whole->slice[i];
        size_t end = s.from + s.rows * s.cols, from = s.from > g->from ? s.from : g->from;
        if (from >= end || from >= g->from + g->n) continue;
        if (end > g->from + g->n) end = g->from + g->n;
        if (end - from < s.rows * s.cols) s.rows = 1, s.cols = end - from;
        s.from = from - g->from;
        slice[(*count)++] = s;
    }
    return slice;
}

static void open_group(struct exchange *x, const struct exchange_ops *ops, struct group *g) {
    struct exchange_setup setup = x->setup;
    struct exchange_slice *slice = slices_of(&x->setup, g, &setup.slices);
    setup.slice = slice;
    share_exempt(x, g, &setup);
    g->selected = g->n - setup.exempts;
    setup.n = g->n;
    setup.k_max = share(x, g, x->setup.k_max);
    setup.seed = exchange_group_seed(x->setup.seed, g->from);
    if (setup.store) {
        store_view_open(&g->view, x->setup.store, g->from, g->n);
        setup.store = &g->view;
    }
    if (ops->selects) {
        g->selector = selector_open_part(x->setup.selector, &g->view, g->from, setup.k_max);
        setup.selector = g->selector;
    }
    exchange_open(&g->inner, ops, &setup);
    mem_free(slice);
}

/* Most entries in the sum of a group, and so in what a rank has in it: every entry was selected by some rank. */
static size_t most_entries(const struct exchange *x, const struct group *g) {
    if (!g->selector) return g->n;
    return sparse_sum_capacity(g->n, (size_t)x->setup.comm->size, g->selector->room);
}

static void open_groups(struct exchange *x, const struct exchange_ops *ops) {
    struct layers *l = x->state;
    size_t n = x->setup.n, most = 0;
    l->groups = x->setup.groups > 0 ? x->setup.groups : 1;
    l->group = mem_zalloc(l->groups, sizeof *l->group, "groups of layers");
    if (x->setup.exempts > 0) sparse_open(&l->exempt, x->setup.exempts);
    for (size_t i = 0; i < l->groups; i++) {
        struct group *g = &l->group[i];
        size_t end = i + 1 < l->groups ? x->setup.group[i + 1] : n;
        g->from = x->setup.groups > 0 ? x->setup.group[i] : 0;
        if (g->from >= end || end > n || (i == 0 && g->from > 0))
            die("group %zu of %zu is entries %zu to %zu of %zu", i, l->groups, g->from, end, n);
        g->n = end - g->from;
        open_group(x, ops, g);
        most += most_entries(x, g);
    }
    if (!ops->sparse) return;
    sparse_open(&l->u, most);
    if (!x->setup.wants_sent) return;
    sparse_open(&l->sent, most);
    sparse_open(&l->delivered, most);
}

/* Signals are for the thread that the program began with. */
static void start_thread(struct exchange *x) {
    struct layers *l = x->state;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&l->thread, NULL, work, x);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) die("no thread for the overlap by layers could be started: %s", strerror(rc));
    l->started = true;
}

/* False: it is not to be waited for, and is busy. */
static bool end_thread(struct layers *l, bool waits) {
    if (!l->started) return true;
    pthread_mutex_lock(&l->lock);
    bool ends = waits || !l->busy;
    l->stop = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    if (!ends) return false;
    pthread_join(l->thread, NULL);
    l->started = false;
    return true;
}

bool exchange_layers_abandon(struct exchange *x) {
    return end_thread(x->state, false);
}

static void layers_close(struct exchange *x) {
    struct layers *l = x->state;
    end_thread(l, true);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    sparse_close(&l->delivered);
    sparse_close(&l->sent);
    sparse_close(&l->u);
    for (size_t i = l->groups; i-- > 0;) {
        exchange_close(&l->group[i].inner);
        selector_close(l->group[i].selector);
        if (l->group[i].view.ops) store_view_close(&l->group[i].view);
    }
    sparse_close(&l->exempt);
    mem_free(l->group);
    mem_free(l->name);
    mem_free(l);
}

static struct exchange_ops ops_by_layers(const struct exchange_ops *ops, const char *name, bool overlaps) {
    struct exchange_ops own = *ops;
    own.name = name;
    own.open = NULL; /* exchange_open_layers alone opens it */
    own.begin = overlaps ? layers_begin : NULL;
    own.ready = overlaps ? layers_ready : NULL;
    own.run = layers_run;
    own.close = layers_close;
    own.saved = layers_saved;
    own.check = layers_check;
    own.skip = layers_skip;
    if (ops->combine) own.combine = layers_combine;
    return own;
}

void exchange_open_layers(struct exchange *x, const struct exchange_ops *ops, const struct exchange_setup *setup) {
    struct layers *l = mem_zalloc(1, sizeof *l, "overlap by layers");
    *x = (struct exchange){
        .ops = &l->ops, .setup = *setup, .state = l, .by_layers = true, .room_for_sent = setup->wants_sent};
    if (setup->n < 1 || (uint64_t)setup->n > UINT32_MAX) die("%s: n = %zu is not in 1..2^32-1", ops->name, setup->n);
    if (exchange_keeps(ops, &setup->options, setup->wire) && !setup->store) die("%s needs a store", ops->name);
    if (ops->selects && !setup->selector) die("%s needs a selector", ops->name);
    exempt_check(ops, setup);
    l->catches = error_is_caught();
    l->name = mem_printf("%s by layers", ops->name);
    l->ops = ops_by_layers(ops, l->name, setup->comm->any_thread);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    open_groups(x, ops);
    if (l->ops.begin) start_thread(x);
}
