/* cudnn_engines.h: the engines of the graph API that the stand-in claims to have for a convolution, and the virtual
 * time that each takes. They compute what cudnn_conv_run.c computes; they differ in what they say of themselves, and
 * some of them in what they do, as a library with a mistake might. */
#ifndef ST_TESTS_HOSTCUDA_CUDNN_ENGINES_H
#define ST_TESTS_HOSTCUDA_CUDNN_ENGINES_H

#include "tests/hostcuda/cudnn/cudnn_conv.h"

enum { HOSTCUDNN_KNOBS = 2, HOSTCUDNN_ENGINES = 16 };

/* What goes wrong with it. */
enum engine_fault {
    ENGINE_WORKS,
    ENGINE_HAS_NO_PLAN,
    ENGINE_DOES_NOT_RUN,
    ENGINE_IS_NOT_RECORDED, /* it does what a capture does not survive */
    ENGINE_IS_WRONG,        /* other numbers */
    ENGINE_IS_UNSTEADY      /* not the same bits every time, though it says so */
};

struct engine {
    int64_t index;
    unsigned numerical, behaviour; /* a bit for each note */
    enum engine_fault fault;
    float time; /* relative, as those of the algorithms */
    size_t workspace;
    int64_t knob[HOSTCUDNN_KNOBS][3]; /* type, value that the heuristics choose, the largest */
};

/* All that are there, in the order in which the heuristics name them; how many. */
int hostcudnn_engines(const struct convolution *v, const struct engine *list[HOSTCUDNN_ENGINES]);

#endif
