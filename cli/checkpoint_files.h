/* checkpoint_files.h: where the checkpoints of a run lie and what their files have in common: RUN/checkpoint-<step>/
 * with model.ckpt and rank<r>.ckpt, each a container (container.h) that begins with a position. Knows no ranks. */
#ifndef ST_CLI_CHECKPOINT_FILES_H
#define ST_CLI_CHECKPOINT_FILES_H

#include <stdint.h>

#include "cli/container.h"
#include "cli/log.h"

enum { CHECKPOINT_PATH_MAX = 1200 };

/* Who wrote a file and when: files of different runs or steps are never mixed. */
struct position {
    uint64_t run_id, step;
    uint32_t ranks, rank;
    uint64_t parameters, optimiser_states, net_states, carried;
    uint32_t data_checksum, averaged; /* averaged: all ranks hold the same parameters at this step */
    struct scores start;
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
    char *options;      /* as options_text gave them */
};

/* Where the checkpoint of this step lies in the directory of a run. */
void checkpoint_name(char path[CHECKPOINT_PATH_MAX], const char *dir, long long step);

/* Finds the newest checkpoint of a run's directory, or takes dir as one: use, path and run_dir. */
bool checkpoint_locate(const struct checkpoint_use *use, const char *dir, struct checkpoint *found, struct err *e);

/* Reads one file of it; where that is damaged, *e also names the checkpoint before it. */
bool checkpoint_read(const struct checkpoint *from, const char *name, struct container *c, struct err *e);
/* The same, but opened, not read (container_open), and a section of what was opened. */
bool checkpoint_open(const struct checkpoint *from, const char *name, struct container *c, struct err *e);
bool checkpoint_get(const struct checkpoint *from, const struct container *c, const char *section, void *data,
                    size_t bytes, struct err *e);

/* A directory and the files in it go. */
void checkpoint_remove(const char *path);
/* What a killed process may have left in the middle of a write goes. */
void checkpoint_tidy(const char *dir);
/* All checkpoints go but the newest ones, so many, and those of steps that are multiples of `every` (< 1: of none). */
void checkpoint_prune(const char *dir, int64_t keep, int64_t every);
/* The names in dir are on the disk. */
void checkpoint_sync(const char *dir);

#endif
