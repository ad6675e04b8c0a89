/* checkpoint_clean.h: removing checkpoints and what is left of them. The directory may hold files of others, so only
 * names that this program gives are removed: in a directory checkpoint-<step>, or that with .tmp, .old or
 * .damaged behind it, the files model.ckpt and rank<digits>.ckpt. Links are never followed. What holds anything else is
 * left as it is, all of it, and so is a link in the place of a directory; *left then has one line for the user. */
#ifndef ST_CLI_CHECKPOINT_CLEAN_H
#define ST_CLI_CHECKPOINT_CLEAN_H

#include <stdint.h>

#include "base/error.h"

/* The directory of a checkpoint and the files in it go. */
void checkpoint_remove(const char *path, struct err *left);
/* What a killed process may have left in the middle of a write goes. */
void checkpoint_tidy(const char *dir, struct err *left);
/* Keeps the newest checkpoint up to this step and so many in all, and those of steps that are multiples of `every` (<
 * 1: of none); removes the other older ones. Checkpoints of later steps are left alone: a resumed run has not reached
 * them yet. Links are not counted: what they lead to is managed by somebody else. */
void checkpoint_prune(const char *dir, long long newest, int64_t keep, int64_t every, struct err *left);
/* Removes those of later steps, or, where one of them cannot be, none: *e says which. */
bool checkpoint_discard(const char *dir, long long after, struct err *e);

/* Those of later steps, which are damaged, become checkpoint-<step>.damaged: no run goes on from one, though it may be
 * read again one day. One that has this name already goes. */
bool checkpoint_set_aside(const char *dir, long long after, struct err *e);
/* Such ones up to this step go. */
void checkpoint_tidy_damaged(const char *dir, long long step, struct err *left);

/* May another one take its name? If it is there, it is a directory, and all in it is ours. */
bool checkpoint_is_ours(const char *path, struct err *left);

#endif
