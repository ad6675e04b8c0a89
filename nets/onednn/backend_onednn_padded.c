/* backend_onednn_padded.c: see backend_onednn_padded.h. There are primitives for each width that has come up, made when
 * it first does. */
#include "nets/onednn/backend_onednn_padded.h"

#include <string.h>

#include "base/mem.h"

enum { ROWS, COLUMNS, AXES };
enum { PHASES_MAX = 16 };  /* of both axes of a stride together */
enum { FEW_CHANNELS = 8 }; /* below: the library's kernel for the weights' gradient is slower than products */

/* -- where a phase lies, along one axis ---------------------------------------------------------------------------- */

/* Position i of x is position i + pad of the padded one, i + pad = stride q + phase; it meets the window at stride t +
 * phase alone, t in [0, taps), and y at q - t. */
struct phase {
    int taps;          /* of the window */
    int first;         /* the first position of x */
    int count;         /* of them, `stride` apart */
    int before, after; /* zeros that y needs around it; below 0: of y so much is left out */
};

static int ceil_over(int a, int b) {
    return (a + b - 1) / b;
}

static struct phase phase_of(int phase, int kernel, int stride, int pad, int size, int y_size) {
    struct phase p = {.taps = phase < kernel ? ceil_over(kernel - phase, stride) : 0};
    const int q = pad > phase ? ceil_over(pad - phase, stride) : 0;
    p.first = stride * q + phase - pad;
    p.count = p.first < size ? ceil_over(size - p.first, stride) : 0;
    p.before = p.taps - 1 - q;
    p.after = q + p.count - y_size;
    return p;
}

/* -- primitives ---------------------------------------------------------------------------------------------------- */

/* One convolution of padded images. */
struct slide {
    struct onednn_step take_x, take_w, run, give_y;
    size_t x_bytes, w_bytes, y_bytes;
};

struct part {
    struct phase at[AXES];
    struct slide slide;
};

struct width {
    struct width *next;
    int x;
    struct slide forward;
    struct onednn_step take_dy, weights, give_w, add_w;
    struct part part[PHASES_MAX];
    size_t dw_bytes;
};

struct padded {
    struct onednn *backend;
    struct layer_spec spec;
    struct tensor x;
    int parts;
    size_t channels;                         /* of y */
    struct width *all, *now;                 /* now: of the last forward pass */
    struct onednn_buffer images, w, y, dw;   /* images: the padded x of that pass */
    struct onednn_buffer around, turned, dx; /* padded dy, the window turned round, and what comes of them */
    struct onednn_buffer lies, plain;        /* the turned window in the library's layout; dx canonically */
};

/* What a primitive is made of. */
struct sizes {
    dnnl_dims_t x, inner, offset, w, y; /* inner: of the images within x, at this offset */
    struct shim_window window;
};

/* lies: how x and y do; dnnl_format_tag_any: as the library likes best. */
static dnnl_primitive_desc_t forward_of(struct onednn *b, const struct sizes *s, bool has_bias,
                                        dnnl_format_tag_t lies) {
    shim_own_desc x, w, y, bias;
    dnnl_primitive_desc_t made;
    shim_desc_open(&x, 4, s->x, lies);
    shim_desc_open(&w, 4, s->w, dnnl_format_tag_any);
    shim_desc_open(&y, 4, s->y, lies);
    shim_desc_open(&bias, 1, (const dnnl_dims_t){s->w[0]}, dnnl_a);
    ONEDNN(shim_convolution(&made, b->engine, SHIM_FORWARD, dnnl_convolution_direct, shim_desc_of(&x), shim_desc_of(&w),
                            has_bias ? shim_desc_of(&bias) : NULL, shim_desc_of(&y), &s->window, b->attr, NULL));
    shim_desc_close(&x);
    shim_desc_close(&w);
    shim_desc_close(&y);
    shim_desc_close(&bias);
    return made;
}

/* Is it one of the kernels that are made for a shape? */
static bool is_fast(dnnl_primitive_desc_t made) {
    const char *name = onednn_name(made);
    return strncmp(name, "jit:", 4) == 0 || strncmp(name, "brgconv:", 8) == 0;
}

