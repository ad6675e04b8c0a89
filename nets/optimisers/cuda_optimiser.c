/* cuda_optimiser.c: see cuda_optimiser.h. */
#include "nets/optimisers/cuda_optimiser.h"

#include "base/cuda/cuda_device.h"
#include "base/error.h"
#include "base/mem.h"

/* Lives as long as the optimiser, at optimiser.own. */
struct answer {
    uint32_t *first;                 /* page-locked */
    cudaEvent_t given;               /* the last step is done */
    struct cuda_update_chunk *chunk; /* device, [chunks]; NULL: not asked for */
    uint32_t chunks;
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

static uint32_t chunks_of(const struct slice *slice) {
    return (uint32_t)((slice->size + CUDA_CHUNK - 1) / CUDA_CHUNK);
}

static void make_chunks(const struct optimiser *o, struct answer *a, uint32_t (*rule_of)(const struct slice *)) {
    for (size_t s = 0; s < o->slices; s++) a->chunks += chunks_of(&o->slice[s]);
    struct cuda_update_chunk *host = mem_alloc(a->chunks, sizeof *host, "the pieces of an optimiser's step");
    uint32_t at = 0;
    for (size_t s = 0; s < o->slices; s++) {
        const struct slice *slice = &o->slice[s];
        const uint32_t from = (uint32_t)slice->offset, end = from + (uint32_t)slice->size;
        for (uint32_t i = 0; i < chunks_of(slice); i++) {
            const uint32_t begin = from + i * CUDA_CHUNK;
            host[at++] =
                (struct cuda_update_chunk){begin, end - begin < CUDA_CHUNK ? end : begin + CUDA_CHUNK, rule_of(slice)};
        }
    }
    a->chunk = cuda_alloc(a->chunks * sizeof *host, "the pieces of an optimiser's step");
    cuda_upload(a->chunk, host, a->chunks * sizeof *host);
    mem_free(host);
}

const struct cuda_update_chunk *cuda_optimiser_chunks(struct optimiser *o, uint32_t (*rule_of)(const struct slice *),
                                                      uint32_t *chunks) {
    struct answer *a = o->own;
    if (!a->chunk) make_chunks(o, a, rule_of);
    *chunks = a->chunks;
    return a->chunk;
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
    cuda_free(a->chunk);
    mem_free(a);
    o->own = NULL;
}
