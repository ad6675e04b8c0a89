/* library.c: see sparsetrain.h, the only header that users of the library read. Here its functions are put on comm,
 * topk and base, whose die() comes back to `caught` in place of ending the process (base/error.h). */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "comm/library_saved.h"

const char *sparsetrain_version(void) {
    return ST_VERSION " (commit " ST_COMMIT ")";
}
const char *sparsetrain_algorithm(size_t i) {
    const struct exchange_ops *ops = library_exchange(i);
    return ops ? ops->name : NULL;
}
const char *sparsetrain_selector(size_t i) {
    return selector_name(i);
}
const char *sparsetrain_wire(size_t i) {
    return wire_name(i);
}

/* -- errors -------------------------------------------------------------------------------------------------------- */
static int tell(const struct err *e, char *why) {
    if (why) snprintf(why, SPARSETRAIN_LINE, "%s", e->text);
    return e->text[0] ? err_status(e) : SPARSETRAIN_GOOD;
}

/* A piece of work, with what it works on. False: the reason in *e. */
typedef bool work(void *arguments, struct err *e);

/* The catch belongs to the caller: after longjmp no local variable of this function may be read. */
static bool caught(struct error_catch *c, work *body, void *arguments, struct err *e) {
    error_catch_begin(c);
    if (setjmp(c->back) != 0) return true;
    body(arguments, e);
    error_catch_end(c);
    return false;
}

/* Numbers in options are written with a point, whatever the caller's language writes them with. */
struct language {
    locale_t plain, caller;
};
static void language_enter(struct language *l) {
    l->plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    l->caller = uselocale(l->plain);
}
static void language_leave(struct language *l) {
    uselocale(l->caller);
    if (l->plain) freelocale(l->plain);
}

/* What dies in it breaks x (NULL: there is none yet). */
static int guarded(sparsetrain *x, work *body, void *arguments, char *why) {
    struct error_catch c;
    struct err e = {0};
    if (x && x->broken.text[0]) return tell(&x->broken, why);
    const struct device_caller_ops *caller = x ? x->caller : NULL;
    const int before = caller ? caller->enter() : 0;
    struct language language;
    language_enter(&language);
    const bool dead = caught(&c, body, arguments, &e);
    language_leave(&language);
    if (caller) caller->leave(before);
    if (dead && x) x->broken = c.e;
    return tell(dead ? &c.e : &e, why);
}

/* The same of calls that need an exchange, whose clocks go on in them: time between calls is nobody's. */
static int called(sparsetrain *x, work *body, void *arguments, char *why) {
    struct err e = {0};
    if (!x) {
        err_set(&e, "the exchange is NULL: sparsetrain_open gives one");
        return tell(&e, why);
    }
    x->phases.since = clock_now();
    return guarded(x, body, arguments, why);
}

/* -- MPI ----------------------------------------------------------------------------------------------------------- */
struct ranks {
    int rank, size;
};
static bool start_mpi(void *arguments, struct err *e) {
    struct ranks *r = arguments;
    return comm_start_mpi(&r->rank, &r->size, e);
}

int sparsetrain_mpi_init(int *rank, int *size, char *why) {
    struct ranks r = {0, 1};
    int status = guarded(NULL, start_mpi, &r, why);
    if (rank) *rank = r.rank;
    if (size) *size = r.size;
    return status;
}

void sparsetrain_mpi_finalize(void) {
    comm_stop_mpi();
}

/* -- open and close ------------------------------------------------------------------------------------------------ */
struct opening {
    sparsetrain *x;
    const void *mpi_comm;
    const char *algorithm, *options;
    size_t n;
    const size_t *group;
    size_t groups;
    const struct sparsetrain_slice *slice;
    size_t slices;
};

static bool check_groups(const struct opening *o, struct err *e) {
    if (o->groups > 0 && !o->group) return err_set(e, "%zu groups are to be at NULL: give their beginnings", o->groups);
    for (size_t i = 0; i < o->groups; i++)
        if (o->group[i] >= o->n || (i == 0 ? o->group[0] != 0 : o->group[i] <= o->group[i - 1]))
            return err_set(e, "group %zu of %zu begins at entry %zu: groups ascend from 0 and end before %zu", i,
                           o->groups, o->group[i], o->n);
    return true;
}

