/* utf8.h: code points of strict UTF-8, byte by byte (The Unicode Standard, table 3-7): no overlong forms, no
 * surrogates, nothing above U+10FFFF.
 *
 *        struct utf8 u = {0};
 *        for each byte: switch (utf8_take(&u, byte)) { case UTF8_WHOLE: ... u.code ...; case UTF8_BAD: ... }
 *        utf8_within(&u)      // at the end: the last character is cut off
 */
#ifndef ST_DATA_UTF8_H
#define ST_DATA_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UTF8_MOST = 0x10ffff, UTF8_BYTES = 4 };

enum utf8_step { UTF8_MORE, UTF8_WHOLE, UTF8_BAD };

struct utf8 {
    uint32_t code;     /* of the last whole character */
    int left;          /* bytes that are still to come */
    uint8_t low, high; /* between which the next one has to be */
};

/* After UTF8_BAD no more is taken. */
enum utf8_step utf8_take(struct utf8 *u, uint8_t byte);

static inline bool utf8_within(const struct utf8 *u) {
    return u->left > 0;
}

/* The bytes of a code point; how many they are. */
size_t utf8_put(uint32_t code, char to[UTF8_BYTES]);

#endif
