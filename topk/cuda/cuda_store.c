/* cuda_store.c: the gradient store in the memory of a GPU. What leaves it comes to the host as pairs; of n entries
 * nothing else does. The kernels write them into the caller's list, where that lies in page-locked memory. See
 * cuda_kernels.h for the work on the GPU, store.h for what each operation means.
 *
 * Scratch grows to what the largest call wants and is kept, so that a step allocates nothing once all kinds of calls
 * have been seen: candidates of accumulate_top, 8 bytes for each; indices and values that came from the host; and pairs
 * that a list in other memory has room for. */
#include "base/cuda/cuda_device.h"
#include "base/mem.h"
#include "topk/cuda/cuda_kernels.h"
#include "topk/sample.h"
#include "topk/selector.h"
#include "topk/store.h"

_Static_assert(KEY_NOT_FINITE == KEY_INFINITE, "kernels and host agree on the order of magnitudes");

enum {
    ALIGNED = 256,   /* bytes */
    GUESS_DIGITS = 2 /* of a key that only has to be near: 13 bits of its fraction */
};

/* Device memory that grows. */
struct scratch {
    char *block;
    size_t bytes;
};

struct pairs {
    uint32_t *idx;
    float *val;
};

struct state {
    size_t n;                    /* of the whole store */
    struct store_words *words;   /* device */
    struct store_answer *answer; /* page-locked */
    uint32_t launch;             /* number of the last launch that used tile words */
    struct scratch tiles, sums, pairs, candidates, sample, sent;
};

/* -- memory ------------------------------------------------------------------------------------------------------- */

/* What is there to read. Its contents are lost where it grows. */
static void *room(struct scratch *s, size_t bytes, const char *what) {
    if (bytes <= s->bytes) return s->block;
    cuda_free(s->block);
    s->block = cuda_alloc(bytes, what);
    s->bytes = bytes;
    return s->block;
}

/* Bytes of `count` numbers of 4 bytes, such that what comes behind them is aligned, too. */
static size_t padded(size_t count) {
    return (count * sizeof(uint32_t) + ALIGNED - 1) / ALIGNED * ALIGNED;
}

static struct pairs room_for_pairs(struct scratch *s, size_t count, const char *what) {
    char *block = room(s, 2 * padded(count), what);
    return (struct pairs){(uint32_t *)(void *)block, (float *)(void *)(block + padded(count))};
}

/* Of the whole store, or of a part of it that begins anywhere. */
static size_t most_tiles(const struct state *c) {
    return span_tiles((struct span){c->n, QUAD - 1});
}

/* The tile words, and with them a new number for a launch. Twice most_tiles, for launches that count two things. */
static uint64_t *tile_words(struct state *c) {
    size_t bytes = 2 * most_tiles(c) * sizeof(uint64_t);
    bool fresh = c->tiles.bytes == 0;
    uint64_t *words = room(&c->tiles, bytes, "what the tiles of a selection tell each other");
    if (fresh || c->launch == LAUNCH_LAST) {
        CUDA_GIVE(cudaMemsetAsync(words, 0, bytes, cuda_stream()));
        c->launch = 0;
    }
    c->launch++;
    return words;
}

static struct tile_sums sums_of_tiles(struct state *c) {
    size_t tiles = most_tiles(c);
    double *of = room(&c->sums, tiles * (3 * sizeof(double) + 2 * sizeof(uint32_t)), "sums of a gradient's tiles");
    uint32_t *counts = (uint32_t *)(void *)(of + 3 * tiles);
    return (struct tile_sums){of, of + tiles, of + 2 * tiles, counts, counts + tiles};
}

static void cuda_open(struct store *s) {
    struct state *c = s->state = mem_zalloc(1, sizeof *c, "the gradient store on a GPU");
    c->n = s->n;
    c->words = cuda_alloc(sizeof *c->words, "counters of the gradient store");
    c->answer = cuda_host_alloc(sizeof *c->answer, "the answers of the gradient store");
    CUDA_GIVE(cudaMemsetAsync(c->words, 0, sizeof *c->words, cuda_stream()));
    CUDA_GIVE(cudaMemsetAsync(&c->words->bad, 0xff, sizeof c->words->bad, cuda_stream()));
    CUDA_GIVE(cudaMemsetAsync(&c->words->least, 0xff, sizeof c->words->least, cuda_stream()));
}

