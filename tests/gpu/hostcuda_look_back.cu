/* hostcuda_look_back.cu: tiles_before (topk/cuda/cuda_tile.h) alone, for hostcuda_look_back.c. */
#define LAUNCHED(kernel) (void)0
#include "topk/cuda/cuda_tile.h"

extern "C" void launch_look_back(uint64_t *words, uint32_t launch, uint32_t tile, uint32_t own, uint32_t *before);

static __global__ void look_back(uint64_t *words, uint32_t launch, uint32_t tile, uint32_t own, uint32_t *before) {
    const uint32_t found = tiles_before(words, launch, tile, own);
    before[threadIdx.x] = found;
}
void launch_look_back(uint64_t *words, uint32_t launch, uint32_t tile, uint32_t own, uint32_t *before) {
    LAUNCH(look_back, 1, 32, 0, nullptr, words, launch, tile, own, before);
}
