/* line_fit.c: weighted least squares with weights 1/t^2.
 *
 * Relative errors count, so that the small m say what alpha is and the large ones what beta is: times of messages
 * span five orders of magnitude, and without weights the longest would say all.
 *
 * The 95% intervals come from the regression's standard errors with Student's t at (count - 2) degrees of freedom.
 * They hold the noise as well as whatever keeps the times from lying on a line. */
#include "cli/network/line_fit.h"

#include <math.h>

/* 97.5% quantile of Student's t: exact for few degrees of freedom, else its expansion around the normal's (Fisher,
 * Cornish 1960), good to 0.3%. */
static double student(size_t freedom) {
    static const double few[] = {12.706, 4.303, 3.182};
    if (freedom <= 3) return few[freedom - 1];
    double z = 1.959964, v = (double)freedom, z2 = z * z;
    return z * (1 + (z2 + 1) / (4 * v) + ((5 * z2 + 16) * z2 + 3) / (96 * v * v) +
                (((3 * z2 + 19) * z2 + 17) * z2 - 15) / (384 * v * v * v));
}

/* min over alpha, beta of sum ((alpha + beta m - t) / t)^2. Where one comes out negative, it is 0 and the other alone
 * is fitted. */
void line_fit(const double *m, const double *t, size_t count, struct line_fit *f) {
    double w0 = 0, wm = 0, wmm = 0, wt = 0, wmt = 0, error = 0, spread = 0;
    *f = (struct line_fit){0};
    for (size_t i = 0; i < count; i++) {
        double w = 1 / (t[i] * t[i]);
        w0 += w, wm += w * m[i], wmm += w * m[i] * m[i], wt += w * t[i], wmt += w * m[i] * t[i];
    }
    double det = w0 * wmm - wm * wm;
    f->alpha = (wmm * wt - wm * wmt) / det;
    f->beta = (w0 * wmt - wm * wt) / det;
    if (f->alpha < 0) f->alpha = 0, f->beta = wmt / wmm;
    if (f->beta < 0) f->beta = 0, f->alpha = wt / w0;
    for (size_t i = 0; i < count; i++) {
        double off = (f->alpha + f->beta * m[i]) / t[i] - 1, mean = wt / w0 / t[i] - 1;
        error += off * off;
        spread += mean * mean;
        if (fabs(off) > f->worst) f->worst = fabs(off);
    }
    double scale = student(count - 2) * sqrt(error / (double)(count - 2));
    f->alpha_error = scale * sqrt(wmm / det);
    f->beta_error = scale * sqrt(w0 / det);
    f->r2 = spread > 0 ? 1 - error / spread : 1;
}

bool line_fit_poor(const struct line_fit *f) {
    return f->r2 < 0.9 && f->worst > 0.2;
}
