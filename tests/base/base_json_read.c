/* base_json_read.c: what json_read takes and what it refuses, RFC 8259 by the letter; values by path; text out of
 * strings. Whatever json.h writes is read back. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_read.h"

static void takes(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{}",
        "[]",
        "{ \"a\" : [ ] ,\t\"\" : { } }",
        "0",
        "-0",
        "-0.5e-7",
        "10E+02",
        "1e5",
        "\"\"",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\uD800\"",
        "\"\x7f\xc3\xa9\xf0\x9f\x98\x80\"",
        "true",
        "[true,false,null]",
        "[[],{},\"\",0]",
        "{\"a\":1,\"a\":2}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct json_value v;
        struct json_fault wrong;
        char text[128];
        snprintf(text, sizeof text, " \t\r\n%s \n", texts[i]);
        if (!json_read(text, &v, &wrong)) fail_msg("%s: %s", text, wrong.why);
        assert_null(wrong.why);
        assert_true(v.at == text + 4 && v.length == strlen(texts[i]));
    }
}

/* The byte at which each is given up, and a word of why. */
static void refuses(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t at;
        const char *why;
    } wrong_texts[] = {
        {"", 0, "ends"},
        {"  ", 2, "ends"},
        {"{", 1, "ends"},
        {"{\"a\"", 4, "ends"},
        {"{\"a\":", 5, "ends"},
        {"{\"a\":1", 6, "ends"},
        {"[1,", 3, "ends"},
        {"\"a", 2, "ends"},
        {"tru", 0, "value"},
        {"-", 1, "ends"},
        {"1.", 2, "ends"},
        {"1e", 2, "ends"},
        {"1e+", 3, "ends"},
        {"{,}", 1, "key"},
        {"{a:1}", 1, "key"},
        {"{1:1}", 1, "key"},
        {"{\"a\" 1}", 5, "colon"},
        {"{\"a\":1,}", 7, "key"},
        {"{\"a\":1 \"b\":2}", 7, "comma"},
        {"{\"a\":1]", 6, "comma"},
        {"[1,]", 3, "value"},
        {"[,1]", 1, "value"},
        {"[1}", 2, "comma"},
        {"[1 2]", 3, "comma"},
        {"01", 0, "begins with 0"},
        {"-01", 1, "begins with 0"},
        {"+1", 0, "value"},
        {".5", 0, "value"},
        {"1.e5", 2, "digit"},
        {"1ex", 2, "digit"},
        {"-x", 1, "digit"},
        {"0x10", 1, "behind"},
        {"NaN", 0, "value"},
        {"Infinity", 0, "value"},
        {"'a'", 0, "value"},
        {"\"\t\"", 1, "control"},
        {"\"\\x\"", 1, "escape"},
        {"\"\\u12g4\"", 1, "escape"},
        {"\"\\u123\"", 1, "escape"},
        {"\"\xc3\"", 1, "UTF-8"},
        {"\"\xed\xa0\x80\"", 1, "UTF-8"},
        {"\"\xff\"", 1, "UTF-8"},
        {"{} {}", 3, "behind"},
        {"nullx", 4, "behind"},
        {"/**/1", 0, "value"},
    };
    for (size_t i = 0; i < sizeof wrong_texts / sizeof *wrong_texts; i++) {
        struct json_value v;
        struct json_fault wrong;
        if (json_read(wrong_texts[i].text, &v, &wrong)) fail_msg("taken: %s", wrong_texts[i].text);
        if (!strstr(wrong.why, wrong_texts[i].why)) fail_msg("%s: %s", wrong_texts[i].text, wrong.why);
        if (wrong.at != wrong_texts[i].text + wrong_texts[i].at)
            fail_msg("%s: at %td", wrong_texts[i].text, wrong.at - wrong_texts[i].text);
    }
}

static void depth_is_bounded(void **state) {
    (void)state;
    struct json_value v;
    struct json_fault wrong;
    char text[2 * JSON_DEPTH_MAX + 3];
    for (size_t depth = JSON_DEPTH_MAX; depth <= JSON_DEPTH_MAX + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        text[2 * depth] = '\0';
        assert_int_equal(json_read(text, &v, &wrong), depth == JSON_DEPTH_MAX);
    }
    assert_non_null(strstr(wrong.why, "too deep"));
    char *deep = malloc(1000001);
    assert_non_null(deep);
    memset(deep, '[', 1000000);
    deep[1000000] = '\0';
    assert_false(json_read(deep, &v, &wrong));
    assert_int_equal(wrong.at - deep, JSON_DEPTH_MAX);
    free(deep);
}

