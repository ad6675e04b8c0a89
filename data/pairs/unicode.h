/* unicode.h: what tokenising a text takes of Unicode's tables, by the library utf8proc, which a build may lack.
 *
 *        int32_t code;
 *        while ((used = unicode_read(text, bytes, &code)) > 0) ...
 */
#ifndef ST_DATA_UNICODE_H
#define ST_DATA_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Was it built with utf8proc? Without, nothing else of this header may be called. */
bool unicode_is_here(void);
/* Whose tables they are, "2.8.0" say; "none". */
const char *unicode_version(void);

enum { UNICODE_PARTS = 8, UNICODE_BYTES = 4 };

/* What a code point is in a text. CONTROL: the categories Cc, Cf, Cs, Co (control, format, surrogate, private use);
 * PUNCTUATION: the categories P*; NONSPACING: Mn; LETTER: all others, and what is not assigned. */
enum unicode_kind { UNICODE_LETTER, UNICODE_BLANK, UNICODE_CONTROL, UNICODE_PUNCTUATION, UNICODE_NONSPACING };

/* The first code point of `bytes` >= 1 bytes, and of how many of them it is; 0: that is not UTF-8 (overlong forms,
 * surrogates, more than U+10FFFF and what the end cuts off are not). */
size_t unicode_read(const char *text, size_t bytes, int32_t *code);

/* The other way round. */
size_t unicode_write(int32_t code, char to[UNICODE_BYTES]);

/* Blanks are those of the property White_Space, even where their category is a control's (tabs, line ends). */
enum unicode_kind unicode_kind(int32_t code);

/* Its full canonical decomposition, in order (NFD of the one code point). Returns how many there are. */
int unicode_decompose(int32_t code, int32_t to[UNICODE_PARTS]);

/* Canonical combining class; 0: a starter, over which canonical ordering moves nothing. */
int unicode_combining(int32_t code);

/* Lower case by the simple mapping, from one code point to one. */
int32_t unicode_lower(int32_t code);

#endif
