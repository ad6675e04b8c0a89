/* utf8.c: see utf8.h. */
#include "data/text/utf8.h"

/* Only the second byte has bounds that depend on the first. */
static enum utf8_step begin(struct utf8 *u, uint8_t byte) {
    if (byte < 0x80) {
        u->code = byte;
        return UTF8_WHOLE;
    }
    if (byte < 0xc2 || byte > 0xf4) return UTF8_BAD;
    u->left = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    u->code = byte & (0x3fu >> u->left);
    u->low = byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;
    u->high = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;
    return UTF8_MORE;
}

enum utf8_step utf8_take(struct utf8 *u, uint8_t byte) {
    if (u->left == 0) return begin(u, byte);
    if (byte < u->low || byte > u->high) return UTF8_BAD;
    u->low = 0x80;
    u->high = 0xbf;
    u->code = u->code << 6 | (byte & 0x3fu);
    return --u->left ? UTF8_MORE : UTF8_WHOLE;
}

size_t utf8_put(uint32_t code, char to[UTF8_BYTES]) {
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    const size_t bytes = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = bytes - 1; i > 0; i--, code >>= 6) to[i] = (char)(0x80 | (code & 0x3f));
    to[0] = (char)((0xf00u >> bytes & 0xf0) | code);
    return bytes;
}
