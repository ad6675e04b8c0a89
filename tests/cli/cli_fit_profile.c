/* cli_fit_profile.c: what a profile says and what is drawn from it: the expected unions against sums over binomial
 * distributions; drawn gradients against those, for many numbers of ranks, scaled and as they are; a recording of drawn
 * gradients gives back the profile that they were drawn from; a profile written and read is the same. The bounds are
 * five standard deviations, and come from the distributions. No MPI. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/mem.h"
#include "cli/draw.h"
#include "cli/gradients/radix.h"

enum { RANKS = 64 };
static char path[64];

static void fresh_path(void) {
    strcpy(path, "/tmp/sparsetrain-fit-XXXXXX");
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
}

/* -- profiles to draw from ----------------------------------------------------------------------------------------- */

/* A large slice, one in which every second entry is selected, one of one entry, an empty share, one of 16. */
static const struct profile_slice some_slices[] = {{50000, 0.5, "large.weight"}, {1500, 0.25, "full"},
                                                   {1, 0.0001, "one"},           {3000, 0, "nothing here"},
                                                   {16, 0.002, "small.bias"},    {8000, 0.2479, "last"}};
enum { SLICES = sizeof some_slices / sizeof *some_slices, N = 62517 };

static struct profile profile_with(double q, double h) {
    struct profile p = {.model = "m", .data = "d:e f", .n = N, .ranks = 3, .steps = 7, .distance = 5, .k = 3000};
    p.density = 0.048;
    p.overlap = (struct overlap){q, h};
    p.sign_agreement = 0.8;
    p.persistence = 0.6;
    for (int i = 0; i < PROFILE_TAIL; i++) p.tail[i] = 0.1 * i + 0.003 * i * i;
    p.measured = mem_zalloc(p.ranks, sizeof *p.measured, "unions");
    p.fitted = mem_zalloc(p.ranks, sizeof *p.fitted, "unions");
    p.slices = SLICES;
    p.slice = mem_zalloc(SLICES, sizeof *p.slice, "slices");
    memcpy(p.slice, some_slices, sizeof some_slices);
    for (uint64_t i = 0; i < p.ranks; i++) {
        p.measured[i] = 1000 / 3.0 * (double)(i + 1);
        p.fitted[i] = profile_union(&p, (double)i + 1);
    }
    return p;
}

/* -- the model ----------------------------------------------------------------------------------------------------- */

/* sum over a = 1..P of C(P, a) p^a (1 - p)^(P - a) */
static double some_rank(double p, int P) {
    double sum = 0;
    for (int a = 1; a <= P; a++)
        sum += exp(lgamma(P + 1) - lgamma(a + 1) - lgamma(P - a + 1)) * pow(p, a) * pow(1 - p, P - a);
    return sum;
}

static void close_to(double got, double wanted, double slack) {
    if (!(fabs(got - wanted) <= slack)) fail_msg("%.10g, not %.10g within %g", got, wanted, slack);
}

static const double models[][2] = {{0, 1}, {0.3, 0.4}, {0.5, 2}, {0.9, 0.9}, {1, 1.5}, {1, 30}};
enum { MODELS = sizeof models / sizeof *models };

static void unions_are_those_of_binomial_draws(void **state) {
    (void)state;
    for (int m = 0; m < MODELS; m++) {
        struct profile p = profile_with(models[m][0], models[m][1]);
        close_to(profile_union(&p, 1), p.k, 1e-9 * p.k);
        for (int P = 1; P <= 40; P += 3) {
            double sum = 0;
            for (int j = 0; j < SLICES; j++) {
                double n = (double)p.slice[j].size, k = p.k * p.slice[j].share, q = models[m][0], h = models[m][1];
                if (q == 0 || k * h >= n * q)
                    sum += n * some_rank(k / n, P);
                else
                    sum += h * k * some_rank(q / h, P) + (n - h * k) * some_rank((1 - q) * k / (n - h * k), P);
            }
            close_to(profile_union(&p, P), sum, 1e-9 * sum);
        }
        profile_close(&p);
    }
}

