/* synthetic.c: a built-in CIFAR-like set: 10 classes, 3 x 32 x 32, for machines without data. A network has to learn
 * it; a linear classifier cannot.
 *
 * An image is an object on a background. The object, an ellipse or a box anywhere, of any size, carries one of ten
 * textures, and the texture is the class; place, size, colours, contrast, phase, direction (a little) and wavelength
 * (a little) are drawn at random, the same way for every class. A texture is a wave s(phase) or a product of two,
 * with uniformly random phases, so its expectation is 0 at every pixel: all classes have the SAME mean image, and what
 * tells them apart is how neighbouring pixels go together. Noise of random strength and a patch with another texture
 * keep the problem from becoming perfectly solvable. Directions are symmetric under a horizontal flip.
 *
 * All arithmetic is in integers, so that every machine makes the same bytes from the same seed. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/simd.h"
#include "data/dataset.h"
#include "data/layout.h"

enum { SIDE = 32, PLANE = SIDE * SIDE, IMAGE = 3 * PLANE, CLASSES = 10, COUNT_MAX = 1000000 };
/* Where the numbers of the test images begin; the number of the noise. */
#define TEST_NUMBER 10000000000u
#define NOISE_NUMBER UINT64_MAX
enum { NOISE_PERIOD = 65536 };

/* The ranges from which an image is drawn: wavelengths [1/16 pixel], the curvature of rings and saddles [2^-16 turns
 * per pixel^2], directions [2^-16 turns], radii [pixels], contrast and noise [of 255]. */
enum { FINE_LOW = 48, FINE_HIGH = 72, COARSE_LOW = 96, COARSE_HIGH = 150, GRID_LOW = 80, GRID_HIGH = 140 };
enum {
    BOWL_LOW = 450,
    BOWL_HIGH = 900,
    JITTER = 2000,
    OBJECT_LOW = 8,
    OBJECT_HIGH = 14,
    PATCH_LOW = 3,
    PATCH_HIGH = 8
};
enum { CONTRAST_LOW = 25, CONTRAST_HIGH = 90, NOISE_LOW = 15, NOISE_HIGH = 70 };

enum { TRAIN_DEFAULT = 20000, TEST_DEFAULT = 4000 };

static const char *const class_name[CLASSES] = {"fine rows",   "coarse rows",   "fine columns", "coarse columns",
                                                "fine slopes", "coarse slopes", "checks",       "diamonds",
                                                "rings",       "saddle"};

/* A phase in 2^-16 turns, a quadratic form of the place (x, y) relative to (cx, cy):
 * phase = start + (fx dx + fy dy) + (xx dx^2 + xy dx dy + yy dy^2). */
struct wave {
    int32_t start, fx, fy, xx, xy, yy, cx, cy;
};

struct texture {
    struct wave first, second;
    bool product; /* s(first) s(second), else s(first) */
};

/* A region: (dx/rx)^2 + (dy/ry)^2 < 1 or |dx| < rx, |dy| < ry. */
struct region {
    int32_t cx, cy, rx, ry;
    bool ellipse;
};

/* What stands at a pixel: colour + contrast * texture, per channel, in 0..255. */
struct paint {
    int16_t colour[3], contrast[3];
};

/* A wave of 2^-16 turns: a parabola per half turn, which is within 6% of a sine; -16384..16384.
 * s(p) = p (32768 - |p|) / 2^14, p the phase as a signed 16-bit number. */
static inline int32_t wave_at(int32_t phase) {
    int32_t p = (int16_t)(uint16_t)((uint32_t)phase & 0xffffu);
    int32_t size = p < 0 ? -p : p;
    return p * (32768 - size) / 16384;
}

/* Uniform in low..high, both included. */
static int32_t between(struct rng *r, int32_t low, int32_t high) {
    return low + (int32_t)rng_below(r, (uint32_t)(high - low + 1));
}

/* A plane wave: wavelength in 1/16 pixels, direction in 2^-16 turns (0: along x). */
static struct wave plane_wave(struct rng *r, int32_t wavelength, int32_t direction) {
    struct wave w = {0};
    int32_t frequency = 65536 * 16 / wavelength; /* 2^-16 turns per pixel */
    w.start = between(r, 0, 65535);
    w.fx = frequency * (wave_at(direction + 16384) / 16) / 1024;
    w.fy = frequency * (wave_at(direction) / 16) / 1024;
    return w;
}

/* Rings or a saddle around (cx, cy): phase = start + a (dx^2 + dy^2), or a (cos t (dx^2 - dy^2) + 2 sin t dx dy). */
static struct wave bowl(struct rng *r, bool saddle, int32_t cx, int32_t cy) {
    struct wave w = {0};
    w.cx = cx + between(r, -3, 3); /* one draw a statement: within an initialiser their order would be the compiler's */
    w.cy = cy + between(r, -3, 3);
    int32_t a = between(r, BOWL_LOW, BOWL_HIGH), turn = between(r, 0, 65535);
    w.start = between(r, 0, 65535);
    w.xx = w.yy = a;
    if (!saddle) return w;
    w.xx = a * (wave_at(turn + 16384) / 16) / 1024;
    w.xy = 2 * a * (wave_at(turn) / 16) / 1024;
    w.yy = -w.xx;
    return w;
}

