/* host_stage.h: the gradient where sums over the ranks are made: in host memory, or, with an MPI that takes pointers of
 * device memory and a row that leaves the sum to MPI, where it lies. From a device it passes otherwise through a
 * page-locked buffer, in chunks, so that the copies run beside the looking and the adding.
 *
 *        host_stage_open(&s, &x->setup, false);
 *        float *host = host_stage_at(&s, grad);
 *        bad = host_stage_fetch(&s, x, grad);       // host[0..n-1] is the gradient's; bad == n: all of it is finite
 *        bad = host_stage_put_back(&s, x, grad);    // and back
 *        host_stage_close(&s);
 */
#ifndef ST_COMM_HOST_STAGE_H
#define ST_COMM_HOST_STAGE_H

#include "comm/exchange.h"

struct host_stage {
    struct store *store;             /* of the device that the gradient lies on; NULL: it is in host memory */
    const struct device_ops *device; /* of the buffer below; NULL where there is none */
    float *memory;                   /* [n] page-locked; NULL where sums are made in the gradient itself */
};

/* setup->store, where there is one, says on which device the gradient lies. by_mpi: nothing but MPI reads and writes it
 * between the copies, so that none are needed where MPI takes pointers of device memory, or has nothing to add. */
void host_stage_open(struct host_stage *s, const struct exchange_setup *setup, bool by_mpi);
void host_stage_close(struct host_stage *s);

/* Where the sums are made of this gradient; [n]. */
float *host_stage_at(const struct host_stage *s, float *grad);

/* The lowest i with v[i] NaN or infinite; n when there is none. v: a part of what host_stage_at gave. of_own: before
 * anything is added to it, which is charged to PHASE_SELECT. */
size_t host_stage_nonfinite(const struct host_stage *s, const float *v, size_t n);
size_t host_stage_nonfinite_own(const struct host_stage *s, struct exchange *x, const float *v, size_t n);

/* Copies, which are charged to PHASE_PACK; nothing where the sums are made in the gradient itself. down begins the
 * one of grad[from..from+count-1] to host_stage_at, up the one back; what they return is waited for once. put: of
 * `count` entries of host memory to the device, whole. */
uint32_t host_stage_down(const struct host_stage *s, struct exchange *x, const float *grad, size_t from, size_t count);
uint32_t host_stage_up(const struct host_stage *s, struct exchange *x, float *grad, size_t from, size_t count);
void host_stage_wait(const struct host_stage *s, struct exchange *x, uint32_t copy);
void host_stage_put(const struct host_stage *s, struct exchange *x, float *there, const float *host, size_t count);
/* Where MPI is given pointers of the device's: waits, as MPI does not, for what the device is doing. */
void host_stage_settle(const struct host_stage *s, struct exchange *x);

/* All of grad to host_stage_at and back, looked through in the order of its entries, each chunk while the next one
 * comes or goes. Returns the first entry that is NaN or infinite; n when there is none. After an entry that is not
 * finite nothing more is copied. */
size_t host_stage_fetch(const struct host_stage *s, struct exchange *x, const float *grad);
size_t host_stage_put_back(const struct host_stage *s, struct exchange *x, float *grad);

/* A whole step of a dense exchange: grad = what `add` makes of host[0..n-1], in place. NaN and infinities are looked
 * for before, while it is known whose they are, and after, for overflow: false then, and where in sum->bad. */
bool host_stage_sum(const struct host_stage *s, struct exchange *x, float *grad,
                    void (*add)(struct exchange *x, float *host, size_t count), struct exchange_sum *sum);

/* The same for an `add` that adds up any part of the vector: a staged gradient is summed chunk by chunk (the same ones
 * on all ranks), while the chunk behind it comes and the one before it goes back. In sum->bad is the lowest entry of
 * the first chunk in which something is wrong, in this rank's gradient or in the sum. */
bool host_stage_sum_parts(const struct host_stage *s, struct exchange *x, float *grad,
                          void (*add)(struct exchange *x, float *host, size_t count), struct exchange_sum *sum);

#endif
