/* pattern.c: see pattern.h. One number in a few nanoseconds: a bench of 15 million entries and 8 ranks draws a billion
 * of them. Half a word of a hashed counter becomes a normal number by its place in a table of quantiles. */
#include "cli/gradients/pattern.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/table.h"
#include "data/speech/spectrogram.h"
#include "nets/net.h"
#include "topk/normal.h"

enum {
    OCTAVES = 31,   /* of the tail probability, from 2^-32 to 1/2 */
    PARTS_LOG2 = 5, /* each octave in 32 equal parts */
    PARTS = 1 << PARTS_LOG2,
    QUANTILES = OCTAVES * PARTS,
    RUN = 64,       /* entries of a run of `clustered` */
    HOT = 32,       /* one run in so many is hot */
    OWN = 8,        /* one hot run in so many is this rank's own choice */
    HOT_STEPS = 16, /* steps for which the shared hot runs stay */
    HOT_SCALE = 16,
    TAG_REAL = 921
};

/* -- normal numbers ------------------------------------------------------------------------------------------------ */

/* Entry o * PARTS + i: the quantile of (1 + i/PARTS) 2^(o-32). The last one is that of 1/2, which is 0. */
static float *make_quantiles(void) {
    float *table = mem_alloc(QUANTILES + 1, sizeof *table, "quantiles of the normal distribution");
    for (int o = 0; o < OCTAVES; o++)
        for (int i = 0; i < PARTS; i++)
            table[o * PARTS + i] = (float)normal_upper_quantile(ldexp(1 + (double)i / PARTS, o - 32));
    table[QUANTILES] = 0;
    return table;
}

/* The upper bit is the sign, the other 31 the tail probability; between two quantiles on a straight line. */
static inline float normal_of(const float *quantile, uint32_t word) {
    uint32_t tail = word & 0x7fffffffu;
    if (tail == 0) tail = 1;
    uint32_t m = 31 - (uint32_t)__builtin_clz(tail); /* its octave, 0..30 */
    uint32_t rest = tail << (31 - m) << 1;           /* what follows the leading bit, as part of 2^32 */
    uint32_t at = m * PARTS + (rest >> (32 - PARTS_LOG2));
    float part = (float)(rest << PARTS_LOG2) * 0x1p-32f;
    float z = quantile[at] + part * (quantile[at + 1] - quantile[at]);
    return word >> 31 ? -z : z;
}

/* out[0..n-1]: independent normal numbers, a function of (seed, rank, step, index). */
static void fill_normal(const struct pattern *p, size_t step, size_t n, float *out) {
    const uint64_t what[3] = {p->seed, (uint64_t)p->comm->rank, step};
    uint64_t key = hash64(0, what, sizeof what);
    for (size_t i = 0; i + 1 < n; i += 2) {
        uint64_t word = hash_word(key, i / 2);
        out[i] = normal_of(p->quantile, (uint32_t)word);
        out[i + 1] = normal_of(p->quantile, (uint32_t)(word >> 32));
    }
    if (n % 2) out[n - 1] = normal_of(p->quantile, (uint32_t)hash_word(key, n / 2));
}

/* -- shapes -------------------------------------------------------------------------------------------------------- */

/* Is run number `run` hot under this key? One in HOT / share is. */
static bool hot(uint64_t key, uint64_t run, uint32_t one_in) {
    uint64_t mixed[2] = {key, run};
    return (uint32_t)(hash64(0, mixed, sizeof mixed) >> 32) % one_in == 0;
}

static void shape_clusters(const struct pattern *p, size_t step, size_t n, float *grad) {
    uint64_t stretch = step / HOT_STEPS, rank = (uint64_t)p->comm->rank + 1;
    uint64_t shared = hash64(p->seed, &stretch, sizeof stretch), own = hash64(shared, &rank, sizeof rank);
    for (size_t from = 0; from < n; from += RUN) {
        float scale = (float)exp(2.0 * (double)(from >> 14 & 63) / 64.0);
        uint64_t run = from / RUN;
        if (hot(shared, run, HOT * OWN / (OWN - 1)) || hot(own, run, HOT * OWN)) scale *= HOT_SCALE;
        size_t end = n - from < RUN ? n : from + RUN;
        for (size_t i = from; i < end; i++) grad[i] *= scale;
    }
}

