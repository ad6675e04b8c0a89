/* nets_frames.c: the layers of utterances of different lengths, in every layout of the device's backend, against the
 * naive loops of nets_reference_frames.h, and these against finite differences: of passes that are shorter than what
 * the layer was opened for, the same bits as of one that was opened for just these, whatever stands behind the end of
 * an utterance. */
/* devices: cuda */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <stdio.h>

#include "tests/lib/nets_layouts.h"
#include "tests/lib/nets_reference_frames.h"

/* As in nets_layers.c. */
#define TOLERANCE 1.5e-5
#define TOLERANCE_TF32 3e-3
#define TOLERANCE_BF16 1.2e-2

enum { BATCH_MAX = 5 };

struct trial {
    enum layer_kind kind;
    int c, h, out; /* of x, of y; h 0: rows */
    int each;      /* frames of a step of x */
    int batch, lengths[BATCH_MAX];
    double ceiling;
    int context;
    int frames, most; /* of the pass; that the layer is opened for */
    struct {
        int kernel[2], stride[2], pad[2];
    } window; /* of a convolution; all 0: 3 x 3, which leaves the size as it is */
    bool bias;
};

static const struct trial trials[] = {
    /* kind            c   h  out each */
    {LAYER_FRAME_NORM, 32, 5, 32, 1, 3, {20, 7, 13}, .ceiling = 1.2, .frames = 20, .most = 50},
    {LAYER_FRAME_NORM, 20, 3, 20, 2, 4, {1, 30, 0, 17}, .ceiling = 0.7, .frames = 30, .most = 30},
    {LAYER_FRAME_NORM, 1, 2, 1, 1, 1, {16}, .frames = 16, .most = 17},
    {LAYER_FRAME_NORM, 7, 1, 7, 4, 2, {9, 40}, .frames = 41, .most = 90},
    {LAYER_FRAME_NORM, 40, 0, 40, 2, 3, {20, 7, 13}, .frames = 20, .most = 50},
    {LAYER_FRAME_NORM, 33, 0, 33, 2, 5, {19, 19, 19, 19, 19}, .frames = 19, .most = 20},
    {LAYER_FRAME_NORM, 8, 0, 8, 1, 4, {1, 30, 0, 17}, .ceiling = 0.5, .frames = 33, .most = 64},
    {LAYER_FRAME_NORM, 300, 0, 300, 1, 2, {3, 3}, .frames = 3, .most = 9},
    {LAYER_FRAME_NORM, 16, 0, 16, 1, 1, {5}, .frames = 5, .most = 5},
    {LAYER_TIME_ROWS, 20, 3, 60, 2, 3, {21, 7, 13}, .frames = 21, .most = 70},
    {LAYER_TIME_ROWS, 32, 2, 64, 1, 1, {1}, .frames = 1, .most = 1},
    {LAYER_LOOKAHEAD, 40, 0, 40, 2, 3, {41, 7, 13}, .ceiling = 2, .context = 3, .frames = 41, .most = 50},
    {LAYER_LOOKAHEAD, 65, 0, 65, 1, 4, {1, 30, 0, 17}, .ceiling = 3, .context = 20, .frames = 30, .most = 30},
    {LAYER_LOOKAHEAD, 3, 0, 3, 1, 1, {5}, .ceiling = 1, .context = 0, .frames = 5, .most = 16},
    {LAYER_LSTM, 12, 0, 7, 2, 3, {20, 7, 13}, .frames = 20, .most = 50},
    {LAYER_LSTM, 5, 0, 20, 1, 4, {1, 11, 0, 6}, .frames = 11, .most = 11},
    {LAYER_LSTM, 3, 0, 2, 1, 1, {1}, .frames = 1, .most = 8},
    {LAYER_LINEAR, 12, 0, 7, 2, 3, {20, 7, 13}, .frames = 20, .most = 50},
    {LAYER_LINEAR, 9, 0, 8, 1, 3, {20, 7, 13}, .frames = 20, .most = 300, .bias = true},
    {LAYER_CONV, 3, 9, 16, 1, 2, {20, 7}, .frames = 20, .most = 70},
    {LAYER_CONV, 8, 4, 8, 1, 1, {9}, .frames = 9, .most = 40, .window = {{21, 11}, {2, 1}, {10, 5}}, .bias = true},
    {LAYER_CONV, 8, 7, 16, 2, 1, {20}, .frames = 20, .most = 20, .window = {{5, 4}, {3, 2}, {2, 1}}},
    {LAYER_CONV, 20, 5, 10, 1, 2, {9, 7}, .frames = 1, .most = 30, .window = {{4, 9}, {1, 1}, {1, 4}}, .bias = true},
    {LAYER_CONV, 1, 9, 8, 1, 1, {9}, .frames = 9, .most = 40, .window = {{41, 11}, {2, 2}, {20, 5}}, .bias = true},
};