static void cuda_close(struct store *s) {
    struct state *c = s->state;
    struct scratch *const all[] = {&c->tiles, &c->sums, &c->pairs, &c->candidates, &c->sample, &c->sent};
    cuda_wait();
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) cuda_free(all[i]->block);
    cuda_free(c->words);
    cuda_host_free(c->answer);
    mem_free(c);
}

/* -- selection ---------------------------------------------------------------------------------------------------- */

/* Can kernels write there? Where memory could not be locked, mem_pinned_alloc gives other. */
static bool is_locked(const void *host) {
    struct cudaPointerAttributes about;
    CUDA_CALL(cudaPointerGetAttributes(&about, host));
    return about.type == cudaMemoryTypeHost;
}

/* Where the kernels of a selection put the pairs: into `out` itself, or into scratch, from which fetch takes them. */
static struct pairs place_for_pairs(struct state *c, const struct sparse *out, size_t cap) {
    if (is_locked(out->idx) && is_locked(out->val)) return (struct pairs){out->idx, out->val};
    return room_for_pairs(&c->pairs, cap, "entries of a selection");
}

/* The pairs of a selection whose kernels are done. */
static void fetch(const struct pairs *p, struct sparse *out) {
    const size_t bytes = out->nnz * sizeof *out->idx;
    if (p->idx == out->idx || bytes == 0) return;
    CUDA_GIVE(cudaMemcpyAsync(out->idx, p->idx, bytes, cudaMemcpyDeviceToHost, cuda_stream()));
    CUDA_GIVE(cudaMemcpyAsync(out->val, p->val, bytes, cudaMemcpyDeviceToHost, cuda_stream()));
    cuda_wait();
}

/* grad: NULL where acc is complete. with_sums: the moments, too. */
static size_t compacted(struct store *s, const float *grad, uint32_t key, struct sparse *out, bool with_sums) {
    struct state *c = s->state;
    const size_t cap = out->cap < s->n ? out->cap : s->n;
    struct compaction job = {.acc = s->acc, .grad = grad, .n = s->n, .key = key, .probe = s->probe};
    out->nnz = 0;
    s->seen = (struct store_seen){.known = true, .least = UINT32_MAX};
    if (s->n == 0) return 0;
    const struct pairs p = place_for_pairs(c, out, cap);
    job.cap = (uint32_t)cap, job.idx = p.idx, job.val = p.val, job.words = c->words, job.answer = c->answer;
    job.tiles = tile_words(c), job.launch = c->launch;
    if (with_sums) job.sums = sums_of_tiles(c);
    store_launch_compaction(&job);
    cuda_wait();
    const size_t count = c->answer->count;
    out->nnz = count < cap ? count : cap;
    s->seen = (struct store_seen){count <= cap, c->answer->least, c->answer->most, c->answer->reaching};
    fetch(&p, out);
    return count;
}

static void accumulate(struct store *s, const float *grad) {
    if (s->n > 0) store_launch_add(s->acc, grad, s->n);
}

static size_t accumulate_select(struct store *s, const float *grad, uint32_t key, struct sparse *out) {
    return compacted(s, grad, key, out, false);
}

static size_t select_at(struct store *s, uint32_t key, struct sparse *out) {
    return compacted(s, NULL, key, out, false);
}

static uint32_t kth_key(struct store *s, size_t k) {
    struct state *c = s->state;
    store_launch_search(&(struct top){.val = s->acc, .n = s->n, .k = (uint32_t)k}, DIGITS, &c->words->exact, c->answer);
    cuda_wait();
    return c->answer->key;
}

/* The first `digits` of a key that a few more than k entries reach to words->guess. False: none is known. */
static bool guess(struct store *s, const float *grad, size_t k, int digits, struct store_answer *answer) {
    struct state *c = s->state;
    size_t lines = sample_lines(s->n), m = lines * SAMPLE_LINE, rank = sample_rank(s->n, m, k);
    if (selector_capacity_common(s->n, k) == s->n || rank >= m) return false;
    float *val = room(&c->sample, m * sizeof *val, "a sample of the gradient");
    store_launch_sample(s->acc, grad, s->n, (uint32_t)lines, val);
    store_launch_search(&(struct top){.val = val, .n = m, .k = (uint32_t)rank}, digits, &c->words->guess, answer);
    return true;
}