/* Unions without noise give the numbers they were made with; of two ranks, those that fit with h = 1. */
static void exact_unions_are_fitted(void **state) {
    (void)state;
    const struct overlap_slice s[] = {{100000, 700}, {2000, 200}, {64, 40}, {5, 0}};
    double U[9];
    for (int m = 0; m < MODELS; m++) {
        const struct overlap o = {models[m][0], models[m][1]};
        for (size_t ranks = 2; ranks <= 9; ranks += ranks < 4 ? 1 : 5) {
            for (size_t P = 1; P <= ranks; P++) U[P - 1] = overlap_union(&o, s, 4, (double)P);
            struct overlap found = overlap_fit(s, 4, U, ranks);
            for (size_t P = 1; P <= ranks; P++)
                close_to(overlap_union(&found, s, 4, (double)P), U[P - 1], 1e-4 * U[P - 1]);
            if (ranks == 2) assert_true(found.h == 1);
            if (ranks == 2 || o.q == 0 || o.h > 10) continue; /* where hardly anything is shared, many fit */
            close_to(found.q, o.q, 0.01);
            close_to(found.h, o.h, 0.02 * o.h);
        }
    }
}

/* -- draws --------------------------------------------------------------------------------------------------------- */

/* Of `ranks` ranks in a step: how many different indices there are among entries >= 1 of the first P ranks. */
static void union_sizes(struct draw *d, uint64_t step, size_t ranks, double *size, struct sparse *s) {
    unsigned char *seen = calloc(d->n, 1);
    double count = 0;
    assert_non_null(seen);
    for (size_t r = 0; r < ranks; r++) {
        draw_entries(d, r, step, s);
        assert_true(sparse_valid(s, d->n));
        for (size_t i = 0; i < s->nnz; i++) {
            assert_true(isfinite(s->val[i]) && fabsf(s->val[i]) >= 0.5F);
            if (fabsf(s->val[i]) < 1) continue;
            count += !seen[s->idx[i]];
            seen[s->idx[i]] = 1;
        }
        size[r] = count;
    }
    free(seen);
}

/* Mean over T steps of the union of P ranks. With the hot sets given, entries are there or not independently of each
 * other and from step to step, which gives a variance below E[U] / T; and of a slice's hot entries one is there in part
 * of the time, which changes the sum by at most one. */
static double deviation(double expected, size_t slices, double T) {
    return sqrt(expected / T + (double)slices);
}

/* Closes the profile. */
static void draws_overlap_as_expected(struct profile p, size_t n, size_t k) {
    const double T = k < 10000 ? 10 : 2;
    static const size_t shown[] = {1, 2, 3, 4, 5, 7, 8, RANKS};
    double mean[RANKS] = {0}, size[RANKS];
    size_t slices = p.slices;
    struct draw d;
    struct sparse s;
    draw_open(&d, &p, n, k, 3);
    profile_close(&p);
    sparse_open(&s, d.room);
    for (uint64_t t = 0; t < (uint64_t)T; t++) {
        union_sizes(&d, t, RANKS, size, &s);
        for (int r = 0; r < RANKS; r++) mean[r] += size[r] / T;
    }
    close_to(draw_union(&d, 1), (double)k, 1e-6 * (double)k);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        double expected = draw_union(&d, (double)shown[i]);
        close_to(mean[shown[i] - 1], expected, 5 * deviation(expected, slices, T));
    }
    sparse_close(&s);
    draw_close(&d);
}

static void drawn_unions_are_as_expected(void **state) {
    (void)state;
    for (int m = 0; m < MODELS; m++) draws_overlap_as_expected(profile_with(models[m][0], models[m][1]), N, 3000);
}

