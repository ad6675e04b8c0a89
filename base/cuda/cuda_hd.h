/* cuda_hd.h: ST_HD marks a small function that host and device code share (rounding, index arithmetic, key order), so
 * that a plain C test can run the very lines that the kernels run. No CUDA header is needed to include it. */
#ifndef ST_BASE_CUDA_HD_H
#define ST_BASE_CUDA_HD_H

#ifdef __CUDACC__
#define ST_HD __host__ __device__ static inline
#else
#define ST_HD static inline
#endif

#endif