/* -- a trial's numbers --------------------------------------------------------------------------------------------- */

struct numbers {
    struct timed r;
    int frames;
    double *x, *w, *state, *dy;          /* in */
    double *y, *infer, *dx, *dw, *moved; /* what is wanted */
};

static struct layer_spec spec_of(const struct trial *t) {
    struct layer_spec spec = {.kind = t->kind, .wants_dx = true};
    if (t->kind == LAYER_FRAME_NORM) spec.frame_norm.ceiling = t->ceiling;
    if (t->kind == LAYER_LOOKAHEAD) spec.lookahead.context = t->context, spec.lookahead.ceiling = t->ceiling;
    if (t->kind == LAYER_LSTM) spec.lstm.padded = true, spec.lstm.sequence = steps_of(t->most, t->each);
    for (int i = 0; t->kind == LAYER_CONV && i < 2; i++) {
        const bool is_plain = t->window.kernel[i] == 0;
        spec.conv.kernel[i] = is_plain ? 3 : t->window.kernel[i];
        spec.conv.stride[i] = is_plain ? 1 : t->window.stride[i];
        spec.conv.pad[i] = is_plain ? 1 : t->window.pad[i];
    }
    if (t->kind == LAYER_CONV) spec.conv.bias = t->bias;
    if (t->kind == LAYER_LINEAR) spec.linear.bias = t->bias;
    spec.in_place = t->kind == LAYER_FRAME_NORM;
    return spec;
}

/* x or y of passes of so many frames. */
static struct tensor shape_of(const struct trial *t, int c, int h, int frames) {
    const int steps = steps_of(frames, t->each);
    if (h)
        return (struct tensor){
            .n = t->batch, .c = c, .h = h, .w = steps_of(frames_rounded(frames), t->each), .frames = t->each};
    return (struct tensor){.n = steps * t->batch, .c = c, .h = 1, .w = 1, .frames = t->each};
}

static int slid(const struct layer_spec *spec, int axis, int size) {
    return (size + 2 * spec->conv.pad[axis] - spec->conv.kernel[axis]) / spec->conv.stride[axis] + 1;
}

/* Of y. */
static struct tensor result_of(const struct trial *t, int frames) {
    const int h = t->kind == LAYER_TIME_ROWS ? 0 : t->h;
    const struct layer_spec spec = spec_of(t);
    struct tensor y = shape_of(t, t->out, h, frames);
    if (t->kind != LAYER_CONV) return y;
    y.h = slid(&spec, 0, y.h), y.w = slid(&spec, 1, y.w), y.frames *= spec.conv.stride[1];
    return y;
}

static bool has_lengths(const struct trial *t) {
    return t->kind != LAYER_TIME_ROWS && t->kind != LAYER_LINEAR && t->kind != LAYER_CONV;
}

/* Nobody reads x, or dy, behind the end of an utterance. */
static bool ignores_x(const struct trial *t) {
    return t->kind == LAYER_FRAME_NORM || t->kind == LAYER_LOOKAHEAD;
}

static bool is_behind(const struct timed *r, const struct tensor *t, size_t i) {
    const int row = (int)(i / (size_t)t->c);
    if (timed_rows(t)) return row / r->batch >= timed_valid(r, row % r->batch);
    const int u = (int)(i / ((size_t)t->c * (size_t)t->h * (size_t)t->w));
    return (int)(i % (size_t)t->w) >= timed_valid(r, u);
}

static void fill_behind(const struct timed *r, const struct tensor *t, double *v, double value) {
    for (size_t i = 0; i < ref_floats(t); i++)
        if (is_behind(r, t, i)) v[i] = value;
}

