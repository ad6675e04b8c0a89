/* bench_net.c: images, words or utterances a second of one process: forward, backward and the optimiser's step on
 * random images, random words in windows whose states are carried from step to step, or random utterances, all of one
 * length, that stay in memory; no exchange, no input (on a GPU the images go there in every step, as bytes, as in
 * training). Every batch size is measured in each round, in turn, so that a machine whose speed wanders slows all
 * alike; the row gives the median round. What is timed is checked: the loss of the batch, which never changes, must
 * have become smaller by the end. Of speech, whose features are made for each batch by a thread of their own, making
 * them is timed beside it. */
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/table.h"
#include "cli/bench/bench_kernels.h"
#include "cli/bench/bench_net.h"
#include "cli/options/device_option.h"
#include "cli/options/options.h"

enum { BATCHES_MAX = OPTION_LIST_MAX, CHANNELS = 3, SIDE = 32 };

static void open_optimiser(struct bench_net_case *b, const struct bench_net_request *r) {
    const struct model_reference *like = r->like;
    const struct optimiser_ops *ops = optimisers[0];
    if (like->optimiser) TABLE_FIND(optimisers, like->optimiser, ops);
    optimiser_open(&b->optimiser, ops, &b->net->arena,
                   &(struct optimiser_setup){.momentum = like->momentum,
                                             .beta1 = 0.9,
                                             .beta2 = like->beta2 > 0 ? like->beta2 : 0.999,
                                             .epsilon = 1e-8,
                                             .weight_decay = like->weight_decay});
}

static bool bench_open(struct bench_net_case *b, const struct bench_net_request *r, int batch, struct err *e) {
    const struct model_ops *model = r->model;
    const bool speech = model->input == MODEL_SPEECH;
    struct net_setup setup = {.batch = batch,
                              .channels = speech ? 1 : CHANNELS,
                              .height = speech ? SPECTROGRAM_BINS : SIDE,
                              .width = speech ? r->frames : SIDE,
                              .classes = r->classes,
                              .sequence = r->sequence,
                              .hidden = r->hidden,
                              .layers = speech ? r->layers : 0,
                              .reference = r->like,
                              .chosen = r->like->chosen,
                              .dropout = model->dropout ? model->dropout(r->like, r->hidden) : 0,
                              .threads = r->threads,
                              .seed = 1,
                              .device = r->device,
                              .precision = r->precision};
    *b = (struct bench_net_case){.net = net_open(model, &setup, e)};
    if (!b->net) return false;
    open_optimiser(b, r);
    /* Of a vocabulary each word's gradient is small, beside what dropout does to the loss; Adam's first steps are as
     * long as any, where training has a warm-up; CTC's loss is a sum over the steps of an utterance. */
    b->lr = r->like->optimiser || speech ? r->like->lr / 10 : model->input == MODEL_TOKENS ? 1 : 0.01;
    b->rate = mem_alloc((size_t)r->repeat, sizeof *b->rate, "the bench's times");
    bench_net_batch_open(b, r->repeat);
    return true;
}

static void bench_close(struct bench_net_case *b) {
    if (!b->net) return;
    bench_net_batch_close(b);
    mem_free(b->rate);
    optimiser_close(&b->optimiser);
    net_close(b->net);
}

/* To the device, which is not waited for. */
static void give_step(struct bench_net_case *b) {
    const struct net_setup *s = &b->net->setup;
    if (b->net->model->input == MODEL_SPEECH)
        net_forward_input(b->net,
                          &(struct net_input){.x = b->x,
                                              .frames = s->width,
                                              .numbers = {[NUMBERS_LENGTHS] = b->numbers[NUMBERS_LENGTHS]},
                                              .label = {b->y},
                                              .label_stride = BENCH_NET_LABELS},
                          NULL);
    else if (b->next)
        net_forward_input(b->net,
                          &(struct net_input){.token = b->token,
                                              .numbers = {b->numbers[0], b->numbers[1], b->numbers[2]},
                                              .label = {b->y, b->next}},
                          NULL);
    else if (b->token)
        net_forward_tokens(b->net, b->token, b->y, NULL);
    else if (b->x)
        net_forward(b->net, b->x, b->y, NULL);
    else
        net_forward_bytes(b->net, &(struct image_bytes){b->pixels, b->cut, b->table}, b->y, NULL);
    net_backward(b->net);
    const struct device_ops *device = s->device;
    if (device->timer) device->timer()->place(b->optimiser.ops->name, "update");
    optimiser_step(&b->optimiser, b->net->arena.param, b->net->arena.grad, b->lr);
}

