/* oktopk_gather.c: Ok-Topk, section 3.1.2: balance and all-gather-v. See oktopk.c.
 *
 * All ranks know how many entries each one keeps. Where the largest count is more than TIMES times the mean, the list
 * of all kept entries is cut anew into P equal shares, in its order; who sends what to whom follows from the counts.
 * Cost: log2(P) alpha + 2k (P-1)/P beta, and at most P alpha + 2k (P-1)/P beta for the moves. */
#include "comm/algorithms/oktopk.h"

enum { TIMES = 4 };

static void send_moves(struct exchange *x, const struct sparse *kept) {
    struct oktopk *t = x->state;
    struct comm *c = x->setup.comm;
    const struct wire_ops *w = x->setup.wire;
    const uint64_t *bound = t->saved->bound + c->rank;
    for (int target = 0; target < c->size; target++) {
        struct move move = even_move(t->first, c->size, c->rank, target);
        if (target == c->rank || move.count == 0) continue;
        size_t from = (size_t)(move.from - t->first[c->rank]);
        struct sparse part = sparse_slice(kept, from, from + (size_t)move.count);
        void *message = outbox_next(&t->outbox, wire_capacity(w, part.nnz));
        size_t bytes = exchange_encode(x, &part, bound[0], bound[1], message);
        outbox_add(&t->outbox, bytes);
        comm_isend(c, target, OKTOPK_TAG_EVEN, message, bytes, &t->send[t->sends++]);
        t->sent += 2 * (double)part.nnz;
    }
}

/* Posted before any rank's sends are waited for; they land in t->gathered, one behind the other. */
static void post_moves(struct exchange *x) {
    struct oktopk *t = x->state;
    struct comm *c = x->setup.comm;
    size_t used = 0;
    for (int holder = 0; holder < c->size; holder++) {
        struct move move = even_move(t->first, c->size, holder, c->rank);
        if (holder == c->rank || move.count == 0) continue;
        size_t bytes = wire_capacity(x->setup.wire, (size_t)move.count);
        if (bytes > t->gathered_size - used) die("%zu bytes from rank %d do not fit", bytes, holder);
        comm_irecv(c, holder, OKTOPK_TAG_EVEN, t->gathered + used, bytes, &t->receive[holder]);
        t->each[holder] = used;
        used += bytes;
        t->received += 2 * (double)move.count;
    }
}

/* t->slice = this rank's share, in order: what it had of it itself stays where it belongs among the rest. */
static void take_moves(struct exchange *x, const struct sparse *kept) {
    struct oktopk *t = x->state;
    struct comm *c = x->setup.comm;
    t->slice.nnz = 0;
    for (int holder = 0; holder < c->size; holder++) {
        struct move move = even_move(t->first, c->size, holder, c->rank);
        size_t count = (size_t)move.count, from = (size_t)(move.from - t->first[c->rank]);
        if (count == 0) continue;
        if (holder == c->rank) {
            struct sparse own = sparse_slice(kept, from, from + count);
            sparse_append(&t->slice, &own);
            continue;
        }
        size_t bytes = comm_wait(c, &t->receive[holder]);
        const uint64_t *bound = t->saved->bound + holder;
        size_t came = regions_append(x, t->gathered + t->each[holder], bytes, bound[0], bound[1], holder, &t->slice);
        if (came != count) die("rank %d sent %zu entries instead of %zu", holder, came, count);
    }
    for (int i = 0; i < t->sends; i++) comm_wait(c, &t->send[i]);
    t->sends = 0;
}

static const struct sparse *even_out(struct exchange *x, const struct sparse *kept) {
    struct oktopk *t = x->state;
    int P = x->setup.comm->size;
    post_moves(x);
    send_moves(x, kept);
    take_moves(x, kept);
    uint64_t total = t->first[P];
    for (int r = 0; r <= P; r++) t->first[r] = even_cut(total, P, r);
    return &t->slice;
}

/* t->each: the bytes of every rank's message; this rank's has so many. */
static void gather_sizes(struct exchange *x, size_t bytes) {
    struct oktopk *t = x->state;
    struct comm *c = x->setup.comm;
    const struct wire_ops *w = x->setup.wire;
    size_t total = 0;
    if (!w->fixed) comm_allgather_sizes(c, bytes, t->gathered_size, t->each);
    for (int r = 0; r < c->size; r++) {
        size_t most = wire_capacity(w, (size_t)(t->first[r + 1] - t->first[r]));
        if (w->fixed) t->each[r] = most;
        if (t->each[r] > most || t->each[r] > t->gathered_size - total)
            die("rank %d announced a message of %zu bytes, not up to %zu", r, t->each[r], most);
        total += t->each[r];
    }
}

void oktopk_gather(struct exchange *x, const struct sparse *kept) {
    struct oktopk *t = x->state;
    struct comm *c = x->setup.comm;
    const struct wire_ops *w = x->setup.wire;
    bool worth = uneven(t->first, c->size, TIMES) || (t->beyond && uneven(t->first, c->size, 1));
    bool moved = !t->use.direct_gather && worth;
    t->outbox.used = 0;
    const struct sparse *mine = moved ? even_out(x, kept) : kept;
    void *message = outbox_next(&t->outbox, wire_capacity(w, mine->nnz));
    size_t bytes = exchange_encode(x, mine, moved ? 0 : t->saved->bound[c->rank],
                                   moved ? x->setup.n : t->saved->bound[c->rank + 1], message);
    gather_sizes(x, bytes);
    comm_allgatherv(c, message, bytes, t->gathered, t->each);
    t->sent += 2.0 * (double)bag_gather_sent(t->first, c->size, c->rank);
    t->received += 2.0 * (double)(t->first[c->size] - mine->nnz);
    unsigned char *at = t->gathered;
    t->u.nnz = 0;
    for (int r = 0; r < c->size; at += t->each[r++]) {
        size_t from = moved ? 0 : t->saved->bound[r], to = moved ? x->setup.n : t->saved->bound[r + 1];
        size_t came = regions_append(x, at, t->each[r], from, to, r, &t->u);
        if (came != t->first[r + 1] - t->first[r]) die("rank %d sent %zu entries, not what it announced", r, came);
    }
}
