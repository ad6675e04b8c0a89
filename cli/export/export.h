/* export.h: `sparsetrain export`: the model of a checkpoint in a file that other programs read, with PyTorch's names
 * and shapes. A format = one file + one row in export.c's table. */
#ifndef ST_CLI_EXPORT_H
#define ST_CLI_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/json.h"
#include "base/option.h"
#include "nets/arena.h"

enum { EXPORT_NAME_MAX = SLICE_NAME_MAX + 4 };

struct export_array {
    char name[EXPORT_NAME_MAX]; /* "lstm1.weight_ih_l0" */
    int dims;
    size_t dim[SLICE_DIMS_MAX]; /* row-major */
    size_t size;                /* their product */
    const float *value;
};

struct export_model {
    struct export_array *array; /* [arrays] */
    size_t arrays;
    const char *const (*about)[2]; /* [abouts]: key and value of what is said of the model */
    size_t abouts;
};

struct export_ops {
    const char *name; /* what --format takes; also the ending of its files */
    const char *summary;
    /* The caller checks the file for errors (ferror, fflush). */
    void (*write)(FILE *file, const struct export_model *m);
};

extern const struct export_ops *const export_formats[]; /* every row, NULL-terminated */

/* {"model":"resnet20",...}: what is said of the model, as an object with this key (NULL: by itself). */
void export_about(struct json *j, const char *key, const struct export_model *m);

/* `count` numbers from `from` as the bytes of 32-bit IEEE floats, little-endian: [4 count]. */
void export_floats(unsigned char *to, const float *from, size_t count);

/* argv[1...]: the checkpoint and the options; returns an exit status. */
int export_verb(int argc, char **argv);

extern const struct option_table export_options;

#endif