static void settle_step(struct bench_net_case *b) {
    struct net_result result;
    net_result(b->net, &result);
    b->loss = result.loss / result.count;
}

/* As in training: the loss is looked at when the step has been given to the device. */
static void step(struct bench_net_case *b) {
    give_step(b);
    settle_step(b);
}

static void one_round(struct bench_net_case *b, int steps, int number) {
    const struct device_ops *device = b->net->setup.device;
    device->sync();
    const double begin = clock_now();
    for (int i = 0; i < steps; i++) step(b);
    device->sync();
    b->rate[number] = (double)steps * net_rows(&b->net->setup) / (clock_now() - begin);
}

static void features_round(struct bench_net_case *b, int number) {
    const size_t frames = (size_t)b->net->setup.width;
    const int batch = b->net->setup.batch;
    float *to = mem_alloc(SPECTROGRAM_BINS * frames, sizeof *to, "the bench's features");
    const double begin = clock_now();
    for (int i = 0; i < batch; i++) spectrogram_fill(b->spectrogram, b->sample, (frames - 1) * SPECTROGRAM_STRIDE, to);
    b->feature[number] = (clock_now() - begin) / batch;
    mem_free(to);
}

static int fail(const struct err *e) {
    fprintf(stderr, "sparsetrain: %s\n", e->text);
    return err_status(e);
}

/* For bench_kernels. */
struct measured {
    struct bench_net_case *bench;
    const struct bench_net_request *request;
};
static void give_step_of(void *measured) {
    give_step(((struct measured *)measured)->bench);
}
static void settle_step_of(void *measured) {
    settle_step(((struct measured *)measured)->bench);
}
static void about(const void *measured, struct json *j) {
    const struct measured *m = measured;
    bench_net_about(m->bench, m->request, j);
}

/* Both: the number of wrong results. */
static int show_rates(struct bench_net_case *bench, const struct bench_net_request *r) {
    int wrong = 0;
    for (int round = 0; round < r->repeat; round++)
        for (size_t i = 0; i < r->batch.count; i++) {
            one_round(&bench[i], r->steps, round);
            if (bench[i].feature) features_round(&bench[i], round);
        }
    if (!r->json) bench_net_print_head(r);
    for (size_t i = 0; i < r->batch.count; i++) {
        wrong += bench_net_print_row(&bench[i], r);
        bench_net_say_plain_passes(&bench[i]);
    }
    return wrong;
}

static int show_kernels(struct bench_net_case *bench, const struct bench_net_request *r) {
    int wrong = 0;
    for (size_t i = 0; i < r->batch.count; i++) {
        struct bench_net_case *b = &bench[i];
        if (!r->json) bench_net_print_kernels_head(b, r);
        bench_kernels(&(struct bench_kernels){.device = r->device,
                                              .repeat = r->repeat,
                                              .json = r->json,
                                              .context = &(struct measured){b, r},
                                              .step = give_step_of,
                                              .settle = settle_step_of,
                                              .about = about});
        if (b->loss < b->first_loss) continue;
        fflush(stdout);
        fprintf(stderr, "sparsetrain: batch %d: the loss has not fallen: %g, and %g at first\n", b->net->setup.batch,
                b->loss, b->first_loss);
        wrong++;
    }
    return wrong;
}

int bench_net(int argc, char **argv) {
    struct bench_net_request r;
    struct err e = {0};
    struct bench_net_case bench[BATCHES_MAX] = {0};
    if (!bench_net_parse(&r, argc, argv, &e) ||
        !device_option_alone("bench net: ", r.device_name, DEVICE_TRAINS, &r.device, &e))
        return fail(&e);
    if (r.kernels && !r.device->timer) {
        err_set(&e, "bench net: --kernels is for devices that work beside the host: use --device cuda");
        return fail(&e);
    }
    bool opened = true;
    for (size_t i = 0; opened && i < r.batch.count; i++) opened = bench_open(&bench[i], &r, (int)r.batch.x[i], &e);
    for (size_t i = 0; opened && i < r.batch.count; i++) { /* warm-up */
        step(&bench[i]);
        bench[i].first_loss = bench[i].loss;
        step(&bench[i]);
    }
    int wrong = 0;
    if (opened) wrong = r.kernels ? show_kernels(bench, &r) : show_rates(bench, &r);
    for (size_t i = 0; i < r.batch.count; i++) bench_close(&bench[i]);
    if (!opened) return fail(&e);
    return wrong ? EXIT_SYSTEM : EXIT_DONE;
}
