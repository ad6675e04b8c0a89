/* Masking: what is chosen and what becomes of it, over many sequences and epochs; that it is a function of (seed,
 * epoch, sequence); batches to train on at any number of ranks, resumed anywhere; batches to evaluate on. */
#include "tests/lib/data_pairs_support.h"

#include <math.h>

#include "data/loader.h"
#include "data/pairs/masked.h"

enum { LENGTH = 64, MOST = 7, RUN_SEED = 42 };

struct fixture {
    struct dataset d;
    void *memory;
    char *dir;
};

static int open_set(void **state) {
    static struct fixture f;
    struct err e = {0};
    *state = &f;
    if (!unicode_is_here()) return 0;
    f.dir = make_wiki();
    f.memory = load_wiki(f.dir, LENGTH, &f.d, &e);
    return f.memory ? 0 : -1;
}

static int close_set(void **state) {
    struct fixture *f = *state;
    if (!f->memory) return 0;
    mem_free(f->memory);
    remove_tree(f->dir);
    return 0;
}

static struct masked make_masked(const struct dataset *d, int batch, int most) {
    const size_t rows = (size_t)batch, length = (size_t)d->length;
    int32_t *all = mem_alloc(rows * (2 * length + 2 * (size_t)most + 2), sizeof *all, "a batch");
    return (struct masked){.token = all,
                           .type = all + rows * length,
                           .chosen = all + 2 * rows * length,
                           .y = all + 2 * rows * length + rows * (size_t)most,
                           .lengths = all + 2 * rows * length + 2 * rows * (size_t)most,
                           .next = all + 2 * rows * length + 2 * rows * (size_t)most + rows};
}

/* -- one sequence -------------------------------------------------------------------------------------------------- */

/* What became of chosen pieces. */
struct tally {
    size_t chosen, masked, kept, other;
};

/* The sequence with what was hidden put back, and everything around it. */
static void check_row(const struct dataset *d, const struct pair *p, const struct pair_set *set, int most,
                      const struct masked *m, struct tally *t) {
    const int n = p->a_length + p->b_length, first = p->a_length + 2, all = n + 3;
    int wanted = (int)floor(0.15 * n + 0.5), count = 0;
    wanted = wanted > most ? most : wanted < 1 ? 1 : wanted;
    int32_t token[LENGTH];
    memcpy(token, m->token, sizeof token);
    for (int k = 0; k < most; k++) {
        if (m->y[k] < 0) {
            assert_int_equal(m->y[k], -1);
            assert_int_equal(m->chosen[k], 0);
            continue;
        }
        const int32_t at = m->chosen[k], now = token[at];
        assert_int_equal(count++, k); /* those that ask for nothing come last */
        assert_true(k == 0 || at > m->chosen[k - 1]);
        assert_true(at > 0 && at != first - 1 && at < all - 1); /* no special piece */
        t->masked += now == d->special.mask, t->kept += now == m->y[k];
        t->other += now != d->special.mask && now != m->y[k];
        token[at] = m->y[k];
    }
    assert_int_equal(count, wanted);
    t->chosen += (size_t)count;
    for (int i = 0; i < LENGTH; i++) {
        int32_t expected = i == 0                           ? d->special.cls
                           : i == first - 1 || i == all - 1 ? d->special.sep
                           : i >= all                       ? d->special.pad
                           : i < first                      ? set->piece[p->a + (uint32_t)i - 1]
                                                            : set->piece[p->b + (uint32_t)(i - first)];
        assert_int_equal(token[i], expected);
        assert_int_equal(m->type[i], i >= first && i < all);
    }
    assert_int_equal(m->lengths[0], all);
    assert_int_equal(m->next[0], p->random);
}

/* Within five standard deviations of share * n. */
static void about(size_t found, size_t n, double share) {
    double off = (double)found - share * (double)n, sigma = sqrt((double)n * share * (1 - share));
    if (fabs(off) > 5 * sigma) fail_msg("%zu of %zu, expected a share of %g", found, n, share);
}