static bool check_slices(const struct opening *o, struct err *e) {
    size_t left = o->n;
    if (o->slices > 0 && !o->slice) return err_set(e, "%zu slices are to be at NULL: give their shapes", o->slices);
    for (size_t i = 0; i < o->slices; i++) {
        const struct sparsetrain_slice *s = &o->slice[i];
        if (s->rows < 1 || s->cols < 1 || s->cols > left / s->rows)
            return err_set(e, "slice %zu of %zu is %zu by %zu, where %zu entries are left", i, o->slices, s->rows,
                           s->cols, left);
        left -= s->rows * s->cols;
    }
    if (o->slices > 0 && left > 0)
        return err_set(e, "the slices hold all but %zu entries of the gradient's %zu: they hold all", left, o->n);
    return true;
}

static bool check_arguments(const struct opening *o, struct err *e) {
    if (o->n < 1 || (uint64_t)o->n > UINT32_MAX)
        return err_set(e, "a gradient of %zu entries cannot be exchanged: there may be 1 to 2^32-1", o->n);
    return check_groups(o, e) && check_slices(o, e) &&
           library_options_parse(&o->x->options, o->algorithm, o->options, e);
}

/* There is one, and it is the caller's current one. */
static bool take_device(sparsetrain *x, struct err *e) {
    const struct device_ops *device = x->options.device;
    if (!device->caller) return true;
    if (!device->available(e) || !device->caller()->choose_current(e)) return false;
    x->caller = device->caller();
    return true;
}

/* Do all ranks ask for the same? Else they would wait for each other for ever. */
static bool check_alike(const struct opening *o, struct comm *c, struct err *e) {
    const char *options = o->options ? o->options : "";
    const uint64_t lengths[] = {o->n, o->groups, o->slices, strlen(options)};
    uint64_t own = hash64(0, lengths, sizeof lengths), first;
    own = hash64(own, o->algorithm, strlen(o->algorithm));
    own = hash64(own, options, strlen(options));
    if (o->groups > 0) own = hash64(own, o->group, o->groups * sizeof *o->group);
    if (o->slices > 0) own = hash64(own, o->slice, o->slices * sizeof *o->slice);
    first = own;
    comm_bcast(c, 0, &first, sizeof first);
    if (own != first)
        err_set(e, "rank %d opens an exchange with other arguments than rank 0: %s of %zu entries, \"%.200s\"", c->rank,
                o->algorithm, o->n, options);
    return !comm_agree(c, e);
}

/* The caller's groups and slices, as an exchange wants them. */
static void keep_cuts(sparsetrain *x, const struct opening *o) {
    size_t from = 0;
    x->groups = o->groups;
    x->slices = o->slices;
    if (o->groups > 0) {
        x->group = mem_alloc(o->groups, sizeof *x->group, "groups of layers");
        memcpy(x->group, o->group, o->groups * sizeof *x->group);
    }
    if (o->slices > 0) x->slice = mem_alloc(o->slices, sizeof *x->slice, "slices of the gradient");
    for (size_t i = 0; i < o->slices; i++) {
        x->slice[i] = (struct exchange_slice){from, o->slice[i].rows, o->slice[i].cols};
        from += o->slice[i].rows * o->slice[i].cols;
    }
}

static void set_up(const sparsetrain *x, struct reducer_setup *setup) {
    const struct library_options *o = &x->options;
    *setup = (struct reducer_setup){.ops = o->ops, .select = o->select, .seed = o->seed, .device = o->device};
    setup->exchange = (struct exchange_setup){.comm = x->comm,
                                              .n = x->n,
                                              .k_max = x->k_max,
                                              .any_k = true,
                                              .wire = o->wire,
                                              .options = library_values(o),
                                              .bucket_bytes = o->bucket_bytes,
                                              .group = x->group,
                                              .groups = x->groups,
                                              .slice = x->slice,
                                              .slices = x->slices};
}