static uint32_t guess_key(struct store *s, const float *grad, size_t k) {
    struct state *c = s->state;
    if (!guess(s, grad, k, DIGITS, c->answer)) return 0;
    cuda_wait();
    return c->answer->key;
}

static uint32_t sample_kth_key(struct store *s, const float *grad, size_t first, size_t stride, size_t count,
                               size_t rank, uint32_t *scratch) {
    struct state *c = s->state;
    (void)scratch;
    float *val = room(&c->sample, count * sizeof *val, "a sample of the gradient");
    store_launch_strided(s->acc, grad, first, stride, count, val);
    store_launch_search(&(struct top){.val = val, .n = count, .k = (uint32_t)rank}, DIGITS, &c->words->guess,
                        c->answer);
    cuda_wait();
    return c->answer->key;
}

/* -- the k largest ------------------------------------------------------------------------------------------------ */

/* Gives the GPU the search among t and the cut. of: indices of t's values, or NULL. */
static void cut_to_k(struct state *c, const struct top *t, const uint32_t *of, const struct pairs *p) {
    uint64_t *tiles = tile_words(c);
    struct cut_out cut = {of, p->idx, p->val, tiles, tiles + most_tiles(c), c->launch, c->words, c->answer};
    store_launch_cut(t, &c->words->exact, &cut);
}

/* Of a complete acc. */
static void top_of_all(struct store *s, size_t k, const struct pairs *p) {
    cut_to_k(s->state, &(struct top){.val = s->acc, .n = s->n, .k = (uint32_t)k}, NULL, p);
    cuda_wait();
}

/* The host waits once, at the end: the guessed key, how many entries reach it and the k-th key among them stay on the
 * GPU. If the guess was wrong, the kernels after the compaction have done nothing. */
static void accumulate_top(struct store *s, const float *grad, size_t k, struct sparse *out) {
    struct state *c = s->state;
    const struct pairs p = place_for_pairs(c, out, k);
    s->seen.known = false;
    out->nnz = k;
    if (!guess(s, grad, k, GUESS_DIGITS, NULL)) {
        accumulate(s, grad);
        top_of_all(s, k, &p);
        fetch(&p, out);
        return;
    }
    size_t cap = selector_capacity_common(s->n, k);
    struct pairs some = room_for_pairs(&c->candidates, cap, "candidates of a selection");
    struct compaction job = {.acc = s->acc, .grad = grad, .n = s->n, .probe = UINT32_MAX, .cap = (uint32_t)cap};
    job.key_at = &c->words->guess.key, job.idx = some.idx, job.val = some.val;
    job.tiles = tile_words(c), job.launch = c->launch, job.words = c->words, job.answer = c->answer;
    store_launch_compaction(&job);
    struct top t = {.val = some.val, .n = cap, .count = &c->words->count, .k = (uint32_t)k};
    cut_to_k(c, &t, some.idx, &p);
    cuda_wait();
    if (c->answer->count < k || c->answer->count > cap)
        top_of_all(s, k, &p);
    else
        s->seen = (struct store_seen){true, c->answer->key, c->answer->most, 0};
    fetch(&p, out);
}

/* -- moments ------------------------------------------------------------------------------------------------------ */

static struct moments moments_of(const struct store_answer *a, size_t count) {
    struct moments m = {.count = count, .max_key = a->max_key};
    if (m.max_key >= KEY_INFINITE) return m; /* sums would mean nothing */
    m.sum = a->sum, m.sum_abs = a->sum_abs, m.sum_square = a->sum_square;
    return m;
}

static size_t accumulate_select_moments(struct store *s, const float *grad, uint32_t key, struct sparse *out,
                                        struct moments *m) {
    struct state *c = s->state;
    size_t count = compacted(s, grad, key, out, true);
    *m = s->n > 0 ? moments_of(c->answer, s->n) : (struct moments){0};
    return count;
}

static void moments_above(struct store *s, uint32_t key, struct moments *m) {
    struct state *c = s->state;
    struct tile_sums sums = sums_of_tiles(c);
    store_launch_moments(s->acc, s->n, key, &sums, c->words, c->answer);
    cuda_wait();
    *m = moments_of(c->answer, c->answer->count);
}