static void what_is_masked(void **state) {
    const struct fixture *f = *state;
    need_unicode("what_is_masked");
    const struct pair_set *set = &f->d.train_pairs;
    static const int most_of[] = {1, MOST, LENGTH};
    for (size_t i = 0; i < 3; i++) {
        struct masked m = make_masked(&f->d, 1, most_of[i]);
        struct tally t = {0};
        for (size_t epoch = 0; epoch < 40; epoch++)
            for (uint32_t s = 0; s < set->count; s++) {
                const struct masking how = {RNG_MASK, RUN_SEED, epoch, most_of[i]};
                masked_fill(&f->d, set, &how, s, 0, &m);
                check_row(&f->d, &set->pair[s], set, most_of[i], &m, &t);
            }
        assert_true(t.chosen > 10000);
        const double any = 1.0 / PIECES; /* a random piece may be [MASK], or what was there */
        about(t.masked, t.chosen, 0.8 + 0.1 * any);
        about(t.kept, t.chosen, 0.1 + 0.1 * any);
        about(t.other, t.chosen, 0.1 * (1 - 2 * any));
        mem_free(m.token);
    }
}

/* Parts of every length, from one piece each. */
static void every_length(void **state) {
    const struct fixture *f = *state;
    need_unicode("every_length");
    struct masked m = make_masked(&f->d, 1, MOST);
    struct tally t = {0};
    for (uint16_t a = 1; a < LENGTH - 3; a++)
        for (uint16_t b = 1; a + b <= LENGTH - 3; b++) {
            const struct pair p = {.a = 3, .b = 7, .a_length = a, .b_length = b};
            const struct pair_set set = {.piece = f->d.train_pairs.piece, .pair = &p, .count = 1};
            const struct masking how = {RNG_MASK, 1, (size_t)a << 16 | b, MOST};
            masked_fill(&f->d, &set, &how, 0, 0, &m);
            check_row(&f->d, &p, &set, MOST, &m, &t);
        }
    mem_free(m.token);
}

/* Of one full sequence each place is chosen equally often, and pairs of places, too. */
static void every_place_alike(void **state) {
    const struct fixture *f = *state;
    need_unicode("every_place_alike");
    enum { EPOCHS = 30000 };
    const struct pair_set *set = &f->d.train_pairs;
    uint32_t s = 0;
    while (set->pair[s].a_length + set->pair[s].b_length != LENGTH - 3) s++;
    size_t place[LENGTH] = {0}, both = 0, special = 0;
    struct masked m = make_masked(&f->d, 1, LENGTH);
    for (size_t epoch = 0; epoch < EPOCHS; epoch++) {
        const struct masking how = {RNG_MASK, RUN_SEED, epoch, LENGTH};
        masked_fill(&f->d, set, &how, s, 0, &m);
        for (int k = 0; m.y[k] >= 0; k++) place[m.chosen[k]]++;
        both += m.chosen[0] == 1 && m.y[1] >= 0 && m.chosen[1] == 2;
    }
    const int wanted = 9, n = LENGTH - 3; /* 0.15 * 61 = 9.15 */
    for (int i = 0; i < LENGTH; i++) {
        const bool is_special = i == 0 || i == set->pair[s].a_length + 1 || i == LENGTH - 1;
        special += is_special;
        if (is_special)
            assert_int_equal(place[i], 0);
        else
            about(place[i], EPOCHS, (double)wanted / n);
    }
    assert_int_equal(special, 3);
    if (set->pair[s].a_length >= 2) about(both, EPOCHS, (double)wanted * (wanted - 1) / (n * (n - 1.0)));
    mem_free(m.token);
}

/* The same again; others with another seed, epoch, sequence or stream. */
static void a_function(void **state) {
    const struct fixture *f = *state;
    need_unicode("a_function");
    const struct masking how[] = {{RNG_MASK, 1, 3, MOST}, {RNG_MASK, 1, 3, MOST},      {RNG_MASK, 2, 3, MOST},
                                  {RNG_MASK, 1, 4, MOST}, {RNG_MASK_EVAL, 1, 3, MOST}, {RNG_MASK, 1, 3, MOST}};
    struct masked m[6];
    size_t same[6] = {0};
    for (int i = 0; i < 6; i++) m[i] = make_masked(&f->d, 1, MOST);
    for (uint32_t s = 0; s + 1 < f->d.train_pairs.count; s++)
        for (int i = 0; i < 6; i++) {
            masked_fill(&f->d, &f->d.train_pairs, &how[i], s + (i == 5), 0, &m[i]);
            same[i] += memcmp(m[0].chosen, m[i].chosen, MOST * sizeof(int32_t)) == 0;
        }
    const size_t count = f->d.train_pairs.count - 1;
    for (int i = 0; i < 6; i++) {
        if (i < 2 ? same[i] != count : same[i] > count / 10) fail_msg("%d: %zu of %zu are the same", i, same[i], count);
        mem_free(m[i].token);
    }
}

