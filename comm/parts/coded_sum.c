/* coded_sum.c: see coded_sum.h. */
#include "comm/parts/coded_sum.h"

#include <math.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "comm/parts/peers.h"

enum { TAG = 71 };

/* -- the two formats of a wire ---------------------------------------------------------------------------------- */
enum { PIECE = 256 };

static size_t wire_bytes(const void *state, size_t from, size_t count) {
    (void)state, (void)from;
    return (count + 1) / 2 * 2 * sizeof(uint16_t);
}

static void wire_encode(void *state, size_t from, size_t count, const float *val, float *error, void *message) {
    const struct wire_ops *wire = state;
    uint16_t *half = message;
    float rounded[PIECE], cut[PIECE];
    (void)from;
    if (count % 2) half[count] = 0;
    for (size_t at = 0; at < count; at += PIECE) {
        size_t some = count - at < PIECE ? count - at : PIECE;
        memcpy(rounded, val + at, some * sizeof *val);
        wire->round_all(rounded, some, cut);
        wire->pack(rounded, some, half + at);
        if (error) memcpy(error + at, cut, some * sizeof *cut);
    }
}

static void wire_decode(const void *state, size_t from, size_t count, const void *message, bool add, float *val) {
    (void)from;
    (add ? wire_values_add : wire_values_read)(state, message, count, val);
}

struct coder coder_of_wire(const struct wire_ops *wire) {
    return (struct coder){(void *)(uintptr_t)wire, 2, wire_bytes, wire_encode, wire_decode}; /* it is not written to */
}

/* -- open and close --------------------------------------------------------------------------------------------- */
/* Of each[p] entries, or even ones of whole units of `align` entries. */
static void cut_into_parts(struct coded_sum *s, const size_t *each) {
    int P = s->comm->size;
    size_t align = s->coder.align, units = s->n / align + (s->n % align > 0);
    for (int p = 0; p <= P; p++) {
        size_t from = each ? (p > 0 ? s->from[p - 1] + each[p - 1] : 0) : (size_t)even_cut(units, P, p) * align;
        s->from[p] = from < s->n ? from : s->n;
    }
    for (int p = 0; p < P; p++) {
        s->bytes[p] = s->coder.bytes(s->coder.state, s->from[p], s->from[p + 1] - s->from[p]);
        s->at[p + 1] = s->at[p] + s->bytes[p];
    }
}

void coded_sum_open(struct coded_sum *s, struct exchange *x, struct comm *comm, size_t n, const size_t *each,
                    const struct coder *coder) {
    size_t P = (size_t)comm->size, rank = (size_t)comm->rank;
    *s = (struct coded_sum){.x = x, .comm = comm, .coder = *coder, .n = n};
    s->from = mem_alloc(P + 1, sizeof *s->from, "parts of a sum");
    s->bytes = mem_alloc(P, sizeof *s->bytes, "lengths of messages");
    s->at = mem_zalloc(P + 1, sizeof *s->at, "lengths of messages");
    s->request = mem_alloc(2 * P, sizeof *s->request, "requests of a sum");
    cut_into_parts(s, each);
    s->all = mem_alloc(1, s->at[P], "coded parts of a vector");
    s->came = mem_alloc(P, s->bytes[rank], "coded parts of all ranks");
    s->mine = mem_alloc(1, s->bytes[rank], "a coded sum");
    s->sum = mem_alloc(s->from[rank + 1] - s->from[rank], sizeof *s->sum, "the sum of a part");
}

void coded_sum_close(struct coded_sum *s) {
    mem_free(s->sum);
    mem_free(s->mine);
    mem_free(s->came);
    mem_free(s->all);
    mem_free(s->request);
    mem_free(s->at);
    mem_free(s->bytes);
    mem_free(s->from);
    *s = (struct coded_sum){0};
}

/* -- what it takes ------------------------------------------------------------------------------------------ */
double coder_seconds(const struct coder *coder) {
    enum { RUNS = 4 };
    struct rng rng = rng_open(1, RNG_TEST, 4);
    float *val = mem_alloc(CODER_TIMED, sizeof *val, "values to measure with");
    float *error = mem_zalloc(CODER_TIMED, sizeof *error, "values to measure with");
    void *message = mem_alloc(1, coder->bytes(coder->state, 0, CODER_TIMED), "a message to measure with");
    double least = INFINITY;
    rng_normals(&rng, 1, val, CODER_TIMED);
    for (int run = 0; run < RUNS; run++) {
        double begin = clock_now();
        for (size_t i = 0; i < CODER_TIMED; i++) error[i] += val[i];
        coder->encode(coder->state, 0, CODER_TIMED, error, error, message);
        coder->decode(coder->state, 0, CODER_TIMED, message, true, val);
        least = fmin(least, clock_now() - begin);
    }
    mem_free(message);
    mem_free(error);
    mem_free(val);
    return least / CODER_TIMED / 2;
}