/* from: where what is copied into the padded images lies; to: where what comes of them goes. */
static void slide_open(struct onednn *b, struct slide *l, const struct sizes *s, bool has_bias, shim_desc from,
                       shim_desc to) {
    dnnl_primitive_desc_t made = forward_of(b, s, has_bias, dnnl_format_tag_any);
    shim_own_desc w, bias, inner;
    shim_desc_open(&w, 4, s->w, dnnl_oihw);
    shim_desc_open(&bias, 1, (const dnnl_dims_t){s->w[0]}, dnnl_a);
    shim_desc_open_within(&inner, shim_source_of(made), s->inner, s->offset);
    *l = (struct slide){.x_bytes = dnnl_memory_desc_get_size(shim_source_of(made)),
                        .w_bytes = dnnl_memory_desc_get_size(shim_weights_of(made)),
                        .y_bytes = dnnl_memory_desc_get_size(shim_result_of(made))};
    onednn_reorder_open(b, &l->take_x, from, shim_desc_of(&inner), false);
    onednn_reorder_open(b, &l->take_w, shim_desc_of(&w), shim_weights_of(made), false);
    onednn_reorder_open(b, &l->give_y, shim_result_of(made), to, false);
    onednn_step_open(b, &l->run, made);
    onednn_step_arg(b, &l->run, DNNL_ARG_SRC, shim_source_of(made));
    onednn_step_arg(b, &l->run, DNNL_ARG_WEIGHTS, shim_weights_of(made));
    onednn_step_arg(b, &l->run, DNNL_ARG_DST, shim_result_of(made));
    if (has_bias) onednn_step_arg(b, &l->run, DNNL_ARG_BIAS, shim_desc_of(&bias));
    shim_desc_close(&w);
    shim_desc_close(&bias);
    shim_desc_close(&inner);
    ONEDNN(dnnl_primitive_desc_destroy(made));
}

static void slide_close(struct slide *l) {
    onednn_step_close(&l->take_x);
    onednn_step_close(&l->take_w);
    onednn_step_close(&l->run);
    onednn_step_close(&l->give_y);
}

/* -- the passes of one width --------------------------------------------------------------------------------------- */

static struct sizes forward_sizes(const struct layer_spec *spec, const struct tensor *x, const struct tensor *y) {
    const int *kernel = spec->conv.kernel, *stride = spec->conv.stride, *pad = spec->conv.pad;
    return (struct sizes){.x = {x->n, x->c, x->h + 2 * pad[0], x->w + 2 * pad[1]},
                          .inner = {x->n, x->c, x->h, x->w},
                          .offset = {0, 0, pad[0], pad[1]},
                          .w = {y->c, x->c, kernel[0], kernel[1]},
                          .y = {y->n, y->c, y->h, y->w},
                          .window = {.stride = {stride[0], stride[1]}}};
}

/* Of the gradient of x in one phase: dy takes the place of x. */
static struct sizes part_sizes(const struct phase at[AXES], const struct tensor *x, const struct tensor *y) {
    const struct phase *r = &at[ROWS], *c = &at[COLUMNS];
    return (struct sizes){.x = {y->n, y->c, y->h + r->before + r->after, y->w + c->before + c->after},
                          .inner = {y->n, y->c, y->h, y->w},
                          .offset = {0, 0, r->before, c->before},
                          .w = {x->c, y->c, r->taps, c->taps},
                          .y = {x->n, x->c, r->count, c->count},
                          .window = {.stride = {1, 1}}};
}

static bool is_empty(const struct phase at[AXES]) { /* of images this narrow */
    return at[ROWS].count == 0 || at[COLUMNS].count == 0;
}

/* Both axes of part i of x. False: they are not what zeros around dy and a window over them make. */
static bool part_at(const struct layer_spec *spec, int i, const struct tensor *x, const struct tensor *y,
                    struct phase at[AXES]) {
    const int *kernel = spec->conv.kernel, *stride = spec->conv.stride, *pad = spec->conv.pad;
    at[ROWS] = phase_of(i / stride[1], kernel[0], stride[0], pad[0], x->h, y->h);
    at[COLUMNS] = phase_of(i % stride[1], kernel[1], stride[1], pad[1], x->w, y->w);
    bool simple = true;
    for (int a = 0; a < AXES; a++)
        simple &= at[a].taps > 0 && (at[a].count == 0 || (at[a].before >= 0 && at[a].after >= 0));
    return simple;
}

/* The pass for the weights' gradient, and the forward pass that it belongs to. plain: from the images as they are,
 * which the library pads by itself; else from the padded ones, as the library likes them. */
