/* backend_onednn_conv.c: convolutions by oneDNN. The library chooses the layout of the weights for each of the three
 * passes; they are kept canonical in the arena and copied on the way, which is cheap: weights are few beside
 * activations (ResNet-20, batch 32: 1.5 ms of a step of 85). Activations are taken as they lie, but for the images of
 * the first layer, which may be wanted in another layout than the canonical one they come in. A bias lies one way only:
 * the library takes it from the arena. Gradients that are added to those of a pass before are added on that copy.
 *
 * Where passes differ in length there are primitives for each width that has come up, made when it first does. All of
 * these have the canonical layout, and windows as large as those over spectrograms (41 x 11): backend_onednn_padded.h.
 * Where that does not serve, the library makes matrix products of the canonical layout, and in its blocked ones, where
 * the images have no zeros around them, plain loops that are a hundred times as slow. In place of such loops for the
 * gradient of the weights there is a product of our own: backend_onednn_gathered.h. */
#include <string.h>

#include "base/mem.h"
#include "nets/onednn/backend_onednn.h"
#include "nets/onednn/backend_onednn_gathered.h"
#include "nets/onednn/backend_onednn_padded.h"

/* The primitives for images of one width. */
struct passes {
    struct passes *next;
    int width;                                         /* of x */
    bool reordered;                                    /* x is copied before use */
    int forward_parts, data_parts;                     /* of the batch, one after the other */
    struct onednn_step take_x, forward, data, weights; /* the passes: forward and data each over a part */
    struct onednn_step take_w, take_w_data;            /* weights from the arena to the library's layouts */
    struct onednn_step give_w, add_w;                  /* and their gradient back; add_w: += it */
    struct gathered *gathered;                         /* in place of weights, give_w, add_w; NULL: they are there */
};

struct convolution {
    struct onednn *backend;
    struct layer_spec spec;
    struct tensor x, y;
    size_t weights_size, channels;              /* floats: where the bias begins in the parameters; its size */
    struct passes *all, *now;                   /* now: of the last forward pass */
    struct onednn_buffer x_copy, w, w_data, dw; /* in the library's layouts */
    float *db;             /* [channels] the bias's gradient before it is added; NULL: it is not, or there is none */
    struct padded *padded; /* does it all in another way; NULL: it does not */
};

/* Descriptors a convolution is made from. */
struct plan {
    dnnl_dims_t x_size, w_size, y_size;
    shim_own_desc x, x_any, w, w_any, b, y;
    struct shim_window window;
    bool has_bias;
};

/* For so many images of those. */
static void plan_open(struct plan *p, const struct convolution *c, const struct tensor *x, const struct tensor *y,
                      int images) {
    const struct layer_spec *spec = &c->spec;
    *p = (struct plan){.x_size = {images, x->c, x->h, x->w},
                       .w_size = {y->c, x->c, spec->conv.kernel[0], spec->conv.kernel[1]},
                       .y_size = {images, y->c, y->h, y->w},
                       .has_bias = spec->conv.bias,
                       .window = {.stride = {spec->conv.stride[0], spec->conv.stride[1]},
                                  .pad = {spec->conv.pad[0], spec->conv.pad[1]}}};
    shim_desc_open(&p->x, 4, p->x_size, onednn_tag((enum cpu_layout)x->layout));
    shim_desc_open(&p->x_any, 4, p->x_size, dnnl_format_tag_any);
    shim_desc_open(&p->w, 4, p->w_size, dnnl_oihw);
    shim_desc_open(&p->w_any, 4, p->w_size, dnnl_format_tag_any);
    shim_desc_open(&p->b, 1, (const dnnl_dims_t){y->c}, dnnl_a);
    shim_desc_open(&p->y, 4, p->y_size, onednn_tag((enum cpu_layout)y->layout));
}

static shim_desc bias_of(const struct plan *p) {
    return p->has_bias ? shim_desc_of(&p->b) : NULL;
}

static void plan_close(struct plan *p) {
    shim_desc_close(&p->x);
    shim_desc_close(&p->x_any);
    shim_desc_close(&p->w);
    shim_desc_close(&p->w_any);
    shim_desc_close(&p->b);
    shim_desc_close(&p->y);
}

static dnnl_dim_t tiles_of(const struct plan *p) {
    return p->y_size[0] * ((p->y_size[2] + 3) / 4) * ((p->y_size[3] + 3) / 4);
}

