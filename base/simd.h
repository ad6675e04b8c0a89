/* simd.h: one plain C loop, compiled for several instruction sets, the best chosen at load time. Additions and
 * multiplications stay in the order of the source and are never fused, so all versions give the same bits. */
#ifndef ST_BASE_SIMD_H
#define ST_BASE_SIMD_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(ST_SANITIZE)
#define SIMD_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define SIMD_CLONES
#endif

#endif
