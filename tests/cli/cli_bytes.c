/* cli_bytes.c: images that go to a device as bytes become the floats that the loader makes of them, bit by bit, and
 * batches that follow each other fast do not get mixed up. Skipped where the device's backend takes no bytes.
 * devices: cuda only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/table.h"
#include "data/loader.h"
#include "nets/backend.h"
#include "tests/lib/test_device.h"

enum { BATCH = 6, SEED = 5, BYTES = 256 };

struct world {
    struct dataset d;
    void *memory;
    float *table; /* [channels][256] */
    size_t image; /* bytes of an image, and floats */
};

static int open_world(void **state) {
    struct world *w = *state = mem_zalloc(1, sizeof *w, "a test's data");
    const struct dataset_ops *ops;
    struct err e = {0};
    TABLE_FIND(datasets, "synthetic", ops);
    if (!dataset_find(ops, "64x8", SEED, &w->d, &e)) return -1;
    w->memory = mem_alloc(w->d.bytes, 1, "a test's images");
    if (!dataset_load(&w->d, w->memory, &e)) return -1;
    dataset_attach(&w->d, w->memory);
    w->image = (size_t)w->d.channels * (size_t)w->d.height * (size_t)w->d.width;
    w->table = mem_alloc((size_t)w->d.channels * BYTES, sizeof *w->table, "the values of bytes");
    for (int c = 0; c < w->d.channels; c++)
        for (int v = 0; v < BYTES; v++)
            w->table[c * BYTES + v] = (float)((v / 255.0 - (double)w->d.mean[c]) / (double)w->d.std[c]);
    return 0;
}

static int close_world(void **state) {
    struct world *w = *state;
    mem_free(w->table);
    mem_free(w->memory);
    mem_free(w);
    return 0;
}

/* A batch in both forms: bytes with cuts, and what the loader makes of the same samples. */
struct batch_of_both {
    uint8_t *pixels;
    struct image_cut cut[BATCH];
    float *x;
    int32_t y[BATCH];
};

/* The cuts are those of loader.c: three numbers of the sequence that belongs to (seed, epoch, sample). */
static struct batch_of_both batch_open(const struct world *w, size_t number) {
    struct batch_of_both b = {.pixels = mem_alloc(BATCH * w->image, 1, "images"),
                              .x = mem_alloc(BATCH * w->image, sizeof *b.x, "images")};
    for (uint32_t i = 0; i < BATCH; i++) {
        uint32_t sample = (uint32_t)(number * 7 + i * 5) % (uint32_t)w->d.train.count;
        struct rng r = rng_open(SEED, RNG_AUGMENT, (uint64_t)number << 32 | sample);
        b.cut[i].down = (int32_t)rng_below(&r, 9) - 4;
        b.cut[i].right = (int32_t)rng_below(&r, 9) - 4;
        b.cut[i].flip = rng_below(&r, 2) == 1;
        memcpy(b.pixels + i * w->image, w->d.train.pixels + sample * w->image, w->image);
        loader_sample(&w->d, &w->d.train, sample, true, SEED, number, b.x + i * w->image);
        b.y[i] = w->d.train.labels[sample];
    }
    return b;
}

static void batch_close(struct batch_of_both *b) {
    mem_free(b->pixels);
    mem_free(b->x);
}

static void feed(const struct backend_ops *backend, void *state, const struct world *w, struct batch_of_both *b,
                 bool as_bytes, float *x) {
    const struct image_bytes bytes = {b->pixels, b->cut, w->table};
    const struct tensor shape = {
        .n = BATCH, .c = w->d.channels, .h = w->d.height, .w = w->d.width, .floats = BATCH * w->image};
    struct net_input input = {
        .x = as_bytes ? NULL : b->x, .bytes = as_bytes ? &bytes : NULL, .label = {b->y}, .labels = {BATCH}};
    input.valid = BATCH;
    backend->feed(state, &input, &shape, x, NULL);
    memset(b->pixels, 0xaa, BATCH * w->image); /* the caller's memory is the caller's again */
}

static bool served(void) {
    const struct backend_ops *backend = backend_for(test_device());
    if (backend && backend->takes_bytes) return true;
    printf("# SKIP bytes_become_the_loaders_floats: the backend of device %s takes images that are floats already\n",
           test_device()->name);
    return false;
}

static void bytes_become_the_loaders_floats(void **state) {
    enum { BATCHES = 6 };
    const struct world *w = *state;
    const struct backend_ops *backend = backend_for(test_device());
    const struct device_ops *device = test_device();
    if (!served()) skip();
    void *net = backend->open(&(struct backend_setup){.threads = 1});
    float *x[BATCHES];
    struct batch_of_both batch[BATCHES];
    for (size_t i = 0; i < BATCHES; i++) { /* all are given before the first is looked at */
        x[i] = device->alloc(BATCH * w->image * sizeof **x, "images");
        batch[i] = batch_open(w, i);
        feed(backend, net, w, &batch[i], i != 3, x[i]);
    }
    for (size_t i = 0; i < BATCHES; i++) {
        float *found = device_copy_to_host(device, x[i], BATCH * w->image, "images");
        assert_memory_equal(found, batch[i].x, BATCH * w->image * sizeof *found);
        mem_free(found);
        device->release(x[i]);
        batch_close(&batch[i]);
    }
    backend->close(net);
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    test_device(); /* says so and ends where there is none */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_become_the_loaders_floats, open_world, close_world)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
