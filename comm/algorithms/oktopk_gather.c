/* oktopk_gather.c: Ok-Topk, section 3.1.2: balance and all-gather-v. See oktopk.c.
 *
 * All ranks know how many entries each one keeps. Where the largest count is more than TIMES times the mean, the list
 * of all kept entries is cut anew into P equal shares, in its order; who sends what to whom follows from the counts.
 * Cost: log2(P) alpha + 2k (P-1)/P beta, and at most P alpha + 2k (P-1)/P beta for the moves. */
#include "comm/algorithms/oktopk.h"

enum { TIMES = 4 };

/* Balance: t->gather.slice = this rank's share of the list of all kept entries; t->first follows. */
static void even_out(struct exchange *x, struct oktopk_step *s) {
    struct oktopk *t = x->state;
    struct comm *c = x->setup.comm;
    const struct wire_ops *w = x->setup.wire;
    const int P = c->size, rank = c->rank;
    const uint64_t *bound = t->saved->bound, *first = t->first;
    struct sparse *slice = &t->gather.slice;
    unsigned char *all = t->gather.all;
    size_t used = 0;

    /* Receives are posted before any rank waits for its sends; messages land in `all`, one behind the other. */
    for (int holder = 0; holder < P; holder++) {
        struct move move = even_move(first, P, holder, rank);
        if (holder == rank || move.count == 0) continue;
        size_t bytes = wire_capacity(w, (size_t)move.count);
        if (bytes > t->gather.room - used) die("%zu bytes from rank %d do not fit", bytes, holder);
        comm_irecv(c, holder, OKTOPK_TAG_EVEN, all + used, bytes, &t->receive[holder]);
        used += bytes;
        s->received += 2 * (double)move.count;
    }

    for (int target = 0; target < P; target++) {
        struct move move = even_move(first, P, rank, target);
        if (target == rank || move.count == 0) continue;
        size_t from = (size_t)(move.from - first[rank]);
        struct sparse part = sparse_slice(s->reduced, from, from + (size_t)move.count);
        void *message = outbox_next(&t->outbox, wire_capacity(w, part.nnz));
        size_t bytes = exchange_encode(x, &part, bound[rank], bound[rank + 1], message);
        outbox_add(&t->outbox, bytes);
        comm_isend(c, target, OKTOPK_TAG_EVEN, message, bytes, &t->send[s->sends++]);
        s->sent += 2 * (double)part.nnz;
    }

    /* In the order of the list: what this rank had of its share stays where it belongs among the rest. */
    slice->nnz = 0;
    for (int holder = 0; holder < P; holder++) {
        struct move move = even_move(first, P, holder, rank);
        size_t count = (size_t)move.count, from = (size_t)(move.from - first[rank]);
        if (holder == rank && count > 0) {
            struct sparse own = sparse_slice(s->reduced, from, from + count);
            sparse_append(slice, &own);
        } else if (count > 0) {
            size_t bytes = comm_wait(c, &t->receive[holder]);
            size_t came = regions_append(x, all, bytes, bound[holder], bound[holder + 1], holder, slice);
            if (came != count) die("rank %d sent %zu entries instead of %zu", holder, came, count);
            all += wire_capacity(w, count);
        }
    }
    for (int i = 0; i < s->sends; i++) comm_wait(c, &t->send[i]);
    s->sends = 0;
    uint64_t total = first[P];
    for (int r = 0; r <= P; r++) t->first[r] = even_cut(total, P, r);
}

/* t->gather.each: the bytes of every rank's message; this rank's has so many. */
static void gather_sizes(struct exchange *x, size_t bytes) {
    struct oktopk *t = x->state;
    struct comm *c = x->setup.comm;
    const struct wire_ops *w = x->setup.wire;
    size_t total = 0, *each = t->gather.each, room = t->gather.room;
    if (!w->fixed) comm_allgather_sizes(c, bytes, room, each);
    for (int r = 0; r < c->size; r++) {
        size_t most = wire_capacity(w, (size_t)(t->first[r + 1] - t->first[r]));
        if (w->fixed) each[r] = most;
        if (each[r] > most || each[r] > room - total)
            die("rank %d announced a message of %zu bytes, not up to %zu", r, each[r], most);
        total += each[r];
    }
}

void oktopk_gather(struct exchange *x, struct oktopk_step *s) {
    struct oktopk *t = x->state;
    struct comm *c = x->setup.comm;
    const uint64_t *bound = t->saved->bound;
    const size_t n = x->setup.n;
    bool worth = uneven(t->first, c->size, TIMES) || (s->beyond && uneven(t->first, c->size, 1));
    bool moved = !(t->use.off & OKTOPK_NO_BALANCE) && worth;
    t->outbox.used = 0;
    if (moved) even_out(x, s);

    const struct sparse *mine = moved ? &t->gather.slice : s->reduced;
    void *message = outbox_next(&t->outbox, wire_capacity(x->setup.wire, mine->nnz));
    size_t bytes = exchange_encode(x, mine, moved ? 0 : bound[c->rank], moved ? n : bound[c->rank + 1], message);
    gather_sizes(x, bytes);
    comm_allgatherv(c, message, bytes, t->gather.all, t->gather.each);
    s->sent += 2.0 * (double)bag_gather_sent(t->first, c->size, c->rank);
    s->received += 2.0 * (double)(t->first[c->size] - mine->nnz);

    unsigned char *at = t->gather.all;
    t->u.nnz = 0;
    for (int r = 0; r < c->size; at += t->gather.each[r++]) {
        size_t from = moved ? 0 : bound[r], to = moved ? n : bound[r + 1];
        size_t came = regions_append(x, at, t->gather.each[r], from, to, r, &t->u);
        if (came != t->first[r + 1] - t->first[r]) die("rank %d sent %zu entries, not what it announced", r, came);
    }
}