struct weights_pass {
    dnnl_primitive_desc_t forward, made;
};

static struct weights_pass weights_pass_open(const struct padded *p, const struct sizes *padded, bool plain) {
    struct onednn *b = p->backend;
    const bool has_bias = p->spec.conv.bias;
    const int *pad = p->spec.conv.pad;
    struct sizes sizes = *padded;
    if (plain) {
        memcpy(sizes.x, sizes.inner, sizeof sizes.x);
        memcpy(sizes.window.pad, (const dnnl_dims_t){pad[0], pad[1]}, sizeof sizes.window.pad);
    }
    struct weights_pass w = {.forward = forward_of(b, &sizes, has_bias, plain ? dnnl_nchw : dnnl_format_tag_any)};
    shim_own_desc any, bias;
    shim_desc_open(&any, 4, sizes.w, dnnl_format_tag_any);
    shim_desc_open(&bias, 1, (const dnnl_dims_t){sizes.w[0]}, dnnl_a);
    ONEDNN(shim_convolution(&w.made, b->engine, SHIM_WEIGHTS, dnnl_convolution_direct, shim_source_of(w.forward),
                            shim_desc_of(&any), has_bias ? shim_desc_of(&bias) : NULL, shim_result_of(w.forward),
                            &sizes.window, b->attr, w.forward));
    shim_desc_close(&any);
    shim_desc_close(&bias);
    return w;
}

static void weights_pass_close(struct weights_pass *w) {
    ONEDNN(dnnl_primitive_desc_destroy(w->made));
    ONEDNN(dnnl_primitive_desc_destroy(w->forward));
}

/* Plain of few channels, and where the library has but loops for its own layout, as below AVX2: a thousand times slower
 * than what it has for the plain one. */
static void weights_open(struct padded *p, struct width *s, const struct sizes *sizes) {
    struct onednn *b = p->backend;
    bool plain = p->x.c < FEW_CHANNELS;
    struct weights_pass pass = weights_pass_open(p, sizes, plain);
    if (!plain && strncmp(onednn_name(pass.made), "ref", 3) == 0) {
        weights_pass_close(&pass);
        plain = true;
        pass = weights_pass_open(p, sizes, plain);
    }
    const shim_desc dw = dnnl_primitive_desc_query_md(pass.made, dnnl_query_diff_weights_md, 0);
    shim_own_desc w, bias, dy;
    shim_desc_open(&w, 4, sizes->w, dnnl_oihw);
    shim_desc_open(&bias, 1, (const dnnl_dims_t){sizes->w[0]}, dnnl_a);
    shim_desc_open(&dy, 4, sizes->y, dnnl_nchw);
    s->dw_bytes = dnnl_memory_desc_get_size(dw);
    onednn_step_open(b, &s->weights, pass.made);
    onednn_step_arg(b, &s->weights, DNNL_ARG_SRC, shim_source_of(pass.forward));
    onednn_step_arg(b, &s->weights, DNNL_ARG_DIFF_DST, shim_result_of(pass.forward));
    onednn_step_arg(b, &s->weights, DNNL_ARG_DIFF_WEIGHTS, dw);
    if (p->spec.conv.bias) onednn_step_arg(b, &s->weights, DNNL_ARG_DIFF_BIAS, shim_desc_of(&bias));
    onednn_reorder_open(b, &s->give_w, dw, shim_desc_of(&w), false);
    if (b->adds) onednn_reorder_open(b, &s->add_w, dw, shim_desc_of(&w), true);
    if (!plain) onednn_reorder_open(b, &s->take_dy, shim_desc_of(&dy), shim_result_of(pass.forward), false);
    weights_pass_close(&pass);
    shim_desc_close(&w);
    shim_desc_close(&bias);
    shim_desc_close(&dy);
}

static void parts_open(struct padded *p, struct width *s, const struct tensor *x, const struct tensor *y) {
    for (int i = 0; i < p->parts; i++) {
        struct part *part = &s->part[i];
        if (!part_at(&p->spec, i, x, y, part->at)) die("a convolution of %d columns has no simple gradient", x->w);
        if (is_empty(part->at)) continue;
        const struct sizes sizes = part_sizes(part->at, x, y);
        shim_own_desc from, to;
        shim_desc_open(&from, 4, sizes.inner, dnnl_nchw);
        shim_desc_open(&to, 4, sizes.y, dnnl_nchw);
        slide_open(p->backend, &part->slide, &sizes, false, shim_desc_of(&from), shim_desc_of(&to));
        shim_desc_close(&from);
        shim_desc_close(&to);
    }
}

