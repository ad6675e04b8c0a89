/* base_json.c: whatever bytes a text consists of, what is written is JSON: a reader of the letter of RFC 3629 (UTF-8)
 * and RFC 8259 (JSON) accepts it, and python3's, where there is one, reads what was meant. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/rng.h"

/* -- a reader ------------------------------------------------------------------------------------------------------ */

/* One character of UTF-8 by its value: the next byte of *at, then, by the table of RFC 3629. False: not one. */
static bool read_character(const unsigned char **at, uint32_t *value) {
    static const struct {
        uint32_t first, last; /* of the values that have this many bytes */
        unsigned char mask, lead;
    } forms[] = {
        {0, 0x7f, 0x80, 0}, {0x80, 0x7ff, 0xe0, 0xc0}, {0x800, 0xffff, 0xf0, 0xe0}, {0x10000, 0x10ffff, 0xf8, 0xf0}};
    for (size_t n = 0; n < 4; n++) {
        if ((**at & forms[n].mask) != forms[n].lead) continue;
        *value = (uint32_t)(**at & ~forms[n].mask & 0xff);
        ++*at;
        for (size_t i = 0; i < n; i++, ++*at) {
            if ((**at & 0xc0) != 0x80) return false;
            *value = *value << 6 | (**at & 0x3fu);
        }
        return *value >= forms[n].first && *value <= forms[n].last && !(*value >= 0xd800 && *value < 0xe000);
    }
    return false;
}

/* {"k":"..."} to the values of its characters. False: that is no JSON. */
static bool read_object(const char *text, uint32_t *value, size_t *count) {
    const unsigned char *at = (const unsigned char *)text + 6;
    *count = 0;
    if (strncmp(text, "{\"k\":\"", 6) != 0) return false;
    while (*at != '"') {
        uint32_t c;
        if (*at < 0x20 || !read_character(&at, &c)) return false;
        if (c == '\\' && (*at == '"' || *at == '\\')) {
            c = *at++;
        } else if (c == '\\') {
            char hex[5] = "", *end;
            if (*at++ != 'u') return false;
            memcpy(hex, at, 4);
            c = (uint32_t)strtoul(hex, &end, 16);
            if (end != hex + 4) return false;
            at += 4;
        }
        value[(*count)++] = c;
    }
    return strcmp((const char *)at, "\"}") == 0;
}

static const char *object(struct json *j, const char *value) {
    json_reset(j);
    json_object(j, NULL);
    json_string(j, "k", value);
    json_end(j);
    return json_text(j);
}

/* -- texts --------------------------------------------------------------------------------------------------------- */

enum { LONGEST = 64 };

/* Any bytes but zero; of three kinds of text: all of them, mostly beginnings of characters, characters with a fault. */
static void random_text(struct rng *r, char text[LONGEST + 1]) {
    static const char *const pieces[] = {"a",
                                         "\"",
                                         "\\",
                                         "\n",
                                         "\x7f",
                                         "\xc3\xa9",
                                         "\xe2\x82\xac",
                                         "\xf0\x9f\x98\x80",
                                         "\xed\x9f\xbf",
                                         "\xee\x80\x80",
                                         "\xf4\x8f\xbf\xbf",
                                         "\xef\xbf\xbf",
                                         "\xc2\x80",
                                         "\xe0\xa0\x80",
                                         "\xf0\x90\x80\x80",
                                         "\xed\xa0\x80",
                                         "\xc0\xaf",
                                         "\xe0\x9f\xbf",
                                         "\xf0\x8f\xbf\xbf",
                                         "\xf4\x90\x80\x80",
                                         "\xf8\x88\x80\x80\x80",
                                         "\xff",
                                         "\x80"};
    uint32_t kind = rng_u32(r) % 3, length = rng_u32(r) % LONGEST;
    size_t used = 0;
    while (used < length) {
        const char *piece = pieces[rng_u32(r) % (sizeof pieces / sizeof *pieces)];
        size_t bytes = kind == 0 ? 1 : strlen(piece);
        if (kind == 2 && rng_u32(r) % 4 == 0) bytes = 1 + rng_u32(r) % bytes; /* cut short */
        if (used + bytes > length) break;
        memcpy(text + used, piece, bytes);
        if (kind == 0) text[used] = (char)(1 + rng_u32(r) % 255);
        used += bytes;
    }
    text[used] = '\0';
}

/* What must come out of a text: the characters that it has, and U+FFFD for every other byte. */
static size_t meant(const char *text, uint32_t *value) {
    size_t count = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at; count++) {
        const unsigned char *next = at;
        if (read_character(&next, &value[count])) {
            at = next;
        } else {
            value[count] = 0xfffd;
            at++;
        }
    }
    return count;
}

static void check_text(struct json *j, const char *text) {
    uint32_t wanted[LONGEST], got[LONGEST + 1];
    size_t n = meant(text, wanted), count;
    const char *written = object(j, text);
    if (!read_object(written, got, &count)) fail_msg("not JSON: %s", written);
    assert_int_equal(count, n);
    assert_memory_equal(got, wanted, n * sizeof *got);
}

static void every_short_text(void **state) {
    (void)state;
    struct json j;
    json_open(&j);
    for (unsigned a = 1; a < 256; a++)
        for (unsigned b = 0; b < 256; b++) {
            const char text[] = {(char)a, (char)b, 0}, ended[] = {'x', (char)a, (char)b, (char)0x80, 0};
            check_text(&j, text);
            check_text(&j, ended);
        }
    json_close(&j);
}

static void random_texts(void **state) {
    (void)state;
    struct rng r = rng_open(17, RNG_TEST, 0);
    struct json j;
    char text[LONGEST + 1];
    json_open(&j);
    for (int i = 0; i < 200000; i++) {
        random_text(&r, text);
        check_text(&j, text);
    }
    json_close(&j);
}

/* A reader that nobody here has written. */
static void python_reads_them(void **state) {
    (void)state;
    if (system("python3 -c pass > /dev/null 2>&1") != 0) {
        printf("# SKIP python_reads_them: python3 is not installed\n");
        skip();
    }
    char path[] = "/tmp/json-XXXXXX", command[256], text[LONGEST + 1];
    struct rng r = rng_open(18, RNG_TEST, 0);
    struct json j;
    int file = mkstemp(path);
    FILE *f = fdopen(file, "w");
    assert_non_null(f);
    json_open(&j);
    for (int i = 0; i < 5000; i++) {
        uint32_t value[LONGEST];
        random_text(&r, text);
        fprintf(f, "%s\n[", object(&j, text));
        size_t n = meant(text, value);
        for (size_t k = 0; k < n; k++) fprintf(f, "%s%u", k ? "," : "", value[k]);
        fprintf(f, "]\n");
    }
    json_close(&j);
    assert_int_equal(fclose(f), 0);
    snprintf(command, sizeof command,
             "python3 -c \"import json, sys\n"
             "for line in open('%s', 'rb'):\n"
             "    row = json.loads(line.decode('utf-8', 'strict'))\n"
             "    if isinstance(row, dict): text = row['k']\n"
             "    elif [ord(c) for c in text] != row: sys.exit(repr((text, row)))\"",
             path);
    int status = system(command);
    unlink(path);
    assert_int_equal(status, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_short_text),
        cmocka_unit_test(random_texts),
        cmocka_unit_test(python_reads_them),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
