/* pairs.h: articles to sequences [CLS] A [SEP] B [SEP], as create_pretraining_data.py of Devlin et al. (2019) makes
 * them for masked language models with next-sentence prediction.
 *
 * An article is read sentence by sentence into a chunk until it has as many pieces as the sequence aims at: length - 3,
 * or, for one of ten sequences, a random number from 2 to that. A is the first of its sentences, a random number of
 * them that leaves one at least. For one half of the sequences B is the rest; for the other B is of another article:
 * its sentences from a random one on, until A and B have as many pieces as was aimed at or the article ends, and the
 * rest of the chunk is read once more. A chunk of one sentence has no rest: its B is of another article, too. While A
 * and B are longer than length - 3 together, the longer one (B, if they are equal) loses its first or last piece, at
 * random.
 *
 * Both parts are consecutive pieces of the text, so a sequence is where they lie (struct pair). Random numbers are
 * those of (seed, split, article): the sequences of an article are a function of these, the text, the vocabulary and
 * the length. Differences from that script: the aim is drawn for each sequence, not once for an article; the other
 * article is uniform among the others, where the script may come back to the same one; each article is read once, where
 * the script reads all of them `dupe_factor` times with other masks, since here masks are drawn anew in each epoch. */
#ifndef ST_DATA_PAIRS_H
#define ST_DATA_PAIRS_H

#include "data/pairs/articles.h"

enum { PAIRS_LENGTH_MIN = 16, PAIRS_LENGTH_MAX = 4096, PAIRS_SPECIAL = 3 };

struct pair_list {
    struct pair *pair; /* [count], article by article */
    size_t count, room;
};

/* Adds the sequences of all articles, of which there are two at least; length: PAIRS_LENGTH_MIN to _MAX. */
void pairs_pack(const struct articles *a, int length, uint64_t seed, unsigned split, struct pair_list *to);
void pair_list_close(struct pair_list *l);

#endif
