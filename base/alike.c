/* alike.c: see alike.h. */
#include "base/alike.h"

#include <stdbool.h>
#include <string.h>

enum { NAME_MAX_LENGTH = 62, MISSPELT_MAX = 3, BEGINNING_MIN = 3, FAR = 1000 };

/* Levenshtein distance. */
static size_t distance(const char *a, size_t la, const char *b, size_t lb) {
    size_t row[NAME_MAX_LENGTH + 1];
    for (size_t j = 0; j <= lb; j++) row[j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t above = row[j], best = diagonal + (a[i - 1] != b[j - 1]);
            if (above + 1 < best) best = above + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            diagonal = above;
            row[j] = best;
        }
    }
    return row[lb];
}

static size_t how_far(const char *word, size_t length, const char *name) {
    size_t of_name = strlen(name);
    if (length > NAME_MAX_LENGTH || of_name > NAME_MAX_LENGTH) return FAR;
    size_t misspelt = distance(word, length, name, of_name);
    if (misspelt <= MISSPELT_MAX && 2 * misspelt <= length) return misspelt;
    size_t shorter = length < of_name ? length : of_name, longer = length < of_name ? of_name : length;
    bool begins = shorter >= BEGINNING_MIN && strncmp(word, name, shorter) == 0;
    return begins ? MISSPELT_MAX + longer - shorter : FAR;
}

void alike_try(struct alike *a, const char *name) {
    size_t off = how_far(a->word, a->length, name);
    if (off == FAR || (a->nearest && off >= a->off)) return;
    a->nearest = name;
    a->off = off;
}
