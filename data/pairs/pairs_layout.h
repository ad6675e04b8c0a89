/* pairs_layout.h: how the sequences of a text lie in the memory that the caller brought. A header of
 * PAIRS_LAYOUT_HEADER bytes (counts, length, special pieces, checksum), then the pairs of train, valid and test, then
 * the pieces of these, then the vocabulary; where all of it was read from a file, it is looked over before use. */
#ifndef ST_DATA_PAIRS_LAYOUT_H
#define ST_DATA_PAIRS_LAYOUT_H

#include "data/pairs/pairs.h"
#include "data/text/text_splits.h"

enum { PAIRS_LAYOUT_HEADER = 128 };

/* What is put there. */
struct pairs_content {
    struct articles articles[TEXT_SPLITS];
    struct pair_list pairs[TEXT_SPLITS];
    const struct wordpiece *vocabulary;
    int length;
};

/* Bytes that this content takes; that at most so many sequences, pieces and bytes of vocabulary do. */
size_t pairs_layout_size(const struct pairs_content *c);
size_t pairs_layout_bytes(size_t pairs, size_t pieces, size_t vocabulary);

/* memory [pairs_layout_size(c)] */
void pairs_layout_seal(void *memory, const struct pairs_content *c);

/* Are these `bytes` what pairs_layout_seal makes: counts that fill them, parts that lie within their split and fit into
 * the length, pieces of the vocabulary, the right checksum? */
bool pairs_layout_whole(const void *memory, size_t bytes);

int pairs_layout_length(const void *memory);

/* The attach of every text in pairs. */
void pairs_layout_attach(struct dataset *d, const void *memory);

#endif
