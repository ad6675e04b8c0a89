/* checkpoint_check.h: is what a checkpoint says possible? Its checksums say that it is as it was written, not who wrote
 * it: a file from somebody else may say anything. Each call: false, and one line in *e that names the file and what of
 * it, where no run can have written that. */
#ifndef ST_CLI_CHECKPOINT_CHECK_H
#define ST_CLI_CHECKPOINT_CHECK_H

#include "cli/checkpoint/checkpoint_files.h"
#include "nets/arena.h"
#include "nets/optimisers/optimiser.h"

/* By itself, and with the step in the name of the directory `dir`, where that is checkpoint-<step>. */
bool checkpoint_check_position(const struct position *p, const char *path, const char *dir, struct err *e);
/* The leg of a run that is at this position. */
bool checkpoint_check_leg(const struct leg *l, const struct position *p, const char *path, struct err *e);
/* One beside that of model.ckpt: of the same run, step and sizes, and of this rank. use: see struct checkpoint_use. */
bool checkpoint_check_beside(const struct position *p, const struct position *model, int rank, const char *path,
                             const char *verb, struct err *e);

/* Opens the file of a rank, which must be one beside model.ckpt. False: nothing is open. */
bool checkpoint_open_rank(const struct checkpoint *from, const struct position *model, int rank, struct container *c,
                          struct err *e);

/* value: [n], a section of numbers; none is NaN or infinite. */
bool checkpoint_check_finite(const float *value, size_t n, const char *section, const char *path, struct err *e);
/* Running statistics, [n], of these slices: besides, no variance is below 0. */
bool checkpoint_check_statistics(const float *value, size_t n, const struct slice *slice, size_t slices,
                                 const char *path, struct err *e);
/* An optimiser's state, [moments][n]: besides, no mean of squares is below 0. */
bool checkpoint_check_moments(const float *value, size_t n, const struct optimiser_ops *ops, const char *section,
                              const char *path, struct err *e);

/* A section that is a text, in fresh memory: it ends with its only NUL and is not longer than texts are. NULL: *e says
 * why. c may have been read or opened. */
char *checkpoint_text(const struct container *c, const char *section, struct err *e);
/* Its options, which are what options_stored takes. */
char *checkpoint_options(const struct container *c, struct err *e);

#endif
