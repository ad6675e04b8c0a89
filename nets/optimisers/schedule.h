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
 *
 * E: epochs from 0 on or, with a %, of all epochs: "step:81,122", "step:50%,75%:0.2". gTop-k: what its authors' code
 * does (arXiv:1901.04359). */
#ifndef ST_NETS_SCHEDULE_H
#define ST_NETS_SCHEDULE_H

#include <stddef.h>

#include "base/error.h"

enum { SCHEDULE_STEPS_MAX = 16 };

enum lr_form { LR_CONSTANT, LR_STEP, LR_DECAY, LR_LINEAR };

/* lr(epoch) = base * what the form makes of it, times the warm-up. The warm-up ramps linearly from 1/P to 1 over the
 * first `warmup` epochs (Goyal et al. 2017; the gTop-k authors' code uses 10, DGC 5). */
struct lr_schedule {
    enum lr_form form;
    double base;
    double factor;
    double boundary[SCHEDULE_STEPS_MAX]; /* epochs, rising; LR_DECAY has one, where it begins */
    int boundaries;
    double end;    /* epochs of the run */
    double warmup; /* epochs, 0: none */
};

/* text: one of the forms above; epochs: length of the run. Sets all but base and warmup, which are left to the
 * caller. */
bool lr_parse(const char *text, double epochs, struct lr_schedule *s, struct err *e);

/* epoch: fractional position in the run, >= 0; P: number of ranks. */
double lr_at(const struct lr_schedule *s, double epoch, int P);

#endif
