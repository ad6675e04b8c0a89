/* cudnn_engines.c: see cudnn_engines.h. By default they are those of a library without mistakes;
 * SPARSETRAIN_HOSTCUDA_ENGINES=all adds those that fail in some way, all of them faster than the good ones. */
#include "tests/hostcuda/cudnn/cudnn_engines.h"

#include <string.h>

/* What an engine is there for. */
enum { ANYTHING, STRIDED_PLANAR, WINDOW_3_PLANAR };

#define NOTE(name) (1u << CUDNN_NUMERICAL_NOTE_##name)
#define TILES                                                                                                          \
    {CUDNN_KNOB_TYPE_TILE_SIZE, 4, 23}, {                                                                              \
        CUDNN_KNOB_TYPE_STAGES, 3, 6                                                                                   \
    }

static const struct {
    int limits;
    struct engine engine;
} engines[] = {
    /* whatever it is asked for, it says no, or does something else */
    {ANYTHING, {31, 0, 0, ENGINE_HAS_NO_PLAN, 0.3f, 0, {{0}}}},
    {ANYTHING, {37, 0, 0, ENGINE_DOES_NOT_RUN, 0.35f, 0, {{0}}}},
    {ANYTHING, {41, 0, 0, ENGINE_IS_NOT_RECORDED, 0.36f, 0, {{0}}}},
    {ANYTHING, {43, 0, 0, ENGINE_IS_WRONG, 0.37f, 0, {{0}}}},
    {ANYTHING, {47, 0, 0, ENGINE_IS_UNSTEADY, 0.38f, 0, {{0}}}},
    {ANYTHING, {53, 0, 0, ENGINE_WORKS, 0.39f, (size_t)1 << 30, {{0}}}},
    /* of these three the notes say that nobody takes them here */
    {ANYTHING, {7, NOTE(NONDETERMINISTIC), 0, ENGINE_IS_UNSTEADY, 0.5f, 0, {{0}}}},
    {ANYTHING, {19, 0, 1u << CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION, ENGINE_WORKS, 0.6f, 0, {{0}}}},
    {ANYTHING, {23, NOTE(TENSOR_CORE) | NOTE(REDUCED_PRECISION_REDUCTION), 0, ENGINE_WORKS, 0.7f, 0, {{0}}}},
    /* good ones: on tensor cores; with plain products; Winograd's; of no use */
    {ANYTHING, {11, NOTE(TENSOR_CORE), 0, ENGINE_WORKS, 0.9f, 4096, {TILES}}},
    {STRIDED_PLANAR, {29, 0, 0, ENGINE_WORKS, 1.1f, 128, {TILES}}},
    {WINDOW_3_PLANAR,
     {59,
      NOTE(WINOGRAD) | NOTE(WINOGRAD_TILE_6x6),
      0,
      ENGINE_WORKS,
      1.0f,
      8192,
      {{CUDNN_KNOB_TYPE_SPLIT_K_SLC, -1, 9}}}},
    {ANYTHING, {0, NOTE(STRICT_NAN_PROP), 0, ENGINE_WORKS, 3.0f, 0, {{0}}}},
};
enum { FAULTY = 6, ENGINES = sizeof engines / sizeof *engines };

static bool there_for(const struct convolution *v, int limits) {
    const bool plain = !v->channels_last && !v->is_bf16 && v->groups == 1;
    if (limits == STRIDED_PLANAR) return plain && v->stride[0] > 1;
    if (limits == WINDOW_3_PLANAR) return plain && v->stride[0] == 1 && v->stride[1] == 1 && v->r == 3 && v->s == 3;
    return true;
}

int hostcudnn_engines(const struct convolution *v, const struct engine *list[HOSTCUDNN_ENGINES]) {
    const char *wanted = getenv("SPARSETRAIN_HOSTCUDA_ENGINES");
    int count = 0;
    for (int i = wanted && strcmp(wanted, "all") == 0 ? 0 : FAULTY; i < ENGINES; i++)
        if (there_for(v, engines[i].limits)) list[count++] = &engines[i].engine;
    return count;
}