static bool open_all(void *arguments, struct err *e) {
    const struct opening *o = arguments;
    sparsetrain *x = o->x;
    struct reducer_setup setup;
    x->comm = comm_adopt(o->mpi_comm, e);
    if (!x->comm) return false;
    if (check_arguments(o, e)) take_device(x, e);
    if (comm_agree(x->comm, e) || !check_alike(o, x->comm, e)) return false;
    if (x->options.ranks_per_node > 0) comm_set_ranks_per_node(x->comm, (int)x->options.ranks_per_node, e);
    if (comm_agree(x->comm, e) || !exchange_serves(x->options.ops, x->comm, e)) return false;
    x->n = o->n;
    x->density = x->options.density;
    x->k = density_to_k(x->density, x->n);
    x->k_max = density_to_k(x->options.density_max, x->n);
    keep_cuts(x, o);
    phases_reset(&x->phases);
    phases_reset(&x->hidden);
    set_up(x, &setup);
    setup.exchange.phases = &x->phases;
    setup.exchange.hidden_phases = &x->hidden;
    reducer_open(&x->reducer, &setup);
    return true;
}

static bool make_handle(void *handle, struct err *e) {
    (void)e;
    *(sparsetrain **)handle = mem_zalloc(1, sizeof(sparsetrain), "an exchange");
    return true;
}

int sparsetrain_open_slices(sparsetrain **x, const void *mpi_comm, const char *algorithm, size_t n, const char *options,
                            const size_t *group, size_t groups, const struct sparsetrain_slice *slice, size_t slices,
                            char *why) {
    struct err none = {0};
    if (!x) return err_set(&none, "there is no place for the exchange: x is NULL"), tell(&none, why);
    *x = NULL;
    int status = guarded(NULL, make_handle, x, why);
    if (status != SPARSETRAIN_GOOD) return status;
    struct opening o = {*x, mpi_comm, algorithm ? algorithm : "", options, n, group, groups, slice, slices};
    status = guarded(*x, open_all, &o, why);
    if (status == SPARSETRAIN_GOOD) return status;
    sparsetrain_close(*x);
    *x = NULL;
    return status;
}

int sparsetrain_open_groups(sparsetrain **x, const void *mpi_comm, const char *algorithm, size_t n, const char *options,
                            const size_t *group, size_t groups, char *why) {
    return sparsetrain_open_slices(x, mpi_comm, algorithm, n, options, group, groups, NULL, 0, why);
}

int sparsetrain_open(sparsetrain **x, const void *mpi_comm, const char *algorithm, size_t n, const char *options,
                     char *why) {
    return sparsetrain_open_groups(x, mpi_comm, algorithm, n, options, NULL, 0, why);
}

/* The gradient is what the caller's stream makes of it up to here. */
static bool follow_stream(const sparsetrain *x, struct err *e) {
    return !x->caller || x->caller->follow(x->stream, e);
}

/* Ends a step that was begun: its messages may be under way, on other ranks too. */
static bool close_all(void *arguments, struct err *e) {
    sparsetrain *x = arguments;
    if (x->reducer.exchange.begun && !comm_mpi_ended(x->comm) && follow_stream(x, e))
        exchange_run(&x->reducer.exchange, x->begun, x->k, &x->sum);
    reducer_close(&x->reducer);
    comm_close(x->comm);
    mem_free(x->group);
    mem_free(x->slice);
    return true;
}

/* If an error of the system has left the exchange in an undefined state, a collective close could wait for ever: then
 * only the handle is freed, and not even that while a thread of the exchange uses it. What else breaks an exchange, all
 * ranks can end alike. */
void sparsetrain_close(sparsetrain *x) {
    if (!x) return;
    if (x->broken.status == EXIT_NUMERIC || x->broken.status == EXIT_USER) x->broken = (struct err){0};
    guarded(x, close_all, x, NULL);
    struct exchange *exchange = &x->reducer.exchange;
    if (x->broken.text[0] && exchange->by_layers && !exchange_layers_abandon(exchange)) return;
    mem_free(x);
}

/* -- steps --------------------------------------------------------------------------------------------------------- */
struct new_density {
    sparsetrain *x;
    double density;
};

