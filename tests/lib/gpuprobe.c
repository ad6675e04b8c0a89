/* gpuprobe.c: the program gpu_probe: what scripts/gpu-probe.sh asks of a GPU before minutes are spent on it, in
 * processes of their own, so that one which dies says so and costs no other:
 *
 *     gpu_probe libraries      can they be loaded: a line "NAME yes" or "NAME no: why" for each
 *     gpu_probe kernel         one pass of accumulation and selection over the device's store
 *     gpu_probe conv PRECISION one convolution, forward and both directions back, by the algorithms that the backend
 *                              chooses, against plain loops
 *
 * A line on stdout, or on stderr what is wrong; exit status 0 or 1. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/device/device.h"
#include "base/error.h"
#include "base/mem.h"
#include "nets/backend.h"
#include "nets/cuda/cuda_index.h"
#include "tests/lib/nets_reference.h"
#include "topk/store.h"

/* -- libraries ---------------------------------------------------------------------------------------------------- */

/* Those that cuDNN and cuBLAS come in; each with the numbers that its file may end in. */
static const char *const libraries[][3] = {
    {"libcublas.so.13", "libcublas.so.12", NULL},
    {"libcudnn.so.9", NULL, NULL},
    {"libcudnn_graph.so.9", NULL, NULL},
    {"libcudnn_ops.so.9", NULL, NULL},
    {"libcudnn_cnn.so.9", NULL, NULL},
    {"libcudnn_adv.so.9", NULL, NULL},
    {"libcudnn_heuristic.so.9", NULL, NULL},
    {"libcudnn_engines_precompiled.so.9", NULL, NULL},
    {"libcudnn_engines_runtime_compiled.so.9", NULL, NULL},
    {"libnvrtc.so.13", "libnvrtc.so.12", NULL},
};

static int probe_libraries(void) {
    int missing = 0;
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        const char *name = libraries[i][0];
        char why[300] = "";
        void *library = NULL;
        for (size_t k = 0; !library && libraries[i][k]; k++) {
            library = dlopen(libraries[i][k], RTLD_NOW | RTLD_GLOBAL);
            if (library)
                name = libraries[i][k];
            else if (k == 0)
                snprintf(why, sizeof why, "%s", dlerror());
        }
        if (library)
            printf("%s yes\n", name);
        else
            printf("%s no: %s\n", name, why);
        missing += !library;
    }
    return missing ? 1 : 0;
}

/* -- one kernel --------------------------------------------------------------------------------------------------- */

static const struct device_ops *the_gpu(void) {
    struct err why = {0};
    const struct device_ops *device = device_find("cuda");
    if (!device->available(&why)) die("%s", why.text);
    device->choose(0, 1);
    return device;
}

/* Twice the same gradient, 1 / (1 + i) with alternating signs: the selected entries are the first ones, doubled. */
static int probe_kernel(void) {
    enum { N = 10007, K = 100 };
    const struct device_ops *device = the_gpu();
    struct store s;
    struct sparse out;
    float *grad = mem_alloc(N, sizeof *grad, "a gradient"), least = 2.0f / K;
    uint32_t key;
    for (int i = 0; i < N; i++) grad[i] = (i % 2 ? -1.0f : 1.0f) / (float)(1 + i);
    float *on_device = device->alloc(N * sizeof *grad, "a gradient");
    device->to_device(on_device, grad, N * sizeof *grad);
    store_open(&s, N, device);
    sparse_open(&out, 2 * K);
    s.ops->accumulate(&s, on_device);
    memcpy(&key, &least, sizeof key); /* the bits of a magnitude */
    size_t found = s.ops->accumulate_select(&s, on_device, key, &out);
    bool right = found == K;
    for (uint32_t i = 0; right && i < K; i++) right = out.idx[i] == i && out.val[i] == 2 * grad[i];
    if (right)
        printf("%s: %d of %d entries selected\n", device->describe(), K, N);
    else
        fprintf(stderr, "%zu entries selected, or others, in place of the first %d\n", found, K);
    sparse_close(&out);
    store_close(&s);
    device->release(on_device);
    mem_free(grad);
    return right ? 0 : 1;
}

/* -- one convolution ---------------------------------------------------------------------------------------------- */

/* Between backend's layout and canonical order, which the loops have. */
static size_t place(const struct tensor *t, size_t i) {
    size_t channels = (size_t)t->c, positions = (size_t)t->h * (size_t)t->w;
    if (t->layout == LAYOUT_CANONICAL) return i;
    return (i / (channels * positions) * positions + i % positions) * channels + i / positions % channels;
}

static float *upload(const struct device_ops *device, const struct tensor *t, const double *from) {
    const bool halves = t->layout == CUDA_NHWC_BF16;
    char *host = mem_zalloc(t->floats, sizeof(float), "a tensor");
    for (size_t i = 0; i < ref_floats(t); i++) {
        const float value = (float)from[i];
        const struct bf16 half = bf16_of(value);
        if (halves)
            memcpy(host + place(t, i) * sizeof half, &half, sizeof half);
        else
            memcpy(host + place(t, i) * sizeof value, &value, sizeof value);
    }
    float *made = device->alloc(t->floats * sizeof(float), "a tensor");
    device->to_device(made, host, t->floats * sizeof(float));
    mem_free(host);
    return made;
}

