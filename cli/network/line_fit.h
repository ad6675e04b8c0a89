/* line_fit.h: the straight line through measured times. */
#ifndef ST_CLI_LINE_FIT_H
#define ST_CLI_LINE_FIT_H

#include <stdbool.h>
#include <stddef.h>

struct line_fit {
    double alpha, beta;             /* t = alpha + beta m, neither negative */
    double alpha_error, beta_error; /* half of the 95% confidence interval */
    double r2;                      /* of the relative errors */
    double worst;                   /* largest |fitted / t - 1| */
};

/* m, t: [count], t > 0, count >= 3, not all m the same. */
void line_fit(const double *m, const double *t, size_t count, struct line_fit *f);

/* Do the times lie so far from the line that alpha and beta say little? R2 alone does not tell: where the time hardly
 * depends on m, a line that is near to all of them explains nothing either. */
bool line_fit_poor(const struct line_fit *f);

#endif
