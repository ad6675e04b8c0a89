/* cpu_ctc.h: CTC's loss (nets/ctc.h) on the CPU. */
#ifndef ST_NETS_CPU_CTC_H
#define ST_NETS_CPU_CTC_H

#include "nets/ctc.h"
#include "nets/net.h"

/* As fed. */
struct cpu_ctc_labels {
    const int32_t *label; /* [batch][stride] */
    int stride, valid;    /* the first `valid` utterances may count */
    double over;          /* what gradients are divided by */
};

/* path [batch][steps]: the best of each step, -1 behind an utterance's end. The same bits at any number of threads. */
void cpu_ctc(const struct ctc_call *call, const struct cpu_ctc_labels *labels, int32_t *path,
             struct net_result *result);

#endif
