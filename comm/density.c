/* density.c: see density.h. gTop-k's warm-up: Shi et al., "A Distributed Synchronous SGD Algorithm with Global
 * Top-k Sparsification for Low Bandwidth Networks", ICDCS 2019, Section IV-B; dense first steps: Li and
 * Hoefler, "Near-Optimal Sparse Allreduce for Distributed Deep Learning", PPoPP 2022. */
#include "comm/density.h"

#include <stdlib.h>
#include <string.h>

static const double gtopk_warmup[] = {0.25, 0.0725, 0.015, 0.004};

static void set_warmup(struct density_schedule *d, const double *rho, int epochs) {
    for (int i = 0; i < epochs; i++) d->warmup[i] = rho[i];
    d->warmup_epochs = epochs;
}

static bool refuse(struct err *e, const char *text, const char *why) {
    return err_set(e,
                   "density warm-up \"%s\": %s; give none, gtopk, or one density per epoch such as 0.25,0.0725,0.015",
                   text, why);
}

bool density_parse_warmup(const char *text, struct density_schedule *d, struct err *e) {
    double rho[DENSITY_WARMUP_MAX];
    int epochs = 0;
    if (strcmp(text, "none") == 0) {
        d->warmup_epochs = 0;
        return true;
    }
    if (strcmp(text, "gtopk") == 0) {
        set_warmup(d, gtopk_warmup, (int)(sizeof gtopk_warmup / sizeof gtopk_warmup[0]));
        return true;
    }
    for (const char *at = text;; at++) {
        /* strtod alone would also take blanks, signs, hexadecimal numbers, "inf" and "nan". */
        size_t digits = strspn(at, "0123456789.eE-");
        char *end;
        double value = strtod(at, &end);
        if (end == at || end != at + digits || (*end != ',' && *end != '\0'))
            return refuse(e, text, "a number is missing or not a plain one");
        if (!(value > 0 && value <= 1)) return refuse(e, text, "every density must be above 0 and at most 1");
        if (epochs == DENSITY_WARMUP_MAX) return refuse(e, text, "more than 32 epochs");
        rho[epochs++] = value;
        at = end;
        if (*at == '\0') break;
    }
    set_warmup(d, rho, epochs);
    return true;
}

double density_at(const struct density_schedule *d, size_t epoch) {
    if (epoch >= (size_t)d->warmup_epochs) return d->target;
    return d->warmup[epoch] > d->target ? d->warmup[epoch] : d->target;
}

size_t density_settled(const struct density_schedule *d) {
    size_t epoch = (size_t)d->warmup_epochs;
    while (epoch > 0 && density_at(d, epoch - 1) == d->target) epoch--;
    return epoch;
}

double density_largest(const struct density_schedule *d) {
    double largest = d->target;
    for (int i = 0; i < d->warmup_epochs; i++)
        if (d->warmup[i] > largest) largest = d->warmup[i];
    return largest;
}
