/* exempt_option.c: see exempt_option.h. */
#include "cli/options/exempt_option.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { WORD_MAX = 64 };

/* Does a part of the name begin with this word? */
static bool name_fits(const char *name, const char *word, size_t length) {
    for (const char *part = name; part; part = strchr(part, '.')) {
        part += *part == '.';
        if (strncmp(part, word, length) == 0) return true;
    }
    return false;
}

/* "small:N": N, or 0 for another word. */
static size_t small_limit(const char *word, size_t length) {
    char copy[WORD_MAX], *end;
    if (length < 7 || length >= WORD_MAX || strncmp(word, "small:", 6) != 0) return 0;
    memcpy(copy, word, length);
    copy[length] = '\0';
    errno = 0;
    unsigned long long limit = copy[6] >= '0' && copy[6] <= '9' ? strtoull(copy + 6, &end, 10) : 0;
    return limit > 0 && !errno && !*end && limit <= SIZE_MAX ? (size_t)limit : 0;
}

static bool fits(const struct slice *s, const char *word, size_t length) {
    size_t limit = small_limit(word, length);
    if (limit > 0) return s->size < limit;
    if (length == 2 && strncmp(word, "1d", 2) == 0) return s->dims == 1;
    return length > 0 && name_fits(s->name, word, length);
}

/* Marks the slices that a word fits. */
static bool mark(const struct arena *a, const char *word, size_t length, bool *marked, struct err *e) {
    bool any = false;
    for (size_t i = 0; i < a->slices; i++)
        if (fits(&a->slice[i], word, length)) any = marked[i] = true;
    return any ||
           err_set(e,
                   "--dense-slices: no slice of the model fits \"%.*s\"; take beginnings of parts of their names (one "
                   "is %s), 1d, or small:N",
                   (int)(length < WORD_MAX ? length : WORD_MAX), word, a->slice[a->slices - 1].name);
}

static void list_entries(const struct arena *a, const bool *marked, uint32_t *index) {
    for (size_t i = 0, at = 0; i < a->slices; i++)
        for (size_t j = 0; marked[i] && j < a->slice[i].size; j++) index[at++] = (uint32_t)(a->slice[i].offset + j);
}

bool exempt_parse(const char *text, const struct arena *a, uint32_t **index, size_t *count, struct err *e) {
    *index = NULL;
    *count = 0;
    if (strcmp(text, "none") == 0) return true;
    bool *marked = mem_zalloc(a->slices, sizeof *marked, "which slices are dense"), good = true;
    for (const char *at = text; good; at++) {
        size_t length = strcspn(at, ",");
        good = mark(a, at, length, marked, e);
        at += length;
        if (!*at) break;
    }
    size_t entries = 0;
    for (size_t i = 0; i < a->slices; i++) entries += marked[i] ? a->slice[i].size : 0;
    if (good && entries == a->n)
        good = err_set(e, "--dense-slices %s takes every slice of the model; use --algo dense for that", text);
    if (good) {
        *index = mem_alloc(entries, sizeof **index, "the entries of dense slices");
        *count = entries;
        list_entries(a, marked, *index);
    }
    mem_free(marked);
    return good;
}

bool exempt_has(const struct slice *s, const uint32_t *index, size_t count) {
    size_t low = 0, high = count; /* the first entry at or after the slice */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (index[middle] < s->offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && index[low] == s->offset;
}