/* The text of the value at a path; NULL: there is none. */
static const char *at(const char *text, const char *path) {
    static char plain[256];
    struct json_value v, found;
    struct json_fault wrong;
    assert_true(json_read(text, &v, &wrong));
    if (!json_at(&v, path, &found)) return NULL;
    assert_true(found.length < sizeof plain);
    size_t length = json_plain(&found, plain);
    assert_true(length <= found.length);
    plain[length] = '\0';
    return plain;
}

static void paths(void **state) {
    (void)state;
    static const char text[] = "{\"a\": {\"b\":[10, {\"c.d\":1.50},{\"c\":{\"d\":2}}] ,\"a\":7},\"a.b\":3,\"a\":4,"
                               "\"q\\\"\\u0041\":\"yes\",\"\":5,\"n\":null}";
    assert_string_equal(at(text, "a.b.0"), "10");
    assert_string_equal(at(text, "a.b.1.c.d"), "1.50");
    assert_string_equal(at(text, "a.b.2.c.d"), "2");
    assert_string_equal(at(text, "a.a"), "7");
    assert_string_equal(at(text, "a.b"), "[10, {\"c.d\":1.50},{\"c\":{\"d\":2}}]");
    assert_string_equal(at(text, "q\"A"), "yes");
    assert_string_equal(at(text, "n"), "null");
    assert_null(at(text, ""));
    assert_null(at(text, "a.b.3"));
    assert_null(at(text, "a.b.0.x"));
    assert_null(at(text, "a.b.x"));
    assert_null(at(text, "a.b."));
    assert_null(at(text, "aa"));
    assert_null(at(text, "b"));
    assert_null(at("7", "a"));
    assert_null(at("{}", "a"));
    assert_null(at("[]", "0"));
    assert_string_equal(at("{\"a\":{\"b\":1},\"a.c\":2}", "a.c"), "2");
    assert_string_equal(at("[[1,2],[3,4]]", "1.0"), "3");
}

static void numbers(void **state) {
    (void)state;
    struct json_value v;
    struct json_fault wrong;
    assert_true(json_read("{\"a\":[-2.5e1,0],\"s\":\"7\",\"n\":null,\"t\":true}", &v, &wrong));
    assert_true(json_number_at(&v, "a.0") == -25 && json_number_at(&v, "a.1") == 0);
    static const char *const none[] = {"a", "s", "n", "t", "b"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) assert_true(isnan(json_number_at(&v, none[i])));
}

static void plain_text(void **state) {
    (void)state;
    assert_string_equal(at("{\"k\":\"\\b\\f\\n\\r\\t\\/\\\\\\\"\"}", "k"), "\b\f\n\r\t/\\\"");
    assert_string_equal(at("{\"k\":\"\\u00e9\\u20AC\\ud83d\\ude00\"}", "k"), "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    assert_string_equal(at("{\"k\":\"\\ud83d\\n\\ude00x\\ud83d\"}", "k"), "\xef\xbf\xbd\n\xef\xbf\xbdx\xef\xbf\xbd");
    assert_string_equal(at("{\"k\":\"\\ud83d\\ud83d\\ude00\"}", "k"), "\xef\xbf\xbd\xf0\x9f\x98\x80");
    char plain[32];
    struct json_value v;
    struct json_fault wrong;
    assert_true(json_read("\"a\\u0000b\"", &v, &wrong));
    assert_int_equal(json_plain(&v, plain), 3);
    assert_memory_equal(plain, "a\0b", 3);
}

/* Every text of one and of two bytes, written and read. */
static void what_is_written(void **state) {
    (void)state;
    struct json j;
    json_open(&j);
    for (unsigned a = 1; a < 256; a++)
        for (unsigned b = 0; b < 256; b++) {
            const char text[] = {(char)a, (char)b, 0};
            bool character = a < 0x80 && b < 0x80;
            json_reset(&j);
            json_object(&j, NULL);
            json_string(&j, text, text);
            json_number(&j, "x", a + b / 3.0);
            json_end(&j);
            struct json_value v;
            struct json_fault wrong;
            if (!json_read(json_text(&j), &v, &wrong)) fail_msg("%s: %s", json_text(&j), wrong.why);
            if (character && !strchr(text, '.')) assert_string_equal(at(json_text(&j), text), text);
            assert_true(strtod(at(json_text(&j), "x"), NULL) == a + b / 3.0 || strcmp(text, "x") == 0);
        }
    json_close(&j);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes),           cmocka_unit_test(refuses), cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(paths),           cmocka_unit_test(numbers), cmocka_unit_test(plain_text),
        cmocka_unit_test(what_is_written),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
