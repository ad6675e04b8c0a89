/* net.c: see net.h: a net from its model's layers, and the passes over them. */
#include "nets/net.h"

#include "base/beat.h"
#include "base/mem.h"
#include "nets/ctc.h"
#include "nets/net_build.h"
#include "nets/net_impl.h"

int net_rows(const struct net_setup *setup) {
    return setup->batch * (setup->sequence > 1 ? setup->sequence : 1);
}

/* Backends choose the layouts of tensors layer by layer, from the input on. */
static void open_layers(struct net *net) {
    struct net_impl *m = net_impl(net);
    for (int i = 0; i < m->tensors; i++) {
        struct tensor *t = &m->tensor[i].shape;
        if (m->tensor[i].maker < 0) t->floats = (size_t)t->n * (size_t)t->c * (size_t)t->h * (size_t)t->w;
    }
    for (int i = 0; i < m->layers; i++) {
        struct net_layer *l = &m->layer[i];
        const struct tensor *add = l->add == BUILD_NONE ? NULL : &m->tensor[l->add].shape;
        l->self = m->backend->layer[l->spec.kind]->open(m->backend_state, &l->spec, &m->tensor[l->x].shape, add,
                                                        &m->tensor[l->y].shape);
    }
}

/* Has the backend all kinds of layers that this net is made of? */
static bool has_layers(const struct net *net, struct err *e) {
    const struct net_impl *m = net_impl(net);
    if (m->losses > m->backend->losses)
        return err_set(e, "model %s has %d losses, of which %s computes %d on device %s: use another --device",
                       net->model->name, m->losses, m->backend->name, m->backend->losses, net->setup.device->name);
    if (m->ctc && !m->backend->ctc)
        return err_set(e, "model %s has a loss that %s does not compute on device %s: use another --device",
                       net->model->name, m->backend->name, net->setup.device->name);
    for (int i = 0; i < m->layers; i++) {
        const enum layer_kind kind = m->layer[i].spec.kind;
        if (m->backend->layer[kind]->open) continue;
        return err_set(
            e, "model %s has the layer %s (%s), which %s does not compute on device %s: use another --device",
            net->model->name, m->layer[i].name, layer_names[kind], m->backend->name, net->setup.device->name);
    }
    return true;
}

/* Entries of the gradient have numbers of 32 bits. */
static bool few_enough(const struct net *net, struct err *e) {
    if (net->arena.n < UINT32_MAX) return true;
    return err_set(e, "model %s would have %zu parameters for %d classes; at most %u can be trained", net->model->name,
                   net->arena.n, net->setup.classes, UINT32_MAX - 1);
}

/* The programmer's mistakes. */
static void check_whole(const struct net *net) {
    const struct net_impl *m = net_impl(net);
    if (m->losses == 0) die("model %s has no loss", net->model->name);
    for (int i = 0; i < m->tensors; i++)
        if (m->tensor[i].users == 0)
            die("nothing reads %s", m->tensor[i].maker < 0 ? "the input" : m->layer[m->tensor[i].maker].name);
}

static bool rows_fit(const struct net_setup *setup, struct err *e) {
    if (setup->sequence < 1 || setup->batch <= INT32_MAX / setup->sequence) return true;
    return err_set(e, "--batch %d windows of --bptt %d words are more than %d words; use a smaller one", setup->batch,
                   setup->sequence, INT32_MAX);
}

/* Its layers, without memory for what they hold. */
static struct net *written_down(const struct model_ops *model, const struct net_setup *setup, struct err *e) {
    if (!rows_fit(setup, e)) return NULL;
    struct net *net = mem_zalloc(1, sizeof *net, "a net");
    net->model = model;
    net->setup = *setup;
    net->impl = mem_zalloc(1, sizeof *net_impl(net), "the layers of a net");
    if (model->build(net, e) && few_enough(net, e)) {
        check_whole(net);
        return net;
    }
    net_close(net);
    return NULL;
}

bool net_measure(const struct model_ops *model, const struct net_setup *setup, struct net_size *size, struct err *e) {
    struct net *net = written_down(model, setup, e);
    if (!net) return false;
    const struct net_impl *m = net_impl(net);
    *size = (struct net_size){net->arena.n, net->arena.n_state, net->arena.n_carry, 0};
    for (int i = 0; i < m->tensors; i++) {
        const struct tensor *t = &m->tensor[i].shape;
        size->activations += (size_t)t->n * (size_t)t->c * (size_t)t->h * (size_t)t->w;
    }
    net_close(net);
    return true;
}

