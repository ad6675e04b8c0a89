/* kernels.c: which of the kernel sets runs, see kernels.h. */
#include "topk/cpu/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct topk_kernels topk_kernels_generic, topk_kernels_avx2, topk_kernels_avx512;

void topk_kernels_with(bool popcnt, bool avx2, bool avx512, const struct topk_kernels *sets[KERNEL_SETS + 1]) {
    size_t count = 0;
    sets[count++] = &topk_kernels_generic;
#if defined(__x86_64__)
    if (popcnt && avx2) sets[count++] = &topk_kernels_avx2;
    if (popcnt && avx512) sets[count++] = &topk_kernels_avx512;
#else
    (void)popcnt, (void)avx2, (void)avx512;
#endif
    sets[count] = NULL;
}

const struct topk_kernels *const *topk_kernels_all(void) {
    static const struct topk_kernels *all[KERNEL_SETS + 1]; /* filled anew by every call with the same rows */
#if defined(__x86_64__)
    topk_kernels_with(__builtin_cpu_supports("popcnt"), __builtin_cpu_supports("avx2"),
                      __builtin_cpu_supports("avx512f"), all);
#else
    topk_kernels_with(false, false, false, all);
#endif
    return all;
}

/* The set that SPARSETRAIN_SIMD names, else the last one: they go from slow to fast. */
static const struct topk_kernels *choose(void) {
    const struct topk_kernels *const *all = topk_kernels_all(), *last = all[0];
    const char *wanted = getenv("SPARSETRAIN_SIMD");
    for (size_t i = 0; all[i]; i++) {
        last = all[i];
        if (wanted && strcmp(wanted, all[i]->name) == 0) return all[i];
    }
    if (!wanted || !*wanted) return last;
    fprintf(stderr, "sparsetrain: note: SPARSETRAIN_SIMD=%s is not one that this processor runs; using generic\n",
            wanted);
    return &topk_kernels_generic;
}

const struct topk_kernels *topk_kernels(void) {
    static const struct topk_kernels *chosen;
    if (!chosen) chosen = choose();
    return chosen;
}
