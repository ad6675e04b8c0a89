/* data_layout.c: image sets in the memory of a node: what one rank puts there, another finds, whatever the size of an
 * image does to the alignment of labels, and whatever the number of classes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "data/layout.h"

enum { TRAIN = 5, TEST = 2, ROOM = 9 };

/* A set of images of `width` pixels; returns its memory. */
static uint8_t *filled(struct dataset *d, int width, int classes) {
    *d = (struct dataset){.channels = 1, .height = 1, .width = width, .classes = classes};
    d->bytes = layout_bytes(ROOM, (size_t)width);
    uint8_t *memory = mem_zalloc(d->bytes, 1, "a set");
    assert_int_equal(layout_capacity(d), ROOM);
    uint8_t *pixels = layout_pixels(d, memory);
    int32_t *labels = layout_labels(d, memory);
    assert_int_equal((uintptr_t)labels % sizeof *labels, 0);
    assert_true((uint8_t *)labels >= pixels + ROOM * (size_t)width);
    assert_true((uint8_t *)(labels + ROOM) <= memory + d->bytes);
    for (int i = 0; i < TRAIN + TEST; i++) {
        memset(pixels + (size_t)i * (size_t)width, 10 + i, (size_t)width);
        labels[i] = classes - 1 - i;
    }
    layout_seal(d, memory, TRAIN, TEST);
    return memory;
}

static void what_is_sealed_is_attached(void **state) {
    (void)state;
    static const int classes[] = {10, 256, 257, 1000, 21841};
    for (int width = 1; width <= 8; width++)
        for (size_t c = 0; c < sizeof classes / sizeof *classes; c++) {
            struct dataset d;
            uint8_t *memory = filled(&d, width, classes[c]), expected[(TRAIN + TEST) * 4];
            layout_attach(&d, memory);
            assert_int_equal(d.train.count, TRAIN);
            assert_int_equal(d.test.count, TEST);
            size_t bytes = 0;
            for (int i = 0; i < TRAIN + TEST; i++) {
                const struct image_set *set = i < TRAIN ? &d.train : &d.test;
                const int at = i < TRAIN ? i : i - TRAIN, label = classes[c] - 1 - i;
                assert_int_equal(set->labels[at], label);
                assert_int_equal(set->pixels[at * width + width - 1], 10 + i);
                expected[bytes++] = (uint8_t)(label % 256);
                if (classes[c] <= 256) continue;
                expected[bytes++] = (uint8_t)(label / 256);
                expected[bytes++] = 0;
                expected[bytes++] = 0;
            }
            const uint32_t crc = crc32_of(0, d.train.pixels, (size_t)(TRAIN + TEST) * (size_t)width);
            assert_int_equal(d.checksum, crc32_of(crc, expected, bytes));
            mem_free(memory);
        }
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_sealed_is_attached)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
