/* net_impl.h: what net.c, net_build.c and net_plan.c share: the layers of a net and the memory of its tensors. */
#ifndef ST_NETS_NET_IMPL_H
#define ST_NETS_NET_IMPL_H

#include "nets/backend.h"
#include "nets/frames.h"

enum { NET_LAYERS_MAX = 1024, NET_GRADIENTS_MAX = 2 };

struct net_tensor {
    struct tensor shape;
    int maker;        /* layer that writes it; -1: the input */
    int users;        /* layers that read it, the losses among them */
    int least, limit; /* of LAYOUT_TOKENS: least <= each number < limit */
    float *data;      /* in net_impl.activations */
    /* Slots of net_impl.slot, in the order in which backward fills them: all gradients of this tensor that its maker is
     * given. Where it has more users, theirs are added to the first. */
    int gradient_at[NET_GRADIENTS_MAX], gradients;
};

struct net_layer {
    char name[SLICE_NAME_MAX];
    struct layer_spec spec;
    int x, add, y;              /* tensors; add: BUILD_NONE where nothing joins */
    size_t param, state, carry; /* offsets in the arena */
    size_t bias;                /* likewise, of the convolution before, which is folded into this layer; 0: none is */
    void *self;                 /* the backend's */
    int dy_at, dy2_at, dx_at;   /* slots, -1: none */
    /* Slots to which dx and, of `add`, dy are added behind the backward pass, since other users of the same tensor have
     * put their gradients there; -1: they are the first. */
    int dx_to, dadd_to;
};

/* A piece of memory that holds gradients of one tensor after the other. */
struct net_slot {
    size_t floats, offset; /* size and place in net_impl.gradients */
    bool taken;            /* while the plan is made */
};

struct net_impl {
    const struct backend_ops *backend;
    void *backend_state;
    struct net_layer layer[NET_LAYERS_MAX];
    struct net_tensor tensor[NET_LAYERS_MAX + 1];
    int layers, tensors;
    int logits[NET_LOSSES_MAX], losses; /* tensors */
    bool ctc;                           /* the loss is CTC's */
    int numbers[NET_NUMBERS];           /* tensors; 0, the input itself: this net takes none */
    uint64_t step;                      /* number of the next training pass */
    int frames;                         /* of the last forward pass; 0: passes have one size */
    struct net_slot slot[NET_LAYERS_MAX];
    int slots;
    float *activations, *gradients; /* device: all tensors; all slots */
    size_t planned;                 /* floats of both */
};

static inline struct net_impl *net_impl(const struct net *net) {
    return net->impl;
}

/* arena.c: append a slice without memory yet; returns its offset. */
size_t arena_add(struct arena *a, const char *name, const char *suffix, int dims, const size_t *dim,
                 struct slice_initial initial);
size_t arena_add_state(struct arena *a, const char *name, const char *suffix, size_t size,
                       struct slice_initial initial);
size_t arena_add_carry(struct arena *a, const char *name, const char *suffix, int dims, const size_t *dim); /* of 0 */
/* Initial values. arena_he: of weights [out][in]..., normal with standard deviation sqrt(2 / fan_in), fan_in = entries
 * per output (He et al., "Delving deep into rectifiers", ICCV 2015, eq. 10). */
#define ARENA_ZERO ((struct slice_initial){INITIAL_ZERO, 0})
#define ARENA_ONE ((struct slice_initial){INITIAL_ONE, 0})
struct slice_initial arena_he(int dims, const size_t *dim);
static inline struct slice_initial arena_normal(double deviation) {
    return (struct slice_initial){INITIAL_NORMAL, deviation};
}
/* Memory for all slices, zeroed. */
void arena_open(struct arena *a, const struct device_ops *device);
void arena_close(struct arena *a);
/* Parameters and state as their slices say; a function of seed alone. */
void arena_initialise(struct arena *a, uint64_t seed);

/* layers/conv.c: the bias of each convolution before a norm goes over to that (conv.h). Before the layers are opened.
 */
void net_fold_biases(struct net *net);

/* net_input.c. Mistakes of the caller end the job; complete fills in what net.h says is set by net.c. */
void net_input_check(const struct net *net, const struct net_input *input);
void net_input_complete(const struct net *net, struct net_input *input);

/* net_plan.c: give every tensor its memory; the layers are open. */
void net_plan(struct net *net);

#endif
