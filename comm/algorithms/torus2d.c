/* torus2d.c: dense, in two dimensions: the node first, then the network, then the node again.
 *
 * Idea: links inside a node are fast, those between nodes slow. A reduce-scatter inside the node leaves each of its m
 * ranks with the node's sum of one shard, n/m entries; an allreduce over the nodes sums each shard, m of them side by
 * side; an all-gather inside the node puts the shards together. Only 2n/m words of a rank cross the network.
 *
 * Source: Mikami et al., "Massively Distributed SGD: ImageNet/ResNet-50 Training in a Flash", 2018 (arXiv 1811.05233),
 * 2D-torus all-reduce; the dense baseline (2DTAR) of HiTopKComm, Shi et al., MLSys 2021 (arXiv 2010.10458).
 *
 * Cost per rank, N nodes of m ranks: 2 log2(m) node-alpha + 2n(m-1)/m node-beta, and between the nodes 2 log2(N) alpha
 * + 2(n/m)(N-1)/N beta; together 2n(P-1)/P words.
 * Restrictions: all nodes have as many ranks (--ranks-per-node can emulate that). Sums are made in host memory, so that
 * a gradient on another device is staged through a host buffer of n. Deviations: in place of rings, comm.h's
 * reduce-scatter and all-gather in log2(m) rounds, and MPI's allreduce.
 *
 * With --wire bf16 or fp16 half the words, and m - 1 + log2(m) node-alpha, N - 1 + log2(N) alpha: values are added in
 * f32 and rounded three times, on their way inside the node, between the nodes, and as the sum, which goes round the
 * node as it is (coded_sum.h). What is rounded off stays in the residual, or is dropped with --feedback off.
 *
 * NaN and infinities are looked for in the gradient, while it is known whose they are, and in the sum, for overflow. */
#include "base/mem.h"
#include "comm/parts/coded_sum.h"
#include "comm/parts/peers.h"
#include "comm/parts/shards.h"
#include "comm/transport/host_stage.h"

struct torus2d {
    struct shards shards;
    struct host_stage stage; /* in f32, */

    /* and in 16 bits */
    struct feedback feedback;
    struct coded_sum inside, across;
    float *mine, *sum; /* [shard] of the node, of all nodes */
};

static void open_coded(struct exchange *x) {
    struct torus2d *t = x->state;
    const struct coder coder = coder_of_wire(x->setup.wire);
    feedback_open(&t->feedback, x, feedback_keeps_halves(&x->setup.options, x->setup.wire));
    coded_sum_open(&t->inside, x, t->shards.inside, x->setup.n, t->shards.each, &coder);
    coded_sum_open(&t->across, x, t->shards.across, t->shards.count, NULL, &coder);
    t->mine = mem_alloc(t->shards.count, sizeof *t->mine, "the node's sum of a shard");
    t->sum = mem_alloc(t->shards.count, sizeof *t->sum, "the sum of a shard");
}

static void torus2d_open(struct exchange *x) {
    struct torus2d *t = x->state = mem_zalloc(1, sizeof *t, "torus2d");
    shards_open(&t->shards, x->setup.comm, x->setup.n);
    if (x->setup.wire->pack)
        open_coded(x);
    else
        host_stage_open(&t->stage, &x->setup, false);
}

static void close_coded(struct torus2d *t) {
    mem_free(t->sum);
    mem_free(t->mine);
    coded_sum_close(&t->across);
    coded_sum_close(&t->inside);
    feedback_close(&t->feedback);
}

static void torus2d_close(struct exchange *x) {
    struct torus2d *t = x->state;
    if (x->setup.wire->pack)
        close_coded(t);
    else
        host_stage_close(&t->stage);
    shards_close(&t->shards);
    mem_free(t);
}

/* Sum over all ranks of v[0..n-1], in place. */
static void sum_in_two_dimensions(struct exchange *x, float *v, size_t n) {
    (void)n;
    const struct shards *s = &((struct torus2d *)x->state)->shards;
    float *mine = v + s->from;
    comm_reduce_scatter_f32(s->inside, v, s->each, mine, s->scratch);
    comm_allreduce_f32(s->across, mine, s->count, COMM_SUM);
    comm_allgatherv(s->inside, mine, s->count * sizeof *mine, v, s->bytes);
}

/* The same in 16 bits. What coding the node's sums has cut off stays with the owners of the shard. */
static bool run_coded(struct exchange *x, float *grad, struct exchange_sum *sum) {
    struct torus2d *t = x->state;
    struct feedback *f = &t->feedback;
    if (!feedback_take(f, x, grad, &sum->bad)) return false;
    sum->extra_words = x->setup.comm->size + 8; /* parts are of whole words */
    coded_sum_reduce(&t->inside, f->acc, f->keeps, t->mine);
    coded_sum_run(&t->across, t->mine, t->sum, f->keeps);
    if (f->keeps) memcpy(f->acc + t->shards.from, t->mine, t->shards.count * sizeof *t->mine);
    coded_sum_gather(&t->inside, t->sum, NULL, f->u);
    return feedback_give(f, x, grad, sum);
}

static bool torus2d_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    struct torus2d *t = x->state;
    (void)k;
    if (x->setup.wire->pack) return run_coded(x, grad, sum);
    return host_stage_sum(&t->stage, x, grad, sum_in_two_dimensions, sum);
}

/* The two halves, with shards of up to ceil(n/m) entries. */
static void torus2d_cost(const struct cost_case *c, struct cost *cost) {
    int m = c->ranks_per_node, N = c->P / m;
    double shard = (double)front_part(c->n, m, 0);
    *cost = (struct cost){.alphas = 2.0 * ceil_log2(N),
                          .words = 2 * shard * (N - 1) / N,
                          .node_alphas = 2.0 * ceil_log2(m),
                          .node_words = 2 * shard * (m - 1)};
    cost->sums = cost->words / 2;
    cost->node_sums = cost->node_words / 2;
    cost->dense = coded_sum_cost((size_t)shard, N, cost->words, cost->alphas);
    cost->node_dense = coded_sum_cost(c->n, m, cost->node_words, cost->node_alphas);
}

static double torus2d_max_words(const struct cost_case *c) {
    struct cost cost;
    torus2d_cost(c, &cost);
    return cost.words + cost.node_words;
}

extern const struct exchange_ops exchange_torus2d;
const struct exchange_ops exchange_torus2d = {
    .name = "torus2d",
    .summary = "dense in two dimensions: inside the nodes, then between them",
    .paper = "2D-torus all-reduce (Mikami et al., 2018; arXiv 1811.05233)",
    .options = OPTION_PART(feedback_option),
    .conserves = true,
    .halves = true,
    .keeps = feedback_keeps_halves,
    .loses = feedback_loses,
    .by_node = true,
    .serves = shards_serve,
    .moves_as = "dense",
    .open = torus2d_open,
    .run = torus2d_run,
    .close = torus2d_close,
    .max_words = torus2d_max_words,
    .cost = torus2d_cost,
};
