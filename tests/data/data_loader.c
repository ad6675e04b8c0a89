/* The loader: permutations, sharding over any number of ranks, augmentation against a naive reimplementation,
 * resuming, stopping the thread at any moment, evaluation shares. */
#include "tests/lib/data_support.h"

#include <math.h>

#include "base/rng.h"
#include "data/loader.h"

enum { TRAIN = 103, TEST = 17 }; /* primes: no batch size divides them */

struct fixture {
    struct dataset d;
    void *memory;
};

static int open_set(void **state) {
    static struct fixture f;
    struct err e = {0};
    f.memory = load_set(&dataset_synthetic, "103x17", 5, &f.d, &e);
    *state = &f;
    return f.memory ? 0 : -1;
}

static int close_set(void **state) {
    mem_free(((struct fixture *)*state)->memory);
    return 0;
}

/* -- the order ----------------------------------------------------------------------------------------------------- */

static void permutations(void **state) {
    (void)state;
    uint32_t *a = mem_alloc(5000, sizeof *a, "a"), *b = mem_alloc(5000, sizeof *b, "b");
    for (uint32_t n = 1; n <= 5000; n = 3 * n + 1) {
        char seen[5000] = {0};
        loader_permutation(7, 3, n, a);
        loader_permutation(7, 3, n, b);
        assert_memory_equal(a, b, n * sizeof *a);
        for (uint32_t i = 0; i < n; i++) {
            assert_true(a[i] < n && !seen[a[i]]);
            seen[a[i]] = 1;
        }
    }
    loader_permutation(7, 3, 1000, a);
    for (int other = 0; other < 3; other++) {
        int same = 0;
        loader_permutation(other == 1 ? 8 : 7, other == 2 ? 4 : 3, 1000, b);
        for (int i = 0; i < 1000; i++) same += a[i] == b[i];
        if (other)
            assert_in_range(same, 0, 15); /* 1 is expected */
        else
            assert_int_equal(same, 1000);
    }
    mem_free(a);
    mem_free(b);
}

/* Of many permutations of 4, each of the 24 comes about equally often. */
static void permutations_are_uniform(void **state) {
    (void)state;
    int count[256] = {0};
    for (size_t epoch = 0; epoch < 24000; epoch++) {
        uint32_t p[4];
        loader_permutation(11, epoch, 4, p);
        count[p[0] << 6 | p[1] << 4 | p[2] << 2 | p[3]]++;
    }
    int kinds = 0;
    for (int i = 0; i < 256; i++)
        if (count[i]) {
            kinds++;
            assert_in_range(count[i], 840, 1160); /* five standard deviations around 1000 */
        }
    assert_int_equal(kinds, 24);
}

static struct loader_setup setup_of(const struct dataset *d, int batch, int rank, int size) {
    return (struct loader_setup){.data = d, .batch = batch, .rank = rank, .size = size, .seed = 42, .augment = true};
}

/* Global position q holds sample permutation(q / n)[q mod n], whatever P and the batch size: so over the ranks each
 * epoch is complete. Labels, numbers and pictures belong together. */
static void check_union(const struct dataset *d, int size, int batch) {
    struct loader *l[8];
    size_t steps = (size_t)(2 * TRAIN / (size * batch) + 2), image = IMAGE;
    uint32_t order[TRAIN];
    float *x = mem_alloc(image, sizeof *x, "a sample");
    size_t have = SIZE_MAX;
    for (int r = 0; r < size; r++) {
        struct loader_setup s = setup_of(d, batch, r, size);
        l[r] = loader_open(&s);
    }
    for (size_t step = 0, q = 0; step < steps; step++)
        for (int r = 0; r < size; r++) {
            const struct batch *b = loader_next(l[r]);
            assert_int_equal(b->step, step);
            for (int i = 0; i < batch; i++, q++) {
                size_t epoch = q / TRAIN;
                if (epoch != have) loader_permutation(42, epoch, TRAIN, order);
                have = epoch;
                assert_int_equal(b->index[i], order[q % TRAIN]);
                assert_int_equal(b->y[i], d->train.labels[b->index[i]]);
                loader_sample(d, &d->train, b->index[i], true, 42, epoch, x);
                assert_memory_equal(x, b->x + (size_t)i * image, image * sizeof *x);
            }
        }
    for (int r = 0; r < size; r++) loader_close(l[r]);
    mem_free(x);
}

