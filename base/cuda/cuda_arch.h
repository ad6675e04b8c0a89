/* cuda_arch.h: for which GPUs kernels were compiled. */
#ifndef ST_BASE_CUDA_ARCH_H
#define ST_BASE_CUDA_ARCH_H

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Do kernels that were compiled for these compute capabilities ("80 90", the Makefile's CUDA_ARCH) run on a GPU of
 * major.minor? Code for one runs on the later minor versions of its major one; for the last there is also PTX, of which
 * the driver makes code for whatever came after it. Source: CUDA C++ Programming Guide, section 3.1. */
static inline bool cuda_arch_serves(const char *compiled, int major, int minor) {
    int last = INT_MAX;
    char *end;
    for (const char *at = compiled; *at; at = end + strcspn(end, " ")) {
        const long arch = strtol(at, &end, 10);
        if (end == at) break;
        last = (int)arch;
        if (last / 10 == major && last % 10 <= minor) return true;
    }
    return 10 * major + minor >= last;
}

#endif
