/* nets_reference_rows.h: of nets_reference.h, which includes this: the layers of transformers. */
#ifndef ST_TESTS_NETS_REFERENCE_ROWS_H
#define ST_TESTS_NETS_REFERENCE_ROWS_H

/* y(row) = x(row) + w(row mod T); dy given: its gradients instead. */
static inline void ref_position(const struct reference *r, const double *x, const double *w, double *y,
                                const double *dy, double *dx, double *dw) {
    const size_t features = (size_t)r->x.c, T = (size_t)r->spec.position.sequence;
    for (size_t row = 0; row < (size_t)r->x.n; row++)
        for (size_t f = 0; f < features; f++) {
            const size_t at = row * features + f, weight = row % T * features + f;
            if (y) y[at] = x[at] + w[weight];
            if (dx) dx[at] = dy[at];
            if (dw) dw[weight] += dy[at];
        }
}

/* The chain rule through mean and variance of a row, as for a batch in ref_norm_back. */
static inline void ref_layer_norm(const struct reference *r, const double *x, const double *w, double *y,
                                  const double *dy, double *dx, double *dw) {
    const size_t c = (size_t)r->x.c;
    const bool bias = r->spec.layer_norm.bias;
    for (size_t row = 0; row < (size_t)r->x.n; row++, x += c) {
        double mean = 0, var = 0, dvar = 0, dmean = 0, apart = 0;
        for (size_t i = 0; i < c; i++) mean += x[i] / (double)c;
        for (size_t i = 0; i < c; i++) var += (x[i] - mean) * (x[i] - mean) / (double)c;
        const double s = sqrt(var + r->spec.layer_norm.epsilon);
        for (size_t i = 0; i < c; i++) {
            if (y) y[row * c + i] = w[i] * (x[i] - mean) / s + (bias ? w[c + i] : 0);
            if (!dy) continue;
            const double g = dy[row * c + i];
            dw[i] += g * (x[i] - mean) / s;
            if (bias) dw[c + i] += g;
            dvar += g * w[i] * (x[i] - mean) * -0.5 / (s * s * s);
            dmean -= g * w[i] / s;
            apart += x[i] - mean;
        }
        dmean += dvar * -2 * apart / (double)c;
        for (size_t i = 0; dy && i < c; i++)
            dx[row * c + i] = dy[row * c + i] * w[i] / s + dvar * 2 * (x[i] - mean) / (double)c + dmean / (double)c;
    }
}

/* y(s count + i) = x(s T + number of it); dy given: dx instead. */
static inline void ref_choose(const struct reference *r, const double *x, double *y, const double *dy, double *dx) {
    const size_t T = (size_t)r->spec.choose.sequence, count = (size_t)r->spec.choose.count, c = (size_t)r->x.c;
    for (size_t i = 0; i < (size_t)r->y.n; i++) {
        const size_t from = i / count * T + (r->chosen ? (size_t)r->chosen[i] : i % count);
        for (size_t k = 0; k < c; k++) {
            if (y) y[i * c + k] = x[from * c + k];
            if (dx) dx[from * c + k] += dy[i * c + k];
        }
    }
}

static inline double ref_gelu(const struct reference *r, double x) {
    if (r->spec.gelu.tanh) return x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x))) / 2;
    return x * (1 + erf(x / sqrt(2))) / 2;
}

static inline double ref_gelu_slope(const struct reference *r, double x) {
    if (r->spec.gelu.tanh) {
        const double a = sqrt(2 / acos(-1)), t = tanh(a * (x + 0.044715 * x * x * x));
        return (1 + t) / 2 + x * (1 - t * t) * a * (1 + 3 * 0.044715 * x * x) / 2;
    }
    return (1 + erf(x / sqrt(2))) / 2 + x * exp(-x * x / 2) / sqrt(2 * acos(-1));
}

/* One query: its probabilities and, from dp, the gradients of its scores, all [T]. */
struct ref_query {
    double p[2048], m[2048], dp[2048];
};

/* y_i = sum_j m_ij p_ij v_j over the keys j that i sees; dy given: the gradients of q, k, v. */
static inline void ref_attention(const struct reference *r, const double *x, double *y, const double *dy, double *dx) {
    const size_t T = (size_t)r->spec.attention.sequence, H = (size_t)r->spec.attention.heads, C = (size_t)r->y.c;
    const size_t d = C / H;
    static struct ref_query one;
    for (size_t head = 0; head < (size_t)r->x.n / T * H; head++)
        for (size_t i = 0; i < T; i++) {
            const size_t base = head / H * T, at = head % H * d, query = (base + i) * 3 * C + at;
            size_t keys = r->lengths ? (size_t)r->lengths[head / H] : T;
            if (r->spec.attention.causal && i + 1 < keys) keys = i + 1;
            double sum = 0, mean = 0;
            for (size_t j = 0; j < keys; j++) {
                double s = 0;
                for (size_t k = 0; k < d; k++) s += x[query + k] * x[(base + j) * 3 * C + C + at + k];
                sum += one.p[j] = exp(s / sqrt((double)d));
                one.m[j] = ref_dropout_factor(r, r->spec.attention.drop, (head * T + i) * T + j);
            }
            for (size_t j = 0; j < keys; j++) {
                const double *v = x + (base + j) * 3 * C + 2 * C + at;
                const size_t out = (base + i) * C + at;
                one.p[j] /= sum;
                one.dp[j] = 0;
                for (size_t k = 0; k < d; k++) {
                    if (y) y[out + k] += one.m[j] * one.p[j] * v[k];
                    if (dy) one.dp[j] += one.m[j] * dy[out + k] * v[k];
                    if (dy) dx[(base + j) * 3 * C + 2 * C + at + k] += one.m[j] * one.p[j] * dy[out + k];
                }
                mean += one.p[j] * one.dp[j];
            }
            for (size_t j = 0; dy && j < keys; j++) {
                const double ds = one.p[j] * (one.dp[j] - mean) / sqrt((double)d);
                const size_t key = (base + j) * 3 * C + C + at;
                for (size_t k = 0; k < d; k++) {
                    dx[query + k] += ds * x[key + k];
                    dx[key + k] += ds * x[query + k];
                }
            }
        }
}

#endif
