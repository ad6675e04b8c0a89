/* synthetic_text.h: the language of the dataset synthetic-text, for who wants to know more of it than its texts say. */
#ifndef ST_DATA_SYNTHETIC_TEXT_H
#define ST_DATA_SYNTHETIC_TEXT_H

#include "data/text/grammar.h"

/* Two words of every text; the state in which a text begins. */
enum { SYNTHETIC_TEXT_UNK = 0, SYNTHETIC_TEXT_EOS = 1, SYNTHETIC_TEXT_START = 0 };

/* g: all zero. The same for every seed: a seed draws the text and does not change the language. */
void synthetic_text_grammar(struct grammar *g);

#endif