/* Is Winograd's algorithm (Lavin & Gray, CVPR 2016) over tiles of 4 x 4 results the faster one for this pass? Its 36
 * products for each two channels of a tile stand against 144. To them come changing the tiles of all channels of x and
 * y, which counts for less the more channels there are on the other side, and changing the weights, as long as the
 * products of 44 tiles. The numbers fit 104 shapes of 1 to 128 images, 2 x 2 to 56 x 56, of 16 to 512 channels, on a
 * core of an AMD EPYC with AVX-512 (oneDNN 2.6.3): within 1.05 of the faster way in 93 of 100. (The library's own
 * choice, dnnl_convolution_auto, changes weights for 16 tiles, four times as slow as the direct way, and computes
 * gradients of up to 128 channels' weights directly, half as fast.) What is chosen may not hang on a measurement: all
 * runs of the same command are to have the same bits. */
static bool winograd_pays(const struct convolution *c, const struct plan *p, enum shim_pass pass) {
    const struct layer_spec *spec = &c->spec;
    for (int i = 0; i < 2; i++)
        if (spec->conv.kernel[i] != 3 || spec->conv.stride[i] != 1) return false;
    const dnnl_dim_t n = p->y_size[0], h = p->y_size[2], w = p->y_size[3];
    const double tiles = (double)tiles_of(p), direct = (double)(n * h * w) / 4;
    const double change = 14.0 / (double)p->x_size[1] + 14.0 / (double)p->y_size[1];
    const double slower = pass == SHIM_WEIGHTS ? 1.3 : 1, product = pass == SHIM_WEIGHTS ? 1.1 : 1.35;
    return slower * direct > 1.05 * (tiles * (product + change) + 44);
}

/* How many images Winograd's algorithm takes at a time in the passes that go from image to image. It lays the 36 planes
 * of changed tiles behind each other, each of 64 bytes for a tile and 16 channels: where a plane is a multiple of 64
 * KiB, a way of many a second-level cache, all planes fall on the same lines of it. With 16 channels on both sides,
 * where moving the planes is most of the work, that takes up to 1.7 times as long, so these take halves of the batch
 * until it is none; more channels gain less by it than the weights, which are changed for each part anew, cost. */
static int images_at_once(const struct tensor *x, const struct plan *all) {
    const dnnl_dim_t tiles = tiles_of(all) / x->n, way = 65536 / 64;
    int images = x->n;
    if (all->x_size[1] > 16 || all->y_size[1] > 16) return images;
    while (images % 2 == 0 && images * tiles % way == 0) images /= 2;
    return images * tiles % way == 0 ? x->n : images;
}

/* A pass, and which plan it is over: all of the images, or a part of them. */
struct made_pass {
    dnnl_primitive_desc_t desc;
    const struct plan *plan;
};

/* x: how all of the images lie, or their gradient; the pass over the weights takes them as the forward pass chose. */
static struct made_pass make_pass(const struct convolution *c, const struct plan *all, const struct plan *part,
                                  enum shim_pass pass, shim_desc x, dnnl_primitive_desc_t forward) {
    struct onednn *b = c->backend;
    struct made_pass made = {.plan = part};
    shim_desc bias = pass == SHIM_DATA ? NULL : bias_of(all);
    if (b->winograd && winograd_pays(c, part, pass) &&
        shim_convolution(&made.desc, b->engine, pass, dnnl_convolution_winograd,
                         part == all ? x : shim_desc_of(&part->x), shim_desc_of(&part->w_any), bias,
                         shim_desc_of(&part->y), &part->window, b->attr, forward) == dnnl_success) {
        b->took_winograd = true;
        return made;
    }
    made.plan = all;
    ONEDNN(shim_convolution(&made.desc, b->engine, pass, dnnl_convolution_direct, x, shim_desc_of(&all->w_any), bias,
                            shim_desc_of(&all->y), &all->window, b->attr, forward));
    return made;
}

/* A pass's primitive: its own descriptors of its arguments, in the order they are given at each run. The last one, the
 * bias or its gradient, is NULL where there is none. */
static void open_pass(struct onednn *b, struct onednn_step *s, dnnl_primitive_desc_t made, const int what[4],
                      const shim_desc desc[4]) {
    onednn_step_open(b, s, made);
    for (int i = 0; i < 4 && desc[i]; i++) onednn_step_arg(b, s, what[i], desc[i]);
}

