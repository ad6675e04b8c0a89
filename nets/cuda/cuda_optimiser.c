/* cuda_optimiser.c: see cuda_optimiser.h. */
#include "nets/cuda/cuda_optimiser.h"

#include "base/cuda/cuda_device.h"
#include "base/error.h"
#include "base/mem.h"

struct answer {
    uint32_t *first;   /* page-locked */
    cudaEvent_t given; /* the last step is done */
};

uint32_t *cuda_optimiser_answer(struct optimiser *o) {
    if (o->n >= UINT32_MAX) die("an optimiser of %zu parameters; a GPU takes fewer than 2^32 - 1", o->n);
    if (!o->own) {
        struct answer *a = mem_zalloc(1, sizeof *a, "the optimiser's answer");
        a->first = cuda_host_alloc(sizeof *a->first, "the optimiser's answer");
        *a->first = UINT32_MAX;
        CUDA_CALL(cudaEventCreateWithFlags(&a->given, cudaEventDisableTiming));
        o->own = a;
    }
    return ((struct answer *)o->own)->first;
}

size_t cuda_optimiser_given(struct optimiser *o) {
    const struct answer *a = o->own;
    CUDA_CALL(cudaEventRecord(a->given, cuda_stream()));
    return o->n;
}

size_t cuda_optimiser_settle(struct optimiser *o) {
    const struct answer *a = o->own;
    if (!a) return o->n;
    CUDA_CALL(cudaEventSynchronize(a->given));
    const uint32_t first = *a->first;
    *a->first = UINT32_MAX;
    return first == UINT32_MAX ? o->n : first;
}

void cuda_optimiser_close(struct optimiser *o) {
    struct answer *a = o->own;
    CUDA_CALL(cudaEventSynchronize(a->given));
    CUDA_CALL(cudaEventDestroy(a->given));
    cuda_host_free(a->first);
    mem_free(a);
    o->own = NULL;
}
