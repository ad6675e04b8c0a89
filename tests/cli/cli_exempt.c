/* cli_exempt.c: --dense-slices: which slices its words fit, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "cli/options/exempt_option.h"

static struct slice slice[] = {{.name = "stage1.conv1.weight", .offset = 0, .size = 8, .dims = 4, .dim = {2, 1, 2, 2}},
                               {.name = "stage1.bn1.weight", .offset = 8, .size = 2, .dims = 1, .dim = {2}},
                               {.name = "stage1.bn1.bias", .offset = 10, .size = 2, .dims = 1, .dim = {2}},
                               {.name = "lstm1.bias_ih", .offset = 12, .size = 3, .dims = 1, .dim = {3}},
                               {.name = "linear.weight", .offset = 15, .size = 4, .dims = 2, .dim = {2, 2}},
                               {.name = "linear.bias", .offset = 19, .size = 2, .dims = 1, .dim = {2}}};
enum { SLICES = sizeof slice / sizeof *slice, N = 21 };
static const struct arena arena = {.n = N, .slice = slice, .slices = SLICES};

/* The entries of exactly the slices with a 1 in `wanted`. */
static void takes(const char *text, const char wanted[SLICES + 1]) {
    struct err e = {0};
    uint32_t *index;
    size_t count, at = 0;
    if (!exempt_parse(text, &arena, &index, &count, &e)) fail_msg("%s: %s", text, e.text);
    for (size_t i = 0; i < SLICES; i++) {
        assert_int_equal(exempt_has(&slice[i], index, count), wanted[i] == '1');
        for (size_t j = 0; wanted[i] == '1' && j < slice[i].size; j++, at++) {
            assert_true(at < count);
            assert_int_equal(index[at], slice[i].offset + j);
        }
    }
    assert_int_equal(at, count);
    mem_free(index);
}

static void words_fit_slices(void **state) {
    (void)state;
    takes("none", "000000");
    takes("bias", "001101");
    takes("bn", "011000");
    takes("bias,bn", "011101");
    takes("1d", "011101");
    takes("linear", "000011");
    takes("linear.bias", "000001");
    takes("lstm1.bias_ih,stage1.conv", "100100");
    takes("small:3", "011001");
    takes("small:4", "011101");
    takes("weight", "110010");
}

static void refuses(const char *text, const char *part) {
    struct err e = {0};
    uint32_t *index;
    size_t count;
    assert_false(exempt_parse(text, &arena, &index, &count, &e));
    assert_null(index);
    assert_int_equal(count, 0);
    if (!strstr(e.text, part)) fail_msg("%s: \"%s\" does not say \"%s\"", text, e.text, part);
    assert_null(strchr(e.text, '\n'));
}

static void mistakes_are_named(void **state) {
    (void)state;
    refuses("bnn", "no slice of the model fits \"bnn\"");
    refuses("bias,", "no slice of the model fits \"\"");
    refuses(",bias", "no slice of the model fits \"\"");
    refuses("bias,,bn", "no slice of the model fits \"\"");
    refuses("ias", "no slice of the model fits \"ias\"");
    refuses("small:2", "no slice of the model fits \"small:2\"");
    refuses("small:", "no slice of the model fits \"small:\"");
    refuses("small:x", "no slice of the model fits \"small:x\"");
    refuses("small:-3", "no slice of the model fits \"small:-3\"");
    refuses("small:99999999999999999999999", "no slice of the model fits");
    refuses("none,bias", "no slice of the model fits \"none\"");
    refuses("weight,bias", "takes every slice of the model");
    refuses("small:100", "takes every slice of the model");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(words_fit_slices), cmocka_unit_test(mistakes_are_named)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
