/* alike.h: which name may have been meant by a word that is none, for "did you mean". */
#ifndef ST_BASE_ALIKE_H
#define ST_BASE_ALIKE_H

#include <stddef.h>

enum { ALIKE_NOT = 1000 };

/* How far word[0..length-1] is from a name; ALIKE_NOT: so far that it cannot be meant. Misspelt in up to three letters
 * and at most half of them ("densty"), else one of the two begins with the other, of three letters or more
 * ("batch-size" for "batch"), which counts as further off. */
size_t alike(const char *word, size_t length, const char *name);

#endif
