/* oktopk_split.c: Ok-Topk, section 3.1.1: regions that hold equal parts of the selected entries, and the direct
 * exchange in which every rank's entries go to the owner of their region: split and reduce. See oktopk.c.
 *
 * Cost: (P-1) alpha + 2k (P-1)/P beta where the regions are balanced; new regions: an allreduce of P-1 sums. */
#include "comm/algorithms/oktopk.h"

/* -- regions ------------------------------------------------------------------------------------------- */
/* cut[j-1], j = 1..P-1: where region j would begin for this rank alone, so that every region holds nnz/P of its
 * entries: at entry floor(j nnz / P). With fewer entries than regions they say too little: equal regions. */
static void own_cuts(const struct sparse *s, size_t n, int P, uint64_t *cut) {
    for (int j = 1; j < P; j++) cut[j - 1] = s->nnz < (size_t)P ? even_cut(n, P, j) : s->idx[even_cut(s->nnz, P, j)];
}

/* bound[j] = mean over ranks of their cuts; increasing, as those of each rank are. */
static void balance(struct exchange *x) {
    struct oktopk *t = x->state;
    struct comm *c = x->setup.comm;
    uint64_t *cut = t->saved->bound + 1;
    own_cuts(&t->local, x->setup.n, c->size, cut);
    comm_allreduce_u64(c, cut, (size_t)c->size - 1, COMM_SUM);
    for (int j = 1; j < c->size; j++) cut[j - 1] /= (uint64_t)c->size;
    t->extra += oktopk_allreduce_words(x, 2.0 * (c->size - 1));
}

void oktopk_regions(struct exchange *x) {
    struct oktopk *t = x->state;
    struct oktopk_saved *saved = t->saved;
    int P = x->setup.comm->size;
    bool due = saved->step % (uint64_t)t->use.balance_period == 0 || saved->stale;
    if (!t->use.even_regions && P > 1 && due) balance(x);
    for (int r = 0; r < P; r++) t->at[r] = sparse_lower_bound(&t->local, (uint32_t)saved->bound[r]);
    t->at[P] = t->local.nnz;
}

/* -- split and reduce ---------------------------------------------------------------------------------- */
static struct sparse own_entries(const struct oktopk *t, int region) {
    return sparse_slice(&t->local, t->at[region], t->at[region + 1]);
}

static void send_to(struct exchange *x, int owner) {
    struct oktopk *t = x->state;
    const struct wire_ops *w = x->setup.wire;
    struct sparse part = own_entries(t, owner);
    void *message = outbox_next(&t->outbox, wire_capacity(w, part.nnz));
    size_t bytes = exchange_encode(x, &part, t->saved->bound[owner], t->saved->bound[owner + 1], message);
    outbox_add(&t->outbox, bytes);
    comm_isend(x->setup.comm, owner, OKTOPK_TAG_SPLIT, message, bytes, &t->send[t->sends++]);
    t->sent += 2 * (double)part.nnz;
}

static void wait_for_sends(struct exchange *x) {
    struct oktopk *t = x->state;
    for (int i = 0; i < t->sends; i++) comm_wait(x->setup.comm, &t->send[i]);
    t->sends = 0;
}

/* The message of step 1..P-1: from the rank so many places before this one. */
static void post_receive(struct exchange *x, int step) {
    struct oktopk *t = x->state;
    struct comm *c = x->setup.comm;
    int slot = (step - 1) % t->slots;
    comm_irecv(c, rotate_from(c->size, c->rank, step), OKTOPK_TAG_SPLIT, t->inbox + (size_t)slot * t->slot_bytes,
               t->slot_bytes, &t->receive[slot]);
}

static void take(struct exchange *x, int step, struct sparse *part) {
    struct oktopk *t = x->state;
    struct comm *c = x->setup.comm;
    int slot = (step - 1) % t->slots;
    const uint64_t *bound = t->saved->bound + c->rank;
    size_t bytes = comm_wait(c, &t->receive[slot]);
    exchange_read(x, t->inbox + (size_t)slot * t->slot_bytes, bytes, bound[0], bound[1],
                  rotate_from(c->size, c->rank, step), t->buffer ? &t->buffer[slot] : NULL, part);
    t->received += 2 * (double)part->nnz;
}

/* The running sum. t->part[0]: the sum so far; t->part[1..count]: what to add. */
static void add_parts(struct exchange *x, int count, int *turn) {
    struct oktopk *t = x->state;
    sparse_sum(t->part, (size_t)count + 1, x->setup.n, &t->reduced[*turn], t->scratch);
    t->part[0] = t->reduced[*turn];
    *turn = !*turn;
}

/* Figure 2c: in buckets; one bucket is added up while the next is under way. All sends may go out ahead of the
 * receives (same_destination, Figure 2a), since nobody waits for them. */
static void in_buckets(struct exchange *x, int *turn) {
    struct oktopk *t = x->state;
    struct comm *c = x->setup.comm;
    int posted = 1, taken = 1;
    for (int owner = 0; t->use.same_destination && owner < c->size; owner++)
        if (owner != c->rank) send_to(x, owner);
    while (taken < c->size) {
        for (; posted < c->size && posted < taken + 2 * t->use.bucket; posted++) {
            post_receive(x, posted);
            if (!t->use.same_destination) send_to(x, rotate_to(c->size, c->rank, posted));
        }
        int count = 0;
        for (; count < t->use.bucket && taken < c->size; taken++) take(x, taken, &t->part[++count]);
        add_parts(x, count, turn);
    }
    wait_for_sends(x);
}

/* Receives and adds the message of one step, nothing else under way. */
static void receive_one(struct exchange *x, int step, int *turn) {
    struct oktopk *t = x->state;
    take(x, step, &t->part[1]);
    add_parts(x, 1, turn);
}

/* Without buckets. Rotated: to one rank and from another, then the next pair. Else one owner after the other: it
 * receives from all, who have nothing else to do. */
static void one_by_one(struct exchange *x, int *turn) {
    struct oktopk *t = x->state;
    struct comm *c = x->setup.comm;
    if (t->use.same_destination) {
        for (int owner = 0; owner < c->size; owner++) {
            if (owner != c->rank) {
                send_to(x, owner);
                wait_for_sends(x);
                continue;
            }
            for (int step = 1; step < c->size; step++) {
                post_receive(x, step);
                receive_one(x, step, turn);
            }
        }
        return;
    }
    for (int step = 1; step < c->size; step++) {
        post_receive(x, step);
        send_to(x, rotate_to(c->size, c->rank, step));
        receive_one(x, step, turn);
        wait_for_sends(x);
    }
}

struct sparse *oktopk_split_and_reduce(struct exchange *x) {
    struct oktopk *t = x->state;
    int turn = 0;
    t->outbox.used = 0;
    t->part[0] = own_entries(t, x->setup.comm->rank);
    if (x->setup.comm->size == 1)
        add_parts(x, 0, &turn); /* a copy */
    else if (t->use.no_overlap)
        one_by_one(x, &turn);
    else
        in_buckets(x, &turn);
    return &t->reduced[!turn];
}
