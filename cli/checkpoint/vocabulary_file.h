/* vocabulary_file.h: DIR/vocabulary.txt of a run on a text: which word each number is. */
#ifndef ST_CLI_VOCABULARY_FILE_H
#define ST_CLI_VOCABULARY_FILE_H

#include "data/dataset.h"

/* Writes the words, one a line in the order of their numbers from 0. Complete, or an error and no file.
 * *made: there was none before. */
bool vocabulary_write(const struct vocabulary *v, const char *dir, bool *made, struct err *e);

#endif
