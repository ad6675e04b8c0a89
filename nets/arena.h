/* arena.h: all parameters of a model in one flat vector, all gradients in another, with a name for every
 * slice. The exchange sees only the flat vectors; messages and logs use the names.
 *
 * Layout within a slice is the canonical one whatever the backend does inside: convolution weights OIHW,
 * linear weights [out][in], row-major; so a checkpoint or a parameter index means the same everywhere.
 * Slices follow each other in the order of the forward pass, without gaps.
 *
 * `state` holds what is neither trained nor exchanged but belongs to the model: the running mean and
 * variance of each batch normalisation. Each rank has its own; evaluation averages them over ranks first.
 *
 * `carry` is what belongs to the streams that a rank reads, and goes from one window of them to the next: hidden and
 * cell states of LSTMs. Each rank has its own; it is neither exchanged nor averaged, and a run that is resumed needs it
 * back.
 */
#ifndef ST_NETS_ARENA_H
#define ST_NETS_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/device/device.h"

enum { SLICE_NAME_MAX = 48, SLICE_DIMS_MAX = 4 };

/* What a slice is before training: all 0, all 1, normal with standard deviation `scale`, uniform in +-scale. */
struct slice_initial {
    enum { INITIAL_ZERO, INITIAL_ONE, INITIAL_NORMAL, INITIAL_UNIFORM } form;
    double scale;
};

struct slice {
    char name[SLICE_NAME_MAX]; /* "stage1.block0.conv1.weight" */
    size_t offset, size;       /* in floats; size = product of dim */
    int dims;
    size_t dim[SLICE_DIMS_MAX];
    struct slice_initial initial;
};

struct arena {
    const struct device_ops *device;
    float *param, *grad; /* device, [n] each */
    size_t n;
    struct slice *slice; /* [slices] over param and grad */
    size_t slices;
    float *state; /* device, [n_state] */
    size_t n_state;
    struct slice *state_slice;
    size_t state_slices;
    float *carry; /* device, [n_carry] */
    size_t n_carry;
    struct slice *carry_slice;
    size_t carry_slices;
};

/* The slice that holds entry `index` of param or grad. index < n. */
const struct slice *arena_slice_at(const struct arena *a, size_t index);
/* The slice of this name, or NULL. */
const struct slice *arena_slice(const struct arena *a, const char *name);

#endif
