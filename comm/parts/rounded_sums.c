/* rounded_sums.c: see rounded_sums.h.
 *
 * Idea: the bags of peers.h, as in bag_collectives.c: in ceil(log2 P) rounds half of the blocks that a rank still has
 * to add up leave it, as one message of rounded values, and what comes is added to the others; then the blocks' sums
 * are rounded and gathered.
 *
 * Cost per rank: 2 ceil(log2 P) alpha; 2 (P-1)/P of the values, at value_bytes each. */
#include "comm/parts/rounded_sums.h"

#include "base/mem.h"
#include "comm/parts/peers.h"

enum { TAG = 700 };

void rounded_sums_open(struct rounded_sums *r, struct exchange *x, size_t most) {
    size_t value_bytes = x->setup.wire->value_bytes;
    *r = (struct rounded_sums){.x = x};
    r->out = mem_alloc(most, value_bytes, "rounded sums to send");
    r->in = mem_alloc(most, value_bytes, "rounded sums of all ranks");
    r->bytes = mem_alloc((size_t)x->setup.comm->size, sizeof *r->bytes, "lengths of messages");
}

void rounded_sums_close(struct rounded_sums *r) {
    mem_free(r->bytes);
    mem_free(r->in);
    mem_free(r->out);
}

/* `count` blocks from `first` on, past the last one on from the first, as they lie in val: [at, at + before) and
 * [0, past). */
struct span {
    size_t at, before, past;
};

static struct span span_of(const size_t *each, int P, int first, int count) {
    struct span s = {0};
    for (int b = 0; b < first; b++) s.at += each[b];
    for (int b = first; b < first + count; b++) *(b < P ? &s.before : &s.past) += each[b % P];
    return s;
}

/* Values of val rounded, what that cut off to cut, and written. */
static void write_values(struct rounded_sums *r, float *val, float *cut, size_t count, unsigned char *message) {
    PHASE_SCOPE(r->x->setup.phases, PHASE_PACK);
    const struct wire_ops *w = r->x->setup.wire;
    w->round_all(val, count, cut);
    wire_values_write(w, val, count, message);
}

static void scatter_round(struct rounded_sums *r, float *val, const size_t *each, float *cut, int round) {
    struct comm *c = r->x->setup.comm;
    size_t value_bytes = r->x->setup.wire->value_bytes;
    const struct bag_round bag = bag_scatter_round(c->size, c->rank, round);
    struct span out = span_of(each, c->size, bag.send, bag.count), in = span_of(each, c->size, c->rank, bag.count);
    size_t go = (out.before + out.past) * value_bytes, come = (in.before + in.past) * value_bytes;
    struct comm_request receive, send;
    if (come > 0) comm_irecv(c, bag.from, TAG, r->in, come, &receive);
    write_values(r, val + out.at, cut + out.at, out.before, r->out);
    write_values(r, val, cut, out.past, r->out + out.before * value_bytes);
    if (go > 0) comm_isend(c, bag.to, TAG, r->out, go, &send);
    size_t came = come > 0 ? comm_wait(c, &receive) : 0;
    if (go > 0) comm_wait(c, &send);
    if (came != come) die("rank %d sent %zu bytes of sums instead of %zu", bag.from, came, come);
    wire_values_add(r->x->setup.wire, r->in, in.before, val + in.at);
    wire_values_add(r->x->setup.wire, r->in + in.before * value_bytes, in.past, val);
}

void rounded_sums_run(struct rounded_sums *r, float *val, const size_t *each, float *cut) {
    struct comm *c = r->x->setup.comm;
    const struct wire_ops *w = r->x->setup.wire;
    for (int i = 0; i < ceil_log2(c->size); i++) scatter_round(r, val, each, cut, i);
    struct span own = span_of(each, c->size, c->rank, 1), all = span_of(each, c->size, 0, c->size);
    write_values(r, val + own.at, cut + own.at, own.before, r->out);
    for (int b = 0; b < c->size; b++) r->bytes[b] = each[b] * w->value_bytes;
    comm_allgatherv(c, r->out, r->bytes[c->rank], r->in, r->bytes);
    PHASE_SCOPE(r->x->setup.phases, PHASE_PACK);
    wire_values_read(w, r->in, all.before, val);
}
