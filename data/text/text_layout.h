/* text_layout.h: how a loaded text lies in the memory that the caller brought. A header of TEXT_LAYOUT_HEADER bytes
 * (counts and checksum, so that ranks that did not load can attach), then the tokens of train, valid and test, one
 * split after the other, then the vocabulary. Room is given for a bound of them, as their numbers are known only after
 * reading. */
#ifndef ST_DATA_TEXT_LAYOUT_H
#define ST_DATA_TEXT_LAYOUT_H

#include "data/dataset.h"
#include "data/text/text_splits.h"

enum { TEXT_LAYOUT_HEADER = 64 };

/* Bytes for at most so many tokens and a vocabulary of at most so many bytes. */
size_t text_layout_bytes(size_t tokens, size_t vocabulary);

int32_t *text_layout_tokens(void *memory);

/* Puts the vocabulary behind the tokens that are already there, and writes the header. count: tokens of each split. */
void text_layout_seal(void *memory, const size_t count[TEXT_SPLITS], size_t words, struct vocabulary vocabulary);

/* The attach of every text. */
void text_layout_attach(struct dataset *d, const void *memory);

#endif