static void scaled_draws_are_as_expected(void **state) {
    (void)state;
    draws_overlap_as_expected(profile_with(0.4, 0.6), 10 * N + 7, 3000);
    draws_overlap_as_expected(profile_with(0.4, 0.6), N / 10, 300);
    draws_overlap_as_expected(profile_with(0.4, 0.6), N, 30000); /* two slices are full */
    draws_overlap_as_expected(profile_with(0.4, 0.6), N, 60000); /* all with a share are, and more is wanted */
    draws_overlap_as_expected(profile_with(0.4, 0.6), 3, 1);
}

/* 400 biases of 16 entries, in which a sixth of an entry is hot: in most of them there is none at a time. */
static void small_slices_overlap_as_expected(void **state) {
    (void)state;
    enum { MANY = 400 };
    struct profile p = profile_with(0.5, 0.6);
    mem_free(p.slice);
    p.slice = mem_zalloc(MANY, sizeof *p.slice, "slices");
    for (p.slices = 0; p.slices < MANY; p.slices++) p.slice[p.slices] = (struct profile_slice){16, 1.0 / MANY, "bias"};
    p.n = MANY * 16;
    draws_overlap_as_expected(p, MANY * 16, 110);
}

/* All of them: what scatters the entries over the slices is a permutation of each. */
static void density_1_is_every_entry(void **state) {
    (void)state;
    for (size_t n = 1; n < 70000; n = 3 * n + 1) {
        struct profile p = profile_with(0.5, 0.7);
        struct draw d;
        struct sparse s;
        draw_open(&d, &p, n, n, 3);
        sparse_open(&s, d.room);
        draw_entries(&d, 1, 1, &s);
        assert_int_equal(s.nnz, n);
        assert_true(sparse_valid(&s, n));
        sparse_close(&s);
        draw_close(&d);
        profile_close(&p);
    }
}

/* Numbers, sizes and shares of the slices of the entries of many draws. */
static void entries_are_as_the_profile_says(void **state) {
    (void)state;
    enum { T = 200 };
    struct profile p = profile_with(0.5, 0.7);
    struct draw d;
    struct sparse s;
    double all = 0, large = 0, above[PROFILE_TAIL] = {0}, in_slice[SLICES] = {0};
    draw_open(&d, &p, N, 3000, 9);
    sparse_open(&s, d.room);
    for (uint64_t t = 0; t < T; t++) {
        draw_entries(&d, t % 5, t, &s);
        all += (double)s.nnz;
        for (size_t i = 0, j = 0; i < s.nnz; i++) {
            double value = fabs((double)s.val[i]);
            while (s.idx[i] >= d.slice[j].from + d.slice[j].size) j++;
            if (value < 1) continue;
            large++;
            in_slice[j]++;
            for (int q = 0; q < PROFILE_TAIL; q++) above[q] += log(value) >= p.tail[q] - 1e-6;
        }
    }
    close_to(large / T, 3000, 5 * deviation(3000, SLICES, T));
    close_to(all / T, 3750, 5 * deviation(3750, SLICES, T)); /* no slice is so full that it has none to spare */
    for (int j = 0; j < SLICES; j++)
        close_to(in_slice[j] / T, 3000 * p.slice[j].share, 5 * deviation(3000 * p.slice[j].share, 1, T));
    for (int q = 0; q < PROFILE_TAIL; q++) {
        double part = exp2(-0.5 * q);
        close_to(above[q] / large, part, 5 * sqrt(part * (1 - part) / large) + 1e-12);
    }
    sparse_close(&s);
    draw_close(&d);
    profile_close(&p);
}

/* -- from draws back to the profile -------------------------------------------------------------------------------- */

/* A recording of draws, as cli/gradients/record.h describes the file. Of the density's warm-up `before` steps come
 * first. */