struct net *net_open(const struct model_ops *model, const struct net_setup *setup, struct err *e) {
    const struct backend_ops *backend = backend_for(setup->device);
    if (!backend) {
        err_set(e, "no backend of this build trains on device %s: use --device cpu", setup->device->name);
        return NULL;
    }
    if (!backend->serves(setup->precision, e)) return NULL;
    struct net *net = written_down(model, setup, e);
    if (!net) return NULL;
    struct net_impl *m = net_impl(net);
    m->backend = backend;
    if (!has_layers(net, e)) {
        net_close(net);
        return NULL;
    }
    arena_open(&net->arena, setup->device);
    arena_initialise(&net->arena, setup->seed);
    m->backend_state = backend->open(
        &(struct backend_setup){setup->threads, setup->precision, setup->dropout_seed, .adds = setup->accumulate > 1});
    if (backend->folds_bias) net_fold_biases(net);
    open_layers(net);
    if (backend->opened && !backend->opened(m->backend_state, e)) {
        net_close(net);
        return NULL;
    }
    net_plan(net);
    return net;
}

enum net_graphs net_graphs(const struct net *net, const char **why) {
    const struct net_impl *m = net_impl(net);
    *why = "";
    return m->backend->graphs ? m->backend->graphs(m->backend_state, why) : NET_GRAPHS_NONE;
}

bool net_lacks_winograd(const struct net *net) {
    const struct net_impl *m = net_impl(net);
    return net->setup.precision == PRECISION_F32_WINOGRAD && m->backend->winograd &&
           !m->backend->winograd(m->backend_state);
}

size_t net_device_bytes(const struct net *net) {
    const struct arena *a = &net->arena;
    return (2 * a->n + a->n_state + a->n_carry + net_impl(net)->planned) * sizeof(float);
}

void net_close(struct net *net) {
    if (!net) return;
    struct net_impl *m = net_impl(net);
    for (int i = 0; i < m->layers; i++)
        if (m->layer[i].self) m->backend->layer[m->layer[i].spec.kind]->close(m->layer[i].self);
    if (m->backend_state) m->backend->close(m->backend_state);
    net->setup.device->release(m->activations);
    net->setup.device->release(m->gradients);
    arena_close(&net->arena);
    mem_free(m);
    mem_free(net);
}

static float *slot_data(const struct net_impl *m, int slot) {
    return slot < 0 ? NULL : m->gradients + m->slot[slot].offset;
}

static struct layer_call call_of(const struct net *net, const struct net_layer *l, bool adds) {
    const struct net_impl *m = net_impl(net);
    return (struct layer_call){
        .x = m->tensor[l->x].data,
        .add = l->add == BUILD_NONE ? NULL : m->tensor[l->add].data,
        .y = m->tensor[l->y].data,
        .param = net->arena.param + l->param,
        .dparam = net->arena.grad + l->param,
        .bias = l->bias ? net->arena.param + l->bias : NULL,
        .state = net->arena.state + l->state,
        .carry = net->arena.carry + l->carry,
        .dy = slot_data(m, l->dy_at),
        .dy2 = slot_data(m, l->dy2_at),
        .dx = slot_data(m, l->dx_at),
        .frames = m->frames,
        .batch = net->setup.batch,
        .adds = adds,
    };
}

/* The gradients of x and `add` that this layer has written, to those that other users of these have written before. */
static void add_gradients(const struct net *net, const struct net_layer *l) {
    const struct net_impl *m = net_impl(net);
    if (l->dx_to >= 0)
        m->backend->add(m->backend_state, &m->tensor[l->x].shape, slot_data(m, l->dx_at), slot_data(m, l->dx_to));
    if (l->dadd_to >= 0)
        m->backend->add(m->backend_state, &m->tensor[l->add].shape, slot_data(m, l->dy_at), slot_data(m, l->dadd_to));
}

/* For who times what the device is given. */
static void place(const struct net *net, const char *what, const char *pass) {
    const struct device_ops *device = net->setup.device;
    if (device->timer) device->timer()->place(what, pass);
}

static void feed(const struct net *net, const struct net_input *input) {
    const struct net_impl *m = net_impl(net);
    float *numbers[NET_NUMBERS];
    for (int k = 0; k < NET_NUMBERS; k++) numbers[k] = m->numbers[k] ? m->tensor[m->numbers[k]].data : NULL;
    m->backend->feed(m->backend_state, input, &m->tensor[0].shape, m->tensor[0].data, numbers);
}

static void compute_ctc(const struct net *net, bool training) {
    const struct net_impl *m = net_impl(net);
    const struct net_tensor *logits = &m->tensor[m->logits[0]];
    const struct ctc_call call = {
        .logits = logits->data,
        .dlogits = training ? slot_data(m, logits->gradient_at[0]) : NULL,
        .lengths = (const int32_t *)(const void *)m->tensor[m->numbers[NUMBERS_LENGTHS]].data,
        .steps = steps_of(m->frames, logits->shape.frames),
        .batch = net->setup.batch,
        .classes = logits->shape.c,
        .frames = logits->shape.frames,
    };
    m->backend->ctc(m->backend_state, &call);
}

static void compute_losses(const struct net *net, bool training) {
    const struct net_impl *m = net_impl(net);
    if (m->ctc) {
        compute_ctc(net, training);
        return;
    }
    for (int k = 0; k < m->losses; k++) {
        const struct net_tensor *logits = &m->tensor[m->logits[k]];
        m->backend->loss(m->backend_state, k, &logits->shape, logits->data,
                         training ? slot_data(m, logits->gradient_at[0]) : NULL);
    }
}

