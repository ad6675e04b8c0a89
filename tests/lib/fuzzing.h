/* fuzzing.h: what the fuzz targets tests/fuzz/fuzz_*.c share. A target is one function that takes arbitrary bytes; it
 * is linked with libFuzzer (scripts/fuzz.sh), or with fuzzing.c to a test that replays the corpus in
 * tests/fuzz/<target> and changes of it. What must not happen ends the process: a sanitizer's report, a hang, die(),
 * MUST. */
#ifndef ST_TESTS_FUZZING_H
#define ST_TESTS_FUZZING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (condition) break;                                                                                          \
        fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                        \
        abort();                                                                                                       \
    } while (0)

/* good: what a function returned that fills *e. An error is one line, success is none. */
static inline bool fuzz_answer(bool good, const struct err *e) {
    MUST(good == (e->text[0] == '\0'));
    MUST(!strpbrk(e->text, "\n\r") && strlen(e->text) < sizeof e->text);
    return good;
}

/* A block of exactly so many bytes, so that a sanitizer sees the first byte beyond; to be freed. */
static inline void *fuzz_copy(const void *data, size_t bytes) {
    void *block = malloc(bytes ? bytes : 1);
    MUST(block != NULL);
    if (bytes) memcpy(block, data, bytes);
    return block;
}

/* The same with a zero byte behind it and none within: a text. */
static inline char *fuzz_text(const uint8_t *data, size_t size) {
    const uint8_t *end = memchr(data, 0, size);
    size_t length = size == 0 ? 0 : end ? (size_t)(end - data) : size;
    char *text = malloc(length + 1);
    MUST(text != NULL);
    if (length) memcpy(text, data, length);
    text[length] = '\0';
    return text;
}

/* A folder of this process, and a file in it with these contents: its path, valid until the next call. The folder lies
 * in $FUZZ_SCRATCH, whose owner removes it, else in memory or in $TMPDIR and goes with the process. */
const char *fuzz_folder(void);
const char *fuzz_path(const char *name); /* no such file is there */
const char *fuzz_file(const char *name, const void *data, size_t bytes);

#endif