static void write_recording(struct draw *d, size_t ranks, size_t steps, size_t before) {
    struct record_head head = {.magic = "STRAINS", .version = 1, .byte_order = 0x01020304, .n = d->n, .ranks = ranks};
    const struct record_selection selection = {3000, 0.048};
    struct record_slice slice[SLICES] = {{"", 0}};
    struct sparse s;
    head.magic[7] = 'E';
    head.slices = SLICES;
    snprintf(head.model, sizeof head.model, "m");
    snprintf(head.data, sizeof head.data, "d:e f");
    for (int j = 0; j < SLICES; j++) {
        memcpy(slice[j].name, some_slices[j].name, sizeof slice[j].name);
        slice[j].size = d->slice[j].size;
    }
    fresh_path();
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    uint32_t crc = crc32_of(crc32_of(0, &head, sizeof head), &selection, sizeof selection);
    crc = crc32_of(crc, slice, sizeof slice);
    fwrite(&head, sizeof head, 1, f);
    fwrite(&selection, sizeof selection, 1, f);
    fwrite(slice, sizeof slice, 1, f);
    fwrite(&crc, sizeof crc, 1, f);
    sparse_open(&s, d->room);
    for (size_t t = 0; t < before + steps; t++)
        for (size_t r = 0; r < ranks; r++) {
            size_t kept = 0;
            draw_entries(d, r, 5 * t, &s);
            for (size_t i = 0; i < s.nnz; i++)
                if (fabsf(s.val[i]) >= 1) s.idx[kept] = s.idx[i], s.val[kept++] = s.val[i];
            struct record_row row = {5 * t, t < before ? 7 : 3000, kept, (uint32_t)r, 0, 0, 0};
            row.crc = crc32_of(crc32_of(0, s.idx, 4 * kept), s.val, 4 * kept);
            row.row_crc = crc32_of(0, &row, sizeof row);
            fwrite(&row, sizeof row, 1, f);
            fwrite(s.idx, 4, kept, f);
            fwrite(s.val, 4, kept, f);
        }
    assert_int_equal(fclose(f), 0);
    sparse_close(&s);
}

static struct profile fitted_to_file(size_t left_out) {
    struct record_reader in;
    struct profile p;
    struct err e = {0};
    size_t left;
    if (!record_selected_open(&in, path, &e)) fail_msg("%s", e.text);
    if (!profile_fit(&p, &in, &left, &e)) fail_msg("%s", e.text);
    assert_int_equal(left, left_out);
    record_read_close(&in);
    remove(path);
    return p;
}

/* How far q and h move when measured unions move by five deviations, each in the direction that is worst. */
static struct overlap tolerance(const struct profile *known, const double *exact, size_t ranks, double steps) {
    struct overlap_slice s[SLICES];
    double U[16];
    struct overlap sum = {0.002, 0.002};
    for (int j = 0; j < SLICES; j++) s[j] = profile_overlap_slice(&known->slice[j], known->k);
    for (size_t P = 2; P <= ranks; P++) {
        memcpy(U, exact, ranks * sizeof *U);
        U[P - 1] += 5 * deviation(exact[P - 1], SLICES, steps);
        struct overlap moved = overlap_fit(s, SLICES, U, ranks);
        sum.q += fabs(moved.q - known->overlap.q);
        sum.h += fabs(moved.h - known->overlap.h);
    }
    return sum;
}

/* The sum of numbers of 0 to M has a variance of at most M times its mean where they are independent. Indices are (with
 * the hot sets given); M: pairs of ranks. Half as much again for what the choice of the hot sets adds. */
static double pair_deviation(double mean, double M) {
    return 1.5 * sqrt(M * mean);
}