static void union_is_the_epoch(void **state) {
    static const int sizes[] = {1, 2, 3, 4, 5, 7, 8}, batches[] = {1, 6, 16, 50};
    struct fixture *f = *state;
    for (size_t i = 0; i < 7; i++)
        for (size_t j = 0; j < 4; j++) check_union(&f->d, sizes[i], batches[j]);
}

/* A batch larger than the set: several epochs in one step. */
static void batch_beyond_the_set(void **state) {
    struct fixture *f = *state;
    check_union(&f->d, 1, 2 * TRAIN + 5);
    check_union(&f->d, 3, TRAIN);
}

static void first_step_resumes(void **state) {
    struct fixture *f = *state;
    for (size_t first = 1; first <= 30; first += 7) {
        struct loader_setup s = setup_of(&f->d, 10, 1, 3);
        struct loader *whole = loader_open(&s);
        s.first_step = first;
        struct loader *resumed = loader_open(&s);
        for (size_t step = 0; step < first + 8; step++) {
            const struct batch *a = loader_next(whole);
            if (step < first) continue;
            const struct batch *b = loader_next(resumed);
            assert_int_equal(b->step, step);
            assert_memory_equal(a->index, b->index, 10 * sizeof *a->index);
            assert_memory_equal(a->y, b->y, 10 * sizeof *a->y);
            assert_memory_equal(a->x, b->x, 10 * IMAGE * sizeof *a->x);
        }
        loader_close(whole);
        loader_close(resumed);
    }
}

/* Batches of a step: put end to end they are the one batch of as many images that a step could have, on every rank and
 * in every step; a resumed run goes on with the first part of its step. */
static void parts_of_a_step(void **state) {
    enum { EACH = 5, PARTS = 3, STEPS = 9, FIRST = 4 };
    struct fixture *f = *state;
    for (int size = 1; size <= 4; size++)
        for (int rank = 0; rank < size; rank++) {
            struct loader_setup s = setup_of(&f->d, EACH * PARTS, rank, size);
            struct loader *whole = loader_open(&s);
            s.batch = EACH;
            s.accumulate = PARTS;
            struct loader *parts = loader_open(&s);
            s.first_step = FIRST;
            struct loader *resumed = loader_open(&s);
            for (size_t step = 0; step < STEPS; step++) {
                const struct batch *all = loader_next(whole);
                for (int i = 0; i < PARTS; i++) {
                    const struct batch *b = loader_next(parts), *other = step < FIRST ? b : loader_next(resumed);
                    assert_true(b->step == step && b->part == i && other->step == step && other->part == i);
                    assert_memory_equal(b->index, all->index + i * EACH, EACH * sizeof *b->index);
                    assert_memory_equal(b->y, all->y + i * EACH, EACH * sizeof *b->y);
                    assert_memory_equal(b->x, all->x + (size_t)i * EACH * IMAGE, EACH * IMAGE * sizeof *b->x);
                    assert_memory_equal(b->x, other->x, EACH * IMAGE * sizeof *b->x);
                }
            }
            loader_close(whole);
            loader_close(parts);
            loader_close(resumed);
        }
}

/* A batch stays as it is until the next call, however far ahead the thread is. */
static void batch_stays(void **state) {
    struct fixture *f = *state;
    struct loader_setup s = setup_of(&f->d, 8, 0, 1);
    struct loader *l = loader_open(&s);
    float *kept = mem_alloc(8 * IMAGE, sizeof *kept, "a batch");
    for (int step = 0; step < 20; step++) {
        const struct batch *b = loader_next(l);
        memcpy(kept, b->x, 8 * IMAGE * sizeof *kept);
        usleep(2000); /* time for the thread to go wrong in */
        assert_memory_equal(kept, b->x, 8 * IMAGE * sizeof *kept);
    }
    mem_free(kept);
    loader_close(l);
}

static void stops_anywhere(void **state) {
    struct fixture *f = *state;
    for (int taken = 0; taken < 12; taken++)
        for (int wait = 0; wait < 4; wait++) {
            struct loader_setup s = setup_of(&f->d, 1 + 13 * wait, 0, 2);
            struct loader *l = loader_open(&s);
            for (int i = 0; i < taken; i++) loader_next(l);
            if (wait) usleep((useconds_t)(wait * 300));
            loader_close(l);
        }
    loader_close(NULL);
}

/* -- what is in a sample ------------------------------------------------------------------------------------------- */

