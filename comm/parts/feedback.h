/* feedback.h: error feedback of rows that send every entry in fewer bits than it has: acc = residual + gradient in host
 * memory, where such rows code and add, whatever device the gradient lies on.
 *
 *        feedback_open(&f, x, keeps);
 *        if (!feedback_take(&f, x, grad, &bad)) return false;       // acc[bad] is NaN or infinite
 *        ... f.acc: [n] becomes what stays, f.u: [n] the sum ...
 *        if (!feedback_give(&f, x, grad, sum)) return false;        // grad = u; sum->dense
 *        feedback_close(&f);
 *
 * Source: Seide et al., "1-bit Stochastic Gradient Descent and its Application to Data-Parallel Distributed Training of
 * Speech DNNs", Interspeech 2014; Karimireddy et al., "Error Feedback Fixes SignSGD", ICML 2019. */
#ifndef ST_COMM_FEEDBACK_H
#define ST_COMM_FEEDBACK_H

#include "comm/exchange.h"
#include "comm/transport/host_stage.h"

struct feedback {
    bool keeps;              /* the store has a residual */
    struct host_stage stage; /* where u is made */
    float *memory;           /* [n] acc on its way from another device and back; NULL: it is used where it lies */
    float *acc, *u;          /* [n] host, from take to give; the same where nothing is kept */
};

/* --feedback on|off, which such rows declare as their options, alone or, as an int of their struct, among others; and
 * their `loses`. */
extern const struct option_row feedback_option[1];
extern const char *const feedback_rules[];
#define FEEDBACK_ROW(type, field)                                                                                      \
    {                                                                                                                  \
        "feedback", "RULE", OPTION_CHOICE, "on",                                                                       \
            "of dense values that are sent in outline, in fewer bits or directions: on keeps what is cut off in the "  \
            "residual, off drops it",                                                                                  \
            OPTION_AT(type, field), .names = feedback_rules                                                            \
    }
const char *feedback_loses(const struct option_values *options);
/* `keeps` of rows that do so whatever the options are, of those that always send fewer bits, and of those that do where
 * setup.wire has a form of 16. */
bool feedback_always(const struct option_values *options, const struct wire_ops *wire);
bool feedback_keeps(const struct option_values *options, const struct wire_ops *wire);
bool feedback_keeps_halves(const struct option_values *options, const struct wire_ops *wire);

/* residual = beta residual, before a gradient is added to it; returns the sum of magnitudes that is lost with that. */
double feedback_decay(struct exchange *x, double beta);

void feedback_open(struct feedback *f, const struct exchange *x, bool keeps);
void feedback_close(struct feedback *f);
bool feedback_take(struct feedback *f, struct exchange *x, float *grad, size_t *bad);
bool feedback_give(struct feedback *f, struct exchange *x, float *grad, struct exchange_sum *sum);

#endif
