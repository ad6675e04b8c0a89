/* host_stage.h: the gradient in host memory, where sums over the ranks are made: where it lies already, or, from
 * another device, in a buffer that it passes through.
 *
 *        host_stage_open(&s, &x->setup);
 *        float *host = host_stage_at(&s, grad);
 *        host_stage_in(&s, grad, from, count);      // host[from..] is the gradient's
 *        host_stage_out(&s, grad, from, count);     // and back
 *        host_stage_close(&s);
 */
#ifndef ST_COMM_HOST_STAGE_H
#define ST_COMM_HOST_STAGE_H

#include "comm/exchange.h"

struct host_stage {
    const struct device_ops *device; /* NULL: the gradient is in host memory */
    float *memory;                   /* [n]; NULL where device is */
};

/* setup->store, where there is one, says on which device the gradient lies. */
void host_stage_open(struct host_stage *s, const struct exchange_setup *setup);
void host_stage_close(struct host_stage *s);

/* Entries [from, from + count) to host memory and back; nothing to do where they are there. */
float *host_stage_at(const struct host_stage *s, float *grad);
void host_stage_in(const struct host_stage *s, const float *grad, size_t from, size_t count);
void host_stage_out(const struct host_stage *s, float *grad, size_t from, size_t count);

/* A whole step of a dense exchange: grad = what `add` makes of host[0..n-1], in place. NaN and infinities are looked
 * for before, while it is known whose they are, and after, for overflow: false then, and where in sum->bad. */
bool host_stage_sum(const struct host_stage *s, struct exchange *x, float *grad,
                    void (*add)(struct exchange *x, float *host), struct exchange_sum *sum);

#endif
