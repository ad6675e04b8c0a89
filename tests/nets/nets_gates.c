/* nets_gates.c: the sigmoid and the hyperbolic tangent of the CPU's LSTM against those of the C library, from end to
 * end of what a float holds, and its cell at the edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "nets/cpu/cpu_lstm.h"

/* Of a result: two units in its last place. */
#define ERROR_RELATIVE 2.5e-7
/* Arguments are cut where the sigmoid is about this. */
#define LEAST_SIGMOID 1e-38

struct cell {
    float i, f, g, o, c, h;
};

static struct cell cell_of(float i, float f, float g, float o, float c_before) {
    enum { WIDTH = 19 }; /* no multiple of a vector: all of them must say the same */
    float gates[4][WIDTH], c[WIDTH], before[WIDTH], h[WIDTH], bias[4 * WIDTH] = {0};
    for (int k = 0; k < WIDTH; k++) {
        gates[0][k] = i, gates[1][k] = f, gates[2][k] = g, gates[3][k] = o;
        before[k] = c_before;
    }
    const struct cpu_lstm_row row = {
        .hidden = WIDTH, .begin = 0, .end = WIDTH, .gates = gates[0], .c_before = before, .c = c};
    cpu_lstm_forward(&row, bias, h);
    for (int k = 1; k < WIDTH; k++) {
        for (int gate = 0; gate < 4; gate++) assert_memory_equal(&gates[gate][k], &gates[gate][0], sizeof(float));
        assert_memory_equal(&c[k], &c[0], sizeof(float));
        assert_memory_equal(&h[k], &h[0], sizeof(float));
    }
    return (struct cell){gates[0][0], gates[1][0], gates[2][0], gates[3][0], c[0], h[0]};
}

static void check(float x) {
    const struct cell cell = cell_of(x, x, x, x, 0);
    const double sigmoid = 1 / (1 + exp(-(double)x)), tangent = tanh((double)x);
    if (!(fabs(cell.i - sigmoid) <= ERROR_RELATIVE * sigmoid + LEAST_SIGMOID))
        fail_msg("sigmoid(%.9g) is %.9g, not %.9g", (double)x, (double)cell.i, sigmoid);
    if (!(fabs(cell.g - tangent) <= ERROR_RELATIVE * fabs(tangent)))
        fail_msg("tanh(%.9g) is %.9g, not %.9g", (double)x, (double)cell.g, tangent);
    assert_true(cell.i == cell.f && cell.i == cell.o && cell.i <= 1 && fabsf(cell.g) <= 1);
    assert_true(cell.c == cell.i * cell.g);
}

static void values_are_those_of_the_library(void **state) {
    (void)state;
    for (int i = -130000; i <= 130000; i++) check((float)i / 1000);
    for (float x = FLT_MIN; x < 1e30f; x *= 1.37f) check(x), check(-x);
    check(0);
    check(0.625f);
    check(nextafterf(0.625f, 0));
    check(FLT_MAX);
    check(-FLT_MAX);
    check(INFINITY);
    check(-INFINITY);
}

static void nan_stays_nan(void **state) {
    (void)state;
    assert_true(isnan(cell_of(NAN, 0, 1, 0, 0).h));
    assert_true(isnan(cell_of(0, NAN, 1, 0, 0).h));
    assert_true(isnan(cell_of(0, 0, NAN, 0, 0).h));
    assert_true(isnan(cell_of(0, 0, 1, NAN, 0).h));
    assert_true(isnan(cell_of(0, 0, 1, 0, NAN).h));
}

/* A cell forgets, keeps and takes in. */
static void gates_do_their_work(void **state) {
    (void)state;
    assert_true(fabsf(cell_of(-100, -100, 3, 0, 5).c) < 1e-30f);
    assert_true(cell_of(-100, 100, 3, 0, 5).c == 5);
    assert_true(cell_of(100, -100, 100, 0, 5).c == 1);
    assert_true(fabsf(cell_of(100, 100, -100, 100, 0.5f).h - (float)tanh(-0.5)) < 1e-6f);
    assert_true(fabsf(cell_of(100, 100, 1, -100, 0.5f).h) < 1e-30f);
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_of_the_library),
        cmocka_unit_test(nan_stays_nan),
        cmocka_unit_test(gates_do_their_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