/* z |z| scale: most of the sum of squares lies in few entries, as in real gradients. */
static void shape_layers(const struct pattern *p, size_t n, float *grad) {
    size_t i = 0;
    for (uint64_t s = 0; s < p->slices; s++)
        for (uint64_t j = 0; j < p->slice[s].size && i < n; j++, i++) grad[i] *= fabsf(grad[i]) * p->slice[s].scale;
}

/* -- recorded gradients -------------------------------------------------------------------------------------------- */

size_t pattern_recorded_step(const struct pattern *p, size_t step, int rank) {
    return (step + (size_t)rank / (size_t)p->ranks) % (size_t)p->steps;
}

size_t pattern_recorded_rank(const struct pattern *p, int rank) {
    return (size_t)rank % (size_t)p->ranks;
}

static bool read_recorded(struct pattern *p, size_t step, int rank, float *grad, struct err *e) {
    return record_read(&p->file, pattern_recorded_step(p, step, rank), pattern_recorded_rank(p, rank), grad, e);
}

/* Rank 0 reads for all: the file need not be visible to the others. */
static bool replay(struct pattern *p, size_t step, float *grad, struct err *e) {
    struct comm *c = p->comm;
    size_t bytes = p->n * sizeof *grad;
    enum traffic traffic = c->traffic;
    char ready = 1;
    c->traffic = TRAFFIC_CONTROL;
    if (c->rank > 0) {
        comm_recv(c, 0, TAG_REAL, &ready, sizeof ready);
        comm_send(c, 0, TAG_REAL, &ready, sizeof ready);
        comm_recv(c, 0, TAG_REAL, grad, bytes);
    } else {
        read_recorded(p, step, 0, grad, e);
        for (int r = 1; r < c->size; r++) {
            if (!read_recorded(p, step, r, p->stage, e)) memset(p->stage, 0, bytes);
            comm_send(c, r, TAG_REAL, &ready, sizeof ready);
            comm_recv(c, r, TAG_REAL, &ready, sizeof ready); /* its receive is next: no copy waits in between */
            comm_send(c, r, TAG_REAL, p->stage, bytes);
        }
    }
    bool good = !comm_agree(c, e);
    c->traffic = traffic;
    return good;
}

/* A list of entries as a vector. */
static bool spread_entries(struct pattern *p, size_t step, size_t n, float *grad, struct err *e) {
    if (!p->entries.idx) sparse_open(&p->entries, p->room);
    if (!pattern_entries(p, step, n, &p->entries, e)) return false;
    memset(grad, 0, n * sizeof *grad);
    for (size_t i = 0; i < p->entries.nnz; i++) grad[p->entries.idx[i]] = p->entries.val[i];
    return true;
}

bool pattern_gradient(struct pattern *p, size_t step, size_t n, float *grad, struct err *e) {
    if (p->kind == PATTERN_REAL) return replay(p, step, grad, e);
    if (pattern_has_entries(p)) return spread_entries(p, step, n, grad, e);
    fill_normal(p, step, n, grad);
    if (p->kind == PATTERN_CLUSTERED) shape_clusters(p, step, n, grad);
    if (p->kind == PATTERN_LAYERS) shape_layers(p, n, grad);
    return true;
}

/* -- opening ------------------------------------------------------------------------------------------------------- */

/* Of an image, and of an utterance, whose number no parameter depends on. */
enum { CHANNELS = 3, SIDE = 32, FRAMES = 64 };

/* Rank 0: opens the model, as it is in its paper, for its list of slices. Weights have 1/sqrt(fan-in), vectors (biases,
 * norms) 1. */
static void find_slices(struct pattern *p, const char *name, struct err *e) {
    const struct model_ops *model;
    TABLE_FIND(models, name, model);
    if (!model) {
        err_set(e, "--pattern layers: there is no model \"%.100s\"; sparsetrain list shows them", name);
        return;
    }
    const struct model_reference *like = &model->reference;
    const bool speech = model->input == MODEL_SPEECH;
    const struct net_setup setup = {.batch = 1,
                                    .channels = speech ? 1 : CHANNELS,
                                    .height = speech ? SPECTROGRAM_BINS : SIDE,
                                    .width = speech ? FRAMES : SIDE,
                                    .classes = model->classes,
                                    .sequence = like->sequence,
                                    .hidden = like->hidden,
                                    .layers = speech ? like->layers : 0,
                                    .reference = like,
                                    .chosen = like->chosen,
                                    .threads = 1,
                                    .seed = p->seed,
                                    .device = device_find("cpu")};
    struct net *net = net_open(model, &setup, e);
    if (!net) return;
    const struct arena *a = &net->arena;
    p->n = a->n;
    p->slices = a->slices;
    p->slice = mem_zalloc(a->slices, sizeof *p->slice, "the slices of a pattern");
    for (size_t s = 0; s < a->slices; s++) {
        size_t fan_in = 1;
        for (int d = 1; d < a->slice[s].dims; d++) fan_in *= a->slice[s].dim[d];
        p->slice[s] = (struct pattern_slice){.size = a->slice[s].size, .scale = (float)(1 / sqrt((double)fan_in))};
    }
    net_close(net);
}

