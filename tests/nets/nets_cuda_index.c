/* nets_cuda_index.c: the index arithmetic of the CUDA kernels (nets/cuda/cuda_index.h), run on the host over odd sizes:
 * every element is reached once, at the place that its definition says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "nets/cuda/cuda_frames.h"
#include "nets/cuda/cuda_index.h"

static struct cuda_shape shape_of(uint32_t n, uint32_t c, uint32_t h, uint32_t w, bool last) {
    return (struct cuda_shape){n, c, h, w, h * w, last};
}

static uint32_t count_of(const struct cuda_shape *s) {
    return s->images * s->channels * s->positions;
}

static const uint32_t sizes[][4] = {{1, 1, 1, 1},  {2, 3, 5, 7},    {3, 16, 4, 4}, {1, 10, 3, 3}, {2, 6, 33, 1},
                                    {1, 40, 2, 3}, {1, 2056, 1, 2}, {2, 7, 9, 31}, {1, 257, 1, 3}};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* -- bf16 ---------------------------------------------------------------------------------------------------------- */

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void bf16_is_the_nearest(void **state) {
    (void)state;
    struct rng r = rng_open(5, RNG_TEST, 1);
    for (int i = 0; i < 100000; i++) {
        uint32_t bits = rng_u32(&r);
        float value = float_of(bits);
        if (!isfinite(value) || (bits & 0x7f800000u) >= 0x7f000000u) continue; /* so that neighbours are finite */
        struct bf16 made = bf16_of(value);
        double error = fabs((double)bf16_value(made) - value);
        struct bf16 below = {(uint16_t)(made.bits - 1)}, above = {(uint16_t)(made.bits + 1)};
        double to_below = fabs((double)bf16_value(below) - value), to_above = fabs((double)bf16_value(above) - value);
        if ((made.bits & 0x7fffu) != 0) assert_true(error <= to_below);
        assert_true(error <= to_above);
        if (error == to_above || ((made.bits & 0x7fffu) != 0 && error == to_below))
            assert_int_equal(made.bits & 1u, 0); /* ties to even */
    }
}

static void bf16_keeps_what_is_special(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000u; bits++) { /* its own numbers come back as they were */
        struct bf16 half = {(uint16_t)bits};
        float value = bf16_value(half);
        if (isnan(value))
            assert_true(isnan(bf16_value(bf16_of(value))));
        else
            assert_int_equal(bf16_of(value).bits, bits);
    }
    assert_true(isnan(bf16_value(bf16_of(float_of(0x7f800001u))))); /* a NaN whose upper half is an infinity */
    assert_true(isnan(bf16_value(bf16_of(float_of(0xffffffffu)))));
    assert_true(bf16_value(bf16_of(float_of(0x7f7fffffu))) == INFINITY); /* the largest float is nearer to it */
    assert_int_equal(bf16_of(float_of(0x3f808000u)).bits, 0x3f80);       /* half way, the even one is below */
    assert_int_equal(bf16_of(float_of(0x3f818000u)).bits, 0x3f82);       /* above */
    assert_int_equal(bf16_of(float_of(0x3f808001u)).bits, 0x3f81);
}

/* -- places -------------------------------------------------------------------------------------------------------- */

static void places_and_elements_belong_together(void **state) {
    (void)state;
    for (size_t i = 0; i < SIZES; i++)
        for (int last = 0; last < 2; last++) {
            struct cuda_shape s = shape_of(sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], last != 0);
            uint32_t at = 0;
            for (uint32_t n = 0; n < s.images; n++)
                for (uint32_t outer = 0; outer < (last ? s.positions : s.channels); outer++)
                    for (uint32_t inner = 0; inner < (last ? s.channels : s.positions); inner++, at++) {
                        struct cuda_element e = cuda_element_at(&s, at);
                        assert_int_equal(e.image, n);
                        assert_int_equal(e.channel, last ? inner : outer);
                        assert_int_equal(e.position, last ? outer : inner);
                        assert_int_equal(cuda_place(&s, e), at);
                    }
        }
}

static void weights_are_turned(void **state) {
    (void)state;
    const uint32_t dims[][3] = {{1, 1, 1}, {4, 3, 9}, {2, 16, 25}, {5, 7, 1}};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        uint32_t out = dims[i][0], in = dims[i][1], window = dims[i][2], at = 0;
        for (uint32_t o = 0; o < out; o++)
            for (uint32_t p = 0; p < window; p++)
                for (uint32_t c = 0; c < in; c++, at++)
                    assert_int_equal(cuda_weight_place(at, in, window), (o * in + c) * window + p);
    }
}

/* -- augmentation and shortcuts ------------------------------------------------------------------------------------ */

/* An image moved, then mirrored, in two steps on arrays. */
static void cuts_are_shifts_and_mirrors(void **state) {
    (void)state;
    enum { H = 5, W = 7 };
    for (int down = -H - 1; down <= H + 1; down++)
        for (int right = -W - 1; right <= W + 1; right++)
            for (int flip = 0; flip < 2; flip++) {
                int moved[H][W];
                for (int y = 0; y < H; y++)
                    for (int x = 0; x < W; x++) {
                        bool inside = y + down >= 0 && y + down < H && x + right >= 0 && x + right < W;
                        moved[y][x] = inside ? (y + down) * W + x + right : -1;
                    }
                for (int y = 0; y < H; y++)
                    for (int x = 0; x < W; x++)
                        assert_int_equal(cuda_cut_source(H, W, down, right, flip, y, x),
                                         moved[y][flip ? W - 1 - x : x]);
            }
}

