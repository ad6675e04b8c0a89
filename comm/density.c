/* density.c: see density.h. gTop-k's warm-up: Shi et al., "A Distributed Synchronous SGD Algorithm with Global
 * Top-k Sparsification for Low Bandwidth Networks", ICDCS 2019, Section IV-B; dense first steps: Li and
 * Hoefler, "Near-Optimal Sparse Allreduce for Distributed Deep Learning", PPoPP 2022; linear: Aji, Heafield and
 * Bogoychev, "Combining Global Sparse Gradients with Local Gradients", EMNLP 2019, Section 5.1: "drop ratio warmup,
 * gradually increasing it to 99% after 1000 steps". From where, and along which curve, they do not say: from 0 and
 * linearly is the plainest reading. (Marian, their program, as it is published has --grad-dropping-warmup N, which
 * drops nothing in the first N steps: --dense-steps N.) */
#include "comm/density.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 1e9

static const double gtopk_warmup[] = {0.25, 0.0725, 0.015, 0.004};

static void set_warmup(struct density_schedule *d, const double *rho, int epochs) {
    for (int i = 0; i < epochs; i++) d->warmup[i] = rho[i];
    d->warmup_epochs = epochs;
    d->warmup_steps = 0;
}

static bool refuse(struct err *e, const char *text, const char *why) {
    return err_set(e,
                   "density warm-up \"%s\": %s; give none, gtopk, one density per epoch such as 0.25,0.0725,0.015, or "
                   "linear:STEPS",
                   text, why);
}

/* A plain number at *at, which then points behind it. strtod alone would also take blanks, signs, hexadecimal numbers,
 * "inf" and "nan". */
static bool read_number(const char **at, double *value) {
    size_t digits = strspn(*at, "0123456789.eE-");
    char *end;
    *value = strtod(*at, &end);
    bool good = end > *at && end == *at + digits;
    *at = end;
    return good;
}

static bool is_density(double value) {
    return value > 0 && value <= 1;
}

static const char not_a_number[] = "a number is missing or not a plain one",
                  not_a_density[] = "every density must be above 0 and at most 1";

/* N[:FROM], behind "linear:" */
static bool parse_linear(const char *text, const char *at, struct density_schedule *d, struct err *e) {
    double steps, from = 1;
    if (!read_number(&at, &steps) || (*at != ':' && *at != '\0')) return refuse(e, text, not_a_number);
    if (!(steps >= 1 && steps <= STEPS_MAX) || steps != floor(steps))
        return refuse(e, text, "it takes a whole number of steps, 1 to 1e9");
    if (*at == ':') {
        at++;
        if (!read_number(&at, &from) || *at != '\0') return refuse(e, text, not_a_number);
        if (!is_density(from)) return refuse(e, text, not_a_density);
    }
    d->warmup_epochs = 0;
    d->warmup_steps = (size_t)steps;
    d->warmup_from = from;
    return true;
}

bool density_parse_warmup(const char *text, struct density_schedule *d, struct err *e) {
    double rho[DENSITY_WARMUP_MAX];
    int epochs = 0;
    if (strcmp(text, "none") == 0) {
        set_warmup(d, NULL, 0);
        return true;
    }
    if (strncmp(text, "linear:", 7) == 0) return parse_linear(text, text + 7, d, e);
    if (strcmp(text, "gtopk") == 0) {
        set_warmup(d, gtopk_warmup, (int)(sizeof gtopk_warmup / sizeof gtopk_warmup[0]));
        return true;
    }
    for (const char *at = text;; at++) {
        double value;
        if (!read_number(&at, &value) || (*at != ',' && *at != '\0')) return refuse(e, text, not_a_number);
        if (!is_density(value)) return refuse(e, text, not_a_density);
        if (epochs == DENSITY_WARMUP_MAX) return refuse(e, text, "more than 32 epochs");
        rho[epochs++] = value;
        if (*at == '\0') break;
    }
    set_warmup(d, rho, epochs);
    return true;
}

/* Never below the target. */
static double raised(const struct density_schedule *d, double density) {
    return density > d->target ? density : d->target;
}

double density_at(const struct density_schedule *d, size_t step, size_t epoch) {
    if (step < d->warmup_steps)
        return raised(d, d->warmup_from + (d->target - d->warmup_from) * ((double)step / (double)d->warmup_steps));
    return epoch < (size_t)d->warmup_epochs ? raised(d, d->warmup[epoch]) : d->target;
}

double density_settled(const struct density_schedule *d, double end) {
    if (d->warmup_steps > 0) return d->warmup_from > d->target ? end : 0;
    int epoch = d->warmup_epochs;
    while (epoch > 0 && d->warmup[epoch - 1] <= d->target) epoch--;
    return epoch;
}

/* Linear: that of the first step, for it falls. */
double density_largest(const struct density_schedule *d) {
    double largest = density_at(d, d->dense_steps, SIZE_MAX);
    for (int i = 0; i < d->warmup_epochs; i++)
        if (d->warmup[i] > largest) largest = d->warmup[i];
    return largest;
}
