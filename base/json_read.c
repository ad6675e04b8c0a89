/* json_read.c: see json_read.h. One recursive scanner, which checks and skips alike. */
#include "base/json_read.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define DIGITS "0123456789"

struct scan {
    const char *at; /* of a text that ends with a zero byte, which no value holds */
    const char *why;
};

static bool fault(struct scan *s, const char *why) {
    s->why = *s->at ? why : "it ends in the middle of a value";
    return false;
}

static void blanks(struct scan *s) {
    s->at += strspn(s->at, " \t\r\n");
}

/* The length of the escape that begins with the backslash at p; 0: there is none such. */
static size_t escape_length(const char *p) {
    if (p[1] == 'u') return strspn(p + 2, DIGITS "abcdefABCDEF") >= 4 ? 6 : 0;
    return p[1] && strchr("\"\\/bfnrt", p[1]) ? 2 : 0;
}

static bool string(struct scan *s) {
    for (s->at++; *s->at != '"';) {
        const unsigned char *p = (const unsigned char *)s->at;
        if (*p < 0x20) return fault(s, "a control character in a string");
        size_t length = *p == '\\' ? escape_length(s->at) : json_utf8_length(p);
        if (length == 0) return fault(s, *p == '\\' ? "no such escape in a string" : "a string that is not UTF-8");
        s->at += length;
    }
    s->at++;
    return true;
}

static bool digits(struct scan *s) {
    size_t count = strspn(s->at, DIGITS);
    s->at += count;
    return count > 0 || fault(s, "a digit is missing in a number");
}

/* -? (0 | [1-9][0-9]*) (\.[0-9]+)? ([eE][-+]?[0-9]+)? */
static bool number(struct scan *s) {
    s->at += *s->at == '-';
    if (*s->at == '0' && s->at[1] && strchr(DIGITS, s->at[1])) return fault(s, "a number begins with 0");
    if (!digits(s)) return false;
    if (*s->at == '.' && (s->at++, !digits(s))) return false;
    if (*s->at != 'e' && *s->at != 'E') return true;
    s->at++;
    s->at += *s->at == '-' || *s->at == '+';
    return digits(s);
}

static bool word(struct scan *s) {
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i]);
        if (strncmp(s->at, words[i], length) != 0) continue;
        s->at += length;
        return true;
    }
    return fault(s, "no value begins so");
}

static bool value(struct scan *s, int depth);

/* An element, or in an object a key and its value, and the blanks behind. */
static bool member(struct scan *s, bool keyed, int depth, struct json_member *m) {
    m->key.at = s->at;
    if (keyed && (*s->at != '"' ? !fault(s, "a key in quotes is missing") : !string(s))) return false;
    m->key.length = (size_t)(s->at - m->key.at);
    if (keyed) {
        blanks(s);
        if (*s->at != ':') return fault(s, "a colon is missing behind a key");
        s->at++;
        blanks(s);
    }
    m->value.at = s->at;
    if (!value(s, depth)) return false;
    m->value.length = (size_t)(s->at - m->value.at);
    blanks(s);
    m->end = s->at;
    return true;
}

static bool members(struct scan *s, int depth) {
    struct json_member m;
    bool keyed = *s->at == '{';
    char close = keyed ? '}' : ']';
    if (depth == JSON_DEPTH_MAX) return fault(s, "nested too deep");
    s->at++;
    blanks(s);
    for (bool first = true; *s->at != close || !first; first = false) {
        if (!member(s, keyed, depth + 1, &m)) return false;
        if (*s->at == close) break;
        if (*s->at != ',') return fault(s, "a comma is missing between two values");
        s->at++;
        blanks(s);
    }
    s->at++;
    return true;
}

static bool value(struct scan *s, int depth) {
    if (*s->at == '{' || *s->at == '[') return members(s, depth);
    if (*s->at == '"') return string(s);
    return *s->at == '-' || (*s->at >= '0' && *s->at <= '9') ? number(s) : word(s);
}

