/* nets_cuda_attention.c: the index arithmetic of attention on the GPU (nets/cuda/cuda_attention_index.h), run on the
 * host: every number of x and y belongs to one head, at the place that the layer's definition says; turns cover all
 * heads; what is dropped is what a walk over the elements one by one drops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>

#include "base/mem.h"
#include "nets/cuda/cuda_attention_index.h"

static const struct cuda_attention shapes[] = {{1, 1, 1, 1, false}, {2, 5, 3, 7, true},     {3, 1, 2, 16, false},
                                               {1, 64, 4, 1, true}, {5, 13, 1, 64, false},  {4, 33, 12, 3, true},
                                               {7, 2, 2, 2, true},  {1, 130, 16, 8, false}, {2, 9, 5, 4, false}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* x [sequences][T][3][heads][d], y [sequences][T][heads][d] */
static void each_number_belongs_to_one_head(void **state) {
    (void)state;
    for (size_t i = 0; i < SHAPES; i++) {
        const struct cuda_attention *a = &shapes[i];
        const uint32_t C = a->heads * a->d, rows = a->sequences * a->T;
        unsigned char *in = mem_zalloc((size_t)rows * 3 * C, 1, "numbers"), *out = mem_zalloc((size_t)rows * C, 1, "y");
        for (uint32_t s = 0; s < a->sequences; s++)
            for (uint32_t h = 0; h < a->heads; h++)
                for (uint32_t t = 0; t < a->T; t++)
                    for (uint32_t k = 0; k < a->d; k++) {
                        const uint32_t head = s * a->heads + h, row = s * a->T + t;
                        for (uint32_t part = 0; part < 3; part++) {
                            const uint32_t at = attention_in(a, head, part) + t * 3 * C + k;
                            assert_int_equal(at, ((row * 3 + part) * a->heads + h) * a->d + k);
                            in[at]++;
                        }
                        assert_int_equal(attention_out(a, head) + t * C + k, (row * a->heads + h) * a->d + k);
                        out[attention_out(a, head) + t * C + k]++;
                    }
        for (uint32_t n = 0; n < rows * 3 * C; n++) assert_int_equal(in[n], 1);
        for (uint32_t n = 0; n < rows * C; n++) assert_int_equal(out[n], 1);
        assert_true(attention_pitch(a) % 4 == 0 && attention_pitch(a) >= a->T && attention_pitch(a) < a->T + 4);
        mem_free(in);
        mem_free(out);
    }
}

/* The largest tensors that there can be. */
static void large_places_do_not_wrap(void **state) {
    (void)state;
    const struct cuda_attention a = {10922, 32768, 1, 1, true}; /* x: 3 * 10922 * 32768 = 1,073,676,288 numbers */
    assert_int_equal(attention_in(&a, 10921, 2), 10921u * 98304u + 2);
    assert_int_equal(attention_out(&a, 10921), 10921u * 32768u);
    assert_int_equal(attention_chunk(&a, 64 << 20), 1);
    const struct cuda_attention flat = {1 << 20, 1, 4, 64, false};
    assert_int_equal(attention_in(&flat, (4 << 20) - 1, 2), (3u * ((1 << 20) - 1) + 2) * 256u + 192u);
    assert_int_equal(attention_chunk(&flat, 64 << 20), 1 << 21);
}

static void turns_cover_all_heads(void **state) {
    (void)state;
    static const size_t most[] = {0, 1, 1000, 4096, 100000, 1 << 20, 64 << 20};
    for (size_t i = 0; i < SHAPES; i++)
        for (size_t m = 0; m < sizeof most / sizeof *most; m++) {
            const struct cuda_attention *a = &shapes[i];
            const uint32_t heads = attention_heads(a), chunk = attention_chunk(a, most[m]);
            const size_t each = 2 * sizeof(float) * a->T * attention_pitch(a);
            assert_true(chunk >= 1 && chunk <= heads && (chunk == 1 || chunk * each <= most[m]));
            const uint32_t turns = (heads + chunk - 1) / chunk, last = heads - (turns - 1) * chunk;
            assert_true(last >= 1 && chunk - last < turns); /* even */
            assert_true(turns == 1 || (turns - 1) * (most[m] / each) < heads ||
                        chunk == 1); /* and no more than needed */
        }
    const struct cuda_attention gpt = {8, 1024, 12, 64, true};
    assert_int_equal(attention_chunk(&gpt, 64 << 20), 8);
}

static void queries_see_what_they_may(void **state) {
    (void)state;
    for (uint32_t T = 1; T < 9; T++)
        for (int causal = 0; causal < 2; causal++)
            for (int32_t length = -2; length < (int32_t)T + 3; length++)
                for (uint32_t i = 0; i < T; i++) {
                    const struct cuda_attention a = {1, T, 1, 1, causal != 0};
                    const int32_t whole = length < 1 ? 1 : length > (int32_t)T ? (int32_t)T : length;
                    uint32_t seen = 0;
                    for (int32_t j = 0; j < whole; j++) seen += !causal || j <= (int32_t)i;
                    assert_int_equal(attention_keys(&a, i, length), seen);
                }
}

/* Element row * T + j is dropped by its number, which has more than 32 bits. */
static void factors_are_those_of_the_elements(void **state) {
    (void)state;
    const struct dropout how = dropout_of(77, 5, 0.4);
    static const uint32_t lengths[] = {1, 2, 3, 4, 5, 7, 8, 13, 1023, 1024, 1025, 32767};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (uint32_t k = 0; k < 40; k++) {
            const uint32_t T = lengths[i], most = (uint32_t)(0x3fffffff0ull / T), j = k * 4 % ((T + 3) / 4 * 4);
            const uint32_t row = k < 20 ? k : (most < 0x3fffffffu ? most : 0x3fffffffu) - k;
            const struct dropout_factors made = attention_factors(&how, 3, 2, T, row, j);
            for (uint32_t l = 0; l < 4 && j + l < T; l++) {
                const uint64_t element = (uint64_t)row * T + j + l;
                const struct dropout_factors wanted = dropout_block(&how, 3, 2, (uint32_t)(element / 4));
                assert_true(made.of[l] == wanted.of[element % 4]);
            }
        }
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_number_belongs_to_one_head),
        cmocka_unit_test(large_places_do_not_wrap),
        cmocka_unit_test(turns_cover_all_heads),
        cmocka_unit_test(queries_see_what_they_may),
        cmocka_unit_test(factors_are_those_of_the_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
