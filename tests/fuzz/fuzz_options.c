/* fuzz_options.c: arbitrary bytes as the options that a checkpoint stores, and as a command line. Input: a byte that
 * says which, then the text. What is accepted is echoed and read again: the same options. */
#include "base/mem.h"
#include "cli/options/options.h"
#include "tests/lib/fuzzing.h"

enum { WORDS_MAX = 64 };

/* The words of a command line are parted by line breaks, which no option may hold. */
static bool parse(struct options *o, char *text, struct err *e) {
    char *argv[WORDS_MAX] = {NULL};
    int argc = 0;
    for (char *word = strtok(text, "\n"); word && argc < WORDS_MAX; word = strtok(NULL, "\n")) argv[argc++] = word;
    return fuzz_answer(options_parse(o, argc, argv, 0, e), e);
}

static void echo(const struct options *o) {
    static struct options again;
    struct err e = {0};
    char *text = options_text(o, RULE_RUN);
    options_default(&again);
    MUST(options_inherit(&again, text, &e));
    char *twice = options_text(&again, RULE_RUN);
    MUST(strcmp(text, twice) == 0);
    for (size_t i = 0; i < train_options.rows; i++) {
        char value[OPTION_TEXT_MAX];
        options_text_value(text, train_options.row[i].name, value);
        option_value(&train_options.row[i], o, value);
    }
    mem_free(text);
    mem_free(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct options o; /* large */
    struct err e = {0};
    char value[OPTION_TEXT_MAX];
    if (size < 1) return 0;
    char *text = fuzz_text(data + 1, size - 1);
    options_default(&o);
    if (data[0] & 4) o.given[data[0] >> 3] = true; /* an option of the command line, at its default */
    options_text_value(text, "model", value);
    bool good = data[0] % 4 == 0   ? parse(&o, text, &e)
                : data[0] % 4 == 1 ? fuzz_answer(options_inherit(&o, text, &e), &e)
                                   : fuzz_answer(options_resume(&o, text, &e), &e);
    if (good && fuzz_answer(options_resolve(&o, &e), &e)) {
        echo(&o);
        options_ignored(&o, value, sizeof value);
    }
    free(text);
    return 0;
}