static void open_forward(struct convolution *c, struct passes *s, const struct made_pass *forward) {
    struct onednn *b = c->backend;
    const struct plan *p = forward->plan;
    shim_desc x = shim_source_of(forward->desc), w = shim_weights_of(forward->desc);
    s->forward_parts = (int)(c->x.n / p->x_size[0]);
    onednn_need_for(&c->w, w, "weights of a convolution");
    onednn_reorder_open(b, &s->take_w, shim_desc_of(&p->w), w, false);
    s->reordered = !dnnl_memory_desc_equal(x, shim_desc_of(&p->x));
    if (s->reordered) {
        onednn_need_for(&c->x_copy, x, "reordered images");
        onednn_reorder_open(b, &s->take_x, shim_desc_of(&p->x), x, false);
    }
    open_pass(b, &s->forward, forward->desc,
              (const int[4]){DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS},
              (const shim_desc[4]){x, w, shim_desc_of(&p->y), bias_of(p)});
}

static void open_data(struct convolution *c, struct passes *s, const struct made_pass *data) {
    struct onednn *b = c->backend;
    const struct plan *p = data->plan;
    shim_desc w = shim_weights_of(data->desc);
    s->data_parts = (int)(c->x.n / p->x_size[0]);
    onednn_need_for(&c->w_data, w, "weights of a convolution, for the gradient of its input");
    onednn_reorder_open(b, &s->take_w_data, shim_desc_of(&p->w), w, false);
    open_pass(b, &s->data, data->desc, (const int[4]){DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC},
              (const shim_desc[4]){shim_desc_of(&p->y), w, shim_desc_of(&p->x), NULL});
}

static void open_weights(struct convolution *c, struct passes *s, const struct made_pass *weights) {
    struct onednn *b = c->backend;
    const struct plan *p = weights->plan;
    dnnl_primitive_desc_t made = weights->desc;
    shim_desc x = shim_source_of(made), dw = dnnl_primitive_desc_query_md(made, dnnl_query_diff_weights_md, 0);
    onednn_need_for(&c->dw, dw, "gradient of a convolution's weights");
    onednn_reorder_open(b, &s->give_w, dw, shim_desc_of(&p->w), false);
    if (b->adds) onednn_reorder_open(b, &s->add_w, dw, shim_desc_of(&p->w), true);
    open_pass(b, &s->weights, made,
              (const int[4]){DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS},
              (const shim_desc[4]){x, shim_desc_of(&p->y), dw, bias_of(p)});
}

static void open_passes(struct convolution *c, struct passes *s, const struct tensor *x, const struct tensor *y) {
    struct plan p, part;
    plan_open(&p, c, x, y, x->n);
    plan_open(&part, c, x, y, images_at_once(x, &p));
    bool first = x->layout == CPU_NCHW; /* then the library may wish for another layout */
    const struct plan *some = first ? &p : &part;
    shim_desc xd = shim_desc_of(&p.x);
    struct made_pass forward = make_pass(c, &p, some, SHIM_FORWARD, first ? shim_desc_of(&p.x_any) : xd, NULL);
    struct made_pass weights =
        make_pass(c, &p, &p, SHIM_WEIGHTS, first ? shim_source_of(forward.desc) : xd, forward.desc);
    if (c->spec.wants_dx) {
        struct made_pass data = make_pass(c, &p, some, SHIM_DATA, xd, forward.desc);
        open_data(c, s, &data);
        ONEDNN(dnnl_primitive_desc_destroy(data.desc));
    }
    if (strncmp(onednn_name(weights.desc), "ref", 3) == 0) /* it has nothing better for this shape */
        s->gathered = gathered_open(&c->spec, x, y);
    else
        open_weights(c, s, &weights);
    open_forward(c, s, &forward);
    ONEDNN(dnnl_primitive_desc_destroy(weights.desc));
    ONEDNN(dnnl_primitive_desc_destroy(forward.desc));
    plan_close(&part);
    plan_close(&p);
}

/* Those for images like x and y. */
static struct passes *passes_for(struct convolution *c, const struct tensor *x, const struct tensor *y) {
    for (struct passes *s = c->all; s; s = s->next)
        if (s->width == x->w) return s;
    struct passes *made = mem_zalloc(1, sizeof *made, "the passes of a convolution");
    made->width = x->w;
    made->next = c->all;
    c->all = made;
    open_passes(c, made, x, y);
    return made;
}

