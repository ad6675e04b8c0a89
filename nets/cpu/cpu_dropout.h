/* cpu_dropout.h: the factors of dropout (nets/dropout.h), many at once. */
#ifndef ST_NETS_CPU_DROPOUT_H
#define ST_NETS_CPU_DROPOUT_H

#include "nets/dropout.h"

enum {
    CPU_DROPOUT_BLOCKS = 16, /* of four factors each */
    CPU_DROPOUT_PIECE = 4 * CPU_DROPOUT_BLOCKS
};

/* factor [CPU_DROPOUT_PIECE]: those of the elements from 4 block on. */
void cpu_dropout_factors(const struct dropout *how, uint64_t step, uint32_t block, float *factor);

#endif
