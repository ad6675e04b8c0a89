/* checkpoint_names.h: what the checkpoints of a run are called in its directory: checkpoint-<step>, and with .tmp, .old
 * or .damaged behind it one that is being written, removed or set aside. */
#ifndef ST_CLI_CHECKPOINT_NAMES_H
#define ST_CLI_CHECKPOINT_NAMES_H

#include <stdbool.h>

enum { CHECKPOINT_PATH_MAX = 1200 };
#define CHECKPOINT_DAMAGED ".damaged"

/* Where the checkpoint of this step lies in the directory of a run. */
void checkpoint_name(char path[CHECKPOINT_PATH_MAX], const char *dir, long long step);

/* The step in such a name without its directory, or -1. */
long long checkpoint_step_of(const char *name);
/* The step in the last name of a path as a user may write it, with other zeros before it too, or -1. */
long long checkpoint_step_in(const char *path);
/* The newest checkpoint in dir of a step before this one, or -1: with errno 0 there is none, else dir cannot be read.
 */
long long checkpoint_newest(const char *dir, long long before);

/* Of names without a directory: what a kill in the midst of writing or removing has left; the step of one that was set
 * aside as damaged, or -1. */
bool checkpoint_is_leftover(const char *name);
long long checkpoint_damaged_step(const char *name);
/* Is this one of either, whatever it lies in? What has such a name may go at any time. */
bool checkpoint_is_aside(const char *path);

#endif