/* Images or tokens to logits to losses. */
static void run_forward(struct net *net, struct net_input input, bool training, struct net_result *result) {
    struct net_impl *m = net_impl(net);
    net_input_check(net, &input);
    net_input_complete(net, &input);
    m->frames = m->tensor[0].shape.frames ? input.frames : 0;
    if (training) m->step++;
    const char *pass = training ? "forward" : "inference";
    place(net, "input", pass);
    feed(net, &input);
    while (m->backend->begin(m->backend_state, training ? PASS_TRAIN : PASS_INFER, m->frames == 0)) {
        for (int i = 0; i < m->layers; i++) {
            struct net_layer *l = &m->layer[i];
            struct layer_call call = call_of(net, l, false);
            place(net, l->name, pass);
            m->backend->layer[l->spec.kind]->forward(l->self, &call, training);
            beat();
        }
        place(net, "loss", pass);
        compute_losses(net, training);
        place(net, "weights", pass);
        if (m->backend->end(m->backend_state)) break;
    }
    if (result) net_result(net, result);
}

void net_result_of(struct net *net, int which, struct net_result *result) {
    struct net_impl *m = net_impl(net);
    if (which < 0 || which >= m->losses) die("model %s has %d losses", net->model->name, m->losses);
    m->backend->result(m->backend_state, which, result);
}

void net_result(struct net *net, struct net_result *result) {
    net_result_of(net, 0, result);
}

const int32_t *net_best_path(struct net *net, int *steps) {
    struct net_impl *m = net_impl(net);
    if (!m->ctc || !m->frames) die("model %s: a best path before there is one", net->model->name);
    *steps = steps_of(m->frames, m->tensor[m->logits[0]].shape.frames);
    return m->backend->best_path(m->backend_state);
}

void net_set_step(struct net *net, uint64_t step) {
    net_impl(net)->step = step;
}

void net_carry_reset(struct net *net) {
    net->arena.device->zero(net->arena.carry, net->arena.n_carry * sizeof(float));
}

bool net_takes_bytes(const struct net *net) {
    return net_impl(net)->backend->takes_bytes;
}

void net_forward(struct net *net, const float *x, const int32_t *y, struct net_result *result) {
    run_forward(net, (struct net_input){.x = x, .label = {y}}, true, result);
}

void net_forward_bytes(struct net *net, const struct image_bytes *bytes, const int32_t *y, struct net_result *result) {
    run_forward(net, (struct net_input){.bytes = bytes, .label = {y}}, true, result);
}

void net_forward_tokens(struct net *net, const int32_t *token, const int32_t *y, struct net_result *result) {
    run_forward(net, (struct net_input){.token = token, .label = {y}}, true, result);
}

void net_forward_input(struct net *net, const struct net_input *input, struct net_result *result) {
    run_forward(net, *input, true, result);
}

/* Its parameters are another layer's, whose turn comes later. */
static bool owns_nothing(const struct net_layer *l) {
    return l->spec.kind == LAYER_LINEAR && l->spec.linear.tied;
}

void net_backward_with(struct net *net, bool adds, void (*ready)(void *context, size_t from), void *context) {
    struct net_impl *m = net_impl(net);
    size_t final = net->arena.n; /* layers take their slices in the order of the forward pass */
    place(net, "weights", "backward");
    if (adds && net->setup.accumulate < 2) die("a net whose steps are of one batch adds up no gradients");
    while (m->backend->begin(m->backend_state, adds ? PASS_BACKWARD_ADD : PASS_BACKWARD, !ready && m->frames == 0)) {
        for (int i = m->layers - 1; i >= 0; i--) {
            struct net_layer *l = &m->layer[i];
            struct layer_call call = call_of(net, l, adds);
            place(net, l->name, "backward");
            m->backend->layer[l->spec.kind]->backward(l->self, &call);
            add_gradients(net, l);
            beat();
            if (!ready || l->param >= final || owns_nothing(l)) continue;
            final = l->param;
            ready(context, final);
        }
        place(net, "weights", "backward");
        if (m->backend->end(m->backend_state)) break;
    }
}

void net_backward(struct net *net) {
    net_backward_with(net, false, NULL, NULL);
}

void net_evaluate(struct net *net, const float *x, const int32_t *y, int valid, struct net_result *result) {
    run_forward(net, (struct net_input){.x = x, .label = {y}, .valid = valid > 0 ? valid : -1}, false, result);
}

void net_evaluate_tokens(struct net *net, const int32_t *token, const int32_t *y, int valid,
                         struct net_result *result) {
    run_forward(net, (struct net_input){.token = token, .label = {y}, .valid = valid > 0 ? valid : -1}, false, result);
}

void net_evaluate_input(struct net *net, const struct net_input *input, struct net_result *result) {
    run_forward(net, *input, false, result);
}
