/* backend_cudnn_cache.h: the choices that were measured, in memory and in a file.
 *
 * The file: one for each kind of GPU and version of cuDNN, in $SPARSETRAIN_CACHE, else $XDG_CACHE_HOME/sparsetrain,
 * else $HOME/.cache/sparsetrain. A line for each choice, "KEY = ALGORITHM MATH", where plans were measured beside
 * it followed by the fastest one, " ENGINE KNOB:VALUE ...", or " -". It is read once, and again before anything is
 * measured, under a lock that is kept until the new line is there: so ranks that share a GPU measure each
 * shape once, and one at a time. What cannot be read, written or understood costs a measurement, after
 * which another algorithm may be taken, whose sums round otherwise: a run goes on to the same bits with the same file.
 */
#ifndef ST_NETS_BACKEND_CUDNN_CACHE_H
#define ST_NETS_BACKEND_CUDNN_CACHE_H

#include "nets/cudnn/backend_cudnn_plans.h"

enum { CUDNN_KEY_MAX = 160 };

/* One line: what it is about, and what was found best. */
struct cudnn_entry {
    char key[CUDNN_KEY_MAX];
    int algorithm, math;
    bool raced; /* plans were measured as well: */
    struct cudnn_recipe plan;
};

struct cudnn_cache;

struct cudnn_cache *cudnn_cache_open(void);
void cudnn_cache_close(struct cudnn_cache *all);

/* NULL: nothing is known of it. Good until the next of the calls below. */
const struct cudnn_entry *cudnn_cache_find(const struct cudnn_cache *all, const char *key);

/* Locks the file and reads it again, for another rank may have measured since. What it returns goes to the others; -1:
 * there can be no file here. */
int cudnn_cache_lock(struct cudnn_cache *all);
void cudnn_cache_add(struct cudnn_cache *all, int file, const struct cudnn_entry *e);
void cudnn_cache_unlock(int file);

#endif