/* The largest difference from what it should be, relative to the largest entry. */
static double differs(const struct device_ops *device, const struct tensor *t, const float *found,
                      const double *wanted) {
    double most = 0, largest = 0;
    char *host = mem_alloc(t->floats, sizeof(float), "a tensor");
    device->to_host(host, found, t->floats * sizeof(float));
    for (size_t i = 0; i < ref_floats(t); i++) {
        float value;
        struct bf16 half;
        memcpy(&half, host + place(t, i) * sizeof half, sizeof half);
        if (t->layout == CUDA_NHWC_BF16)
            value = bf16_value(half);
        else
            memcpy(&value, host + place(t, i) * sizeof value, sizeof value);
        most = fmax(most, isfinite(value) ? fabs(value - wanted[i]) : INFINITY);
        largest = fmax(largest, fabs(wanted[i]));
    }
    mem_free(host);
    return most / largest;
}

/* Two images of 16 channels, as inside ResNet-20, in the layout that the precision has there. */
struct probe {
    struct reference r;
    size_t n, params;
    double *x, *w, *y, *dy, *dx, *dw;
    struct tensor x_at, y_at, w_at;
    struct layer_call call;
    float *on_x, *on_w; /* what `call` reads */
};

static struct probe probe_open(enum precision precision) {
    struct probe p = {
        .r = {
            .spec = {.kind = LAYER_CONV, .conv = {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1}}, .wants_dx = true},
            .x = {.n = 2, .c = 16, .h = 8, .w = 8},
            .y = {.n = 2, .c = 16, .h = 8, .w = 8}}};
    p.n = ref_floats(&p.r.x);
    p.params = ref_params(&p.r);
    p.x = random_numbers(p.n, 1);
    p.w = random_numbers(p.params, 2);
    p.dy = random_numbers(p.n, 3);
    p.y = mem_zalloc(p.n, sizeof *p.y, "the output");
    p.dx = mem_zalloc(p.n, sizeof *p.dx, "a gradient");
    p.dw = mem_zalloc(p.params, sizeof *p.dw, "a gradient");
    ref_conv(&p.r, p.x, p.w, p.y, NULL, NULL, NULL);
    ref_conv(&p.r, p.x, p.w, NULL, p.dy, p.dx, p.dw);
    p.x_at = p.r.x;
    p.y_at = p.r.y;
    p.w_at = (struct tensor){.n = (int)p.params, .c = 1, .h = 1, .w = 1, .floats = p.params};
    p.x_at.layout = net_precision_is_f32(precision) ? LAYOUT_CANONICAL
                    : precision == PRECISION_BF16   ? CUDA_NHWC_BF16
                                                    : CUDA_NHWC;
    p.x_at.floats = precision == PRECISION_BF16 ? p.n / 2 : p.n;
    return p;
}

static void probe_close(struct probe *p, const struct device_ops *device) {
    float *of_device[] = {p->on_x, p->on_w, p->call.y, p->call.dy, p->call.dx, p->call.dparam};
    double *of_host[] = {p->x, p->w, p->y, p->dy, p->dx, p->dw};
    for (size_t i = 0; i < sizeof of_device / sizeof *of_device; i++) device->release(of_device[i]);
    for (size_t i = 0; i < sizeof of_host / sizeof *of_host; i++) mem_free(of_host[i]);
}

/* Both passes of the layer, whose tensors are on the device then. */
static void probe_run(struct probe *p, const struct device_ops *device, enum precision precision) {
    const struct backend_ops *backend = backend_for(device);
    const struct layer_ops *ops = backend->layer[LAYER_CONV];
    void *state = backend->open(&(struct backend_setup){.threads = 1, .precision = precision});
    void *layer = ops->open(state, &p->r.spec, &p->x_at, NULL, &p->y_at);
    struct err why = {0};
    if (!backend->opened(state, &why)) die("%s", why.text);
    p->call.x = p->on_x = upload(device, &p->x_at, p->x);
    p->call.param = p->on_w = upload(device, &p->w_at, p->w);
    p->call.dy = upload(device, &p->y_at, p->dy);
    p->call.y = upload(device, &p->y_at, p->x);
    p->call.dx = upload(device, &p->x_at, p->x);
    p->call.dparam = upload(device, &p->w_at, p->w);
    ops->forward(layer, &p->call, true);
    ops->backward(layer, &p->call);
    device->sync();
    ops->close(layer);
    backend->close(state);
}

static int probe_conv(const char *name) {
    enum precision precision;
    struct err why = {0};
    if (!net_precision_parse(name, &precision)) die("there is no precision \"%s\"", name);
    const struct device_ops *device = the_gpu();
    if (!backend_for(device)->serves(precision, &why)) die("%s", why.text);
    struct probe p = probe_open(precision);
    probe_run(&p, device, precision);
    const double forward = differs(device, &p.y_at, p.call.y, p.y);
    const double data = differs(device, &p.x_at, p.call.dx, p.dx);
    const double filter = differs(device, &p.w_at, p.call.dparam, p.dw);
    const double most = precision == PRECISION_F32            ? 1e-4
                        : precision == PRECISION_F32_WINOGRAD ? 1e-3
                        : precision == PRECISION_TF32         ? 1e-2
                                                              : 5e-2;
    const bool right = forward <= most && data <= most && filter <= most;
    fprintf(right ? stdout : stderr, "%s: off by %.1e forward, %.1e data, %.1e filter (at most %.0e)\n", name, forward,
            data, filter, most);
    probe_close(&p, device);
    return right ? 0 : 1;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "libraries") == 0) return probe_libraries();
    if (argc == 2 && strcmp(argv[1], "kernel") == 0) return probe_kernel();
    if (argc == 3 && strcmp(argv[1], "conv") == 0) return probe_conv(argv[2]);
    fprintf(stderr, "usage: gpu_probe libraries | kernel | conv f32|tf32|bf16\n");
    return 2;
}
