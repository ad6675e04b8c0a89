/* dense_ovlp.c: dense's sum in buckets, each begun as soon as backward has produced it.
 *
 * Idea: backward produces the gradient from its end to its beginning. The vector is cut into buckets from the end on;
 * once a bucket is complete its allreduce starts, and MPI works on it whenever backward calls in between two layers.
 * What is left when backward is over is the exposed part of the communication.
 *
 * Source: Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", VLDB 2020 (buckets of
 * several layers, in the order of backward); the allreduce is MPI's.
 *
 * Cost per rank: with b buckets 2b log2(P) alpha + 2n(P-1)/P beta, of which as much is hidden as backward takes.
 * Restrictions: buckets on a device whose memory MPI does not take are staged through a host buffer of n: a bucket's
 * copy begins when backward has produced it, its allreduce with the first call that comes after that and finds the copy
 * there (or waits for it), and the sum goes back while others are under way. MPI progresses within its calls only
 * (unless it has a thread of its own): a long layer hides less than it could. At most IN_FLIGHT buckets are under way
 * at once; before one more the oldest is waited for. Deviations: none. The sums differ from dense's by rounding at
 * most: MPI may add in another order for short vectors.
 *
 * NaN and infinities are looked for in each bucket before its sum, while backward has it still in the cache and it is
 * known whose they are, and in its sum, for overflow. Time that a sum was under way before run is hidden_seconds: up to
 * the call in which this rank saw its end. */
#include <math.h>

#include "base/mem.h"
#include "comm/exchange.h"
#include "comm/parts/peers.h"
#include "comm/transport/host_stage.h"

enum { BUCKET_BYTES = 4 << 20, IN_FLIGHT = 32, COPIES = DEVICE_COPIES / 4 /* at once, each way */ };

struct dense_ovlp {
    struct host_stage stage;
    size_t bucket, buckets; /* floats of one (the first of the vector may have fewer), how many */

    /* the step: buckets are numbered from the end of the vector; home <= ended <= begun <= fetched */
    float *grad, *host;   /* [n] the gradient; where MPI finds it */
    size_t fetched;       /* buckets [begun, fetched) are on their way to the host */
    size_t begun, ended;  /* of buckets [ended, begun) the sum is under way */
    size_t home;          /* buckets [home, ended) are on their way back */
    size_t bad, overflow; /* lowest NaN or infinity seen in what this rank has, in the sum; n: none */
    double since, hidden; /* when begun last became more than ended; seconds before that in which it was */
    struct comm_request request[IN_FLIGHT]; /* of bucket i at i % IN_FLIGHT */
    uint32_t down[COPIES], up[COPIES];      /* the copies of bucket i, at i % COPIES */
};

static void dense_ovlp_open(struct exchange *x) {
    struct dense_ovlp *d = x->state = mem_zalloc(1, sizeof *d, "dense-ovlp");
    size_t n = x->setup.n, bytes = x->setup.bucket_bytes > 0 ? x->setup.bucket_bytes : BUCKET_BYTES;
    d->bucket = bytes < sizeof(float) ? 1 : bytes / sizeof(float);
    d->buckets = n / d->bucket + (n % d->bucket > 0);
    host_stage_open(&d->stage, &x->setup, true);
}

static void dense_ovlp_close(struct exchange *x) {
    struct dense_ovlp *d = x->state;
    host_stage_close(&d->stage);
    mem_free(d);
}

static size_t bucket_end(const struct exchange *x, size_t i) {
    return x->setup.n - i * ((const struct dense_ovlp *)x->state)->bucket;
}

static size_t bucket_from(const struct exchange *x, size_t i) {
    size_t end = bucket_end(x, i), bucket = ((const struct dense_ovlp *)x->state)->bucket;
    return end > bucket ? end - bucket : 0;
}

/* MPI takes the device's pointers, so nothing is copied. Checking a sum here would wait for all of backward's work on
 * the device; therefore sums are checked at the end of the step. */
static bool summed_on_device(const struct dense_ovlp *d) {
    return d->stage.store && !d->stage.memory;
}

/* The lowest index in [from, end) of what is not a number; n when there is none. */
static size_t bad_in(const struct exchange *x, size_t from, size_t end) {
    const struct dense_ovlp *d = x->state;
    size_t at = host_stage_nonfinite(&d->stage, d->host + from, end - from);
    return at < end - from ? from + at : x->setup.n;
}

static void start_step(struct exchange *x, float *grad) {
    struct dense_ovlp *d = x->state;
    d->grad = grad;
    d->host = host_stage_at(&d->stage, grad);
    d->fetched = d->begun = d->ended = d->home = 0;
    d->bad = d->overflow = x->setup.n;
    d->hidden = 0;
}

/* -- copies; nothing to do where the gradient is summed where it lies ---------------------------------------------- */
static void fetch_bucket(struct exchange *x) {
    struct dense_ovlp *d = x->state;
    size_t i = d->fetched++, from = bucket_from(x, i);
    d->down[i % COPIES] = host_stage_down(&d->stage, x, d->grad, from, bucket_end(x, i) - from);
}

/* Bucket `begun` is there. */
static void wait_for_copy(struct exchange *x) {
    struct dense_ovlp *d = x->state;
    host_stage_wait(&d->stage, x, d->down[d->begun % COPIES]);
    host_stage_settle(&d->stage, x);
}

/* All but the last `left` buckets that have ended are back. */
static void wait_for_home(struct exchange *x, size_t left) {
    struct dense_ovlp *d = x->state;
    for (; d->home + left < d->ended; d->home++) host_stage_wait(&d->stage, x, d->up[d->home % COPIES]);
}

