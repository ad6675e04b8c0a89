/* error_rate.h: how far a recognised text is from what was said: the least number of insertions, deletions and
 * substitutions that make one of the other (Levenshtein 1966), of words (the word error rate, WER) or of characters,
 * spaces between words among them (the character error rate, CER). The rate of many utterances is the sum of their
 * errors over the sum of their sizes, which may be above 1. */
#ifndef ST_DATA_ERROR_RATE_H
#define ST_DATA_ERROR_RATE_H

#include <stdint.h>

struct error_rate {
    uint64_t errors, of; /* of: words or characters of the reference */
};

/* Words are what stands between blanks. */
struct error_rate error_rate_words(const char *reference, const char *text);
struct error_rate error_rate_characters(const char *reference, const char *text);

#endif