/* What forward copies is what backward brings back, every pair once. */
static void shortcuts_are_their_own_inverse(void **state) {
    (void)state;
    const uint32_t dims[][4] = {{16, 8, 8, 2}, {5, 7, 9, 2}, {3, 5, 5, 3}, {4, 4, 3, 1}};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        for (int last = 0; last < 2; last++) {
            uint32_t c = dims[i][0], stride = dims[i][3], pairs = 0, place;
            struct cuda_shape x = shape_of(2, c, dims[i][1], dims[i][2], last != 0);
            struct cuda_shape y =
                shape_of(2, c + 4, (x.height + stride - 1) / stride, (x.width + stride - 1) / stride, last != 0);
            for (uint32_t at = 0; at < count_of(&y); at++) {
                struct cuda_element to = cuda_element_at(&y, at);
                if (!cuda_shortcut_source(&x, &y, stride, to, &place)) {
                    assert_true(to.channel < 2 || to.channel >= 2 + c);
                    continue;
                }
                struct cuda_element from = cuda_element_at(&x, place);
                assert_int_equal(from.image, to.image);
                assert_int_equal(from.channel + 2, to.channel);
                assert_int_equal(from.position / x.width, to.position / y.width * stride);
                assert_int_equal(from.position % x.width, to.position % y.width * stride);
                assert_true(cuda_shortcut_target(&x, &y, stride, from, &place));
                assert_int_equal(place, at);
                pairs++;
            }
            assert_int_equal(pairs, 2 * c * y.positions);
            for (uint32_t at = 0; at < count_of(&x); at++)
                pairs -= cuda_shortcut_target(&x, &y, stride, cuda_element_at(&x, at), &place);
            assert_int_equal(pairs, 0);
        }
}

/* -- walks over channels ------------------------------------------------------------------------------------------- */

/* One block's threads walk; every element they meet is counted, and must be of the channel that the walk says. */
static void walk_block(const struct cuda_walk *w, uint32_t part, uint32_t parts, uint32_t slab, uint8_t *met) {
    for (uint32_t t = 0; t < CUDA_WALK_THREADS; t++) {
        if (!cuda_walk_takes_part(w, slab, t)) continue;
        uint32_t column = t % w->columns;
        for (uint32_t step = part * w->rows + t / w->columns; step < w->steps; step += parts * w->rows) {
            uint32_t at = cuda_walk_place(w, slab, column, step) * w->vector;
            for (uint32_t lane = 0; lane < w->vector; lane++) {
                assert_int_equal(cuda_element_at(&w->shape, at + lane).channel,
                                 cuda_walk_channel(w, slab, column, lane));
                met[at + lane]++;
            }
        }
    }
}

static void walks_meet_every_element_once(void **state) {
    (void)state;
    const uint32_t widest[] = {1, 4, 8};
    for (size_t i = 0; i < SIZES; i++)
        for (int k = 0; k < 6; k++) {
            struct cuda_shape s = shape_of(sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], k % 2 != 0);
            struct cuda_walk w = cuda_walk_of(&s, widest[k / 2]);
            uint8_t *met = mem_zalloc(count_of(&s), 1, "how often an element was met");
            assert_true(w.columns * w.rows <= CUDA_WALK_THREADS && w.rows > 0);
            for (uint32_t slab = 0; slab < w.slabs; slab++)
                for (uint32_t part = 0; part < 3; part++) walk_block(&w, part, 3, slab, met);
            for (uint32_t at = 0; at < count_of(&s); at++) assert_int_equal(met[at], 1);
            mem_free(met);
        }
}

/* -- steps in time ------------------------------------------------------------------------------------------------- */

/* Each place is that of its element, and the element of images that of cuda_element_at. */
static void check_steps(const struct cuda_steps *s, const struct cuda_shape *images, uint32_t n) {
    for (uint32_t at = 0; at < n; at++) {
        const struct cuda_step_element e = cuda_step_element_at(s, at);
        assert_true(e.utterance < s->utterances && e.channel < s->channels && e.row < s->rows && e.step < s->steps);
        assert_int_equal(cuda_step_place(s, e), at);
        if (!images) continue;
        const struct cuda_element wanted = cuda_element_at(images, at);
        assert_int_equal(e.utterance, wanted.image);
        assert_int_equal(e.channel, wanted.channel);
        assert_int_equal(e.row * images->width + e.step, wanted.position);
    }
}

static void steps_are_those_of_their_tensors(void **state) {
    (void)state;
    static const int32_t lengths[3] = {0, 1, 9};
    for (int i = 0; i < SIZES; i++) {
        const uint32_t *v = sizes[i];
        for (int last = 0; last < 2; last++) {
            const struct cuda_shape shape = shape_of(v[0], v[1], v[2], v[3], last);
            const struct cuda_steps images = cuda_steps_of_images(&shape, lengths, 1);
            check_steps(&images, &shape, count_of(&shape));
        }
        const struct cuda_steps rows = cuda_steps_of_rows(v[2] * v[3], v[0], v[1], lengths, 4);
        check_steps(&rows, NULL, v[0] * v[1] * v[2] * v[3]);
        assert_int_equal(cuda_valid_steps(&rows, 0), 0);
    }
    const struct cuda_steps three = cuda_steps_of_rows(3, 3, 2, lengths, 4);
    assert_int_equal(cuda_valid_steps(&three, 1), 1);
    assert_int_equal(cuda_valid_steps(&three, 2), 3);
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bf16_is_the_nearest),
        cmocka_unit_test(bf16_keeps_what_is_special),
        cmocka_unit_test(places_and_elements_belong_together),
        cmocka_unit_test(weights_are_turned),
        cmocka_unit_test(cuts_are_shifts_and_mirrors),
        cmocka_unit_test(shortcuts_are_their_own_inverse),
        cmocka_unit_test(walks_meet_every_element_once),
        cmocka_unit_test(steps_are_those_of_their_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
