/* json.c: see json.h. */
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

static void put(struct json *j, const char *text, size_t length) {
    if (j->length + length + 1 > j->capacity) {
        size_t capacity = 2 * (j->length + length + 1);
        char *grown = mem_alloc(capacity, 1, "a JSON text");
        memcpy(grown, j->text, j->length);
        mem_free(j->text);
        j->text = grown;
        j->capacity = capacity;
    }
    memcpy(j->text + j->length, text, length);
    j->length += length;
    j->text[j->length] = '\0';
}

static void put_text(struct json *j, const char *text) {
    put(j, text, strlen(text));
}

size_t json_utf8_length(const unsigned char *p) {
    if (p[0] < 0x80) return 1;
    size_t length = p[0] >= 0xc2 && p[0] <= 0xdf ? 2 : (p[0] & 0xf0) == 0xe0 ? 3 : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4 : 0;
    for (size_t i = 1; i < length; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    bool longer = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool beyond = (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf4 && p[1] > 0x8f);
    return longer || beyond ? 0 : length;
}

static void put_quoted(struct json *j, const char *text) {
    put(j, "\"", 1);
    for (size_t length; *text; text += length) {
        unsigned char c = (unsigned char)*text;
        char code[8];
        length = json_utf8_length((const unsigned char *)text);
        if (c == '"' || c == '\\') {
            code[0] = '\\';
            code[1] = (char)c;
            put(j, code, 2);
        } else if (c < 0x20 || c == 0x7f) {
            snprintf(code, sizeof code, "\\u%04x", c);
            put_text(j, code);
        } else if (length == 0) {
            put_text(j, "\\ufffd");
            length = 1;
        } else {
            put(j, text, length);
        }
    }
    put(j, "\"", 1);
}

/* What stands before a value: a comma, and the key where one belongs. */
static void lead(struct json *j, const char *key) {
    if (j->comma) put(j, ",", 1);
    j->comma = true;
    if (!key) return;
    put_quoted(j, key);
    put(j, ":", 1);
}

static void begin(struct json *j, const char *key, char kind) {
    lead(j, key);
    if (j->depth == (int)sizeof j->kind) die("JSON nested deeper than %zu", sizeof j->kind);
    j->kind[j->depth++] = (unsigned char)kind;
    put(j, &kind, 1);
    j->comma = false;
}

void json_open(struct json *j) {
    memset(j, 0, sizeof *j);
    j->capacity = 256;
    j->text = mem_zalloc(j->capacity, 1, "a JSON text");
}

void json_close(struct json *j) {
    mem_free(j->text);
    memset(j, 0, sizeof *j);
}

void json_reset(struct json *j) {
    j->length = 0;
    j->text[0] = '\0';
    j->depth = 0;
    j->comma = false;
}

const char *json_text(const struct json *j) {
    return j->text;
}

void json_object(struct json *j, const char *key) {
    begin(j, key, '{');
}
void json_array(struct json *j, const char *key) {
    begin(j, key, '[');
}

void json_end(struct json *j) {
    if (j->depth == 0) die("json_end without an open object or array");
    put(j, j->kind[--j->depth] == '{' ? "}" : "]", 1);
    j->comma = true;
}

void json_string(struct json *j, const char *key, const char *value) {
    lead(j, key);
    put_quoted(j, value);
}

void json_number_text(double value, char text[JSON_NUMBER_MAX]) {
    int digits = fabs(value) < 1e15 && value == floor(value) ? 15 : 6; /* counts are not written as 1.2e+06 */
    do snprintf(text, JSON_NUMBER_MAX, "%.*g", digits, value);
    while (strtod(text, NULL) != value && ++digits <= 17);
}

void json_number(struct json *j, const char *key, double value) {
    if (!isfinite(value)) {
        json_null(j, key);
        return;
    }
    char text[JSON_NUMBER_MAX];
    json_number_text(value, text);
    lead(j, key);
    put_text(j, text);
}

void json_integer(struct json *j, const char *key, int64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    lead(j, key);
    put_text(j, text);
}

void json_boolean(struct json *j, const char *key, bool value) {
    lead(j, key);
    put_text(j, value ? "true" : "false");
}

void json_null(struct json *j, const char *key) {
    lead(j, key);
    put_text(j, "null");
}