/* Of ranks that go on with different ones some would wait for ever, others get wrong sums. */
static bool set_density(void *arguments, struct err *e) {
    const struct new_density *d = arguments;
    sparsetrain *x = d->x;
    double first = d->density;
    if (x->begun) return err_set(e, "the density cannot change between begin and run");
    comm_bcast(x->comm, 0, &first, sizeof first);
    if (memcmp(&first, &d->density, sizeof first) != 0)
        err_set(e, "rank %d sets a density of %g and rank 0 one of %g: all ranks set the same", x->comm->rank,
                d->density, first);
    else if (!(d->density > 0 && d->density <= x->options.density_max))
        err_set(e, "a density of %g is not above 0 and at most density-max, %g", d->density, x->options.density_max);
    if (comm_agree(x->comm, e)) return false;
    x->density = d->density;
    x->k = density_to_k(d->density, x->n);
    return true;
}

int sparsetrain_set_density(sparsetrain *x, double density, char *why) {
    return called(x, set_density, &(struct new_density){x, density}, why);
}

struct stepping {
    sparsetrain *x;
    float *grad;
    size_t from;
    void *stream;
};

static bool set_stream(void *arguments, struct err *e) {
    const struct stepping *s = arguments;
    if (!s->x->caller) return err_set(e, "an exchange on host memory has no stream: open it with device=cuda");
    if (!s->x->caller->follow(s->stream, e)) return false;
    s->x->stream = s->stream;
    return true;
}

static bool check_pointer(const sparsetrain *x, const float *grad, struct err *e) {
    if (!grad) return err_set(e, "the gradient is NULL: give the address of its %zu entries", x->n);
    if (!x->caller)
        return device_host_reads(grad) ||
               err_set(e, "the gradient is in the memory of a GPU: open the exchange with device=cuda");
    unsigned of = x->caller->pointer(grad);
    return of & POINTER_OF_DEVICE ||
           err_set(e, "the gradient is in the memory of %s, the exchange is on the GPU that was current at open",
                   of & POINTER_OF_HOST ? "the host" : "another GPU");
}

static bool begin(void *arguments, struct err *e) {
    const struct stepping *s = arguments;
    if (s->x->begun) return err_set(e, "begin was called twice for one step");
    if (!check_pointer(s->x, s->grad, e)) return false;
    s->x->begun = s->grad;
    exchange_begin(&s->x->reducer.exchange, s->grad, s->x->k);
    return true;
}

static bool ready(void *arguments, struct err *e) {
    const struct stepping *s = arguments;
    if (!s->x->begun) return err_set(e, "ready was called without begin");
    if (s->from > s->x->n) return err_set(e, "ready from entry %zu of %zu", s->from, s->x->n);
    if (!follow_stream(s->x, e)) return false;
    exchange_ready(&s->x->reducer.exchange, s->from);
    return true;
}

static bool run(void *arguments, struct err *e) {
    const struct stepping *s = arguments;
    sparsetrain *x = s->x;
    struct exchange *exchange = &x->reducer.exchange;
    if (x->begun && x->begun != s->grad) return err_set(e, "run got another gradient than begin");
    if (!check_pointer(x, s->grad, e) || !follow_stream(x, e)) return false;
    bool good = exchange_run(exchange, s->grad, x->k, &x->sum);
    x->begun = NULL;
    if (!good) {
        err_with(&x->broken, EXIT_NUMERIC, "entry %zu of the gradient or of the sum is NaN or infinite", x->sum.bad);
        return err_with(e, EXIT_NUMERIC, "%s", x->broken.text);
    }
    x->steps++;
    x->hidden_seconds += x->sum.hidden_seconds;
    x->words_bound = exchange_max_words(exchange, x->k) + x->sum.extra_words;
    exchange_mean(exchange, &x->sum, s->grad);
    phase_enter(&x->phases, PHASE_OTHER);
    return !x->caller || x->caller->lead(x->stream, e);
}

int sparsetrain_set_stream(sparsetrain *x, void *stream, char *why) {
    return called(x, set_stream, &(struct stepping){.x = x, .stream = stream}, why);
}
int sparsetrain_begin(sparsetrain *x, float *grad, char *why) {
    return called(x, begin, &(struct stepping){.x = x, .grad = grad}, why);
}
int sparsetrain_ready(sparsetrain *x, size_t from, char *why) {
    return called(x, ready, &(struct stepping){.x = x, .from = from}, why);
}
int sparsetrain_run(sparsetrain *x, float *grad, char *why) {
    return called(x, run, &(struct stepping){.x = x, .grad = grad}, why);
}