static void *open_convolution(void *backend, const struct layer_spec *spec, const struct tensor *x,
                              const struct tensor *add, struct tensor *y) {
    (void)add;
    struct convolution *c = mem_zalloc(1, sizeof *c, "a convolution");
    struct onednn *b = c->backend = backend;
    c->spec = *spec;
    c->channels = (size_t)y->c;
    c->weights_size = c->channels * (size_t)x->c * (size_t)spec->conv.kernel[0] * (size_t)spec->conv.kernel[1];
    if (b->adds && spec->conv.bias) c->db = mem_alloc(c->channels, sizeof *c->db, "gradient of a convolution's bias");
    (void)onednn_lay_out(y, x->frames ? CPU_NCHW : (int)b->layout);
    c->x = *x;
    c->y = *y;
    if (x->frames) c->padded = padded_open(b, spec, x, y);
    if (!x->frames) (void)passes_for(c, x, y);
    return c;
}

/* One part of the batch after the other: from x to y, or back. */
static void run_parts(const struct convolution *c, struct onednn_step *step, int parts, const float *from,
                      const struct tensor *all_from, const float *w, float *to, const struct tensor *all_to,
                      const float *bias) {
    const size_t on = all_from->floats / (size_t)parts, to_on = all_to->floats / (size_t)parts;
    for (size_t i = 0; i < (size_t)parts; i++)
        onednn_step_run(c->backend, step, (const void *[]){from + i * on, w, to + i * to_on, bias});
}

static void forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    struct convolution *c = layer;
    const struct tensor x = tensor_in_pass(&c->x, call), y = tensor_in_pass(&c->y, call);
    if (c->padded) {
        padded_forward(c->padded, &x, &y, call->x, call->param, call->param + c->weights_size, call->y);
        return;
    }
    const struct passes *s = c->now = passes_for(c, &x, &y);
    onednn_step_run(c->backend, &c->now->take_w, (const void *[]){call->param, c->w.at});
    if (s->reordered) onednn_step_run(c->backend, &c->now->take_x, (const void *[]){call->x, c->x_copy.at});
    const float *from = s->reordered ? c->x_copy.at : call->x, *bias = call->param + c->weights_size;
    run_parts(c, &c->now->forward, s->forward_parts, from, &c->x, c->w.at, call->y, &c->y, bias);
}

static void backward_weights(struct convolution *c, const struct layer_call *call) {
    struct passes *s = c->now;
    float *bias = call->dparam + c->weights_size, *db = call->adds ? c->db : bias;
    if (c->padded) {
        padded_weights(c->padded, call->x, call->dy, call->adds, call->dparam, db);
    } else if (s->gathered) {
        gathered_weights(s->gathered, call->x, call->dy, call->adds, call->dparam, db);
    } else {
        const float *x = s->reordered ? c->x_copy.at : call->x;
        onednn_step_run(c->backend, &s->weights, (const void *[]){x, call->dy, c->dw.at, db});
        onednn_step_run(c->backend, call->adds ? &s->add_w : &s->give_w, (const void *[]){c->dw.at, call->dparam});
    }
    for (size_t i = 0; call->adds && db && i < c->channels; i++) bias[i] += db[i];
}

static void backward(void *layer, const struct layer_call *call) {
    struct convolution *c = layer;
    struct passes *s = c->now;
    backward_weights(c, call);
    if (!c->spec.wants_dx) return;
    if (c->padded) {
        padded_data(c->padded, call->param, call->dy, call->dx);
        return;
    }
    onednn_step_run(c->backend, &s->take_w_data, (const void *[]){call->param, c->w_data.at});
    run_parts(c, &s->data, s->data_parts, call->dy, &c->y, c->w_data.at, call->dx, &c->x, NULL);
}

static void close_convolution(void *layer) {
    struct convolution *c = layer;
    padded_close(c->padded);
    for (struct passes *s = c->all, *next; s; s = next) {
        struct onednn_step *steps[] = {&s->take_x, &s->forward,     &s->data,   &s->weights,
                                       &s->take_w, &s->take_w_data, &s->give_w, &s->add_w};
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) onednn_step_close(steps[i]);
        gathered_close(s->gathered);
        next = s->next;
        mem_free(s);
    }
    float *memory[] = {c->x_copy.at, c->w.at, c->w_data.at, c->dw.at, c->db};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) mem_free(memory[i]);
    mem_free(c);
}

const struct layer_ops onednn_convolution = {open_convolution, forward, backward, close_convolution};