static void places_enough(void **state) {
    (void)state;
    assert_int_equal(masked_most(128), 20);
    assert_int_equal(masked_most(512), 77);
    assert_int_equal(masked_most(16), 3);
}

/* -- batches ------------------------------------------------------------------------------------------------------- */

static struct loader_setup setup_of(const struct dataset *d, int batch, int rank, int size) {
    return (struct loader_setup){
        .data = d, .batch = batch, .rank = rank, .size = size, .seed = RUN_SEED, .predictions = MOST};
}

/* What a row of a batch has is what masked_fill gives for this sequence in this epoch. */
static void expect_row(const struct dataset *d, const struct batch *b, int row, size_t epoch, uint32_t sequence) {
    const struct masking how = {RNG_MASK, RUN_SEED, epoch, MOST};
    struct masked m = make_masked(d, 1, MOST);
    masked_fill(d, &d->train_pairs, &how, sequence, 0, &m);
    const size_t i = (size_t)row;
    assert_int_equal(b->index[row], sequence);
    assert_memory_equal(b->token + i * LENGTH, m.token, LENGTH * sizeof(int32_t));
    assert_memory_equal(b->type + i * LENGTH, m.type, LENGTH * sizeof(int32_t));
    assert_memory_equal(b->chosen + i * MOST, m.chosen, MOST * sizeof(int32_t));
    assert_memory_equal(b->y + i * MOST, m.y, MOST * sizeof(int32_t));
    assert_int_equal(b->lengths[row], m.lengths[0]);
    assert_int_equal(b->next[row], m.next[0]);
    mem_free(m.token);
}

/* Two epochs and a bit: position q of the order is sequence permutation[q mod n] of epoch q / n, whoever has it. */
static void any_number_of_ranks(void **state) {
    const struct fixture *f = *state;
    need_unicode("any_number_of_ranks");
    static const int sizes[] = {1, 2, 3, 4, 5, 7, 8};
    const size_t n = f->d.train_pairs.count;
    uint32_t *order[3];
    for (size_t epoch = 0; epoch < 3; epoch++) {
        order[epoch] = mem_alloc(n, sizeof **order, "an order");
        loader_permutation(RUN_SEED, epoch, (uint32_t)n, order[epoch]);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int accumulate = 1; accumulate <= 3; accumulate += 2) {
            const size_t P = (size_t)sizes[i], B = 5, N = (size_t)accumulate, step = B * N * P,
                         steps = 2 * n / step + 1;
            for (size_t r = 0; r < P; r++) {
                struct loader_setup setup = setup_of(&f->d, (int)B, (int)r, (int)P);
                setup.accumulate = accumulate;
                struct loader *l = loader_open(&setup);
                for (size_t s = 0; s < steps * N; s++) {
                    const struct batch *b = loader_next(l);
                    assert_int_equal(b->step, s / N);
                    assert_int_equal(b->part, s % N);
                    assert_null(b->x);
                    for (size_t k = 0; k < B; k++) {
                        size_t q = (s / N) * step + (r * N + s % N) * B + k;
                        expect_row(&f->d, b, (int)k, q / n, order[q / n][q % n]);
                    }
                }
                loader_close(l);
            }
        }
    for (size_t epoch = 0; epoch < 3; epoch++) mem_free(order[epoch]);
}

