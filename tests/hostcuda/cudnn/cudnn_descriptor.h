/* cudnn_descriptor.h: descriptors of the graph API of the stand-in for cuDNN, as bags of attributes. */
#ifndef ST_TESTS_HOSTCUDA_CUDNN_DESCRIPTOR_H
#define ST_TESTS_HOSTCUDA_CUDNN_DESCRIPTOR_H

#include <string.h>

#include "tests/hostcuda/cudnn/cudnn_engines.h"
#include "tests/hostcuda/cudnn/cudnn_sdpa.h"

enum { ATTRIBUTES = 12, BYTES_MAX = 256, CHOICES_MAX = 32 };

struct attribute {
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t count;
    unsigned char value[BYTES_MAX];
};

/* A graph keeps its convolution or attention, and all that is made from it a copy; so nothing looks at descriptors that
 * are gone. */
struct descriptor {
    cudnnBackendDescriptorType_t type;
    bool final;
    int attributes;
    struct attribute attribute[ATTRIBUTES];
    struct convolution convolution;
    struct cudnnTensorStruct tensor;
    struct cudnnConvolutionStruct window;
    struct sdpa_node node; /* of an operation that may be a part of attention */
    struct sdpa sdpa;
    const struct engine *engine;
    int knobs; /* of a configuration */
    int64_t knob[CHOICES_MAX][2];
};

/* What a descriptor must have when it is finalized; count 0: as many as there are. */
struct need {
    cudnnBackendDescriptorType_t of;
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t count;
    bool optional;
};

/* The i-th of a type, from 0; NULL: it has no more. */
const struct need *hostcudnn_need_of(cudnnBackendDescriptorType_t type, int i);
size_t hostcudnn_attribute_width(cudnnBackendAttributeType_t type); /* bytes of an element; 0: no such is known */

static inline const struct attribute *find(const struct descriptor *d, cudnnBackendAttributeName_t name) {
    for (int i = 0; i < d->attributes; i++)
        if (d->attribute[i].name == name) return &d->attribute[i];
    return NULL;
}

/* Attributes that are there, for it has been finalized. */
static inline int64_t number(const struct descriptor *d, cudnnBackendAttributeName_t name, int i) {
    int64_t value;
    memcpy(&value, find(d, name)->value + (size_t)i * sizeof value, sizeof value);
    return value;
}

static inline int code(const struct descriptor *d, cudnnBackendAttributeName_t name) {
    int value;
    memcpy(&value, find(d, name)->value, sizeof value);
    return value;
}

static inline bool flag(const struct descriptor *d, cudnnBackendAttributeName_t name) {
    return find(d, name) && find(d, name)->value[0];
}

static inline void *pointer(const struct descriptor *d, cudnnBackendAttributeName_t name, int i) {
    void *value;
    memcpy(&value, find(d, name)->value + (size_t)i * sizeof value, sizeof value);
    return value;
}

/* NULL: it is no finalized descriptor of that type. */
static inline const struct descriptor *other(const struct descriptor *d, cudnnBackendAttributeName_t name, int i,
                                             cudnnBackendDescriptorType_t type) {
    const struct descriptor *value = pointer(d, name, i);
    return value && value->final && value->type == type ? value : NULL;
}

/* Where a test has ordered it. */
#define FAILS_IF_TOLD()                                                                                                \
    do {                                                                                                               \
        if (hostcuda_fails(__func__))                                                                                  \
            return hostcudnn_fail(CUDNN_STATUS_NOT_SUPPORTED, "%s: as it was told to", __func__);                      \
    } while (0)

#endif
