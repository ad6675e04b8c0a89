/* reshare.c: residuals and velocities for another number of ranks, see reshare.h. */
#include "topk/reshare.h"

#include "base/error.h"

/* What [from, from + length) and [other, other + size) have in common. */
static int64_t in_common(int64_t from, int64_t length, int64_t other, int64_t size) {
    const int64_t begin = from > other ? from : other;
    const int64_t end = from + length < other + size ? from + length : other + size;
    return end > begin ? end - begin : 0;
}

int64_t reshare_weight(enum reshare how, int P, int Q, int s, int r) {
    if (P < 1 || Q < 1 || s < 0 || s >= Q || r < 0 || r >= P) die("rank %d of %d from rank %d of %d", s, Q, r, P);
    if (how == RESHARE_SUM) return r % Q == s;
    return in_common((int64_t)s * P, P, (int64_t)r * Q, Q);
}

int64_t reshare_divisor(enum reshare how, int P) {
    return how == RESHARE_MEAN ? P : 1;
}

void reshare_add(double *sum, const float *v, size_t n, int64_t weight) {
    for (size_t i = 0; i < n; i++) sum[i] += (double)weight * (double)v[i];
}

void reshare_take(float *v, const double *sum, size_t n, int64_t divisor) {
    for (size_t i = 0; i < n; i++) v[i] = (float)(sum[i] / (double)divisor);
}