/* -- what is kept -------------------------------------------------------------------------------------------------- */
struct part {
    sparsetrain *x;
    size_t from, count;
    float *out;
    const float *in;
};

static bool check_part(const struct part *p, struct err *e) {
    if (p->x->begun) return err_set(e, "the residual cannot be looked at between begin and run");
    if (p->from > p->x->n || p->count > p->x->n - p->from)
        return err_set(e, "entries %zu to %zu of %zu", p->from, p->from + p->count, p->x->n);
    if (p->count > 0 && !p->out && !p->in) return err_set(e, "%zu entries are to be at NULL", p->count);
    return true;
}

static bool get_residual(void *arguments, struct err *e) {
    const struct part *p = arguments;
    struct store *s = &p->x->reducer.store;
    if (!check_part(p, e)) return false;
    memset(p->out, 0, p->count * sizeof *p->out);
    if (s->acc && p->count > 0) s->ops->read(s, p->from, p->count, p->out);
    return true;
}

static bool put_residual(void *arguments, struct err *e) {
    const struct part *p = arguments;
    struct store *s = &p->x->reducer.store;
    if (!check_part(p, e)) return false;
    for (size_t i = 0; !s->acc && i < p->count; i++)
        if (p->in[i] != 0)
            return err_set(e, "%s has no residual, and entry %zu of this one is not zero", p->x->options.ops->name,
                           p->from + i);
    if (s->acc && p->count > 0) s->ops->write(s, p->from, p->count, p->in);
    return true;
}

int sparsetrain_residual(sparsetrain *x, size_t from, size_t count, float *host, char *why) {
    return called(x, get_residual, &(struct part){x, from, count, host, NULL}, why);
}
int sparsetrain_set_residual(sparsetrain *x, size_t from, size_t count, const float *host, char *why) {
    return called(x, put_residual, &(struct part){x, from, count, NULL, host}, why);
}

size_t sparsetrain_save(sparsetrain *x, void *bytes, size_t capacity) {
    struct saving s = {.x = x, .out = bytes, .count = capacity};
    return called(x, library_save, &s, NULL) == SPARSETRAIN_GOOD ? s.at : 0;
}

int sparsetrain_restore(sparsetrain *x, const void *bytes, size_t count, char *why) {
    struct saving s = {.x = x, .in = bytes, .count = count};
    return called(x, library_restore, &s, why);
}

/* -- statistics ---------------------------------------------------------------------------------------------------- */
void sparsetrain_get_stats(const sparsetrain *x, struct sparsetrain_stats *s) {
    static const enum phase phase[SPARSETRAIN_PHASES] = {
        [SPARSETRAIN_OTHER] = PHASE_OTHER, [SPARSETRAIN_SELECT] = PHASE_SELECT,
        [SPARSETRAIN_PACK] = PHASE_PACK,   [SPARSETRAIN_COMMUNICATE] = PHASE_COMMUNICATE,
        [SPARSETRAIN_MERGE] = PHASE_MERGE, [SPARSETRAIN_UPDATE] = PHASE_UPDATE};
    if (s) *s = (struct sparsetrain_stats){0};
    if (!x || !s) return;
    const struct comm_counters *c = &x->comm->counters[TRAFFIC_EXCHANGE];
    *s = (struct sparsetrain_stats){.steps = x->steps, .k = x->options.ops->sparse ? x->k : x->n};
    s->messages_sent = c->messages_sent, s->messages_received = c->messages_received;
    s->bytes_sent = c->bytes_sent, s->bytes_received = c->bytes_received;
    for (int i = 0; i < SPARSETRAIN_PHASES; i++) s->seconds[i] = x->phases.seconds[phase[i]];
    s->hidden_seconds = x->hidden_seconds;
    if (x->steps == 0) return;
    s->local_entries = x->options.ops->sparse ? x->sum.local_nnz : x->n;
    s->global_entries = x->options.ops->sparse ? x->sum.global_nnz : x->n;
    s->words_bound = x->words_bound;
    s->local_threshold = x->reducer.selector ? x->reducer.selector->stats.threshold : 0;
    s->global_threshold = x->sum.threshold;
    s->mass_lost = x->sum.mass_lost;
}
