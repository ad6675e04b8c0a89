/* comm_wire.c: the wire format and the search for NaN and infinities, without MPI. (What a bad message does is in
 * comm_ends.c: it ends the job.) */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "comm/finite.h"
#include "comm/wire.h"

static void there_and_back(void **state) {
    (void)state;
    enum { N = 1000 };
    uint32_t message[2 * 64];
    for (size_t nnz = 0; nnz <= 64; nnz++) {
        struct sparse s, view;
        sparse_open(&s, 64);
        for (size_t i = 0; i < nnz; i++) {
            s.idx[i] = (uint32_t)(i == 63 ? N - 1 : 15 * i);
            s.val[i] = (float)i - 3.5f;
        }
        s.nnz = nnz;
        assert_int_equal(wire_capacity(wires[0], nnz), 8 * nnz);
        assert_int_equal(wires[0]->encode(&s, 0, N, message), 8 * nnz);
        wire_read(wires[0], message, 8 * nnz, 0, N, 0, NULL, &view);
        assert_int_equal(view.nnz, nnz);
        for (size_t i = 0; i < nnz; i++) assert_true(view.idx[i] == s.idx[i] && view.val[i] == s.val[i]);
        if (nnz) assert_memory_equal(message, s.idx, 4 * nnz); /* indices first, then values */
        if (nnz) assert_memory_equal(message + nnz, s.val, 4 * nnz);
        sparse_close(&s);
    }
}

static void lowest_bad_entry(void **state) {
    (void)state;
    enum { N = 10000 };
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    float *v = calloc(N, sizeof *v);
    assert_non_null(v);
    for (int i = 0; i < N; i++) v[i] = (i % 3 ? 3.4028234e38f : -1e-45f) * (float)(i % 2 ? 1 : -1);
    assert_int_equal(first_nonfinite(v, N), N);
    assert_int_equal(first_nonfinite(v, 0), 0);
    const size_t at[] = {0, 1, 4095, 4096, 4097, 8191, N - 1};
    for (size_t b = 0; b < 4; b++) {
        for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
            float keep = v[at[i]], last = v[N - 1];
            v[N - 1] = v[at[i]] = bad[b];
            assert_int_equal(first_nonfinite(v, N), at[i]);
            assert_int_equal(first_nonfinite(v, at[i]), at[i]);
            v[N - 1] = last;
            v[at[i]] = keep;
        }
    }
    free(v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(lowest_bad_entry),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
