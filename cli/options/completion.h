/* completion.h: what a shell may offer behind `sparsetrain`, from the tables: the verbs (verbs.h), the options of train
 * (options.h) and of the other verbs, with the values they take.
 *
 *        struct offer o;
 *        for (size_t i = 0; offer_at(verb, i, &o); i++) ...      // o.name, o.kind, o.words
 */
#ifndef ST_CLI_COMPLETION_H
#define ST_CLI_COMPLETION_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/verbs.h"

enum offer_kind {
    OFFER_FLAG,   /* takes no value */
    OFFER_NONE,   /* a number or such: nothing to offer */
    OFFER_FILE,   /* the name of a file */
    OFFER_FOLDER, /* the name of a directory */
    OFFER_WORDS,  /* one of `words` */
    OFFER_LIST    /* some of `words`, with commas between them */
};

/* One option of a verb. */
struct offer {
    char name[64], argument[64]; /* without the dashes; the metavariable, "" of a flag */
    char about[1024];            /* what it does */
    enum offer_kind kind;
    char words[2048]; /* with a blank between each two */
};

/* The i-th option of a verb; false: there are no more. */
bool offer_at(const struct verb_row *verb, size_t i, struct offer *o);

/* Are its options those of train, which are also written --name=value? */
bool offers_table(const struct verb_row *verb);
/* What a verb takes besides its options: "sparsetrain export CHECKPOINT". False: nothing. */
bool offer_operand(const struct verb_row *verb, struct offer *o);

/* `sparsetrain completion bash`, `zsh`: a file that the shell reads. */
void completion_bash(FILE *stream);
void completion_zsh(FILE *stream);

#endif