static size_t count_above(struct store *s, uint32_t key) {
    struct state *c = s->state;
    store_launch_count(s->acc, s->n, key, c->words, c->answer);
    cuda_wait();
    return c->answer->count;
}

static void accumulate_squares(struct store *s, const float *grad, size_t block, double *square) {
    struct state *c = s->state;
    const size_t bytes = (s->n + block - 1) / block * sizeof *square;
    if (s->n == 0) return;
    double *there = room(&c->sums, bytes, "sums of squares of blocks");
    store_launch_add_squares(s->acc, grad, s->n, block, there);
    s->device->to_host(square, there, bytes);
}

static size_t nonfinite(struct store *s, const float *dense, size_t n) {
    struct state *c = s->state;
    store_launch_nonfinite(dense, n, c->words, c->answer);
    cuda_wait();
    return c->answer->bad < n ? (size_t)c->answer->bad : n;
}

/* -- entries whose indices come from the host --------------------------------------------------------------------- */

/* Indices, and values unless NULL, on the GPU. */
static struct pairs sent(struct store *s, const uint32_t *idx, const float *val, size_t count) {
    struct state *c = s->state;
    struct pairs p = room_for_pairs(&c->sent, count, "entries that are changed");
    cuda_upload(p.idx, idx, count * sizeof *idx);
    if (val) cuda_upload(p.val, val, count * sizeof *val);
    return p;
}

static void gather_at(struct store *s, const uint32_t *idx, size_t count, float *val) {
    if (count == 0) return;
    struct pairs p = sent(s, idx, NULL, count);
    store_launch_gather(s->acc, p.idx, count, p.val);
    s->device->to_host(val, p.val, count * sizeof *val);
}

static void zero_at(struct store *s, const uint32_t *idx, size_t count) {
    if (count == 0) return;
    struct pairs p = sent(s, idx, NULL, count);
    store_launch_zero(s->acc, p.idx, count);
}

static void scatter_add(struct store *s, const struct sparse *u, float scale, float *dense) {
    if (u->nnz == 0) return;
    struct pairs p = sent(s, u->idx, u->val, u->nnz);
    store_launch_scatter_add(dense, p.idx, p.val, u->nnz, scale);
}

/* 1 x is x, whatever it is. */
static void add_at(struct store *s, const struct sparse *delta) {
    scatter_add(s, delta, 1, s->acc);
}

static void scatter(struct store *s, const struct sparse *u, float scale, float *dense) {
    s->device->zero(dense, s->n * sizeof *dense);
    if (u->nnz == 0) return;
    struct pairs p = sent(s, u->idx, u->val, u->nnz);
    store_launch_scatter(dense, p.idx, p.val, u->nnz, scale);
}

/* -- parts and all of them ---------------------------------------------------------------------------------------- */

static void read_part(struct store *s, size_t from, size_t count, float *host) {
    s->device->to_host(host, s->acc + from, count * sizeof *host);
}

static void write_part(struct store *s, size_t from, size_t count, const float *host) {
    s->device->to_device(s->acc + from, host, count * sizeof *host);
}

static void scale_all(struct store *s, float *dense, float scale) {
    if (s->n > 0) store_launch_scale(dense, s->n, scale);
}

static void momentum(struct store *s, float *grad, float mu) {
    if (s->n > 0) store_launch_momentum(s->acc, grad, s->n, mu);
}

extern const struct store_ops store_cuda;
const struct store_ops store_cuda = {
    .device = "cuda",
    .open = cuda_open,
    .close = cuda_close,
    .accumulate = accumulate,
    .guess_key = guess_key,
    .accumulate_select = accumulate_select,
    .select = select_at,
    .kth_key = kth_key,
    .accumulate_top = accumulate_top,
    .accumulate_select_moments = accumulate_select_moments,
    .moments = moments_above,
    .count = count_above,
    .accumulate_squares = accumulate_squares,
    .sample_kth_key = sample_kth_key,
    .gather_at = gather_at,
    .zero_at = zero_at,
    .add_at = add_at,
    .read = read_part,
    .write = write_part,
    .scatter = scatter,
    .scatter_add = scatter_add,
    .scale = scale_all,
    .momentum = momentum,
    .first_nonfinite = nonfinite,
};
