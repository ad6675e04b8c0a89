/* masked.c: see masked.h. */
#include "data/pairs/masked.h"

#include <string.h>

/* Where one row goes. */
struct row {
    int32_t *token, *type, *chosen, *y;
};

int masked_most(int length) {
    return (15 * length + 99) / 100;
}

/* Copies a part and the [SEP] behind it; returns what lies behind that. */
static int32_t *put_part(const struct pair_set *set, uint32_t from, int length, int32_t sep, int32_t *to) {
    for (int i = 0; i < length; i++) to[i] = set->piece[from + (uint32_t)i];
    to[length] = sep;
    return to + length + 1;
}

/* The sequence as it is, before anything is chosen; returns its length. */
static int put_sequence(const struct dataset *d, const struct pair_set *set, const struct pair *p, struct row to) {
    const int length = d->length, first = 1 + p->a_length + 1, all = first + p->b_length + 1;
    to.token[0] = d->special.cls;
    put_part(set, p->b, p->b_length, d->special.sep, put_part(set, p->a, p->a_length, d->special.sep, to.token + 1));
    for (int i = all; i < length; i++) to.token[i] = d->special.pad;
    for (int i = 0; i < length; i++) to.type[i] = i >= first && i < all;
    return all;
}

/* 80%, 10%, 10% */
static int32_t replaced(const struct dataset *d, struct rng *r, int32_t piece) {
    const uint32_t draw = rng_below(r, 10);
    if (draw < 8) return d->special.mask;
    return draw < 9 ? (int32_t)rng_below(r, (uint32_t)d->classes) : piece;
}

/* Place by place: of the `left` that are left, `wanted` are still to be chosen, and the next one is with probability
 * wanted / left (Knuth, TAOCP volume 2, Section 3.4.2, algorithm S). */
static void choose(const struct dataset *d, const struct pair *p, struct rng *r, int most, struct row to) {
    int left = p->a_length + p->b_length, wanted = (15 * left + 50) / 100, chosen = 0;
    if (wanted > most) wanted = most;
    if (wanted < 1) wanted = 1;
    for (int at = 1; wanted > 0; at++) {
        if (at == 1 + p->a_length) continue; /* [SEP] */
        if ((int)rng_below(r, (uint32_t)left--) >= wanted) continue;
        to.chosen[chosen] = at;
        to.y[chosen++] = to.token[at];
        to.token[at] = replaced(d, r, to.token[at]);
        wanted--;
    }
    for (; chosen < most; chosen++) to.chosen[chosen] = 0, to.y[chosen] = -1;
}

void masked_fill(const struct dataset *d, const struct pair_set *set, const struct masking *how, uint32_t sequence,
                 size_t row, const struct masked *to) {
    const struct pair *p = &set->pair[sequence];
    const size_t length = (size_t)d->length, most = (size_t)how->most;
    struct rng r = rng_open(how->seed, how->stream, (uint64_t)how->epoch << 32 | sequence);
    const struct row out = {to->token + row * length, to->type + row * length, to->chosen + row * most,
                            to->y + row * most};
    to->lengths[row] = put_sequence(d, set, p, out);
    to->next[row] = p->random;
    choose(d, p, &r, how->most, out);
}

void masked_fill_eval(const struct dataset *d, const struct pair_set *set, size_t from, int valid, int batch, int most,
                      const struct masked *to) {
    const struct masking how = {RNG_MASK_EVAL, 0, 0, most};
    for (int i = 0; i < batch; i++) {
        size_t sequence = from + (size_t)(i < valid ? i : valid > 0 ? valid - 1 : 0);
        if (sequence >= set->count) sequence = set->count - 1; /* an empty share at the very end */
        masked_fill(d, set, &how, (uint32_t)sequence, (size_t)i, to);
        if (i < valid) continue;
        to->next[i] = -1;
        for (int k = 0; k < most; k++) {
            to->chosen[(size_t)i * (size_t)most + (size_t)k] = 0;
            to->y[(size_t)i * (size_t)most + (size_t)k] = -1;
        }
    }
}
