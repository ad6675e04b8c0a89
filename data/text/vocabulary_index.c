/* vocabulary_index.c: see vocabulary_index.h. Open addressing with linear probing (Knuth, TAOCP volume 3, Section 6.4,
 * algorithm L) over the 64-bit hash of base/hash.h; at most half of the places are taken, so a search ends soon. The
 * words themselves lie one after the other as they are written out. */
#include "data/text/vocabulary_index.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

enum { PLACES_FIRST = 1 << 10, BYTES_FIRST = 1 << 13, FREE = -1 };

struct place {
    uint64_t hash;
    int32_t number; /* FREE: none */
};

struct vocabulary_index {
    struct place *place; /* [places] */
    size_t places;       /* a power of two */
    size_t *begin;       /* [places / 2 + 1]; word i lies at lines[begin[i]], its '\n' at lines[begin[i + 1] - 1] */
    size_t words, most;
    char *lines; /* [room] */
    size_t room;
};

/* -- what grows ---------------------------------------------------------------------------------------------------- */

static struct place *free_places(size_t count) {
    struct place *place = mem_alloc(count, sizeof *place, "a vocabulary");
    for (size_t i = 0; i < count; i++) place[i] = (struct place){0, FREE};
    return place;
}

/* Twice the places: every word is put where it belongs among them. */
static void grow(struct vocabulary_index *v) {
    size_t places = 2 * v->places;
    struct place *place = free_places(places);
    for (size_t i = 0; i < v->places; i++) {
        if (v->place[i].number == FREE) continue;
        size_t at = (size_t)v->place[i].hash & (places - 1);
        while (place[at].number != FREE) at = (at + 1) & (places - 1);
        place[at] = v->place[i];
    }
    mem_free(v->place);
    v->place = place;
    v->begin = mem_grow(v->begin, v->words + 1, places / 2 + 1, sizeof *v->begin, "a vocabulary");
    v->places = places;
}

struct vocabulary_index *vocabulary_open(size_t most) {
    if (most < 1 || most > INT32_MAX) die("a vocabulary of at most %zu words", most);
    struct vocabulary_index *v = mem_zalloc(1, sizeof *v, "a vocabulary");
    v->most = most;
    v->places = PLACES_FIRST;
    v->place = free_places(v->places);
    v->begin = mem_zalloc(v->places / 2 + 1, sizeof *v->begin, "a vocabulary");
    v->room = BYTES_FIRST;
    v->lines = mem_alloc(v->room, 1, "a vocabulary");
    return v;
}

void vocabulary_close(struct vocabulary_index *v) {
    if (!v) return;
    mem_free(v->place);
    mem_free(v->begin);
    mem_free(v->lines);
    mem_free(v);
}

/* -- what is there ------------------------------------------------------------------------------------------------- */

/* The place of a word, or the free one where it would be put. */
static struct place *place_of(const struct vocabulary_index *v, uint64_t hash, const char *word, size_t length) {
    for (size_t at = (size_t)hash & (v->places - 1);; at = (at + 1) & (v->places - 1)) {
        struct place *p = &v->place[at];
        if (p->number == FREE) return p;
        const size_t *begin = &v->begin[p->number];
        if (p->hash == hash && begin[1] - begin[0] == length + 1 && memcmp(v->lines + begin[0], word, length) == 0)
            return p;
    }
}

int32_t vocabulary_find(const struct vocabulary_index *v, const char *word, size_t length) {
    return place_of(v, hash64(0, word, length), word, length)->number;
}

int32_t vocabulary_add(struct vocabulary_index *v, const char *word, size_t length) {
    uint64_t hash = hash64(0, word, length);
    struct place *p = place_of(v, hash, word, length);
    if (p->number != FREE) return p->number;
    if (v->words == v->most) return -1;
    size_t at = v->begin[v->words];
    if (v->room - at < length + 1) {
        v->room = 2 * (v->room + length + 1);
        v->lines = mem_grow(v->lines, at, v->room, 1, "a vocabulary");
    }
    memcpy(v->lines + at, word, length);
    v->lines[at + length] = '\n';
    int32_t number = (int32_t)v->words++;
    *p = (struct place){hash, number};
    v->begin[v->words] = at + length + 1;
    if (2 * v->words == v->places) grow(v);
    return number;
}

size_t vocabulary_words(const struct vocabulary_index *v) {
    return v->words;
}

size_t vocabulary_most(const struct vocabulary_index *v) {
    return v->most;
}

struct vocabulary vocabulary_lines(const struct vocabulary_index *v) {
    return (struct vocabulary){v->lines, v->begin[v->words]};
}
