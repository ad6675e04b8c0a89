/* alike.h: which name may have been meant by a word that is none, for "did you mean". */
#ifndef ST_BASE_ALIKE_H
#define ST_BASE_ALIKE_H

#include <stddef.h>

struct alike {
    const char *word;
    size_t length;
    const char *nearest; /* of the names so far; NULL: none can be meant */
    size_t off;
};

/* Is this name the nearest? It is misspelt in up to three letters and at most half of them ("densty"), else one of the
 * two begins with the other, of three letters or more ("batch-size" for "batch"), which counts as further off. */
void alike_try(struct alike *a, const char *name);

#endif
