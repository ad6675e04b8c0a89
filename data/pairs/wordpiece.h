/* wordpiece.h: a text to the pieces of words that BERT reads, by a published list of pieces (the uncased tokeniser of
 * Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", 2019; greedy
 * pieces after Schuster and Nakajima, "Japanese and Korean voice search", 2012).
 *
 * 1. Clean: U+0000, U+FFFD, control and format characters and those of private use go; blanks of any kind part words.
 * Code points of the blocks of CJK ideographs are words of their own. What is left is decomposed (NFD), loses its
 * accents (category Mn) and becomes lower case.
 * 2. Words are cut at blanks, and every punctuation mark (the printable ASCII characters that are no letters and
 *    digits, and the categories P*) is a word of its own.
 * 3. A word becomes the longest piece of the list that it begins with, then the longest "##" piece that what is left
 *    begins with, and so on. A word of more than 100 code points, or that comes to where no piece fits, is [UNK].
 *
 * No text means one of the special pieces: "[MASK]" in it is the words "[", "mask", "]".
 *
 *        struct wordpiece *w = wordpiece_open(path, &e);
 *        struct pieces p = {0};
 *        if (!wordpiece_add(w, "Hello, W\xc3\xb6rld!", 14, &p)) ...   // hello , world !
 *        pieces_close(&p);
 *        wordpiece_close(w);
 */
#ifndef ST_DATA_WORDPIECE_H
#define ST_DATA_WORDPIECE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/dataset.h"

/* Pieces of a list (numbers have 16 bits where many are kept); bytes of its file; code points of a word. */
enum { WORDPIECE_MOST = 65536, WORDPIECE_FILE_MAX = 1 << 24, WORDPIECE_WORD_MAX = 100 };

struct wordpiece;

/* The numbers of pieces [count], which grow; {0}: none yet. */
struct pieces {
    int32_t *id;
    size_t count, room;
};
void pieces_add(struct pieces *p, int32_t id);
void pieces_close(struct pieces *p);

/* The list of this file, one piece a line, numbered from 0. One that lacks a special piece, has an empty line, a piece
 * twice or more than there may be, or that is not UTF-8: NULL, with one line that names the file and the line. A build
 * without utf8proc has no tokeniser, and says so. */
bool wordpiece_is_here(struct err *e);
struct wordpiece *wordpiece_open(const char *path, struct err *e);
void wordpiece_close(struct wordpiece *w); /* NULL is allowed */

/* Adds the pieces of a text: at most as many as it has bytes. False: it is not UTF-8, and what was added is nothing to
 * go by. */
bool wordpiece_add(const struct wordpiece *w, const char *text, size_t bytes, struct pieces *to);

size_t wordpiece_count(const struct wordpiece *w);
struct special_pieces wordpiece_special(const struct wordpiece *w);
struct vocabulary wordpiece_lines(const struct wordpiece *w);

#endif
