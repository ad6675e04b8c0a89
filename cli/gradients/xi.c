/* xi.c: see xi.h. The vectors are added up in double, block by block, so that only rank 0 needs room for a sum; it
 * finds the k largest of it without sorting. */
#include "cli/gradients/xi.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

enum { BLOCK = 1 << 16, DIGIT_BITS = 16, DIGITS = 1 << DIGIT_BITS };

void xi_open(struct xi *x, struct comm *c, size_t n) {
    *x = (struct xi){.comm = c, .n = n};
    x->block = mem_alloc(2 * BLOCK, sizeof *x->block, "a block of the sums for xi");
    x->stage = mem_alloc(2 * BLOCK, sizeof *x->stage, "a block of residual and gradient for xi");
    if (c->rank > 0) return;
    x->sum = mem_alloc(n, sizeof *x->sum, "the sum for xi");
    x->count = mem_alloc(DIGITS, sizeof *x->count, "counts of digits for xi");
}

void xi_close(struct xi *x) {
    mem_free(x->sum);
    mem_free(x->block);
    mem_free(x->stage);
    mem_free(x->count);
    *x = (struct xi){0};
}

/* block[0..count-1] = acc, as the store will round it, block[count..2 count-1] = the gradient, of entries from `from`
 * on. */
static void take_block(struct xi *x, struct store *s, const float *grad, size_t from, size_t count) {
    float *residual = x->stage, *fresh = x->stage + count;
    s->ops->read(s, from, count, residual);
    s->device->to_host(fresh, grad + from, count * sizeof *fresh);
    for (size_t i = 0; i < count; i++) {
        float acc = residual[i] + fresh[i];
        x->block[i] = (double)acc;
        x->block[count + i] = (double)fresh[i];
    }
}

/* sum = sum_r acc_r,  gradient_square = sum_i (sum_r grad_r[i])^2 */
void xi_before(struct xi *x, struct store *s, const float *grad, const uint32_t *exempt, size_t exempts) {
    size_t next = 0;
    x->gradient_square = 0;
    for (size_t from = 0; from < x->n; from += BLOCK) {
        size_t count = x->n - from < BLOCK ? x->n - from : BLOCK;
        take_block(x, s, grad, from, count);
        for (; next < exempts && exempt[next] < from + count; next++) x->block[exempt[next] - from] = 0;
        comm_allreduce_f64(x->comm, x->block, 2 * count, COMM_SUM);
        for (size_t i = count; i < 2 * count; i++) x->gradient_square += x->block[i] * x->block[i];
        if (x->sum) memcpy(x->sum + from, x->block, count * sizeof *x->sum);
    }
}

/* Ascending with the magnitude; NaN is the largest. */
static uint64_t key_of(double value) {
    uint64_t key;
    memcpy(&key, &value, sizeof key);
    return key & ~(UINT64_C(1) << 63);
}

/* The k-th largest key of sum, 1 <= k <= n, digit by digit from the highest; *equal: so many entries of this key are
 * among the k largest. */
static uint64_t kth_key(struct xi *x, size_t k, size_t *equal) {
    uint64_t prefix = 0;
    size_t left = k;
    for (int shift = 64 - DIGIT_BITS; shift >= 0; shift -= DIGIT_BITS) {
        memset(x->count, 0, DIGITS * sizeof *x->count);
        for (size_t i = 0; i < x->n; i++) {
            uint64_t key = key_of(x->sum[i]);
            bool inside = shift == 64 - DIGIT_BITS || key >> (shift + DIGIT_BITS) == prefix;
            if (inside) x->count[key >> shift & (DIGITS - 1)]++;
        }
        size_t digit = DIGITS - 1;
        while (x->count[digit] < left) left -= x->count[digit--];
        prefix = prefix << DIGIT_BITS | digit;
    }
    *equal = left;
    return prefix;
}

/* xi = || Top_k(sum) - u || / || sum of the gradients ||; of equal magnitudes the lower index is in Top_k */
double xi_after(struct xi *x, size_t k, const struct sparse *u) {
    if (!x->sum || !(x->gradient_square > 0)) return NAN;
    size_t equal, at = 0;
    const uint64_t least = kth_key(x, k, &equal);
    double square = 0;
    for (size_t i = 0; i < x->n; i++) {
        uint64_t key = key_of(x->sum[i]);
        bool among = key > least || (key == least && equal > 0 && equal--);
        double difference = among ? x->sum[i] : 0;
        if (at < u->nnz && u->idx[at] == i) difference -= (double)u->val[at++];
        square += difference * difference;
    }
    return sqrt(square / x->gradient_square);
}

double xi_denominator(const struct xi *x) {
    return x->sum ? sqrt(x->gradient_square) / x->comm->size : NAN;
}
