/* scores.h: what an evaluation says: one table has every number that comes of it, under which key a row of run.jsonl
 * and the summary have it, as what --target names it, and which runs have it. */
#ifndef ST_CLI_SCORES_H
#define ST_CLI_SCORES_H

#include "base/json.h"
#include "cli/options/target_text.h"

struct run;

/* Means over the images, or over the words, of each split; NaN where there is none. */
struct scores {
    double test_loss, test_accuracy; /* [nats]; part of 1 */
    double valid_loss;               /* of texts */
    double next_loss, next_accuracy; /* of pairs: of next sentences, in the validation split */
    double sampled_loss;             /* of windows of the validation text from random places, where there are any */
    double test_wer, test_cer;       /* of speech: words and characters that are wrong, of those that were said */
    double valid_wer, valid_cer;
};
extern const struct scores scores_none; /* all NaN */

enum score_form {
    SCORE_PLAIN,
    SCORE_PERPLEXITY, /* e to it */
    SCORE_BITS        /* nats as bits */
};

struct score {
    const char *key; /* NULL: the log has it in another form */
    enum target_split split;
    enum target_metric metric;
    size_t at; /* in struct scores */
    enum score_form form;
    bool (*when)(const struct run *r);
};

extern const struct score score_table[]; /* in the order of a row; with a `when` of NULL at the end */

/* The score of this name that such runs have; NULL: they have none. */
const struct score *score_find(const struct run *r, enum target_split split, enum target_metric metric);
double score_value(const struct score *s, const struct scores *scores);
/* Where it is not known yet, it is `value`. Of a form of another one, as a perplexity, nothing happens. */
void score_learn(const struct score *s, struct scores *scores, double value);
/* The members of an evaluation, in its row, in the summary and in what `evaluate --json` prints. */
void scores_write(const struct run *r, const struct scores *scores, struct json *j);

#endif