static void fit_finds_the_profile(void **state) {
    (void)state;
    enum { RECORDED = 8, STEPS = 60 };
    struct profile known = profile_with(0.45, 0.6);
    double exact[RECORDED], k = 0;
    struct draw d;
    draw_open(&d, &known, N, 3000, 5);
    write_recording(&d, RECORDED, STEPS, 2);
    struct profile p = fitted_to_file(2);
    for (int P = 1; P <= RECORDED; P++) {
        exact[P - 1] = profile_union(&known, P);
        close_to(p.measured[P - 1], exact[P - 1], 5 * deviation(exact[P - 1], SLICES, STEPS));
        close_to(p.fitted[P - 1], p.measured[P - 1], 5 * deviation(exact[P - 1], SLICES, STEPS));
    }
    struct overlap slack = tolerance(&known, exact, RECORDED, STEPS);
    assert_true(slack.q < 0.1 && slack.h < 0.2); /* else it would say little */
    close_to(p.overlap.q, 0.45, slack.q);
    close_to(p.overlap.h, 0.6, slack.h);
    assert_false(p.h_fixed);
    close_to(p.k, 3000, 5 * deviation(3000, SLICES, STEPS * RECORDED));
    double M = RECORDED * (RECORDED - 1), shared = (2 * exact[0] - exact[1]) * M / 2 * STEPS;
    close_to(p.sign_agreement, 0.8, 5 * pair_deviation(shared, M / 2) / shared);
    double again = 0.6 * (2 * exact[0] - exact[1]) * M * (STEPS - 1);
    close_to(p.persistence, 0.6, 5 * pair_deviation(again, M) / again);
    assert_true(p.distance == 5);
    assert_true(p.steps == STEPS && p.ranks == RECORDED && p.n == N && p.density == 0.048);
    for (int i = 0; i < PROFILE_TAIL; i += 4) { /* the smallest of each rank is not 1 but next to it */
        double part = exp2(-0.5 * i), entries = p.k * STEPS * RECORDED, slope = 0.1 + 0.006 * (i + 1);
        if (part * entries < 100) break;
        close_to(p.tail[i], known.tail[i], 5 * slope * 2 / log(2) / sqrt(part * entries) + 0.003);
    }
    for (int j = 0; j < SLICES; j++) {
        assert_string_equal(p.slice[j].name, some_slices[j].name);
        assert_int_equal(p.slice[j].size, some_slices[j].size);
        k += p.slice[j].share;
    }
    close_to(k, 1, 1e-12);
    profile_close(&p);
    profile_close(&known);
    draw_close(&d);
}

/* Two ranks give one number; one step says nothing of persistence; ranks that share nothing but by chance. */
static void fit_says_what_it_does_not_know(void **state) {
    (void)state;
    struct profile known = profile_with(0.45, 0.6);
    struct draw d;
    draw_open(&d, &known, N, 3000, 5);
    write_recording(&d, 2, 1, 0);
    struct profile p = fitted_to_file(0);
    assert_true(p.h_fixed && p.overlap.h == 1 && p.overlap.q > 0.3 && p.overlap.q < 1);
    close_to(p.fitted[1], p.measured[1], 0.01);
    assert_true(p.persistence == 0 && p.distance == 0);
    profile_close(&p);
    write_recording(&d, 1, 3, 0);
    struct record_reader in;
    struct err e = {0};
    size_t left;
    assert_true(record_selected_open(&in, path, &e));
    assert_false(profile_fit(&p, &in, &left, &e));
    assert_non_null(strstr(e.text, "is of one rank"));
    record_read_close(&in);
    remove(path);
    write_recording(&d, 2, 0, 2); /* nothing but warm-up */
    e = (struct err){0};
    assert_true(record_selected_open(&in, path, &e));
    assert_false(profile_fit(&p, &in, &left, &e));
    assert_non_null(strstr(e.text, "has no entry in a step of k = 3000"));
    record_read_close(&in);
    remove(path);
    draw_close(&d);
    profile_close(&known);
}

/* -- files --------------------------------------------------------------------------------------------------------- */

