/* cli_shell_quote.c: words as a shell takes them, held against the shell. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/options/shell_quote.h"

static void plain_words_stay(void **state) {
    (void)state;
    static const char *const words[] = {"runs/first", "/a/b-c_d.e", "build/sparsetrain", "x=1,2:3@4%5+6"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char *quoted = shell_quote(words[i]);
        assert_string_equal(quoted, words[i]);
        mem_free(quoted);
    }
}

/* printf %s of the quoted word is the word. */
static void the_shell_reads_the_word(void **state) {
    (void)state;
    static const char *const words[] = {"my runs", "it's", "''", "\"$HOME\"", "a;b",        "~",
                                        "*",       "\\",   "",   "(a|b)&c",   "\xc3\xbc #x"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char *quoted = shell_quote(words[i]), *command = mem_printf("printf %%s %s", quoted), back[64] = "";
        FILE *shell = popen(command, "r");
        assert_non_null(shell);
        back[fread(back, 1, sizeof back - 1, shell)] = '\0';
        assert_int_equal(pclose(shell), 0);
        assert_string_equal(back, words[i]);
        mem_free(quoted);
        mem_free(command);
    }
    assert_int_equal(mem_live(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_words_stay),
        cmocka_unit_test(the_shell_reads_the_word),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