/* Normalisation, padding, crop and flip the long way round: the padded picture is built, cut, mirrored. */
static void naive_sample(const struct dataset *d, const uint8_t *pixels, int down, int right, bool flip, float *x) {
    for (int c = 0; c < 3; c++) {
        uint8_t padded[40][40] = {{0}};
        for (int y = 0; y < 32; y++) memcpy(padded[y + 4] + 4, pixels + c * 1024 + y * 32, 32);
        for (int y = 0; y < 32; y++)
            for (int i = 0; i < 32; i++) {
                double v = padded[y + 4 + down][(flip ? 31 - i : i) + 4 + right] / 255.0;
                x[c * 1024 + y * 32 + i] = (float)((v - (double)d->mean[c]) / (double)d->std[c]);
            }
    }
}

static bool matches(const float *a, const float *b) {
    for (int i = 0; i < IMAGE; i++)
        if (fabsf(a[i] - b[i]) > 1e-6f) return false;
    return true;
}

/* Which of the 9 x 9 x 2 cuts a sample is; all are met about equally often. */
static void augmentation_is_crop_and_flip(void **state) {
    struct fixture *f = *state;
    const struct dataset *d = &f->d;
    int downs[9] = {0}, rights[9] = {0}, flips[2] = {0};
    float x[IMAGE], naive[IMAGE];
    for (size_t epoch = 0; epoch < 6; epoch++)
        for (uint32_t sample = 0; sample < 60; sample++) {
            int found = 0;
            loader_sample(d, &d->train, sample, true, 9, epoch, x);
            for (int cut = 0; cut < 162; cut++) {
                int down = cut / 18 - 4, right = cut / 2 % 9 - 4, flip = cut % 2;
                naive_sample(d, d->train.pixels + sample * IMAGE, down, right, flip, naive);
                if (!matches(x, naive)) continue;
                found++;
                downs[down + 4]++;
                rights[right + 4]++;
                flips[flip]++;
            }
            assert_int_equal(found, 1);
        }
    for (int i = 0; i < 9; i++) {
        assert_in_range(downs[i], 12, 68); /* 40 are expected */
        assert_in_range(rights[i], 12, 68);
    }
    assert_in_range(flips[0], 130, 230);
}

static void plain_samples(void **state) {
    struct fixture *f = *state;
    float x[IMAGE], naive[IMAGE];
    for (uint32_t sample = 0; sample < 10; sample++) {
        naive_sample(&f->d, f->d.test.pixels + sample * IMAGE, 0, 0, false, naive);
        loader_sample(&f->d, &f->d.test, sample, false, 9, sample, x);
        assert_true(matches(x, naive));
    }
}

/* Another epoch, seed or sample: another cut (mostly); the same three: the same. P does not enter. */
static void augmentation_depends_on(void **state) {
    struct fixture *f = *state;
    const struct dataset *d = &f->d;
    float a[IMAGE], b[IMAGE];
    int epochs = 0, seeds = 0;
    for (uint32_t sample = 0; sample < 50; sample++) {
        loader_sample(d, &d->train, sample, true, 1, 2, a);
        loader_sample(d, &d->train, sample, true, 1, 2, b);
        assert_memory_equal(a, b, sizeof a);
        loader_sample(d, &d->train, sample, true, 1, 3, b);
        epochs += memcmp(a, b, sizeof a) != 0;
        loader_sample(d, &d->train, sample, true, 2, 2, b);
        seeds += memcmp(a, b, sizeof a) != 0;
    }
    assert_in_range(epochs, 45, 50);
    assert_in_range(seeds, 45, 50);
}

static void no_augmentation(void **state) {
    struct fixture *f = *state;
    struct loader_setup s = setup_of(&f->d, 20, 0, 1);
    s.augment = false;
    struct loader *l = loader_open(&s);
    const struct batch *b = loader_next(l);
    float naive[IMAGE];
    for (int i = 0; i < 20; i++) {
        naive_sample(&f->d, f->d.train.pixels + b->index[i] * (size_t)IMAGE, 0, 0, false, naive);
        assert_true(matches(b->x + i * IMAGE, naive));
    }
    loader_close(l);
}

/* -- evaluation ---------------------------------------------------------------------------------------------------- */

