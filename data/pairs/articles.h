/* articles.h: a text as articles of sentences of pieces, for packing.
 *
 * A line is a paragraph. It is a heading where its first and last words are "=", and the title of an article where that
 * is one "=" on either side (= Title =, not = = Section = =) and the lines before and after it are blank, or none:
 * there an article begins. What stands before the first title is one, too. A heading is a sentence; any other line is
 * cut behind each word "." (blanks, or an end of the line, on both sides of it). What has no pieces is no sentence, and
 * what has no sentence no article. */
#ifndef ST_DATA_ARTICLES_H
#define ST_DATA_ARTICLES_H

#include "data/pairs/wordpiece.h"

struct articles {
    uint16_t *piece;    /* [pieces], one sentence after the other */
    uint32_t *sentence; /* [sentences + 1] the piece with which each begins; the last one: pieces */
    uint32_t *article;  /* [count + 1] the sentence with which each begins; the last one: sentences */
    size_t pieces, sentences, count;
    size_t piece_room, sentence_room, article_room;
};

/* a: all zero. path: for the message. The text is not UTF-8 or holds a zero byte, or too many pieces: false. */
bool articles_read(struct articles *a, const struct wordpiece *w, const char *path, const char *text, size_t bytes,
                   struct err *e);
void articles_close(struct articles *a);

#endif