static struct width *width_open(struct padded *p, const struct tensor *x, const struct tensor *y) {
    struct width *s = mem_zalloc(1, sizeof *s, "the passes of a convolution");
    const struct sizes sizes = forward_sizes(&p->spec, x, y);
    shim_own_desc from, to;
    shim_desc_open(&from, 4, sizes.inner, dnnl_nchw);
    shim_desc_open(&to, 4, sizes.y, dnnl_nchw);
    slide_open(p->backend, &s->forward, &sizes, p->spec.conv.bias, shim_desc_of(&from), shim_desc_of(&to));
    weights_open(p, s, &sizes);
    parts_open(p, s, x, y);
    shim_desc_close(&from);
    shim_desc_close(&to);
    s->x = x->w;
    s->next = p->all;
    return p->all = s;
}

static struct width *width_for(struct padded *p, const struct tensor *x, const struct tensor *y) {
    for (struct width *s = p->all; s; s = s->next)
        if (s->x == x->w) return s;
    return width_open(p, x, y);
}

/* -- the layer ----------------------------------------------------------------------------------------------------- */

static bool fast_for(struct onednn *b, const struct sizes *s, bool has_bias) {
    dnnl_primitive_desc_t made = forward_of(b, s, has_bias, dnnl_format_tag_any);
    const bool fast = is_fast(made);
    ONEDNN(dnnl_primitive_desc_destroy(made));
    return fast;
}

static bool all_fast(struct onednn *b, const struct layer_spec *spec, const struct tensor *x, const struct tensor *y,
                     int parts) {
    struct sizes sizes = forward_sizes(spec, x, y);
    bool fast = fast_for(b, &sizes, spec->conv.bias);
    for (int i = 0; i < parts && fast; i++) {
        struct phase at[AXES];
        fast = part_at(spec, i, x, y, at);
        if (!fast || is_empty(at)) continue;
        sizes = part_sizes(at, x, y);
        fast = fast_for(b, &sizes, false);
    }
    return fast;
}

/* The same for passes of any length: it is decided for images of some width. */
static bool serves(struct onednn *b, const struct layer_spec *spec, struct tensor x, struct tensor y, int parts) {
    const int width = 128, margin = 2 * spec->conv.pad[1] - spec->conv.kernel[1];
    x.w = width;
    y.w = (width + margin) / spec->conv.stride[1] + 1;
    return x.layout == CPU_NCHW && y.layout == CPU_NCHW && width + margin >= 0 && parts <= PHASES_MAX &&
           all_fast(b, spec, &x, &y, parts);
}

struct padded *padded_open(struct onednn *b, const struct layer_spec *spec, const struct tensor *x,
                           const struct tensor *y) {
    const int parts = spec->wants_dx ? spec->conv.stride[0] * spec->conv.stride[1] : 0;
    if (!serves(b, spec, *x, *y, parts)) return NULL;
    struct padded *p = mem_zalloc(1, sizeof *p, "a convolution of padded images");
    p->backend = b;
    p->spec = *spec;
    p->x = *x;
    p->channels = (size_t)y->c;
    p->parts = parts;
    return p;
}

/* Zeros, and within them the images from `from`. */
static void pad(struct padded *p, struct slide *l, const float *from, struct onednn_buffer *to) {
    onednn_need(to, l->x_bytes, "padded images");
    memset(to->at, 0, l->x_bytes);
    onednn_step_run(p->backend, &l->take_x, (const void *[]){from, to->at});
}

void padded_forward(struct padded *p, const struct tensor *x, const struct tensor *y, const float *from,
                    const float *weights, const float *bias, float *to) {
    struct slide *l = &(p->now = width_for(p, x, y))->forward;
    onednn_need(&p->w, l->w_bytes, "weights of a convolution");
    onednn_need(&p->y, l->y_bytes, "what comes of padded images");
    pad(p, l, from, &p->images);
    onednn_step_run(p->backend, &l->take_w, (const void *[]){weights, p->w.at});
    onednn_step_run(p->backend, &l->run, (const void *[]){p->images.at, p->w.at, p->y.at, bias});
    onednn_step_run(p->backend, &l->give_y, (const void *[]){p->y.at, to});
}

