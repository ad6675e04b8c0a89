/* checkpoint_clean.h: removing checkpoints and what is left of them. Whose directory it is cannot be known, so that
 * only what this program names is removed: in a directory checkpoint-<step>, or that with .tmp or .old behind it, the
 * files model.ckpt and rank<digits>.ckpt. Links are never followed. What holds anything else is left as it is, all of
 * it, and so is a link in the place of a directory; *left then has one line for the user. */
#ifndef ST_CLI_CHECKPOINT_CLEAN_H
#define ST_CLI_CHECKPOINT_CLEAN_H

#include <stdint.h>

#include "base/error.h"

/* The directory of a checkpoint and the files in it go. */
void checkpoint_remove(const char *path, struct err *left);
/* What a killed process may have left in the middle of a write goes. */
void checkpoint_tidy(const char *dir, struct err *left);
/* All checkpoints older than the newest go but so many, that one included, and those of steps that are multiples of
 * `every` (< 1: of none). Later ones are of a future that a resumed run has not come to. Links are not counted: what
 * they lead to is kept by somebody else. */
void checkpoint_prune(const char *dir, long long newest, int64_t keep, int64_t every, struct err *left);
/* Those between these steps go. */
void checkpoint_discard(const char *dir, long long after, long long before, struct err *left);

#endif