static void same_profile(const struct profile *a, const struct profile *b) {
    assert_string_equal(a->model, b->model);
    assert_string_equal(a->data, b->data);
    assert_true(a->n == b->n && a->ranks == b->ranks && a->steps == b->steps && a->distance == b->distance);
    assert_true(a->k == b->k && a->density == b->density && a->overlap.q == b->overlap.q);
    assert_true(a->overlap.h == b->overlap.h && a->h_fixed == b->h_fixed);
    assert_true(a->sign_agreement == b->sign_agreement && a->persistence == b->persistence);
    assert_memory_equal(a->tail, b->tail, sizeof a->tail);
    assert_memory_equal(a->measured, b->measured, a->ranks * sizeof *a->measured);
    assert_memory_equal(a->fitted, b->fitted, a->ranks * sizeof *a->fitted);
    assert_int_equal(a->slices, b->slices);
    for (uint64_t j = 0; j < a->slices; j++) {
        assert_true(a->slice[j].size == b->slice[j].size && a->slice[j].share == b->slice[j].share);
        assert_string_equal(a->slice[j].name, b->slice[j].name);
    }
}

static void what_is_written_is_read(void **state) {
    (void)state;
    struct profile p = profile_with(1.0 / 3, 0.6), q;
    struct err e = {0};
    p.h_fixed = true;
    fresh_path();
    assert_true(profile_write(&p, path, &e));
    if (!profile_read(&q, path, &e)) fail_msg("%s", e.text);
    same_profile(&p, &q);
    profile_close(&q);

    /* Cut off anywhere but within the last line's name: one line of error, nothing left behind. */
    char *text = profile_load(path, &e);
    size_t length = strlen(text);
    long live = mem_live();
    for (size_t cut = 0; cut + 6 < length; cut += 5) {
        char *part = mem_printf("%.*s", (int)cut, text);
        e = (struct err){0};
        assert_false(profile_parse(&q, part, "file", &e));
        assert_true(e.text[0] && !strchr(e.text, '\n'));
        mem_free(part);
    }
    assert_int_equal(mem_live(), live);
    mem_free(text);

    /* What stands behind a NUL would not be seen. */
    FILE *file = fopen(path, "ab");
    assert_non_null(file);
    assert_int_equal(fwrite("\0slice", 1, 6, file), 6);
    fclose(file);
    e = (struct err){0};
    assert_false(profile_read(&q, path, &e));
    assert_non_null(strstr(e.text, "it is no text"));
    remove(path);
    assert_false(profile_write(&p, "/nowhere/profile", &e));
    profile_close(&p);
}

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a & 0xffffff, y = *(const uint64_t *)b & 0xffffff;
    return (x > y) - (x < y);
}

static void radix_sorts_by_low_bytes(void **state) {
    (void)state;
    enum { COUNT = 5000 };
    static uint64_t key[COUNT], wanted[COUNT], scratch[COUNT];
    for (size_t count = 0; count <= COUNT; count = 3 * count + 1) {
        for (size_t i = 0; i < count; i++) wanted[i] = key[i] = (uint64_t)i << 40 | (uint64_t)(i + 1) * 3001 % 16777213;
        qsort(wanted, count, sizeof *wanted, ascending);
        radix_sort(key, scratch, count, 16777216);
        assert_memory_equal(key, wanted, count * sizeof *key);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(unions_are_those_of_binomial_draws),
                                       cmocka_unit_test(exact_unions_are_fitted),
                                       cmocka_unit_test(drawn_unions_are_as_expected),
                                       cmocka_unit_test(scaled_draws_are_as_expected),
                                       cmocka_unit_test(small_slices_overlap_as_expected),
                                       cmocka_unit_test(density_1_is_every_entry),
                                       cmocka_unit_test(entries_are_as_the_profile_says),
                                       cmocka_unit_test(fit_finds_the_profile),
                                       cmocka_unit_test(fit_says_what_it_does_not_know),
                                       cmocka_unit_test(what_is_written_is_read),
                                       cmocka_unit_test(radix_sorts_by_low_bytes)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("cli_fit_profile", tests, NULL, NULL);
}