static void moved_statistics(const struct numbers *v) {
    const int C = v->r.x.c;
    for (int c = 0; c < C; c++) {
        double mean, var, count = timed_moments(&v->r, v->x, c, &mean, &var);
        v->moved[c] = 0.9 * v->state[c] + 0.1 * mean;
        v->moved[C + c] = 0.9 * v->state[C + c] + 0.1 * var * count / fmax(count - 1, 1);
    }
}

static struct numbers numbers_open(const struct trial *t, bool is_bf16) {
    struct numbers v = {.r = {.spec = spec_of(t),
                              .x = shape_of(t, t->c, t->h, t->frames),
                              .y = result_of(t, t->frames),
                              .batch = t->batch,
                              .lengths = t->lengths},
                        .frames = t->frames};
    const size_t x = ref_floats(&v.r.x), y = ref_floats(&v.r.y), params = timed_params(&v.r), c = 2 * (size_t)t->c;
    v.x = random_numbers(x, 1), v.w = random_numbers(params, 2), v.state = random_numbers(c, 3);
    v.dy = random_numbers(y, 4), v.y = random_numbers(y, 5), v.infer = random_numbers(y, 6);
    v.dx = random_numbers(x, 7), v.dw = random_numbers(params, 8), v.moved = random_numbers(c, 9);
    for (size_t i = 0; t->kind == LAYER_FRAME_NORM && i < x; i++) v.x[i] = (float)(3 + 2 * v.x[i]);
    for (size_t i = 0; t->kind == LAYER_LSTM && i < params; i++) v.w[i] = (float)(v.w[i] * 1.5 / sqrt(t->out));
    for (size_t i = c / 2; i < c; i++) v.state[i] = (float)(0.5 + fabs(v.state[i]));
    for (size_t i = 0; is_bf16 && i < x; i++) v.x[i] = bf16_value(bf16_of((float)v.x[i]));
    for (size_t i = 0; is_bf16 && i < y; i++) v.dy[i] = bf16_value(bf16_of((float)v.dy[i]));
    if (has_lengths(t)) fill_behind(&v.r, &v.r.x, v.x, 0), fill_behind(&v.r, &v.r.y, v.dy, 0);
    timed_run(&v.r, v.x, v.w, v.state, v.infer, NULL, NULL, NULL);
    timed_run(&v.r, v.x, v.w, NULL, v.y, NULL, NULL, NULL);
    timed_run(&v.r, v.x, v.w, NULL, NULL, v.dy, v.dx, v.dw);
    if (t->kind == LAYER_FRAME_NORM) moved_statistics(&v);
    return v;
}

static void numbers_close(struct numbers *v) {
    double *all[] = {v->x, v->w, v->state, v->dy, v->y, v->infer, v->dx, v->dw, v->moved};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) mem_free(all[i]);
}

/* -- naive gradients against finite differences -------------------------------------------------------------------- */

static double weighted(struct numbers *v, double *y) {
    double sum = 0;
    timed_run(&v->r, v->x, v->w, NULL, y, NULL, NULL, NULL);
    for (size_t i = 0; i < ref_floats(&v->r.y); i++) sum += v->dy[i] * y[i];
    return sum;
}

static void check_differences(struct numbers *v, double *array, size_t n, const double *gradient, const char *what) {
    const double h = 1e-6;
    double *y = random_numbers(ref_floats(&v->r.y), 20);
    for (size_t i = 0; i < n; i += 1 + n / 23) {
        const double kept = array[i];
        array[i] = kept + h;
        const double above = weighted(v, y);
        array[i] = kept - h;
        const double difference = (above - weighted(v, y)) / (2 * h);
        array[i] = kept;
        if (!(fabs(difference - gradient[i]) <= 1e-5 * (1 + fabs(gradient[i]))))
            fail_msg("%s, %s[%zu]: %.9g, differences say %.9g", layer_names[v->r.spec.kind], what, i, gradient[i],
                     difference);
    }
    mem_free(y);
}

