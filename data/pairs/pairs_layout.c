/* pairs_layout.c: see pairs_layout.h. */
#include "data/pairs/pairs_layout.h"

#include <string.h>

#include "base/hash.h"

struct header {
    uint64_t pairs[TEXT_SPLITS], pieces[TEXT_SPLITS];
    uint64_t words, bytes; /* of the vocabulary */
    struct special_pieces special;
    int32_t length;
    uint32_t checksum; /* CRC-32 of all that lies behind the header */
};
_Static_assert(sizeof(struct header) <= PAIRS_LAYOUT_HEADER, "the header fits before the pairs");
_Static_assert(sizeof(struct pair) == 16, "a pair has no padding");

/* Where things are, in bytes from the beginning. */
struct places {
    size_t pairs[TEXT_SPLITS], pieces[TEXT_SPLITS], vocabulary, end;
};

static struct places places_of(const struct header *h) {
    struct places p;
    p.end = PAIRS_LAYOUT_HEADER;
    for (int i = 0; i < TEXT_SPLITS; i++) p.pairs[i] = p.end, p.end += (size_t)h->pairs[i] * sizeof(struct pair);
    for (int i = 0; i < TEXT_SPLITS; i++) p.pieces[i] = p.end, p.end += (size_t)h->pieces[i] * sizeof(uint16_t);
    p.vocabulary = p.end;
    p.end += (size_t)h->bytes;
    return p;
}

static struct header header_of(const struct pairs_content *c) {
    struct header h;
    memset(&h, 0, sizeof h); /* the padding too: two loads give the same bytes */
    for (int i = 0; i < TEXT_SPLITS; i++) {
        h.pairs[i] = c->pairs[i].count;
        h.pieces[i] = c->articles[i].pieces;
    }
    h.words = wordpiece_count(c->vocabulary);
    h.bytes = wordpiece_lines(c->vocabulary).bytes;
    h.special = wordpiece_special(c->vocabulary);
    h.length = c->length;
    return h;
}

size_t pairs_layout_size(const struct pairs_content *c) {
    const struct header h = header_of(c);
    return places_of(&h).end;
}

size_t pairs_layout_bytes(size_t pairs, size_t pieces, size_t vocabulary) {
    return PAIRS_LAYOUT_HEADER + pairs * sizeof(struct pair) + pieces * sizeof(uint16_t) + vocabulary;
}

static void put(char *to, const void *from, size_t bytes) {
    if (bytes) memcpy(to, from, bytes);
}

void pairs_layout_seal(void *memory, const struct pairs_content *c) {
    struct header h = header_of(c);
    const struct places p = places_of(&h);
    char *to = memory;
    memset(to, 0, PAIRS_LAYOUT_HEADER);
    for (int i = 0; i < TEXT_SPLITS; i++) {
        put(to + p.pairs[i], c->pairs[i].pair, c->pairs[i].count * sizeof(struct pair));
        put(to + p.pieces[i], c->articles[i].piece, c->articles[i].pieces * sizeof(uint16_t));
    }
    put(to + p.vocabulary, wordpiece_lines(c->vocabulary).lines, (size_t)h.bytes);
    h.checksum = crc32_of(0, to + PAIRS_LAYOUT_HEADER, p.end - PAIRS_LAYOUT_HEADER);
    memcpy(to, &h, sizeof h);
}

/* -- looking it over ----------------------------------------------------------------------------------------------- */

/* Each count by itself so small that the places cannot overflow, and all of them together as many as there are bytes.
 */
static bool counts_good(const struct header *h, size_t bytes) {
    for (int i = 0; i < TEXT_SPLITS; i++)
        if (h->pairs[i] > bytes / sizeof(struct pair) || h->pieces[i] > bytes / sizeof(uint16_t)) return false;
    if (h->words > WORDPIECE_MOST || h->bytes > bytes || bytes > SIZE_MAX / 16) return false;
    if (h->length < PAIRS_LENGTH_MIN || h->length > PAIRS_LENGTH_MAX) return false;
    return places_of(h).end == bytes;
}

static bool special_good(const struct header *h) {
    const int32_t id[] = {h->special.pad, h->special.unk, h->special.cls, h->special.sep, h->special.mask};
    for (size_t i = 0; i < sizeof id / sizeof *id; i++)
        if (id[i] < 0 || (uint64_t)id[i] >= h->words) return false;
    return true;
}

static bool set_good(const struct pair_set *s, const struct header *h) {
    for (size_t i = 0; i < s->pieces; i++)
        if (s->piece[i] >= h->words) return false;
    for (size_t i = 0; i < s->count; i++) {
        const struct pair *p = &s->pair[i];
        if (!p->a_length || !p->b_length || p->a_length + p->b_length + PAIRS_SPECIAL > h->length) return false;
        if (p->a + (uint64_t)p->a_length > s->pieces || p->b + (uint64_t)p->b_length > s->pieces) return false;
        if (p->random > 1 || p->alone > p->random || p->zero) return false;
    }
    return true;
}

static size_t lines_in(struct vocabulary v) {
    size_t lines = 0;
    for (size_t i = 0; i < v.bytes; i++) lines += v.lines[i] == '\n';
    return lines;
}

bool pairs_layout_whole(const void *memory, size_t bytes) {
    struct header h;
    struct dataset d = {0};
    const char *from = memory;
    if (bytes < PAIRS_LAYOUT_HEADER) return false;
    memcpy(&h, memory, sizeof h);
    if (!counts_good(&h, bytes) || !special_good(&h)) return false;
    if (crc32_of(0, from + PAIRS_LAYOUT_HEADER, bytes - PAIRS_LAYOUT_HEADER) != h.checksum) return false;
    pairs_layout_attach(&d, memory);
    return set_good(&d.train_pairs, &h) && set_good(&d.valid_pairs, &h) && set_good(&d.test_pairs, &h) &&
           lines_in(d.vocabulary) == h.words;
}

int pairs_layout_length(const void *memory) {
    struct header h;
    memcpy(&h, memory, sizeof h);
    return h.length;
}

void pairs_layout_attach(struct dataset *d, const void *memory) {
    struct header h;
    memcpy(&h, memory, sizeof h);
    const struct places p = places_of(&h);
    const char *from = memory;
    struct pair_set *split[TEXT_SPLITS] = {&d->train_pairs, &d->valid_pairs, &d->test_pairs};
    for (int i = 0; i < TEXT_SPLITS; i++)
        *split[i] = (struct pair_set){.piece = (const uint16_t *)(const void *)(from + p.pieces[i]),
                                      .pieces = (size_t)h.pieces[i],
                                      .pair = (const struct pair *)(const void *)(from + p.pairs[i]),
                                      .count = (size_t)h.pairs[i]};
    d->vocabulary = (struct vocabulary){from + p.vocabulary, (size_t)h.bytes};
    d->classes = (int)h.words;
    d->special = h.special;
    d->length = h.length;
    d->checksum = h.checksum;
}
