/* subnormal.h: subnormal floats (below 2^-126 in size) become zeros with their sign.
 *
 * A velocity v = mu v + g whose g is 0 for long, as with sparse gradients and with rows of an embedding that no word
 * asks for, shrinks until it is subnormal, after 800 steps of mu = 0.9, and stays so: 0.9 times the least of them
 * rounds to itself. (18% of the velocities in the checkpoint after 1,500 steps at fe3da54, P = 2: `--model lstm
 * --hidden 16 --bptt 5 --batch 4 --density 0.005 --density-warmup none --lr-warmup 0 --algo topka`.) Intel's processors
 * work on one in microcode, many times slower: on a Xeon the update of LSTM-200 at that density took 14 ms in the first
 * thousand steps and 43 in the six-thousandth (results/measured/lstm200-ptb-p4), where the dense one stays at 12.
 * So whatever decays from step to step is stored without them; a step of that size moves no parameter but one that is
 * nearly 0. It is done here rather than by a mode of the processor, which libraries change, which not every one has and
 * which would hold for all else, too. All devices do the same. */
#ifndef ST_BASE_SUBNORMAL_H
#define ST_BASE_SUBNORMAL_H

#include <stdint.h>
#include <string.h>

#include "base/cuda/cuda_hd.h"

/* Integers, so that loops over it are vectorised. */
ST_HD float flush_subnormal(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= bits & 0x7f800000u ? 0xffffffffu : 0x80000000u;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