static void naive_gradients_are_the_differences(void **state) {
    (void)state;
    for (size_t t = 0; t < sizeof trials / sizeof *trials; t++) {
        struct numbers v = numbers_open(&trials[t], false);
        check_differences(&v, v.x, ref_floats(&v.r.x), v.dx, "dx");
        check_differences(&v, v.w, timed_params(&v.r), v.dw, "dw");
        numbers_close(&v);
    }
}

/* -- backends ------------------------------------------------------------------------------------------------------ */

/* A layer that is open, with memory for its largest pass. */
struct subject {
    const struct device_ops *device;
    const struct backend_ops *backend;
    const struct layer_ops *ops;
    void *state, *layer;
    double tolerance;
    struct tensor x, y;      /* of the largest pass */
    float *lengths, *w, *dw; /* of a net, too, parameters stay where they are */
    struct layer_call call;
};

/* What a pass has left. */
struct outcome {
    float *y, *dx, *dw, *twice, *statistics, *infer; /* twice: gradients after a second pass that adds */
    size_t ny, nx, nw, ns;
};

/* Of products in this precision, and of what is kept in bf16. */
static double tolerance_of(const struct trial *t, enum precision precision) {
    if (precision == PRECISION_BF16) return TOLERANCE_BF16;
    const bool products = t->kind == LAYER_LSTM || t->kind == LAYER_LINEAR || t->kind == LAYER_CONV;
    return products && precision == PRECISION_TF32 ? TOLERANCE_TF32 : TOLERANCE;
}

static struct subject subject_open(const struct trial *t, size_t params, enum precision precision, int layout,
                                   int most) {
    struct subject s = {.device = test_device(), .backend = backend_for(test_device())};
    struct layer_spec spec = spec_of(t);
    struct tensor numbers = {
        .n = t->batch, .c = 1, .h = 1, .w = 1, .layout = LAYOUT_TOKENS, .floats = (size_t)t->batch};
    if (t->kind == LAYER_LSTM) spec.lstm.sequence = steps_of(most, t->each);
    s.tolerance = tolerance_of(t, precision);
    s.ops = s.backend->layer[t->kind];
    s.state = s.backend->open(&(struct backend_setup){.threads = 1, .precision = precision, .adds = true});
    s.x = laid_out(s.device, shape_of(t, t->c, t->h, most), layout);
    s.y = result_of(t, most);
    s.layer = s.ops->open(s.state, &spec, &s.x, has_lengths(t) ? &numbers : NULL, &s.y);
    s.lengths = s.device->alloc(sizeof t->lengths, "the lengths");
    s.w = s.device->alloc((params + 1) * sizeof *s.w, "parameters");
    s.dw = s.device->alloc((params + 1) * sizeof *s.dw, "gradients");
    s.device->to_device(s.lengths, t->lengths, sizeof t->lengths);
    s.call = (struct layer_call){.add = has_lengths(t) ? s.lengths : NULL, .batch = t->batch};
    return s;
}

static void subject_close(struct subject *s) {
    s->ops->close(s->layer);
    s->backend->close(s->state);
    s->device->release(s->lengths);
    s->device->release(s->w);
    s->device->release(s->dw);
}

/* A tensor of the pass, in memory for the largest, NaN where the pass does not come. */
static float *upload_within(const struct subject *s, const struct tensor *most, const struct tensor *now,
                            const double *from) {
    float *host = mem_alloc(most->floats, sizeof *host, "a test's tensor"), *made;
    const struct tensor own = laid_out(s->device, *now, most->layout);
    memset(host, 0xff, most->floats * sizeof *host);
    if (from) memset(host, 0, own.floats * sizeof *host);
    for (size_t i = 0; from && i < ref_floats(&own); i++) put(s->device, &own, host, i, from[i]);
    made = s->device->alloc(most->floats * sizeof *host, "a test's tensor");
    s->device->to_device(made, host, most->floats * sizeof *host);
    mem_free(host);
    return made;
}

static float *fetched(const struct subject *s, const struct tensor *most, const struct tensor *now, const float *from,
                      size_t *n) {
    *n = laid_out(s->device, *now, most->layout).floats;
    return device_copy_to_host(s->device, from, *n, "a test's copy");
}

