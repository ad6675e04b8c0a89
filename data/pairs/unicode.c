/* unicode.c: see unicode.h; the one file that knows utf8proc. */
#include "data/pairs/unicode.h"

#include "base/error.h"

#ifdef ST_UTF8PROC
#include <utf8proc.h>

bool unicode_is_here(void) {
    return true;
}

const char *unicode_version(void) {
    return utf8proc_version();
}

size_t unicode_read(const char *text, size_t bytes, int32_t *code) {
    utf8proc_ssize_t room = bytes < UNICODE_BYTES ? (utf8proc_ssize_t)bytes : UNICODE_BYTES;
    utf8proc_ssize_t used = utf8proc_iterate((const utf8proc_uint8_t *)text, room, code);
    return used > 0 ? (size_t)used : 0;
}

size_t unicode_write(int32_t code, char to[UNICODE_BYTES]) {
    return (size_t)utf8proc_encode_char(code, (utf8proc_uint8_t *)to);
}

static bool is_blank(int32_t code, utf8proc_category_t category) {
    return (code >= '\t' && code <= '\r') || code == 0x85 || category == UTF8PROC_CATEGORY_ZS ||
           category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

enum unicode_kind unicode_kind(int32_t code) {
    utf8proc_category_t category = utf8proc_category(code);
    if (is_blank(code, category)) return UNICODE_BLANK;
    switch (category) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
        return UNICODE_CONTROL;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
        return UNICODE_PUNCTUATION;
    case UTF8PROC_CATEGORY_MN:
        return UNICODE_NONSPACING;
    default:
        return UNICODE_LETTER;
    }
}

int unicode_decompose(int32_t code, int32_t to[UNICODE_PARTS]) {
    int boundary = 0;
    utf8proc_ssize_t parts = utf8proc_decompose_char(code, to, UNICODE_PARTS, UTF8PROC_DECOMPOSE, &boundary);
    if (parts < 1 || parts > UNICODE_PARTS)
        die("U+%04X has no decomposition of %d parts", (unsigned)code, UNICODE_PARTS);
    return (int)parts;
}

int unicode_combining(int32_t code) {
    return utf8proc_get_property(code)->combining_class;
}

int32_t unicode_lower(int32_t code) {
    return utf8proc_tolower(code);
}

#else

#define NONE die("this build lacks utf8proc")

bool unicode_is_here(void) {
    return false;
}

const char *unicode_version(void) {
    return "none";
}

size_t unicode_read(const char *text, size_t bytes, int32_t *code) {
    (void)text, (void)bytes, (void)code;
    NONE;
}

size_t unicode_write(int32_t code, char to[UNICODE_BYTES]) {
    (void)code, (void)to;
    NONE;
}

enum unicode_kind unicode_kind(int32_t code) {
    (void)code;
    NONE;
}

int unicode_decompose(int32_t code, int32_t to[UNICODE_PARTS]) {
    (void)code, (void)to;
    NONE;
}

int unicode_combining(int32_t code) {
    (void)code;
    NONE;
}

int32_t unicode_lower(int32_t code) {
    (void)code;
    NONE;
}

#endif
