/* json.h: writing JSON, one value at a time, commas and quoting taken care of. NaN and infinities
 * become null. Text may be any bytes: what is UTF-8 is written as it is, control characters are escaped, and each byte
 * that is no part of UTF-8 (as in a path of another encoding) becomes \ufffd, the replacement character, so that what
 * is written is always JSON.
 *
 *        struct json j;
 *        json_open(&j);                              // into memory
 *        json_object(&j, NULL);
 *        json_string(&j, "algo", "gtopk");
 *        json_array(&j, "phases"); json_number(&j, NULL, 0.25); json_end(&j);
 *        json_end(&j);
 *        puts(json_text(&j));                        // {"algo":"gtopk","phases":[0.25]}
 *        json_close(&j);
 */
#ifndef ST_BASE_JSON_H
#define ST_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json {
    char *text;
    size_t length, capacity;
    unsigned char kind[16]; /* open containers: '{' or '[' */
    int depth;
    bool comma; /* the next value needs one before it */
};

void json_open(struct json *j);
void json_close(struct json *j);
void json_reset(struct json *j); /* empty again, memory kept */
const char *json_text(const struct json *j);

/* key is NULL inside arrays and at the top. */
void json_object(struct json *j, const char *key);
void json_array(struct json *j, const char *key);
void json_end(struct json *j); /* the innermost open object or array */
void json_string(struct json *j, const char *key, const char *value);
void json_number(struct json *j, const char *key, double value); /* shortest text that reads back the same */
enum { JSON_NUMBER_MAX = 40 };
void json_number_text(double value, char text[JSON_NUMBER_MAX]); /* that text; "nan", "inf" of what JSON has not */
void json_integer(struct json *j, const char *key, int64_t value);
void json_boolean(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);

/* The length in bytes of the character that p begins with, as UTF-8 has it (RFC 3629, section 4): the shortest form, no
 * surrogates, none above U+10FFFF. 0: that is none. Never reads behind a zero byte. */
size_t json_utf8_length(const unsigned char *p);

#endif