static struct texture texture_of(struct rng *r, int class, int32_t cx, int32_t cy) {
    struct texture t = {.product = false};
    int32_t direction = between(r, -JITTER, JITTER);
    bool fine = class % 2 == 0;
    if (class >= 8) {
        t.first = bowl(r, class == 9, cx, cy);
    } else if (class >= 6) {
        t.product = true;
        if (class == 7) direction += 8192;
        int32_t length = between(r, GRID_LOW, GRID_HIGH);
        t.first = plane_wave(r, length, direction);
        t.second = plane_wave(r, length, direction + 16384);
    } else {
        if (class < 2) direction += 16384;
        if (class >= 4) direction += rng_below(r, 2) ? 8192 : -8192;
        t.first =
            plane_wave(r, fine ? between(r, FINE_LOW, FINE_HIGH) : between(r, COARSE_LOW, COARSE_HIGH), direction);
    }
    return t;
}

static struct region region_of(struct rng *r, int32_t low, int32_t high) {
    struct region g;
    g.rx = between(r, low, high);
    g.ry = between(r, low, high);
    g.cx = between(r, g.rx * 3 / 4, SIDE - 1 - g.rx * 3 / 4);
    g.cy = between(r, g.ry * 3 / 4, SIDE - 1 - g.ry * 3 / 4);
    g.ellipse = rng_below(r, 2) == 1;
    return g;
}

static struct paint paint_of(struct rng *r, int32_t contrast) {
    struct paint p;
    for (int c = 0; c < 3; c++) {
        int32_t signed_contrast = between(r, contrast / 2, contrast);
        if (rng_below(r, 4) == 0) signed_contrast = -signed_contrast; /* mostly light and dark, sometimes two hues */
        p.colour[c] = (int16_t)between(r, 32, 223);
        p.contrast[c] = (int16_t)signed_contrast;
    }
    return p;
}

/* Plane waves go through the quadratic form as well, so that there is one loop for all textures. */
static inline int32_t phase_at(const struct wave *w, int32_t x, int32_t y) {
    int32_t dx = x - w->cx, dy = y - w->cy;
    return w->start + w->fx * dx + w->fy * dy + w->xx * dx * dx + w->xy * dx * dy + w->yy * dy * dy;
}

/* canvas: [3][SIDE][SIDE], values may leave 0..255. */
SIMD_CLONES static void lay(int16_t *restrict canvas, struct region g, const struct texture *texture, struct paint p) {
    struct texture t = *texture;
    int32_t rx2 = g.rx * g.rx, ry2 = g.ry * g.ry;
    for (int32_t y = g.cy < g.ry ? 0 : g.cy - g.ry + 1; y < SIDE && y < g.cy + g.ry; y++) {
        int16_t value[SIDE], inside[SIDE];
        int32_t dy = y - g.cy, half = g.ellipse ? rx2 * (ry2 - dy * dy) : rx2 * ry2;
        for (int32_t x = 0; x < SIDE; x++) {
            int32_t dx = x - g.cx;
            inside[x] = dx * dx * ry2 < half; /* (dx/rx)^2 < 1 - (dy/ry)^2, or just < 1 */
            value[x] = (int16_t)(wave_at(phase_at(&t.first, x, y)) / 128);
        }
        if (t.product)
            for (int32_t x = 0; x < SIDE; x++)
                value[x] = (int16_t)(value[x] * (wave_at(phase_at(&t.second, x, y)) / 128) / 128);
        for (int c = 0; c < 3; c++) {
            int16_t *row = canvas + c * PLANE + y * SIDE, colour = p.colour[c], contrast = p.contrast[c];
            for (int32_t x = 0; x < SIDE; x++) {
                int16_t painted = (int16_t)(colour + (int16_t)(contrast * value[x]) / 128);
                row[x] = inside[x] ? painted : row[x];
            }
        }
    }
}

/* The background: a colour that changes evenly across the image. */
static void background(struct rng *r, int16_t *canvas) {
    for (int c = 0; c < 3; c++) {
        int32_t colour = between(r, 32, 223), right = between(r, -512, 512), down = between(r, -512, 512);
        for (int32_t y = 0; y < SIDE; y++)
            for (int32_t x = 0; x < SIDE; x++)
                canvas[c * PLANE + y * SIDE + x] = (int16_t)(colour + (right * (x - 16) + down * (y - 16)) / 256);
    }
}

/* Noise for all images: each takes a stretch of this table from a random place on. A value is half the sum of two
 * uniform bytes around 0 (a triangle), -127..127. */
