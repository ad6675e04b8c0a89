/* json_read.h: reading JSON (RFC 8259), strictly and in place: a value is a piece of the text that it came from, and
 * nothing is allocated. A text may be anything; what json_read has accepted is walked through without further checks.
 *
 *        struct json_value row, seconds;
 *        struct json_fault wrong;
 *        if (!json_read("{\"phases\":{\"select\":0.25}}", &row, &wrong)) ...  // wrong.why
 *        if (json_at(&row, "phases.select", &seconds)) ...                    // seconds: 4 bytes, 0.25
 */
#ifndef ST_BASE_JSON_READ_H
#define ST_BASE_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>

/* Objects and arrays within each other, at most: recursion is bounded, whoever wrote the text. */
enum { JSON_DEPTH_MAX = 64 };

/* As it stands in the text, whose first byte says what it is: { [ " t f n, else a number. */
struct json_value {
    const char *at;
    size_t length;
};

struct json_fault {
    const char *at, *why; /* where in the text; what is wrong there, static */
};

/* The one value that a text consists of, and blanks. */
bool json_read(const char *text, struct json_value *v, struct json_fault *wrong);

/* The members of an object, or the elements of an array, in their order: begin with m->end NULL. False: there is no
 * further one, or v is neither. */
struct json_member {
    struct json_value key, value; /* key: of an array nothing */
    const char *end;
};
bool json_next(const struct json_value *v, struct json_member *m);

/* What keys (of arrays: indices from 0) with dots between lead to; a key may have dots itself. Of several members with
 * the same key the first is meant. */
bool json_at(const struct json_value *v, const char *path, struct json_value *found);
/* The number there; NaN: there is none. */
double json_number_at(const struct json_value *v, const char *path);

/* Text of v to `to`, of v->length bytes: of a string its characters as UTF-8, else what stands there. Returns how many
 * bytes that are; a zero byte may be among them. Half a surrogate pair becomes U+FFFD. */
size_t json_plain(const struct json_value *v, char *to);

#endif