bool json_read(const char *text, struct json_value *v, struct json_fault *wrong) {
    struct scan s = {text, NULL};
    blanks(&s);
    v->at = s.at;
    bool good = value(&s, 0);
    v->length = (size_t)(s.at - v->at);
    if (good) blanks(&s);
    if (good && *s.at) good = fault(&s, "something stands behind the value");
    *wrong = (struct json_fault){s.at, s.why};
    return good;
}

bool json_next(const struct json_value *v, struct json_member *m) {
    if (*v->at != '{' && *v->at != '[') return false;
    struct scan s = {m->end ? m->end : v->at + 1, NULL};
    if (m->end && *s.at == ',') s.at++;
    blanks(&s);
    return *s.at != '}' && *s.at != ']' && member(&s, *v->at == '{', 0, m);
}

/* -- text ---------------------------------------------------------------------------------------------------------- */

static size_t put_utf8(uint32_t c, char *to) {
    size_t more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3; /* bytes behind the first */
    static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    to[0] = (char)(lead[more] | c >> (6 * more));
    for (size_t i = 1; i <= more; i++) to[i] = (char)(0x80 | (c >> (6 * (more - i)) & 0x3f));
    return more + 1;
}

static uint32_t four_digits(const char *p) {
    char hex[5] = {p[0], p[1], p[2], p[3], '\0'};
    return (uint32_t)strtoul(hex, NULL, 16);
}

/* What the escape at *at stands for; *at moves behind it. */
static uint32_t escaped(const char **at) {
    static const char names[] = "bfnrt", meant[] = "\b\f\n\r\t";
    const char *p = *at + 1, *name = strchr(names, *p);
    *at += escape_length(*at);
    if (*p != 'u') return (uint32_t)(name ? meant[name - names] : *p);
    uint32_t c = four_digits(p + 1), low = (*at)[0] == '\\' && (*at)[1] == 'u' ? four_digits(*at + 2) : 0;
    if (c < 0xd800 || c > 0xdfff) return c;
    if (c > 0xdbff || low < 0xdc00 || low > 0xdfff) return 0xfffd;
    *at += 6;
    return 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
}

size_t json_plain(const struct json_value *v, char *to) {
    size_t length = 0;
    if (*v->at != '"') {
        memcpy(to, v->at, v->length);
        return v->length;
    }
    for (const char *at = v->at + 1; *at != '"';)
        if (*at == '\\')
            length += put_utf8(escaped(&at), to + length);
        else
            to[length++] = *at++;
    return length;
}

/* -- paths --------------------------------------------------------------------------------------------------------- */

/* How much of the path a key takes up, in bytes: all of it, or what precedes a dot; 0: it is another one. */
static size_t covers(const struct json_value *key, const char *path) {
    char text[256];
    if (key->length > sizeof text) return 0;
    size_t length = json_plain(key, text);
    return strncmp(path, text, length) == 0 && (path[length] == '.' || !path[length]) ? length : 0;
}

bool json_at(const struct json_value *v, const char *path, struct json_value *found) {
    struct json_member m = {.end = NULL};
    for (size_t i = 0; json_next(v, &m); i++) {
        char *end = NULL;
        size_t length = *v->at == '{' ? covers(&m.key, path) : 0;
        if (*v->at == '[' && strchr(DIGITS, *path) && strtoul(path, &end, 10) == i && (*end == '.' || !*end))
            length = (size_t)(end - path);
        if (length == 0) continue;
        *found = m.value;
        if (!path[length] || json_at(&m.value, path + length + 1, found)) return true;
    }
    return false;
}

double json_number_at(const struct json_value *v, const char *path) {
    struct json_value found;
    return json_at(v, path, &found) && strchr("-" DIGITS, *found.at) ? strtod(found.at, NULL) : NAN;
}
