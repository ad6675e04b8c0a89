/* selftest.h: the launchers of selftest.cu. Each launches one kernel (or two) on the stream; pointers are to device
 * memory. */
#ifndef ST_TESTS_HOSTCUDA_SELFTEST_H
#define ST_TESTS_HOSTCUDA_SELFTEST_H

#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SHUFFLES = 12, COUNTERS = 9, BLOCK_COUNTS = 4, NUMBERS = 16 };

/* x[i] += by, i < n; a grid of blocks of 64. */
void launch_add(float *x, float by, unsigned n, cudaStream_t stream);
/* cells[(z h + y) w + x] = x + 100 y + 10000 z: a grid and blocks of three dimensions. */
void launch_cells(unsigned *cells, unsigned w, unsigned h, unsigned d, cudaStream_t stream);
/* sum[block] of 256 values of x each, in dynamic shared memory; n: a multiple of 256. */
void launch_block_sum(float *sum, const float *x, unsigned n, cudaStream_t stream);
/* out[i] = x[0] + ... + x[i], i < 256, by one block with static shared memory. */
void launch_scan(unsigned *out, const unsigned *x, cudaStream_t stream);
/* out[SHUFFLES][64]: what the lanes of two warps get from the collectives for x[64]; wide[64]: of doubles. */
void launch_shuffles(unsigned *out, double *wide, const unsigned *x, cudaStream_t stream);
/* count[COUNTERS]: 1000 threads work on them with every kind of atomic operation. */
void launch_counters(unsigned *count, float *sum, unsigned long long *large, cudaStream_t stream);
/* out[BLOCK_COUNTS][96]: __syncthreads_count, _or, _and of conditions on the thread's number. */
void launch_block_counts(int *out, cudaStream_t stream);
/* sum[block] = sum of 1..block+1, handed from block to block by load_relaxed and store_relaxed; ticket: 0. */
void launch_chain(uint64_t *sum, unsigned *ticket, unsigned blocks, cudaStream_t stream);
/* to[i] = from[i] * (double_it ? 2 : 1), i < 4 n; templates. */
void launch_copy(float *to, const float *from, unsigned n, int double_it, cudaStream_t stream);
/* out[NUMBERS]: intrinsics on numbers. */
void launch_numbers(unsigned *out, cudaStream_t stream);
/* A launch with this configuration of a kernel that does nothing; allow: the shared memory it asks for first. */
void launch_nothing(unsigned grid, unsigned block, size_t shared, int allow, cudaStream_t stream);

/* Kernels with a mistake. */
void launch_barrier_after_end(unsigned *x, cudaStream_t stream);   /* half of the block ends, half waits */
void launch_two_barriers(unsigned *x, cudaStream_t stream);        /* the halves of a block wait at different ones */
void launch_lost_lane(unsigned *x, cudaStream_t stream);           /* a shuffle without lane 5 */
void launch_part_of_warp(unsigned *x, cudaStream_t stream);        /* a shuffle in a block of 48 */
void launch_behind_shared(unsigned *x, cudaStream_t stream);       /* writes behind its dynamic shared memory */
void launch_write_at(float *x, ptrdiff_t at, cudaStream_t stream); /* x[at] = 1 */

#ifdef __cplusplus
}
#endif

#endif
