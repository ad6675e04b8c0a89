/* target_text.h: --target [SPLIT:]METRIC:VALUE as text: which number of an evaluation is to come how far. Which of them
 * a run has is for target.h to say.
 *
 *        struct target_wish wish;
 *        if (!target_parse("valid:perplexity:120", &wish, &e)) ...     // wish: TARGET_VALID, perplexity, 120
 */
#ifndef ST_CLI_TARGET_TEXT_H
#define ST_CLI_TARGET_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Either: validation where a run has that metric of it, else test. */
enum target_split { TARGET_EITHER, TARGET_VALID, TARGET_TEST };

enum target_metric {
    TARGET_ACCURACY,      /* part of 1 */
    TARGET_LOSS,          /* [nats] */
    TARGET_PERPLEXITY,    /* exp(loss), of texts */
    TARGET_BPC,           /* loss / ln 2: bits per character, of texts that are read by characters */
    TARGET_NEXT_ACCURACY, /* of pairs: of which sentence comes next */
    TARGET_NEXT_LOSS,
    TARGET_LOSS_SAMPLED, /* of windows from random places (--eval-samples) */
    TARGET_WER,          /* of speech: errors over words that were said */
    TARGET_CER,          /* and over characters */
    TARGET_METRICS
};

struct target_wish {
    bool wanted; /* else nothing of the rest is meant */
    enum target_split split;
    enum target_metric metric;
    double value;
};

/* "none", or a target. False: one line in *e. */
bool target_parse(const char *text, struct target_wish *wish, struct err *e);

/* As they are written: "accuracy", "valid". */
const char *target_metric_name(enum target_metric metric);
const char *target_split_name(enum target_split split);

/* "valid:loss", "loss" of either: into text, which is returned. */
enum { TARGET_SCORE_MAX = 64 };
const char *target_score_name(const struct target_wish *wish, char text[TARGET_SCORE_MAX]);

/* Has a score come as far? Accuracies from below, all else from above; never with a NaN. */
bool target_is_reached(const struct target_wish *wish, double score);

#endif
