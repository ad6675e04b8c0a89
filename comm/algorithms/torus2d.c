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
 * NaN and infinities are looked for in the gradient, while it is known whose they are, and in the sum, for overflow. */
#include "base/mem.h"
#include "comm/exchange.h"
#include "comm/parts/peers.h"
#include "comm/parts/shards.h"
#include "comm/transport/host_stage.h"

struct torus2d {
    struct shards shards;
    struct host_stage stage;
};

static void torus2d_open(struct exchange *x) {
    struct torus2d *t = x->state = mem_zalloc(1, sizeof *t, "torus2d");
    shards_open(&t->shards, x->setup.comm, x->setup.n);
    host_stage_open(&t->stage, &x->setup, false);
}

static void torus2d_close(struct exchange *x) {
    struct torus2d *t = x->state;
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

static bool torus2d_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    struct torus2d *t = x->state;
    (void)k;
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
    .default_select = NULL,
    .sparse = false,
    .conserves = true,
    .by_node = true,
    .serves = shards_serve,
    .moves_as = "dense",
    .open = torus2d_open,
    .run = torus2d_run,
    .close = torus2d_close,
    .max_words = torus2d_max_words,
    .cost = torus2d_cost,
};
