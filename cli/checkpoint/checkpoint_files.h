/* checkpoint_files.h: where the checkpoints of a run lie and what their files have in common: RUN/checkpoint-<step>/
 * with model.ckpt and rank<r>.ckpt, each a container (container.h) that begins with a position. Knows no ranks. */
#ifndef ST_CLI_CHECKPOINT_FILES_H
#define ST_CLI_CHECKPOINT_FILES_H

#include <stdint.h>

#include "cli/checkpoint/checkpoint_names.h"
#include "cli/checkpoint/container.h"
#include "cli/train/leg.h"

/* Of struct scores what a run that goes on needs of its start, as files have it. */
struct start {
    double test_loss, test_accuracy, valid_loss;
};

/* Who wrote a file and when: files of different runs or steps are never mixed. */
struct position {
    uint64_t run_id, step;
    uint32_t ranks, rank;
    uint64_t parameters, optimiser_states, net_states, carried;
    uint32_t data_checksum, averaged; /* averaged: all ranks hold the same parameters at this step */
    struct start start;
};

/* What somebody wants with a checkpoint, for messages. */
struct checkpoint_use {
    const char *verb;    /* "resume from": what cannot be done with a directory */
    const char *command; /* "--resume": what to type before another one */
    const char *advice;  /* where there is no checkpoint */
};
extern const struct checkpoint_use checkpoint_resume, checkpoint_init, checkpoint_evaluate, checkpoint_export;

/* A checkpoint that was found, and what must be known of it before anything is opened. */
struct checkpoint {
    const struct checkpoint_use *use;
    char path[1024];    /* the checkpoint's directory */
    char run_dir[1024]; /* the run's directory it lies in */
    bool named;         /* by whoever looked for it, who gets no other one */
    char *options;      /* as options_kept gave them */
    uint64_t run_id, step;
    uint32_t ranks;                           /* that wrote it */
    struct leg leg;                           /* that it is in */
    uint64_t parameters, net_states, carried; /* floats of these, as its position says */
    size_t passed;                            /* so many newer ones of the run are damaged, */
    struct err first;                         /* the newest of them in this way */
};

/* Finds the newest checkpoint of a run's directory, or takes dir as one: use, path, run_dir and named. */
bool checkpoint_locate(const struct checkpoint_use *use, const char *dir, struct checkpoint *found, struct err *e);

/* Reads one file of it; where that is damaged, *e also names the checkpoint before it. */
bool checkpoint_read(const struct checkpoint *from, const char *name, struct container *c, struct err *e);
/* The same, but opened, not read (container_open), and a section of what was opened. */
bool checkpoint_open(const struct checkpoint *from, const char *name, struct container *c, struct err *e);
bool checkpoint_get(const struct checkpoint *from, const struct container *c, const char *section, void *data,
                    size_t bytes, struct err *e);

/* Of a damaged one: *e also says which older one there is, unless that is taken instead. */
void checkpoint_suggest(const struct checkpoint *found, struct err *e);

/* `from` takes the name `to`, at once, whatever is there; what was there is then `from` or `aside`, which the caller
 * removes. A kill at any moment leaves one of the two under the name `to`, or, where the file system cannot exchange
 * names, both beside it (checkpoint_replace.c). */
bool checkpoint_replace(const char *from, const char *to, const char *aside, struct err *e);

#endif
