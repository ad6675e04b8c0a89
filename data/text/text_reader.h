/* text_reader.h: a file of words to their numbers, through a buffer of fixed size.
 *
 * Words are runs of any bytes between ASCII blanks (space, tab, \v, \f, \r), so a line may end with \r\n. Every line
 * ends with the word <eos>, an empty one and a last one without '\n' too. Bytes that are not UTF-8 are taken as they
 * are; a zero byte is refused, as it means another encoding (UTF-16) or no text at all. */
#ifndef ST_DATA_TEXT_READER_H
#define ST_DATA_TEXT_READER_H

#include "data/text/text_file.h"
#include "data/text/vocabulary_index.h"

enum { TEXT_WORD_MAX = 4096 }; /* bytes */
#define TEXT_EOS "<eos>"
#define TEXT_UNKNOWN "<unk>"

/* Tokens and bytes of vocabulary that so many bytes (text_size) can be: "a" is two tokens, a and <eos>; every word of
 * the text has a blank after it or is its last. */
size_t text_most_tokens(uint64_t bytes);
size_t text_most_vocabulary(uint64_t bytes);

/* learn: words that v lacks are added; else they are read as <unk>, which v must hold, with <eos>.
 * token [text_most_tokens(bytes)], of which *count are written. The file holding more than `bytes`, damage, a word
 * that is too long, too many words for v, no token at all: false, with one line that names the file. */
bool text_read(const char *path, uint64_t bytes, struct vocabulary_index *v, bool learn, int32_t *token, size_t *count,
               struct err *e);

#endif
