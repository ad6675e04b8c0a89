/* text_layout.c: see text_layout.h. */
#include "data/text/text_layout.h"

#include <string.h>

#include "base/hash.h"

struct header {
    uint64_t count[TEXT_SPLITS], words, bytes; /* tokens; of the vocabulary */
    uint32_t checksum;                         /* CRC-32 of all tokens, then of the vocabulary */
};
_Static_assert(sizeof(struct header) <= TEXT_LAYOUT_HEADER, "the header fits before the tokens");

size_t text_layout_bytes(size_t tokens, size_t vocabulary) {
    return TEXT_LAYOUT_HEADER + tokens * sizeof(int32_t) + vocabulary;
}

int32_t *text_layout_tokens(void *memory) {
    return (int32_t *)(void *)((char *)memory + TEXT_LAYOUT_HEADER);
}

void text_layout_seal(void *memory, const size_t count[TEXT_SPLITS], size_t words, struct vocabulary vocabulary) {
    struct header h;
    size_t tokens = 0;
    memset(&h, 0, sizeof h); /* the padding too: two loads give the same bytes */
    for (int i = 0; i < TEXT_SPLITS; i++) tokens += h.count[i] = count[i];
    h.words = words;
    h.bytes = vocabulary.bytes;
    int32_t *token = text_layout_tokens(memory);
    memcpy(token + tokens, vocabulary.lines, vocabulary.bytes);
    h.checksum = crc32_of(0, token, tokens * sizeof *token + vocabulary.bytes);
    memcpy(memory, &h, sizeof h);
}

void text_layout_attach(struct dataset *d, const void *memory) {
    struct header h;
    memcpy(&h, memory, sizeof h);
    const int32_t *token = (const int32_t *)(const void *)((const char *)memory + TEXT_LAYOUT_HEADER);
    struct text_set *split[TEXT_SPLITS] = {&d->train_text, &d->valid_text, &d->test_text};
    for (int i = 0; i < TEXT_SPLITS; token += h.count[i], i++) *split[i] = (struct text_set){token, (size_t)h.count[i]};
    d->vocabulary = (struct vocabulary){(const char *)token, (size_t)h.bytes};
    d->classes = (int)h.words;
    d->checksum = h.checksum;
}
