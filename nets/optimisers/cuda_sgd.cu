/* cuda_sgd.cu: see cuda_sgd.h. */
#include "nets/optimisers/cuda_sgd.h"

#include "nets/optimisers/cuda_update.h"

struct sgd_rule {
    enum { STATES = 1 };
    float mu, wd, lr;

    /* Each operation with one rounding, as nets/optimisers/sgd.c has them. */
    __device__ __forceinline__ bool operator()(float &w, float (&v)[STATES], float g) const {
        v[0] = flush_subnormal(__fadd_rn(__fmul_rn(mu, v[0]), __fadd_rn(g, __fmul_rn(wd, w))));
        w = __fsub_rn(w, __fmul_rn(lr, v[0]));
        return update_bad(w);
    }
};

struct sgd_decay_rule {
    enum { STATES = 1 };
    float mu, wd, lr;

    __device__ __forceinline__ bool operator()(float &w, float (&v)[STATES], float g) const {
        v[0] = flush_subnormal(__fadd_rn(__fmul_rn(mu, v[0]), __fmul_rn(wd, w)));
        w = __fsub_rn(w, __fmul_rn(lr, __fadd_rn(g, v[0])));
        return update_bad(w);
    }
};

extern "C" void cuda_sgd_step(float *w, float *v, const float *g, size_t n, float mu, float wd, float lr,
                              uint32_t *first) {
    update_by(sgd_rule{mu, wd, lr}, w, v, g, n, first);
}

extern "C" void cuda_sgd_decay_step(float *w, float *v, const float *g, size_t n, float mu, float wd, float lr,
                                    uint32_t *first) {
    update_by(sgd_decay_rule{mu, wd, lr}, w, v, g, n, first);
}
