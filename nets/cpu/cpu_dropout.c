/* cpu_dropout.c: see cpu_dropout.h. Words lie apart, so that the loop over blocks becomes vectors. */
#include "nets/cpu/cpu_dropout.h"

#include "base/simd.h"

SIMD_CLONES void cpu_dropout_factors(const struct dropout *how, uint64_t step, uint32_t block, float *factor) {
    const struct dropout own = *how; /* nothing written below changes it */
    const uint32_t step_low = (uint32_t)step, step_high = (uint32_t)(step >> 32);
    float of[4][CPU_DROPOUT_BLOCKS];
    for (uint32_t i = 0; i < CPU_DROPOUT_BLOCKS; i++) {
        struct dropout_factors made = dropout_block(&own, step_low, step_high, block + i);
        of[0][i] = made.of[0];
        of[1][i] = made.of[1];
        of[2][i] = made.of[2];
        of[3][i] = made.of[3];
    }
    for (int i = 0; i < CPU_DROPOUT_BLOCKS; i++)
        for (int k = 0; k < 4; k++) factor[4 * i + k] = of[k][i];
}
