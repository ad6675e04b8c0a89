/* dense.c: the baseline: MPI's allreduce over the whole gradient, in place; in 16 bits a scatter-reduce and an
 * all-gather of our own.
 *
 * Cost per rank (Rabenseifner's reduce-scatter and all-gather, or a ring, which MPI chooses for long vectors):
 * 2 log2(P) alpha + 2n(P-1)/P beta. With --wire bf16 or fp16: P - 1 + log2(P) alpha + n(P-1)/P beta.
 * Restrictions: a gradient on a device whose memory MPI does not take is staged through a host buffer of n, in chunks
 * of 4 MiB: while one is summed the next comes down and the one before it goes back (then 2 log2(P) alpha for each
 * chunk). In f32 there is no residual; the store, where there is one, only says on which device the gradient lies. NaN
 * and infinities are looked for in the gradient before the sum, while it is still known whose they are, and in the sum
 * after it, for overflow: two reads of n.
 *
 * In 16 bits (what people train with: PyTorch DDP's bf16_compress_hook and fp16_compress_hook) values are added in f32
 * and rounded twice, whatever P is (coded_sum.h); a gradient on a device is staged through host memory. What is rounded
 * off stays in the residual (memory of n), or is dropped with --feedback off, as those hooks do. Deviation: they round
 * once, and the allreduce adds in 16 bits. */
#include "base/mem.h"
#include "comm/exchange.h"
#include "comm/parts/coded_sum.h"
#include "comm/parts/peers.h"
#include "comm/transport/host_stage.h"

struct dense {
    struct host_stage stage;     /* in f32, */
    struct coded_exchange coded; /* and in 16 bits */
};

static void dense_open(struct exchange *x) {
    struct dense *d = x->state = mem_zalloc(1, sizeof *d, "dense");
    if (!x->setup.wire->pack) {
        host_stage_open(&d->stage, &x->setup, true);
        return;
    }
    const struct coder coder = coder_of_wire(x->setup.wire);
    coded_exchange_open(&d->coded, x, &coder, feedback_keeps_halves(&x->setup.options, x->setup.wire));
}

static void dense_close(struct exchange *x) {
    struct dense *d = x->state;
    if (x->setup.wire->pack)
        coded_exchange_close(&d->coded);
    else
        host_stage_close(&d->stage);
    mem_free(d);
}

static void allreduce(struct exchange *x, float *part, size_t count) {
    comm_allreduce_f32(x->setup.comm, part, count, COMM_SUM);
}

static bool dense_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    struct dense *d = x->state;
    (void)k;
    if (x->setup.wire->pack) {
        sum->extra_words = x->setup.comm->size + 3; /* parts are of whole words */
        return coded_exchange_run(&d->coded, x, grad, sum);
    }
    return host_stage_sum_parts(&d->stage, x, grad, allreduce, sum);
}

static double dense_max_words(const struct cost_case *c) {
    return 2.0 * (double)c->n * (c->P - 1) / c->P;
}

static void dense_cost(const struct cost_case *c, struct cost *cost) {
    double words = dense_max_words(c);
    *cost = (struct cost){.alphas = 2.0 * ceil_log2(c->P), .words = words, .sums = words / 2};
    cost->dense = coded_sum_cost(c->n, c->P, words, cost->alphas);
}

const struct exchange_ops exchange_dense = {
    .name = "dense",
    .summary = "MPI allreduce of the whole gradient: the baseline",
    .paper = "Thakur, Rabenseifner and Gropp, IJHPCA 2005 (the allreduce inside MPI)",
    .default_select = NULL,
    .options = OPTION_PART(feedback_option),
    .conserves = true,
    .halves = true,
    .keeps = feedback_keeps_halves,
    .loses = feedback_loses,
    .open = dense_open,
    .run = dense_run,
    .close = dense_close,
    .max_words = dense_max_words,
    .cost = dense_cost,
};
