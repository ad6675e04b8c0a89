/* schedule.h: the learning rate of each step.
 *
 *        constant                 lr = base. gTop-k's LSTM on PTB: 1.0 over 40 epochs (its first drop is at 60)
 *        step:E,E,...[:FACTOR]    times FACTOR (0.1 unless given) at each E. gTop-k's VGG-16 and ResNet-20 on CIFAR-10:
 *                                 step:81,122,155, with a warm-up of 10 epochs
 *        decay:E:FACTOR           times FACTOR at E, E + 1, E + 2, ... Language models of Zaremba et al. (2014,
 *                                 arXiv:1409.2329) on PTB, base 1: the medium one (650 units) is divided by 1.2 after
 *                                 each epoch from the 6th on, decay:6:0.8333333 of 39 epochs; the large one (1500) by
 *                                 1.15 from the 14th on, decay:14:0.8695652 of 55; the one without dropout (200) by 2
 *                                 from the 4th on, decay:4:0.5 of 13
 *        linear                   base (1 - epoch/epochs): down to 0 at the end of the run. Ok-Topk's BERT, with Adam
 *        cosine[:FLOOR]           half a cosine (Loshchilov & Hutter, ICLR 2017), from base down to FLOOR base at the
 *                                 end of the run (0 unless given). nanoGPT's 1e-3 to 1e-4: cosine:0.1
 *        inverse-sqrt             with the inverse square root of the step, from the end of a warm-up in steps on
 *                                 (Vaswani et al. 2017, section 5.3)
 *
 * E: epochs from 0 on or, with a %, of all epochs: "step:81,122", "step:50%,75%:0.2". gTop-k: what its authors' code
 * does (arXiv:1901.04359). */
#ifndef ST_NETS_SCHEDULE_H
#define ST_NETS_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { SCHEDULE_STEPS_MAX = 16 };

enum lr_form { LR_CONSTANT, LR_STEP, LR_DECAY, LR_LINEAR, LR_COSINE, LR_INVERSE_SQRT };

/* lr = base * what the form makes of it, times a warm-up, of which there are two.
 *
 * In epochs: from 1/P to 1, linearly, over the first `warmup` (Goyal et al. 2017; the gTop-k authors' code uses 10,
 * DGC 5). In steps, t the number of the step from 0, W = warmup_steps, S = steps:
 *
 *        t < W:                    base (t + 1) / (W + 1) at any P (nanoGPT's code); times the form, where that is
 *                                  constant, step or decay
 *        from W on, linear:        base (S - t) / (S - W); with W = 0 by epochs, as above
 *                   cosine:        base (F + (1 - F) (1 + cos(pi (t - W) / (S - W))) / 2), F the floor
 *                   inverse-sqrt:  base sqrt((W + 1) / (t + 1))
 *
 * In a run of so many epochs whose steps have become longer or shorter (another batch over all ranks) linear and cosine
 * go on from where they are: (t - W) / (S - W) is then (epoch of t - from) / (to - from), the share of the epochs
 * between the two that is over.
 *
 * The only function of libm in it is sqrt, which rounds alike everywhere: ranks on different machines have the same
 * rate to the bit. */
struct lr_schedule {
    enum lr_form form;
    double base;
    double factor;                       /* of LR_COSINE: its floor */
    double boundary[SCHEDULE_STEPS_MAX]; /* epochs, rising; LR_DECAY has one, where it begins */
    int boundaries;
    double end;          /* epochs of the run */
    double warmup;       /* epochs, 0: none */
    size_t warmup_steps; /* 0: none; at most one of the two */
    size_t steps;        /* of the run */
    double from,
        to; /* to > 0: the way from W to S goes by epochs, between these two: steps have been of other lengths */
};

/* text: one of the forms above; epochs: length of the run. Sets all but base, both warm-ups, steps, from and to, which
 * are left to the caller. */
bool lr_parse(const char *text, double epochs, struct lr_schedule *s, struct err *e);

/* Has it what its form needs? inverse-sqrt: a warm-up in steps. */
bool lr_complete(const struct lr_schedule *s, struct err *e);

/* Is a step that begins at this epoch the boundary's, or a later one? Rounding aside, which neither of them is free of.
 */
bool lr_reached(double boundary, double epoch);

/* step: steps done before this one; epoch: where that is in the run, >= 0, a fraction; P: number of ranks. */
double lr_at(const struct lr_schedule *s, size_t step, double epoch, int P);

#endif