static void make_noise(uint64_t seed, int8_t *noise) {
    struct rng r = rng_open(seed, RNG_SYNTHETIC, NOISE_NUMBER);
    for (size_t i = 0; i < NOISE_PERIOD + IMAGE; i += 2) {
        uint32_t word = rng_u32(&r);
        noise[i] = (int8_t)(((int32_t)(word & 0xff) + (int32_t)(word >> 8 & 0xff) - 255) / 2);
        noise[i + 1] = (int8_t)(((int32_t)(word >> 16 & 0xff) + (int32_t)(word >> 24) - 255) / 2);
    }
}

/* pixel = canvas + noise * strength / 128, cut to 0..255. */
SIMD_CLONES static void develop(const int16_t *restrict canvas, const int8_t *restrict noise, int16_t strength,
                                uint8_t *restrict pixels) {
    for (int i = 0; i < IMAGE; i++) {
        int16_t v = (int16_t)(canvas[i] + (int16_t)(noise[i] * strength) / 128);
        v = v < 0 ? 0 : v;
        pixels[i] = (uint8_t)(v > 255 ? 255 : v);
    }
}

/* Image `number` of the set. */
static void make_image(uint64_t seed, uint64_t number, int class, const int8_t *noise, uint8_t *pixels) {
    struct rng r = rng_open(seed, RNG_SYNTHETIC, number);
    int16_t canvas[IMAGE];
    background(&r, canvas);
    struct region object = region_of(&r, OBJECT_LOW, OBJECT_HIGH);
    struct texture texture = texture_of(&r, class, object.cx, object.cy);
    lay(canvas, object, &texture, paint_of(&r, between(&r, CONTRAST_LOW, CONTRAST_HIGH)));
    struct region patch = region_of(&r, PATCH_LOW, PATCH_HIGH);
    texture = texture_of(&r, (int)rng_below(&r, CLASSES), patch.cx, patch.cy);
    lay(canvas, patch, &texture, paint_of(&r, between(&r, CONTRAST_LOW, CONTRAST_HIGH)));
    uint32_t from = rng_below(&r, NOISE_PERIOD);
    develop(canvas, noise + from, (int16_t)between(&r, NOISE_LOW, NOISE_HIGH), pixels);
}

/* -- the row ------------------------------------------------------------------------------------------------------- */

/* "TRAINxTEST", or "" for the default. */
static bool parse_size(const char *where, uint32_t *train, uint32_t *test, struct err *e) {
    unsigned long a = TRAIN_DEFAULT, b = TEST_DEFAULT;
    char rest;
    bool good = !*where || (where[0] >= '0' && where[0] <= '9' && strlen(where) < 20 &&
                            sscanf(where, "%lux%lu%c", &a, &b, &rest) == 2);
    if (!good || a < 1 || b < 1 || a > COUNT_MAX || b > COUNT_MAX)
        return err_set(
            e, "the size of the synthetic set is \"%.40s\"; give TRAINxTEST, each 1 to 1000000, as in 2000x500", where);
    *train = (uint32_t)a;
    *test = (uint32_t)b;
    return true;
}

static bool find(struct dataset *d, const char *where, struct err *e) {
    static const float mean[3] = {.5f, .5f, .5f}, std[3] = {.25f, .25f, .25f};
    uint32_t train = 0, test = 0;
    if (!parse_size(where, &train, &test, e)) return false;
    d->channels = 3;
    d->height = d->width = SIDE;
    d->classes = CLASSES;
    d->class_names = class_name;
    memcpy(d->mean, mean, sizeof mean);
    memcpy(d->std, std, sizeof std);
    snprintf(d->source, sizeof d->source, "built in, %ux%u", train, test);
    d->bytes = layout_bytes((size_t)train + test, IMAGE);
    return true;
}

static bool load(struct dataset *d, void *memory, struct err *e) {
    unsigned train, test;
    (void)e;
    if (sscanf(d->source, "built in, %ux%u", &train, &test) != 2)
        die("the source of a synthetic set is \"%s\"", d->source);
    uint8_t *pixels = layout_pixels(d, memory);
    int32_t *labels = layout_labels(d, memory);
    int8_t *noise = mem_alloc(NOISE_PERIOD + IMAGE, 1, "the noise of the synthetic set");
    make_noise(d->seed, noise);
    for (size_t i = 0; i < (size_t)train + test; i++) {
        uint64_t number = i < train ? i : TEST_NUMBER + (i - train); /* a larger set holds the smaller one */
        labels[i] = (int32_t)(number % CLASSES);
        make_image(d->seed, number, labels[i], noise, pixels + i * IMAGE);
    }
    mem_free(noise);
    layout_seal(d, memory, train, test);
    return true;
}

const struct dataset_ops dataset_synthetic = {
    .name = "synthetic",
    .summary =
        "made up on the spot from a seed: objects of 10 textures, 3 x 32 x 32, 20,000 to train on and 4,000 to test",
    .paper = "built in",
    .built_in = true,
    .find = find,
    .load = load,
    .attach = layout_attach,
};
