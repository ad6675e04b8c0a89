/* heard.h: --samples N: what the last evaluation heard of N utterances of the test, beside what is said in them. They
 * lie evenly over all of them, which are sorted by length, and are the same in every evaluation. */
#ifndef ST_CLI_HEARD_H
#define ST_CLI_HEARD_H

#include <stddef.h>

#include "base/json.h"
#include "comm/comm.h"

struct heard_sample {
    size_t utterance;   /* its place in the test, by length, from 0 */
    char *said, *heard; /* [room] each */
};

struct heard {
    size_t count, room;          /* room: bytes of a text, with its end */
    struct heard_sample *sample; /* [count]; NULL: none are wanted */
};

/* At most `wanted` of so many utterances, whose texts have at most `length` characters. Closed by heard_close; open, it
 * is left as it is. */
void heard_open(struct heard *h, size_t wanted, size_t utterances, size_t length);
void heard_close(struct heard *h); /* all zero afterwards */

/* This utterance was heard on this rank: kept, where it is one of them. */
void heard_keep(struct heard *h, size_t utterance, const char *said, const char *guess);
/* All ranks get all texts, each from the rank that has the utterance, as loader_share says. Collective. */
void heard_share(struct heard *h, size_t utterances, struct comm *c);

/* For people: what was said, and in a second line what was heard; freed by mem_free. */
char *heard_text(const struct heard_sample *s);

/* "samples": an array of objects; nothing where there are none. */
void heard_write(const struct heard *h, struct json *j);

#endif
