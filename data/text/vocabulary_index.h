/* vocabulary_index.h: words to numbers, 0, 1, 2, ... in the order in which they were added. A word is any bytes, at
 * least one and no '\n' among them.
 *
 *        struct vocabulary_index *v = vocabulary_open(INT32_MAX);
 *        int32_t number = vocabulary_add(v, "the", 3);     // the old number if it is there already
 *        struct vocabulary lines = vocabulary_lines(v);    // valid until the next add
 *        vocabulary_close(v);
 */
#ifndef ST_DATA_VOCABULARY_INDEX_H
#define ST_DATA_VOCABULARY_INDEX_H

#include "data/dataset.h"

struct vocabulary_index;

/* most: words that it takes, 1 to INT32_MAX. */
struct vocabulary_index *vocabulary_open(size_t most);
void vocabulary_close(struct vocabulary_index *v); /* NULL is allowed */

/* The number of a word; -1: it is new and there is no room for it, of `most`. */
int32_t vocabulary_add(struct vocabulary_index *v, const char *word, size_t length);

/* The number of a word; -1: it is not there. */
int32_t vocabulary_find(const struct vocabulary_index *v, const char *word, size_t length);

size_t vocabulary_words(const struct vocabulary_index *v);
size_t vocabulary_most(const struct vocabulary_index *v);
struct vocabulary vocabulary_lines(const struct vocabulary_index *v);

#endif
