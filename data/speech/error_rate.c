/* error_rate.c: see error_rate.h. The table of distances between beginnings is computed row by row, of which one is
 * kept, as long as the shorter text: O(m n) steps. */
#include "data/speech/error_rate.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"

/* A text as a row of items. */
struct items {
    const char *text;
    const size_t *begin, *length; /* of each; NULL: characters */
    size_t count;
};

static bool equal(const struct items *a, size_t i, const struct items *b, size_t j) {
    if (!a->begin) return a->text[i] == b->text[j];
    return a->length[i] == b->length[j] && memcmp(a->text + a->begin[i], b->text + b->begin[j], a->length[i]) == 0;
}

/* d(i, j) of the first i items of a and the first j of b, from row i - 1 to row i in place:
 * d(i, j) = min(d(i-1, j) + 1, d(i, j-1) + 1, d(i-1, j-1) + [a_i != b_j]), d(i, 0) = i, d(0, j) = j */
static uint64_t distance(const struct items *a, const struct items *b) {
    if (a->count < b->count) return distance(b, a);
    uint64_t *row = mem_alloc(b->count + 1, sizeof *row, "the distance of two texts");
    for (size_t j = 0; j <= b->count; j++) row[j] = j;
    for (size_t i = 1; i <= a->count; i++) {
        uint64_t before = row[0]; /* d(i-1, j-1) */
        row[0] = i;
        for (size_t j = 1; j <= b->count; j++) {
            uint64_t least = before + !equal(a, i - 1, b, j - 1);
            before = row[j];
            if (row[j] + 1 < least) least = row[j] + 1;
            if (row[j - 1] + 1 < least) least = row[j - 1] + 1;
            row[j] = least;
        }
    }
    const uint64_t all = row[b->count];
    mem_free(row);
    return all;
}

/* Writes where the words are, in place that the caller has for one of every two bytes; NULL: counts them alone. */
static size_t words_of(const char *text, size_t *begin, size_t *length) {
    size_t count = 0;
    for (const char *at = text + strspn(text, " "); *at; count++) {
        const size_t bytes = strcspn(at, " ");
        if (begin) begin[count] = (size_t)(at - text), length[count] = bytes;
        at += bytes;
        at += strspn(at, " ");
    }
    return count;
}

static struct items words(const char *text) {
    const size_t count = words_of(text, NULL, NULL);
    size_t *begin = mem_alloc(2 * count + 1, sizeof *begin, "the words of a text");
    words_of(text, begin, begin + count);
    return (struct items){.text = text, .begin = begin, .length = begin + count, .count = count};
}

struct error_rate error_rate_words(const char *reference, const char *text) {
    const struct items a = words(reference), b = words(text);
    const struct error_rate rate = {distance(&a, &b), a.count};
    mem_free((size_t *)a.begin);
    mem_free((size_t *)b.begin);
    return rate;
}

struct error_rate error_rate_characters(const char *reference, const char *text) {
    const struct items a = {.text = reference, .count = strlen(reference)}, b = {.text = text, .count = strlen(text)};
    return (struct error_rate){distance(&a, &b), a.count};
}