static void shares(void **state) {
    (void)state;
    static const size_t counts[] = {0, 1, 2, 7, 9980, 10000, 4294967295u};
    for (size_t i = 0; i < 7; i++)
        for (int size = 1; size <= 40; size++) {
            size_t next = 0, least = SIZE_MAX, most = 0;
            for (int rank = 0; rank < size; rank++) {
                size_t from, to;
                loader_share(counts[i], rank, size, &from, &to);
                assert_int_equal(from, next);
                assert_true(to >= from);
                next = to;
                if (to - from < least) least = to - from;
                if (to - from > most) most = to - from;
            }
            assert_int_equal(next, counts[i]);
            assert_true(most - least <= 1);
        }
}

static void test_batches(void **state) {
    struct fixture *f = *state;
    const struct dataset *d = &f->d;
    static const struct {
        size_t from;
        int valid;
    } cases[] = {{0, 8}, {3, 5}, {16, 1}, {12, 5}, {0, 0}, {17, 0}};
    float *x = mem_alloc(8 * IMAGE, sizeof *x, "a batch"), naive[IMAGE];
    for (size_t c = 0; c < 6; c++) {
        int32_t y[8];
        loader_fill_test(d, cases[c].from, cases[c].valid, 8, x, y);
        for (int i = 0; i < 8; i++) {
            int place = i < cases[c].valid ? i : cases[c].valid ? cases[c].valid - 1 : 0;
            size_t sample = cases[c].from + (size_t)place;
            if (sample == TEST) sample--;
            assert_int_equal(y[i], d->test.labels[sample]);
            naive_sample(d, d->test.pixels + sample * IMAGE, 0, 0, false, naive);
            assert_true(matches(x + i * IMAGE, naive));
        }
    }
    mem_free(x);
}

/* A plain definition of what base/image.h says of a batch as bytes. */
static void cut_from_bytes(const struct image_bytes *b, size_t image, int height, int width, float *x) {
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < height; y++)
            for (int i = 0; i < width; i++) {
                const struct image_cut *cut = &b->cut[image];
                int row = y + cut->down, column = (cut->flip ? width - 1 - i : i) + cut->right, value = 0;
                if (row >= 0 && row < height && column >= 0 && column < width)
                    value = b->pixels[((image * 3 + (size_t)c) * (size_t)height + (size_t)row) * (size_t)width +
                                      (size_t)column];
                *x++ = b->table[c * 256 + value];
            }
}

/* Bytes, cuts and table say the same, bit for bit, as the floats of the same batch. */
static void bytes_are_the_floats(void **state) {
    struct fixture *f = *state;
    enum { BATCH = 19 };
    for (int augment = 0; augment < 2; augment++) {
        struct loader_setup s = setup_of(&f->d, BATCH, 1, 3);
        s.augment = augment;
        struct loader *floats = loader_open(&s);
        s.bytes = true;
        struct loader *bytes = loader_open(&s);
        int moved = 0;
        for (int step = 0; step < 9; step++) { /* several epochs, the ring of batches twice */
            const struct batch *a = loader_next(floats), *b = loader_next(bytes);
            assert_true(a->x && !a->bytes.pixels && !b->x && b->step == a->step);
            assert_memory_equal(a->y, b->y, BATCH * sizeof *a->y);
            assert_memory_equal(a->index, b->index, BATCH * sizeof *a->index);
            for (size_t i = 0; i < BATCH; i++) {
                float x[IMAGE];
                cut_from_bytes(&b->bytes, i, 32, 32, x);
                assert_memory_equal(x, a->x + i * IMAGE, sizeof x);
                moved += b->bytes.cut[i].down != 0 || b->bytes.cut[i].right != 0 || b->bytes.cut[i].flip != 0;
            }
        }
        assert_true(augment ? moved > 100 : moved == 0);
        loader_close(floats);
        loader_close(bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(permutations),       cmocka_unit_test(permutations_are_uniform),
        cmocka_unit_test(union_is_the_epoch), cmocka_unit_test(batch_beyond_the_set),
        cmocka_unit_test(first_step_resumes), cmocka_unit_test(batch_stays),
        cmocka_unit_test(stops_anywhere),     cmocka_unit_test(augmentation_is_crop_and_flip),
        cmocka_unit_test(plain_samples),      cmocka_unit_test(augmentation_depends_on),
        cmocka_unit_test(no_augmentation),    cmocka_unit_test(shares),
        cmocka_unit_test(test_batches),       cmocka_unit_test(bytes_are_the_floats),
        cmocka_unit_test(parts_of_a_step),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_set, close_set);
}