/* The same pass once more, whose gradients are added. */
static void add_again(struct subject *s, const struct numbers *v, bool in_place) {
    float *const dy = s->call.dy, *const dx = s->call.dx;
    s->call.dy = upload_within(s, &s->y, &v->r.y, v->dy);
    if (in_place) s->call.dx = s->call.dy;
    s->call.adds = true;
    s->backend->begin(s->state, PASS_TRAIN, false);
    s->ops->forward(s->layer, &s->call, true);
    s->backend->end(s->state);
    s->backend->begin(s->state, PASS_BACKWARD_ADD, false);
    s->ops->backward(s->layer, &s->call);
    s->backend->end(s->state);
    s->device->release(s->call.dy);
    s->call.dy = dy, s->call.dx = dx;
}

/* NaN where from is NULL. */
static void fill_flat(const struct device_ops *device, float *to, size_t n, const double *from) {
    float *made = upload_flat(device, n, from);
    if (n) device->copy(to, made, n * sizeof *to);
    device->release(made);
}

/* Inference, training, back, and back once more with what is added. */
static struct outcome run(struct subject *s, const struct numbers *v, bool in_place) {
    const size_t params = timed_params(&v->r), c = 2 * (size_t)v->r.x.c;
    float *x = upload_within(s, &s->x, &v->r.x, v->x), *dy = upload_within(s, &s->y, &v->r.y, v->dy);
    float *dx = in_place ? dy : upload_within(s, &s->x, &v->r.x, NULL);
    struct outcome o = {.nw = params, .ns = c};
    s->call.x = x, s->call.param = s->w, s->call.dparam = s->dw, s->call.dy = dy, s->call.dx = dx;
    s->call.y = upload_within(s, &s->y, &v->r.y, NULL);
    fill_flat(s->device, s->w, params, v->w);
    fill_flat(s->device, s->dw, params, NULL);
    s->call.state = upload_flat(s->device, c, v->state);
    s->call.frames = v->frames;
    s->call.adds = false;
    s->backend->begin(s->state, PASS_TRAIN, false);
    s->ops->forward(s->layer, &s->call, false);
    o.infer = fetched(s, &s->y, &v->r.y, s->call.y, &o.ny);
    s->ops->forward(s->layer, &s->call, true);
    o.y = fetched(s, &s->y, &v->r.y, s->call.y, &o.ny);
    s->backend->end(s->state);
    s->backend->begin(s->state, PASS_BACKWARD, false);
    s->ops->backward(s->layer, &s->call);
    s->backend->end(s->state);
    o.dx = fetched(s, &s->x, &v->r.x, dx, &o.nx);
    o.dw = params ? device_copy_to_host(s->device, s->call.dparam, params, "gradients") : NULL;
    o.statistics = device_copy_to_host(s->device, s->call.state, c, "statistics");
    add_again(s, v, in_place);
    o.twice = params ? device_copy_to_host(s->device, s->call.dparam, params, "gradients") : NULL;
    float *all[] = {x, dy, s->call.y, s->call.state, in_place ? NULL : dx};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) s->device->release(all[i]);
    return o;
}

static void outcome_close(struct outcome *o) {
    float *all[] = {o->y, o->dx, o->dw, o->twice, o->statistics, o->infer};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) mem_free(all[i]);
}

static void same_bits(const struct outcome *a, const struct outcome *b, const char *what) {
    if (memcmp(a->y, b->y, a->ny * sizeof *a->y) != 0 || memcmp(a->dx, b->dx, a->nx * sizeof *a->dx) != 0 ||
        (a->nw && memcmp(a->dw, b->dw, a->nw * sizeof *a->dw) != 0) ||
        memcmp(a->statistics, b->statistics, a->ns * sizeof *a->statistics) != 0)
        fail_msg("other bits %s", what);
}

/* behind: what is behind the end must be 0. */
static void check(const struct subject *s, const struct trial *t, const struct numbers *v, const struct tensor *now,
                  int layout, const float *found, const double *wanted, bool behind, const char *what) {
    const struct tensor own = laid_out(s->device, *now, layout);
    double largest = 1e-3;
    for (size_t i = 0; i < ref_floats(now); i++) largest = fmax(largest, fabs(wanted[i]));
    for (size_t i = 0; i < ref_floats(now); i++) {
        const double value = get(s->device, &own, found, i);
        if (!(fabs(value - wanted[i]) <= s->tolerance * largest))
            fail_msg("%s of %d channels, layout %d: %s[%zu] is %.9g, not %.9g", layer_names[t->kind], t->c, layout,
                     what, i, value, wanted[i]);
        if (behind && is_behind(&v->r, now, i) && value != 0)
            fail_msg("%s: %s[%zu] is behind the end, and %g", layer_names[t->kind], what, i, value);
    }
}