static void open_recorded(struct pattern *p, const char *path, struct err *e) {
    if (!record_read_open(&p->file, path, e)) return;
    p->n = p->file.n;
    p->ranks = p->file.ranks;
    p->steps = p->file.steps;
    p->incomplete = p->file.incomplete;
    p->stage = mem_alloc(p->n, sizeof *p->stage, "a recorded gradient");
}

/* What rank 0 found, to all. */
static void share(struct pattern *p) {
    struct comm *c = p->comm;
    uint64_t found[6] = {p->n, p->slices, p->ranks, p->steps, p->incomplete, p->room};
    comm_bcast(c, 0, found, sizeof found);
    comm_bcast(c, 0, &p->density, sizeof p->density);
    p->n = (size_t)found[0];
    p->slices = found[1];
    p->ranks = found[2];
    p->steps = found[3];
    p->incomplete = found[4] != 0;
    p->room = (size_t)found[5];
    if (!p->slices) return;
    if (c->rank > 0) p->slice = mem_zalloc((size_t)p->slices, sizeof *p->slice, "the slices of a pattern");
    comm_bcast(c, 0, p->slice, (size_t)p->slices * sizeof *p->slice);
}

static bool find_kind(struct pattern *p, const char *text, const char **where, struct err *e) {
    static const struct {
        const char *name;
        enum pattern_kind kind;
        bool takes;
    } rows[] = {{"uniform", PATTERN_UNIFORM, false},  {"clustered", PATTERN_CLUSTERED, false},
                {"layers", PATTERN_LAYERS, true},     {"real", PATTERN_REAL, true},
                {"selected", PATTERN_SELECTED, true}, {"fitted", PATTERN_FITTED, true}};
    size_t length = strcspn(text, ":");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strlen(rows[i].name) != length || strncmp(rows[i].name, text, length) != 0) continue;
        *where = text[length] ? text + length + 1 : "";
        if (rows[i].takes != (**where != '\0') || (!rows[i].takes && text[length])) break;
        p->kind = rows[i].kind;
        return true;
    }
    return err_set(
        e,
        "--pattern has no \"%.200s\"; there are: uniform, clustered, layers:MODEL, real:FILE, selected:FILE, "
        "fitted:PROFILE",
        text);
}

bool pattern_open(struct pattern *p, struct comm *c, const char *text, uint64_t seed, struct err *e) {
    const char *where = "";
    char *profile = NULL;
    enum traffic traffic = c->traffic;
    *p = (struct pattern){.comm = c, .seed = seed};
    c->traffic = TRAFFIC_CONTROL;
    bool known = find_kind(p, text, &where, e);
    if (known && c->rank == 0 && p->kind == PATTERN_LAYERS) find_slices(p, where, e);
    if (known && c->rank == 0 && p->kind == PATTERN_REAL) open_recorded(p, where, e);
    if (known && c->rank == 0 && p->kind == PATTERN_SELECTED) pattern_open_selected(p, where, e);
    if (known && c->rank == 0 && p->kind == PATTERN_FITTED) profile = profile_load(where, e);
    bool good = !comm_agree(c, e);
    if (good) share(p);
    if (good && p->kind == PATTERN_FITTED) good = pattern_share_profile(p, profile, where, e);
    if (good && p->kind < PATTERN_REAL) p->quantile = make_quantiles();
    mem_free(profile);
    c->traffic = traffic;
    return good;
}

void pattern_close(struct pattern *p) {
    record_read_close(&p->file);
    mem_free(p->slice);
    mem_free(p->quantile);
    mem_free(p->stage);
    draw_close(&p->draw);
    profile_close(&p->profile);
    sparse_close(&p->entries);
    sparse_close(&p->other);
    memset(p, 0, sizeof *p);
}