/* -- a step ------------------------------------------------------------------------------------------------------ */
static size_t part_size(const struct coded_sum *s, int p) {
    return s->from[p + 1] - s->from[p];
}

static void encode(struct coded_sum *s, int p, const float *val, float *error, void *message) {
    PHASE_SCOPE(s->x->setup.phases, PHASE_PACK);
    s->coder.encode(s->coder.state, s->from[p], part_size(s, p), val, error, message);
}

static void decode(struct coded_sum *s, int p, const void *message, bool add, float *val) {
    PHASE_SCOPE(s->x->setup.phases, PHASE_PACK);
    s->coder.decode(s->coder.state, s->from[p], part_size(s, p), message, add, val);
}

static void expect(struct coded_sum *s) {
    int P = s->comm->size, rank = s->comm->rank;
    for (int r = 0; r < P; r++)
        if (r != rank && s->bytes[rank] > 0)
            comm_irecv(s->comm, r, TAG, s->came + (size_t)r * s->bytes[rank], s->bytes[rank], &s->request[r]);
}

/* Codes and sends the parts of the others, the next rank's first. */
static void scatter(struct coded_sum *s, float *acc, bool keeps) {
    int P = s->comm->size;
    for (int step = 1; step < P; step++) {
        int p = rotate_to(P, s->comm->rank, step);
        float *part = acc + s->from[p];
        if (s->bytes[p] == 0) continue;
        encode(s, p, part, keeps ? part : NULL, s->all + s->at[p]);
        comm_isend(s->comm, p, TAG, s->all + s->at[p], s->bytes[p], &s->request[P + p]);
    }
}

static void add_part(struct coded_sum *s, int r, const float *own, float *sum) {
    int rank = s->comm->rank;
    size_t count = part_size(s, rank), expected = s->bytes[rank];
    if (r != rank) {
        size_t bytes = comm_wait(s->comm, &s->request[r]);
        if (bytes != expected) die("rank %d sent a part of %zu bytes in place of %zu", r, bytes, expected);
        decode(s, rank, s->came + (size_t)r * expected, r > 0, sum);
    } else if (r == 0) {
        memcpy(sum, own, count * sizeof *sum);
    } else {
        for (size_t i = 0; i < count; i++) sum[i] += own[i];
    }
}

void coded_sum_reduce(struct coded_sum *s, float *acc, bool keeps, float *sum) {
    int P = s->comm->size, rank = s->comm->rank;
    expect(s);
    scatter(s, acc, keeps);
    for (int r = 0; r < P && s->bytes[rank] > 0; r++) add_part(s, r, acc + s->from[rank], sum);
    for (int p = 0; p < P; p++)
        if (p != rank && s->bytes[p] > 0) comm_wait(s->comm, &s->request[P + p]);
}

void coded_sum_gather(struct coded_sum *s, const float *sum, float *error, float *u) {
    encode(s, s->comm->rank, sum, error, s->mine);
    comm_allgatherv(s->comm, s->mine, s->bytes[s->comm->rank], s->all, s->bytes);
    for (int p = 0; p < s->comm->size; p++) decode(s, p, s->all + s->at[p], false, u + s->from[p]);
}

void coded_sum_run(struct coded_sum *s, float *acc, float *u, bool keeps) {
    coded_sum_reduce(s, acc, keeps, s->sum);
    coded_sum_gather(s, s->sum, keeps ? acc + s->from[s->comm->rank] : NULL, u);
}

/* The owner of the longest part receives it from all others; then the shortest of all parts is its own. */
double coded_sum_units(double units, int P) {
    return P > 1 ? (P - 1) * ceil(units / P) + units - floor(units / P) : 0;
}

/* Codes what it sends and the sum of its part; decodes what comes of its part and all sums. */
double coded_sum_values(size_t n, int P) {
    return (double)n * (3 * P - 1) / P;
}

struct cost_dense coded_sum_cost(size_t n, int P, double words, double alphas) {
    double values = (double)n;
    return (struct cost_dense){words, P - 1 + ceil_log2(P) - alphas, values, values * (2 * P - 1) / P};
}

/* -- a row that is nothing else ------------------------------------------------------------------------------- */
void coded_exchange_open(struct coded_exchange *c, struct exchange *x, const struct coder *coder, bool keeps) {
    feedback_open(&c->feedback, x, keeps);
    coded_sum_open(&c->sum, x, x->setup.comm, x->setup.n, NULL, coder);
}

void coded_exchange_close(struct coded_exchange *c) {
    coded_sum_close(&c->sum);
    feedback_close(&c->feedback);
}

bool coded_exchange_run(struct coded_exchange *c, struct exchange *x, float *grad, struct exchange_sum *sum) {
    struct feedback *f = &c->feedback;
    if (!feedback_take(f, x, grad, &sum->bad)) return false;
    coded_sum_run(&c->sum, f->acc, f->u, f->keeps);
    return feedback_give(f, x, grad, sum);
}