static void resumed(void **state) {
    const struct fixture *f = *state;
    need_unicode("resumed");
    for (size_t from = 1; from < 40; from += 6) {
        struct loader_setup setup = setup_of(&f->d, 4, 1, 3);
        setup.accumulate = 2;
        struct loader *whole = loader_open(&setup);
        setup.first_step = from;
        struct loader *rest = loader_open(&setup);
        for (size_t i = 0; i < 2 * from; i++) loader_next(whole);
        for (int i = 0; i < 6; i++) {
            const struct batch *a = loader_next(whole), *b = loader_next(rest);
            assert_int_equal(a->step, b->step);
            assert_int_equal(a->part, b->part);
            assert_memory_equal(a->index, b->index, 4 * sizeof *a->index);
            assert_memory_equal(a->token, b->token, 4 * LENGTH * sizeof *a->token);
            assert_memory_equal(a->y, b->y, 4 * MOST * sizeof *a->y);
        }
        loader_close(whole);
        loader_close(rest);
    }
}

/* A batch larger than the set; the number of places by default. */
static void less_than_a_batch(void **state) {
    (void)state;
    need_unicode("less_than_a_batch");
    struct err e = {0};
    struct dataset d;
    char *dir = make_directory();
    write_vocabulary(dir);
    for (int i = 0; i < 3; i++) write_line(dir, wiki_name[i], "= a =\n\nb c .\n\n= d =\n\ne f .\n");
    void *memory = load_wiki(dir, 16, &d, &e);
    assert_string_equal(e.text, "");
    struct loader_setup setup = {.data = &d, .batch = 40, .size = 1, .seed = 1};
    struct loader *l = loader_open(&setup);
    const size_t n = d.train_pairs.count;
    assert_in_range(n, 2, 4);
    size_t seen[4] = {0};
    const struct batch *b = loader_next(l);
    for (int i = 0; i < 40; i++) {
        assert_true(b->index[i] < n);
        seen[b->index[i]]++;
        assert_true(b->y[3 * i] >= 0 && b->y[3 * i + 2] == -1); /* 3 places of 16, of which so short ones take one */
    }
    for (size_t i = 0; i < n; i++) assert_in_range(seen[i], 40 / n, 40 / n + 1);
    loader_close(l);
    mem_free(memory);
    remove_tree(dir);
}

/* -- to evaluate on ------------------------------------------------------------------------------------------------ */

static void to_evaluate_on(void **state) {
    const struct fixture *f = *state;
    need_unicode("to_evaluate_on");
    enum { BATCH = 6 };
    const struct pair_set *set = &f->d.valid_pairs;
    struct masked m = make_masked(&f->d, BATCH, MOST), one = make_masked(&f->d, 1, MOST);
    const struct masking how = {RNG_MASK_EVAL, 0, 0, MOST};
    for (size_t from = 0; from < set->count; from += BATCH) {
        int valid = set->count - from < BATCH ? (int)(set->count - from) : BATCH;
        masked_fill_eval(&f->d, set, from, valid, BATCH, MOST, &m);
        for (int i = 0; i < BATCH; i++) {
            masked_fill(&f->d, set, &how, (uint32_t)(i < valid ? from + (size_t)i : set->count - 1), 0, &one);
            assert_memory_equal(m.token + i * LENGTH, one.token, LENGTH * sizeof(int32_t));
            assert_int_equal(m.lengths[i], one.lengths[0]);
            assert_int_equal(m.next[i], i < valid ? one.next[0] : -1);
            for (int k = 0; k < MOST; k++) {
                assert_int_equal(m.y[i * MOST + k], i < valid ? one.y[k] : -1);
                assert_int_equal(m.chosen[i * MOST + k], i < valid ? one.chosen[k] : 0);
            }
        }
    }
    masked_fill_eval(&f->d, set, set->count, 0, BATCH, MOST, &m); /* an empty share */
    for (int i = 0; i < BATCH; i++) assert_int_equal(m.next[i], -1);
    mem_free(m.token);
    mem_free(one.token);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_masked),    cmocka_unit_test(every_place_alike),   cmocka_unit_test(a_function),
        cmocka_unit_test(places_enough),     cmocka_unit_test(every_length),        cmocka_unit_test(resumed),
        cmocka_unit_test(less_than_a_batch), cmocka_unit_test(any_number_of_ranks), cmocka_unit_test(to_evaluate_on),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_set, close_set);
}
