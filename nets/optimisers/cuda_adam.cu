/* cuda_adam.cu: see cuda_adam.h. */
#include "nets/optimisers/cuda_adam.h"

#include "nets/optimisers/cuda_update.h"

struct adam_rule {
    enum { STATES = 2 };
    adam_rates r;

    /* Each operation with one rounding, as nets/optimisers/adam.c has them. */
    __device__ __forceinline__ bool operator()(float &w, float (&state)[STATES], float gradient) const {
        const float g = __fadd_rn(gradient, __fmul_rn(r.wd, w));
        const float m = flush_subnormal(__fadd_rn(__fmul_rn(r.beta1, state[0]), __fmul_rn(r.rest1, g)));
        const float v = flush_subnormal(__fadd_rn(__fmul_rn(r.beta2, state[1]), __fmul_rn(__fmul_rn(r.rest2, g), g)));
        const float change = __fmul_rn(r.rate, __fdiv_rn(m, __fadd_rn(__fsqrt_rn(v), r.epsilon)));
        w = __fsub_rn(w, __fadd_rn(__fmul_rn(r.shrink, w), change));
        state[0] = m;
        state[1] = v;
        return update_bad(w) || update_bad(v);
    }
};

extern "C" void cuda_adam_step(float *w, float *state, const float *g, size_t n, const struct adam_rates *r,
                               uint32_t *first) {
    update_by(adam_rule{*r}, w, state, g, n, first);
}

extern "C" void cuda_adamw_step(float *w, float *state, const float *g, size_t n, const struct adamw_rates *r,
                                const struct cuda_update_chunk *chunk, uint32_t chunks, uint32_t *first) {
    const rules<adam_rule> both = {{adam_rule{r->of[0]}, adam_rule{r->of[1]}}};
    update_by_chunk(both, chunk, chunks, w, state, g, n, first);
}