void padded_weights(struct padded *p, const float *x, const float *dy, bool adds, float *dw, float *db) {
    struct width *s = p->now;
    onednn_need(&p->dw, s->dw_bytes, "gradient of a convolution's weights");
    if (s->take_dy.primitive) {
        onednn_step_run(p->backend, &s->take_dy, (const void *[]){dy, p->y.at});
        x = p->images.at;
        dy = p->y.at;
    }
    onednn_step_run(p->backend, &s->weights, (const void *[]){x, dy, p->dw.at, db});
    onednn_step_run(p->backend, adds ? &s->add_w : &s->give_w, (const void *[]){p->dw.at, dw});
}

/* turned [c][y.c][taps][taps]: the window [y.c][c][kernel][kernel] where it meets this part, the other way round. */
static void turn(const struct padded *p, const struct part *part, int i, const float *w, float *turned) {
    const int *kernel = p->spec.conv.kernel, *stride = p->spec.conv.stride;
    const int rows = part->at[ROWS].taps, columns = part->at[COLUMNS].taps;
    const size_t window = (size_t)kernel[0] * (size_t)kernel[1], channels = (size_t)p->x.c;
    for (size_t c = 0; c < channels; c++)
        for (size_t o = 0; o < p->channels; o++)
            for (int r = rows - 1; r >= 0; r--)
                for (int t = columns - 1; t >= 0; t--)
                    *turned++ = w[(o * channels + c) * window + (size_t)((r * stride[0] + i / stride[1]) * kernel[1] +
                                                                         t * stride[1] + i % stride[1])];
}

/* What lies plainly in `from` is this part of dx. */
static void put(const struct padded *p, const struct part *part, const float *from, float *dx) {
    const struct phase *r = &part->at[ROWS], *c = &part->at[COLUMNS];
    const size_t rows = (size_t)r->count, columns = (size_t)c->count, width = (size_t)p->now->x;
    const size_t images = (size_t)p->x.n * (size_t)p->x.c, image = (size_t)p->x.h * width;
    const size_t down = (size_t)p->spec.conv.stride[0], across = (size_t)p->spec.conv.stride[1];
#pragma omp parallel for schedule(static)
    for (size_t row = 0; row < images * rows; row++) {
        float *to = dx + row / rows * image + ((size_t)r->first + row % rows * down) * width + (size_t)c->first;
        for (size_t j = 0; j < columns; j++) to[j * across] = from[row * columns + j];
    }
}

void padded_data(struct padded *p, const float *weights, const float *dy, float *dx) {
    const size_t channels = p->channels * (size_t)p->x.c;
    for (int i = 0; i < p->parts; i++) {
        struct part *part = &p->now->part[i];
        struct slide *l = &part->slide;
        if (is_empty(part->at)) continue;
        onednn_need(&p->turned, channels * (size_t)part->at[ROWS].taps * (size_t)part->at[COLUMNS].taps * sizeof(float),
                    "a turned window");
        onednn_need(&p->lies, l->w_bytes, "weights of a convolution, for the gradient of its input");
        onednn_need(&p->dx, l->y_bytes, "a part of a gradient");
        onednn_need(&p->plain, l->y_bytes, "a part of a gradient, as it lies in it");
        turn(p, part, i, weights, p->turned.at);
        pad(p, l, dy, &p->around);
        onednn_step_run(p->backend, &l->take_w, (const void *[]){p->turned.at, p->lies.at});
        onednn_step_run(p->backend, &l->run, (const void *[]){p->around.at, p->lies.at, p->dx.at});
        onednn_step_run(p->backend, &l->give_y, (const void *[]){p->dx.at, p->plain.at});
        put(p, part, p->plain.at, dx);
    }
}

void padded_close(struct padded *p) {
    if (!p) return;
    for (struct width *s = p->all, *next; s; s = next) {
        next = s->next;
        slide_close(&s->forward);
        onednn_step_close(&s->take_dy);
        onednn_step_close(&s->weights);
        onednn_step_close(&s->give_w);
        onednn_step_close(&s->add_w);
        for (int i = 0; i < p->parts; i++) slide_close(&s->part[i].slide);
        mem_free(s);
    }
    struct onednn_buffer *all[] = {&p->images, &p->w,  &p->y,    &p->dw,   &p->around,
                                   &p->turned, &p->dx, &p->lies, &p->plain};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) mem_free(all[i]->at);
    mem_free(p);
}