static void send_home(struct exchange *x, size_t i) {
    struct dense_ovlp *d = x->state;
    size_t from = bucket_from(x, i);
    wait_for_home(x, COPIES);
    d->up[i % COPIES] = host_stage_up(&d->stage, x, d->grad, from, bucket_end(x, i) - from);
}

/* -- sums ---------------------------------------------------------------------------------------------------------- */
/* The sum of the oldest bucket is there. */
static void bucket_ended(struct exchange *x) {
    struct dense_ovlp *d = x->state;
    size_t i = d->ended, from = bucket_from(x, i), end = bucket_end(x, i);
    if (++d->ended == d->begun) d->hidden += clock_now() - d->since;
    size_t bad = summed_on_device(d) ? x->setup.n : bad_in(x, from, end);
    if (bad < x->setup.n) d->overflow = bad; /* buckets fall: the last is the lowest */
    send_home(x, i);
}

static void wait_for_oldest(struct exchange *x) {
    struct dense_ovlp *d = x->state;
    comm_wait(x->setup.comm, &d->request[d->ended % IN_FLIGHT]);
    bucket_ended(x);
}

/* Begins the sum of the next bucket, unless it holds what is not a number: then the job is about to end. */
static void start_bucket(struct exchange *x) {
    struct dense_ovlp *d = x->state;
    size_t from = bucket_from(x, d->begun), end = bucket_end(x, d->begun);
    wait_for_copy(x);
    size_t at = host_stage_nonfinite_own(&d->stage, x, d->host + from, end - from);
    if (at < end - from) {
        d->bad = from + at;
        return;
    }
    if (d->begun - d->ended == IN_FLIGHT) wait_for_oldest(x);
    if (d->begun == d->ended) d->since = clock_now();
    comm_iallreduce_f32(x->setup.comm, d->host + from, end - from, &d->request[d->begun % IN_FLIGHT]);
    d->begun++;
}

static void start_buckets(struct exchange *x, size_t before) {
    const struct dense_ovlp *d = x->state;
    while (d->begun < before && d->bad == x->setup.n) start_bucket(x);
}

/* Makes progress: tests the allreduces under way, begins those whose copies began in an earlier call, and begins the
 * copies of the buckets in [from, n). Without copies the allreduces begin at once. */
static void progress(struct exchange *x, size_t from) {
    struct dense_ovlp *d = x->state;
    struct comm *c = x->setup.comm;
    while (d->ended < d->begun && comm_test(c, &d->request[d->ended % IN_FLIGHT])) bucket_ended(x);
    start_buckets(x, d->fetched);
    while (d->fetched < d->buckets && d->bad == x->setup.n && bucket_from(x, d->fetched) >= from) {
        fetch_bucket(x);
        if (!d->stage.memory) start_buckets(x, d->fetched);
        if (d->fetched - d->begun == COPIES) start_buckets(x, d->begun + 1);
    }
}

static void dense_ovlp_begin(struct exchange *x, float *grad, size_t k) {
    (void)k;
    start_step(x, grad);
}

/* After a bad entry was found: ends the copies under way and looks through everything that is not summed yet, since
 * it may hold a bad entry at a lower index. Returns the lowest. */
static size_t lowest_bad(struct exchange *x) {
    struct dense_ovlp *d = x->state;
    size_t end = bucket_end(x, d->begun);
    wait_for_home(x, 0);
    for (size_t i = d->begun + 1; i < d->fetched; i++) host_stage_wait(&d->stage, x, d->down[i % COPIES]);
    host_stage_wait(&d->stage, x, host_stage_down(&d->stage, x, d->grad, 0, end));
    return bad_in(x, 0, end);
}

static bool dense_ovlp_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    struct dense_ovlp *d = x->state;
    size_t n = x->setup.n;
    (void)k;
    if (x->begun && grad != d->grad) die("run got another gradient than begin");
    if (!x->begun) start_step(x, grad);
    sum->hidden_seconds = d->hidden + (d->begun > d->ended ? clock_now() - d->since : 0);
    progress(x, 0);
    start_buckets(x, d->fetched);
    if (d->bad < n) { /* the sums under way write to the gradient, and other ranks have begun them, too, or will */
        while (d->ended < d->begun) wait_for_oldest(x);
        sum->bad = lowest_bad(x);
        return false;
    }
    while (d->ended < d->begun) wait_for_oldest(x);
    wait_for_home(x, 0);
    if (summed_on_device(d)) d->overflow = bad_in(x, 0, n);
    sum->bad = d->overflow;
    sum->dense = grad;
    sum->local_nnz = sum->global_nnz = n;
    return d->overflow == n;
}

static double dense_ovlp_max_words(const struct cost_case *c) {
    return 2.0 * (double)c->n * (c->P - 1) / c->P;
}

static void dense_ovlp_cost(const struct cost_case *c, struct cost *cost) {
    double buckets = ceil((double)c->n * sizeof(float) / BUCKET_BYTES);
    double words = dense_ovlp_max_words(c);
    *cost = (struct cost){.alphas = 2 * buckets * ceil_log2(c->P), .words = words, .sums = words / 2};
}

extern const struct exchange_ops exchange_dense_ovlp;
const struct exchange_ops exchange_dense_ovlp = {
    .name = "dense-ovlp",
    .summary = "dense in buckets, each summed while backward produces the next",
    .paper = "PyTorch DDP (Li et al., VLDB 2020); the dense baseline of Ok-Topk",
    .default_select = NULL,
    .sparse = false,
    .conserves = true,
    .moves_as = "dense",
    .open = dense_ovlp_open,
    .begin = dense_ovlp_begin,
    .ready = progress,
    .run = dense_ovlp_run,
    .close = dense_ovlp_close,
    .max_words = dense_ovlp_max_words,
    .cost = dense_ovlp_cost,
};
