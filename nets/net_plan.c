/* net_plan.c: the memory of a net's tensors. Activations are all kept, for the backward pass reads them. A gradient
 * lives only from the layer that writes it to the layer that made its tensor, so few slots serve the whole net: small
 * enough to stay in cache at small batches. The plan walks the backward pass once, without computing. */
#include "nets/net_build.h"
#include "nets/net_impl.h"

/* Arrays whose size is a power of two would all meet in the same sets of a cache: each is followed by a gap. */
enum { GAP = 17 * 16 }; /* floats: 17 cache lines */

static size_t spaced(size_t floats) {
    return (floats + 15) / 16 * 16 + GAP;
}

/* A free slot of at least this size: the smallest that fits, else the largest free one made longer, else a new one. */
static int take(struct net_impl *m, size_t floats) {
    int best = -1;
    for (int i = 0; i < m->slots; i++) {
        if (m->slot[i].taken) continue;
        bool fits = m->slot[i].floats >= floats, smaller = best >= 0 && m->slot[i].floats < m->slot[best].floats;
        bool best_fits = best >= 0 && m->slot[best].floats >= floats;
        if (best < 0 || (fits ? !best_fits || smaller : !best_fits && !smaller)) best = i;
    }
    if (best < 0) {
        best = m->slots++;
        m->slot[best] = (struct net_slot){0};
    }
    if (m->slot[best].floats < floats) m->slot[best].floats = floats;
    m->slot[best].taken = true;
    return best;
}

static void give_back(struct net_impl *m, int slot) {
    if (slot >= 0) m->slot[slot].taken = false;
}

/* A gradient of this tensor comes into `slot`. Returns the slot to which it is to be added, -1: it stays there. */
static int give(struct net_impl *m, int tensor, int slot) {
    struct net_tensor *t = &m->tensor[tensor];
    const int most = t->maker >= 0 && m->layer[t->maker].spec.sums_two ? 2 : 1;
    if (t->gradients == most) return t->gradient_at[0];
    t->gradient_at[t->gradients++] = slot;
    return -1;
}

/* Of the gradients of y, x and `add` that meet in this layer: what a tensor's gradient stays in is kept. */
static void plan_layer(struct net_impl *m, struct net_layer *l) {
    const struct net_tensor *y = &m->tensor[l->y];
    l->dy_at = y->gradient_at[0];
    l->dy2_at = y->gradients > 1 ? y->gradient_at[1] : -1;
    l->dx_at = l->dx_to = l->dadd_to = -1;
    bool keeps_dx = false, keeps_dy = false;
    if (l->spec.in_place && l->add == BUILD_NONE)
        l->dx_at = l->dy_at;
    else if (l->spec.wants_dx)
        l->dx_at = take(m, m->tensor[l->x].shape.floats);
    if (l->spec.wants_dx) {
        l->dx_to = give(m, l->x, l->dx_at);
        keeps_dx = l->dx_to < 0;
    }
    if (l->add != BUILD_NONE && m->tensor[l->add].maker >= 0) {
        l->dadd_to = give(m, l->add, l->dy_at);
        keeps_dy = l->dadd_to < 0;
    }
    if (!keeps_dx) give_back(m, l->dx_at);
    if (!keeps_dy && !(keeps_dx && l->dx_at == l->dy_at)) give_back(m, l->dy_at);
    give_back(m, l->dy2_at);
}

void net_plan(struct net *net) {
    struct net_impl *m = net_impl(net);
    for (int k = 0; k < m->losses; k++) give(m, m->logits[k], take(m, m->tensor[m->logits[k]].shape.floats));
    for (int i = m->layers - 1; i >= 0; i--) plan_layer(m, &m->layer[i]);
    size_t total = 0;
    for (int i = 0; i < m->slots; i++) {
        m->slot[i].offset = total;
        total += spaced(m->slot[i].floats);
    }
    m->planned = total;
    m->gradients =
        net->setup.device->alloc(total * sizeof(float), "the gradients of activations (a smaller --batch needs less)");
    total = 0;
    for (int i = 0; i < m->tensors; i++) total += spaced(m->tensor[i].shape.floats);
    m->planned += total;
    m->activations = net->setup.device->alloc(total * sizeof(float), "the activations (a smaller --batch needs less)");
    total = 0;
    for (int i = 0; i < m->tensors; i++) {
        m->tensor[i].data = m->activations + total;
        total += spaced(m->tensor[i].shape.floats);
    }
}
