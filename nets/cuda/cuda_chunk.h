/* cuda_chunk.h: the pieces in which an optimiser whose slices go by different rules walks over the parameters. */
#ifndef ST_NETS_CUDA_CHUNK_H
#define ST_NETS_CUDA_CHUNK_H

#include <stdint.h>

enum { CUDA_CHUNK = 4096 /* floats, at most, in one of them: of one slice, for one block */ };

/* Parameters from..to-1 go by rule 0 or 1. */
struct cuda_update_chunk {
    uint32_t from, to, rule;
};

#endif