static void check_flat(const struct subject *s, const struct trial *t, const float *found, const double *wanted,
                       double times, size_t n, const char *what) {
    double largest = 1e-3;
    for (size_t i = 0; i < n; i++) largest = fmax(largest, times * fabs(wanted[i]));
    for (size_t i = 0; i < n; i++)
        if (!(fabs(found[i] - times * wanted[i]) <= s->tolerance * largest))
            fail_msg("%s of %d channels: %s[%zu] is %.9g, not %.9g", layer_names[t->kind], t->c, what, i,
                     (double)found[i], times * wanted[i]);
}

static void check_outcome(const struct subject *s, const struct trial *t, const struct numbers *v,
                          const struct outcome *o) {
    const bool norm = t->kind == LAYER_FRAME_NORM;
    check(s, t, v, &v->r.y, s->y.layout, o->y, v->y, has_lengths(t), "y");
    check(s, t, v, &v->r.y, s->y.layout, o->infer, norm ? v->infer : v->y, has_lengths(t), "y of inference");
    check(s, t, v, &v->r.x, s->x.layout, o->dx, v->dx, has_lengths(t), "dx");
    check_flat(s, t, o->dw, v->dw, 1, o->nw, "dparam");
    check_flat(s, t, o->twice, v->dw, 2, o->nw, "dparam of two passes");
    check_flat(s, t, o->statistics, norm ? v->moved : v->state, 1, o->ns, "running statistics");
}

static void one_trial(const struct trial *t, enum precision precision, int layout) {
    const bool is_bf16 = precision == PRECISION_BF16;
    struct numbers v = numbers_open(t, is_bf16);
    const bool in_place = v.r.spec.in_place;
    const size_t params = timed_params(&v.r);
    struct subject s = subject_open(t, params, precision, layout, t->most),
                   own = subject_open(t, params, precision, layout, t->frames);
    struct trial longest = *t;
    longest.frames = t->most;
    struct numbers other = numbers_open(&longest, is_bf16);
    struct outcome first = run(&s, &v, in_place), between = run(&s, &other, in_place), just = run(&own, &v, in_place);
    check_outcome(&s, t, &v, &first);
    check_outcome(&s, &longest, &other, &between);
    same_bits(&first, &just, "where the layer was opened for longer passes");
    if (has_lengths(t)) {
        fill_behind(&v.r, &v.r.y, v.dy, NAN);
        if (ignores_x(t)) fill_behind(&v.r, &v.r.x, v.x, NAN);
        struct outcome again = run(&s, &v, in_place);
        same_bits(&first, &again, "after a longer pass, with NaN behind the ends");
        outcome_close(&again);
    }
    outcome_close(&first);
    outcome_close(&between);
    outcome_close(&just);
    subject_close(&s);
    subject_close(&own);
    numbers_close(&v);
    numbers_close(&other);
}

static void backends_match_the_naive_loops(void **state) {
    (void)state;
    const struct device_ops *device = test_device();
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        const struct trial *t = &trials[i];
        if (!backend_for(device)->layer[t->kind]->open) continue;
        const int last = !device_is_host(device) || !t->h ? CPU_NCHW : CPU_NHWC;
        for (int layout = CPU_NCHW; layout <= last; layout++) one_trial(t, PRECISION_F32, layout);
        if (device_is_host(device)) continue;
        one_trial(t, PRECISION_TF32, t->h ? CUDA_NHWC : CUDA_NCHW);
        if (t->h) one_trial(t, PRECISION_BF16, CUDA_NHWC_BF16);
    }
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    test_device();
    if (!backend_for(test_device())->ctc) {
        printf("# SKIP nets_frames: the backend of device %s has no such layers\n1..0\n", test_device()->name);
        return 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(naive_gradients_are_the_differences),
                                       cmocka_unit_test(backends_match_the_naive_loops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
