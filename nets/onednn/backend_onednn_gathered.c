/* backend_onednn_gathered.c: see backend_onednn_gathered.h. */
#include "nets/onednn/backend_onednn_gathered.h"

#include <string.h>

#include "base/mem.h"

enum { FLOATS_MOST = 1 << 22 }; /* of windows at a time, but for a single image's */

struct gathered {
    struct layer_spec spec;
    struct cpu_view x, y;
    size_t kernel, window; /* positions of the kernel; floats of a window, x->channels of them */
    size_t images;         /* at a time */
    float *windows, *rows; /* [images y.positions][window], and dy as [..][y.channels] */
};

struct gathered *gathered_open(const struct layer_spec *spec, const struct tensor *x, const struct tensor *y) {
    struct gathered *g = mem_zalloc(1, sizeof *g, "gathered windows of a convolution");
    g->spec = *spec;
    g->x = cpu_view_of(x);
    g->y = cpu_view_of(y);
    g->kernel = (size_t)spec->conv.kernel[0] * (size_t)spec->conv.kernel[1];
    g->window = g->x.channels * g->kernel;
    const size_t image = g->y.positions * g->window, most = FLOATS_MOST / image;
    g->images = most < 1 ? 1 : most < g->y.images ? most : g->y.images;
    g->windows = mem_alloc(g->images * image, sizeof *g->windows, "windows of a convolution");
    g->rows = mem_alloc(g->images * g->y.positions * g->y.channels, sizeof *g->rows, "rows of a convolution");
    return g;
}

void gathered_close(struct gathered *g) {
    if (!g) return;
    mem_free(g->windows);
    mem_free(g->rows);
    mem_free(g);
}

/* The kernel's view of a channel from position (i, j) of y; `from` is where that channel of the image begins. */
static void gather_window(const struct gathered *g, const float *from, int i, int j, float *to) {
    const int *kernel = g->spec.conv.kernel, *stride = g->spec.conv.stride, *pad = g->spec.conv.pad;
    for (int a = 0; a < kernel[0]; a++) {
        const int row = i * stride[0] - pad[0] + a;
        for (int b = 0; b < kernel[1]; b++) {
            const int column = j * stride[1] - pad[1] + b;
            const bool inside = row >= 0 && row < (int)g->x.height && column >= 0 && column < (int)g->x.width;
            *to++ = inside ? from[((size_t)row * g->x.width + (size_t)column) * g->x.step] : 0;
        }
    }
}

static void gather(const struct gathered *g, const float *x, const float *dy, size_t first, size_t images) {
    const size_t positions = g->y.positions;
#pragma omp parallel for schedule(static)
    for (size_t r = 0; r < images * positions; r++) {
        const size_t image = first + r / positions, at = r % positions;
        const int i = (int)(at / g->y.width), j = (int)(at % g->y.width);
        for (size_t c = 0; c < g->x.channels; c++)
            gather_window(g, x + cpu_view_place(&g->x, image, c, 0), i, j, g->windows + r * g->window + c * g->kernel);
        for (size_t c = 0; c < g->y.channels; c++)
            g->rows[r * g->y.channels + c] = dy[cpu_view_place(&g->y, image, c, at)];
    }
}

void gathered_weights(struct gathered *g, const float *x, const float *dy, bool adds, float *dw, float *db) {
    const size_t channels = g->y.channels;
    if (!g->spec.conv.bias) db = NULL;
    if (db) memset(db, 0, channels * sizeof *db);
    for (size_t first = 0, images; first < g->y.images; first += images) {
        images = g->y.images - first < g->images ? g->y.images - first : g->images;
        const size_t rows = images * g->y.positions;
        gather(g, x, dy, first, images);
        onednn_product(true, false, channels, g->window, rows, g->rows, g->windows, adds || first > 0 ? 1 : 0, dw);
        for (size_t r = 0; db && r < rows; r++)
            for (size_t c = 0; c < channels; c++) db[c] += g->rows[r * channels + c];
    }
}
