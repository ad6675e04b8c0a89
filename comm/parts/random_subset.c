/* random_subset.c: see random_subset.h.
 *
 * Idea: Floyd's algorithm draws d of n with d random numbers: for j = n-d .. n-1 one of 0 .. j, and j in its place
 * where that is there already. The set lies in a hash table whose hash keeps the order (index i of n in 2d slots:
 * floor(i 2d / n)) and in which what collides is pushed on in order: so the table, read from its start, is sorted.
 * Indices are random already, so a hash need not make them so. Of more than n/2 indices those that are left out are
 * drawn.
 *
 * Source: Floyd, in Bentley and Floyd, "Programming Pearls: A Sample of Brilliance", CACM 30(9), 1987; ordered hash
 * tables: Amble and Knuth, "Ordered Hash Tables", The Computer Journal 17(2), 1974. */
#include "comm/parts/random_subset.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"

#define FREE UINT32_MAX /* no index: n < 2^32 */

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* min(k, n - k) has its largest value of all k <= k_max at k_max or at n/2. */
void random_subset_open(struct random_subset *d, size_t n, size_t k_max) {
    *d = (struct random_subset){.n = n, .most = least(k_max, n / 2)};
    d->slot = mem_alloc(3 * d->most, sizeof *d->slot, "a random set of entries");
}

void random_subset_close(struct random_subset *d) {
    mem_free(d->slot);
    *d = (struct random_subset){0};
}

/* False: it is there. The slots from `at` on are in order; those that follow the index move on by one, up to a free
 * one.
 */
static bool insert(uint32_t *slot, size_t at, uint32_t index) {
    while (slot[at] < index) at++;
    if (slot[at] == index) return false;
    for (uint32_t moving = index; moving != FREE; at++) {
        uint32_t next = slot[at];
        slot[at] = moving;
        moving = next;
    }
    return true;
}

/* `drawn` of n indices into the slots, in order, with free ones between them. Behind the 2 drawn slots of the hash
 * there are as many more as there are indices, to which the last ones may be pushed. */
static void fill(struct random_subset *d, struct rng *rng, size_t drawn) {
    memset(d->slot, 0xff, 3 * drawn * sizeof *d->slot);
    for (size_t j = d->n - drawn; j < d->n; j++) {
        uint32_t index = rng_below(rng, (uint32_t)(j + 1));
        if (insert(d->slot, (uint64_t)index * 2 * drawn / d->n, index)) continue;
        insert(d->slot, (uint64_t)j * 2 * drawn / d->n, (uint32_t)j);
    }
}

void random_subset_draw(struct random_subset *d, struct rng *rng, size_t k, uint32_t *idx) {
    const bool leaves_out = k > d->n - k;
    const size_t drawn = leaves_out ? d->n - k : k;
    size_t at = 0, next = 0;
    fill(d, rng, drawn);
    for (size_t found = 0; found < drawn; at++) {
        if (d->slot[at] == FREE) continue;
        found++;
        for (; leaves_out && next < d->slot[at]; next++) *idx++ = (uint32_t)next;
        if (leaves_out)
            next++;
        else
            *idx++ = d->slot[at];
    }
    for (; leaves_out && next < d->n; next++) *idx++ = (uint32_t)next;
}
