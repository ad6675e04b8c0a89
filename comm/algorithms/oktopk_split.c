/* oktopk_split.c: Ok-Topk, section 3.1.1: regions that hold equal parts of the selected entries, and the direct
 * exchange in which every rank's entries go to the owner of their region: split and reduce. See oktopk.c.
 *
 * Cost: (P-1) alpha + 2k (P-1)/P beta where the regions are balanced; new regions: an allreduce of P-1 sums. */
#include "comm/algorithms/oktopk.h"

void oktopk_regions(struct exchange *x, struct oktopk_step *s) {
    struct oktopk *t = x->state;
    struct oktopk_saved *saved = t->saved;
    struct comm *c = x->setup.comm;
    const struct sparse *local = &t->local;
    const int P = c->size;
    bool due = saved->step % (uint64_t)t->use.balance_period == 0 || saved->stale;
    if (due && P > 1 && !(t->use.off & OKTOPK_NO_REGIONS)) {
        /* cut[j-1], j = 1..P-1: where region j would begin for this rank alone, so that every region holds nnz/P of its
         * entries: at entry floor(j nnz / P). With fewer entries than regions they say too little: equal regions. */
        uint64_t *cut = saved->bound + 1;
        bool few = local->nnz < (size_t)P;
        for (int j = 1; j < P; j++)
            cut[j - 1] = few ? even_cut(x->setup.n, P, j) : local->idx[even_cut(local->nnz, P, j)];
        /* The mean over the ranks; increasing, as the cuts of each rank are. */
        comm_allreduce_u64(c, cut, (size_t)P - 1, COMM_SUM);
        for (int j = 1; j < P; j++) cut[j - 1] /= (uint64_t)P;
        s->extra += oktopk_allreduce_words(x, 2.0 * (P - 1));
    }
    for (int r = 0; r < P; r++) t->split.at[r] = sparse_lower_bound(local, (uint32_t)saved->bound[r]);
    t->split.at[P] = local->nnz;
}

/* -- split and reduce ---------------------------------------------------------------------------------- */
static struct sparse own_entries(const struct oktopk *t, int region) {
    return sparse_slice(&t->local, t->split.at[region], t->split.at[region + 1]);
}

static void send_to(struct exchange *x, struct oktopk_step *s, int owner) {
    struct oktopk *t = x->state;
    struct sparse part = own_entries(t, owner);
    void *message = outbox_next(&t->outbox, wire_capacity(x->setup.wire, part.nnz));
    size_t bytes = exchange_encode(x, &part, t->saved->bound[owner], t->saved->bound[owner + 1], message);
    outbox_add(&t->outbox, bytes);
    comm_isend(x->setup.comm, owner, OKTOPK_TAG_SPLIT, message, bytes, &t->send[s->sends++]);
    s->sent += 2 * (double)part.nnz;
}

static void wait_for_sends(struct exchange *x, struct oktopk_step *s) {
    struct oktopk *t = x->state;
    for (int i = 0; i < s->sends; i++) comm_wait(x->setup.comm, &t->send[i]);
    s->sends = 0;
}

/* The message of turn 1..P-1: from the rank so many places before this one. */
static void post_receive(struct exchange *x, int turn) {
    struct oktopk *t = x->state;
    struct comm *c = x->setup.comm;
    int slot = (turn - 1) % t->split.slots;
    comm_irecv(c, rotate_from(c->size, c->rank, turn), OKTOPK_TAG_SPLIT,
               t->split.inbox + (size_t)slot * t->split.slot_bytes, t->split.slot_bytes, &t->receive[slot]);
}

static void take(struct exchange *x, struct oktopk_step *s, int turn, struct sparse *part) {
    struct oktopk *t = x->state;
    struct comm *c = x->setup.comm;
    int slot = (turn - 1) % t->split.slots;
    const uint64_t *bound = t->saved->bound + c->rank;
    size_t bytes = comm_wait(c, &t->receive[slot]);
    exchange_read(x, t->split.inbox + (size_t)slot * t->split.slot_bytes, bytes, bound[0], bound[1],
                  rotate_from(c->size, c->rank, turn), t->split.buffer ? &t->split.buffer[slot] : NULL, part);
    s->received += 2 * (double)part->nnz;
}

/* s->reduced = part[0] + part[1] + ... + part[count]; part[0] is the sum so far. */
static void add_parts(struct exchange *x, struct oktopk_step *s, int count) {
    struct oktopk *t = x->state;
    struct sparse *other = &t->split.reduced[s->reduced == &t->split.reduced[0]];
    sparse_sum(t->split.part, (size_t)count + 1, x->setup.n, other, t->split.scratch);
    t->split.part[0] = *other;
    s->reduced = other;
}

void oktopk_split_and_reduce(struct exchange *x, struct oktopk_step *s) {
    struct oktopk *t = x->state;
    const int P = x->setup.comm->size, rank = x->setup.comm->rank, bucket = t->use.bucket;
    const bool rotate = !(t->use.off & OKTOPK_NO_ROTATION);
    struct sparse *part = t->split.part;
    t->outbox.used = 0;
    part[0] = own_entries(t, rank);
    if (P == 1) {
        add_parts(x, s, 0); /* a copy */
    } else if (!(t->use.off & OKTOPK_NO_OVERLAP)) {
        /* Figure 2c: in buckets; one bucket is added up while the next is under way. Without rotation (Figure 2a) all
         * sends go out ahead of the receives, since nobody waits for them. */
        for (int owner = 0; owner < P && !rotate; owner++)
            if (owner != rank) send_to(x, s, owner);
        for (int posted = 1, taken = 1, count; taken < P; add_parts(x, s, count)) {
            for (; posted < P && posted < taken + 2 * bucket; posted++) {
                post_receive(x, posted);
                if (rotate) send_to(x, s, rotate_to(P, rank, posted));
            }
            for (count = 0; count < bucket && taken < P; taken++) take(x, s, taken, &part[++count]);
        }
    } else if (rotate) {
        /* To one rank and from another, then the next pair. */
        for (int turn = 1; turn < P; turn++) {
            post_receive(x, turn);
            send_to(x, s, rotate_to(P, rank, turn));
            take(x, s, turn, &part[1]);
            add_parts(x, s, 1);
            wait_for_sends(x, s);
        }
    } else {
        /* One owner after the other: it receives from all, who have nothing else to do. */
        for (int owner = 0; owner < P; owner++) {
            if (owner != rank) send_to(x, s, owner);
            for (int turn = 1; owner == rank && turn < P; turn++) {
                post_receive(x, turn);
                take(x, s, turn, &part[1]);
                add_parts(x, s, 1);
            }
            wait_for_sends(x, s);
        }
    }
    wait_for_sends(x, s);
}
