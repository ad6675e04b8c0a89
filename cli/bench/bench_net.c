/* bench_net.c: images, words or utterances a second of one process: forward, backward and the optimiser's step on
 * random images, random words in windows whose states are carried from step to step, or random utterances, all of one
 * length, that stay in memory; no exchange, no input (on a GPU the images go there in every step, as bytes, as in
 * training). Every batch size is measured in each round, in turn, so that a machine whose speed wanders slows all
 * alike; the row gives the median round. What is timed is checked: the loss of the batch, which never changes, must
 * have become smaller by the end. Of speech, whose features are made for each batch by a thread of their own, making
 * them is timed beside it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/option.h"
#include "base/rng.h"
#include "base/table.h"
#include "cli/bench/bench_kernels.h"
#include "cli/bench/bench_net.h"
#include "cli/bench/median.h"
#include "cli/options/device_option.h"
#include "cli/options/options.h"
#include "data/speech/spectrogram.h"
#include "nets/net.h"
#include "nets/optimisers/optimiser.h"

enum { BATCHES_MAX = OPTION_LIST_MAX, COUNT_MAX = 10000, CHANNELS = 3, SIDE = 32 };
enum { FRAMES = 270, LABELS = 24 }; /* of an utterance of AN4, in the mean */

struct request {
    const struct model_ops *model;
    const char *preset;                 /* NULL: none */
    const struct model_reference *like; /* the preset's, or the model's */
    int classes;                        /* that it is made for */
    int model_number, precision_number;
    struct option_numbers batch;
    int hidden, sequence;       /* of a model of words; 0: as its reference; else they stay 0 */
    int layers, frames;         /* of one of speech; likewise */
    int steps, repeat, threads; /* steps of a round, rounds, threads of the backend */
    const char *device_name;
    const struct device_ops *device;
    enum precision precision;
    bool json, kernels;
};

/* One batch size: its net, its images or words. */
struct bench {
    struct net *net;
    struct optimiser optimiser;
    float *x;              /* [batch][3][32][32]; NULL where the net takes bytes; or utterances */
    uint8_t *pixels;       /* [batch][3][32][32] */
    struct image_cut *cut; /* [batch] */
    float *table;          /* [3][256] */
    int32_t *token;        /* [rows] words in place of images; else NULL */
    int32_t *y;            /* [rows] images, or words that follow the others; of pairs [batch][chosen], of
                            * speech [batch][LABELS] */
    int32_t *numbers[NET_NUMBERS], *next; /* of pairs, lengths of speech; else NULL */
    double *rate;                         /* [repeat] rows/s */
    struct spectrogram *spectrogram;      /* of speech in a build with FFTW, else NULL */
    int16_t *sample;                      /* of an utterance, noise */
    double *feature;                      /* [repeat] making the features of an utterance [s] */
    double lr;
    double first_loss, loss; /* mean of the batch, at the first step and the last [nats] */
};

static const struct option_row options[] = {
    {"model", "NAME", OPTION_CHOICE, "resnet20", "the network", OPTION_AT(struct request, model_number),
     .choice = model_name},
    {"preset", "NAME", OPTION_WORD, NULL,
     "size of a model that has several: gpt char-cpu, char or gpt2; bert tiny, mini, small or base",
     OPTION_AT(struct request, preset)},
    {"batch", "LIST", OPTION_NUMBERS, NULL,
     "images, streams of words, or utterances a step, with commas between (default: 32,128; of words the model's; of "
     "speech 2,16)",
     OPTION_AT(struct request, batch), .min = 1, .max = COUNT_MAX, .whole = true},
    {"hidden", "N", OPTION_INT, NULL, "features of a model of words or speech (default: the model's)",
     OPTION_AT(struct request, hidden), .min = 1, .max = COUNT_MAX},
    {"sequence", "N", OPTION_INT, NULL, "words of each stream a step (default: the model's)",
     OPTION_AT(struct request, sequence), .min = 1, .max = COUNT_MAX},
    {"layers", "N", OPTION_INT, NULL, "LSTM layers of a model of speech (default: the model's)",
     OPTION_AT(struct request, layers), .min = 1, .max = COUNT_MAX},
    {"frames", "N", OPTION_INT, NULL, "of each utterance, 10 ms each (default: 270, the mean of AN4)",
     OPTION_AT(struct request, frames), .min = 2 * LABELS, .max = COUNT_MAX},
    {"device", "NAME", OPTION_WORD, "auto", "auto, cpu or cuda; auto: a GPU where one can be used",
     OPTION_AT(struct request, device_name)},
    {"precision", "NAME", OPTION_CHOICE, "f32", "of a GPU", OPTION_AT(struct request, precision_number),
     .choice = precision_name},
    {"steps", "N", OPTION_INT, "10", "steps of a round", OPTION_AT(struct request, steps), .min = 1, .max = COUNT_MAX},
    {"repeat", "N", OPTION_INT, "7", "rounds; the median is printed", OPTION_AT(struct request, repeat), .min = 1,
     .max = COUNT_MAX},
    {"threads", "N", OPTION_INT, "1", "of the CPU backend", OPTION_AT(struct request, threads), .min = 1,
     .max = COUNT_MAX},
    {"kernels", NULL, OPTION_FLAG, NULL,
     "of a GPU: where a step goes, call by call, in place of its speed (--repeat steps)",
     OPTION_AT(struct request, kernels)},
    {"json", NULL, OPTION_FLAG, NULL, "one JSON object per row instead of the table", OPTION_AT(struct request, json)},
};

const struct option_table net_options = {
    .verb = "bench net",
    .row = options,
    .rows = sizeof options / sizeof *options,
    .call = "sparsetrain bench net",
    .about = "Images, words or utterances a second of forward, backward and optimiser step, one process: random 32x32 "
             "images, random words, or noise.",
};

static bool settle_preset(struct request *r, struct err *e) {
    const struct model_preset *preset = r->preset ? model_preset(r->model, r->preset) : NULL;
    char names[OPTION_TEXT_MAX];
    r->like = preset ? &preset->reference : &r->model->reference;
    r->classes = preset ? preset->classes : r->model->classes;
    if (!r->preset || preset) return true;
    model_preset_names(r->model, names, sizeof names);
    return err_set(e, "bench net: --preset has no \"%.40s\" for %s; there are: %s", r->preset, r->model->name, names);
}

/* An option that only models of another kind have. *value becomes 0. */
static bool leave_out(const struct request *r, int *value, const char *option, const char *kind, struct err *e) {
    if (*value > 0)
        return err_set(e, "bench net: %s is for models of %s, but %s takes %s: leave it out", option, kind,
                       r->model->name, model_input_names[r->model->input]);
    *value = 0;
    return true;
}

/* Sizes are for models that have them; what was not given becomes the model's own. */
static bool settle(struct request *r, struct err *e) {
    const struct model_ops *model = r->model = models[r->model_number];
    const bool images = model->input == MODEL_IMAGES, speech = model->input == MODEL_SPEECH;
    r->precision = (enum precision)r->precision_number;
    if (!settle_preset(r, e)) return false;
    if (images && !leave_out(r, &r->hidden, "--hidden", "words", e)) return false;
    if ((images || speech) && !leave_out(r, &r->sequence, "--sequence", "words", e)) return false;
    if (!speech &&
        (!leave_out(r, &r->layers, "--layers", "speech", e) || !leave_out(r, &r->frames, "--frames", "speech", e)))
        return false;
    if (r->hidden < 0) r->hidden = r->like->hidden;
    if (r->sequence < 0) r->sequence = r->like->sequence;
    if (r->layers < 0) r->layers = r->like->layers;
    if (r->frames < 0) r->frames = FRAMES;
    if (r->batch.count > 0) return true;
    if (images)
        r->batch = (struct option_numbers){{32, 128}, 2};
    else if (speech)
        r->batch = (struct option_numbers){{2, 16}, 2};
    else
        r->batch = (struct option_numbers){{r->like->batch}, 1};
    return true;
}

static bool parse(int argc, char **argv, struct request *r, struct err *e) {
    option_defaults(&net_options, r);
    return option_parse(&net_options, r, NULL, argc, argv, 1, e) && settle(r, e);
}

static int32_t *random_numbers(struct rng *rng, size_t n, int below, const char *what) {
    int32_t *number = mem_pinned_alloc(n, sizeof *number, what);
    for (size_t i = 0; i < n; i++) number[i] = (int32_t)rng_below(rng, (uint32_t)below);
    return number;
}

/* Images as the net takes them, floats of about the same distribution either way. */
static void make_images(struct bench *b, struct rng *rng) {
    size_t images = (size_t)b->net->setup.batch, values = images * CHANNELS * SIDE * SIDE;
    if (net_takes_bytes(b->net)) {
        b->pixels = mem_pinned_alloc(values, 1, "the bench's images");
        b->cut = mem_pinned_alloc(images, sizeof *b->cut, "the bench's images");
        b->table = mem_alloc(CHANNELS * 256, sizeof *b->table, "the values of the bench's bytes");
        memset(b->cut, 0, images * sizeof *b->cut);
        for (int i = 0; i < CHANNELS * 256; i++) b->table[i] = ((float)(i % 256) - 127.5f) / 74;
        for (size_t i = 0; i < values; i++) b->pixels[i] = (uint8_t)rng_below(rng, 256);
    } else {
        b->x = mem_pinned_alloc(values, sizeof *b->x, "the bench's images");
        rng_normals(rng, 1, b->x, values);
    }
}

/* Whole windows, a row for every place that is masked. */
static void make_pairs(struct bench *b, struct rng *rng) {
    const struct net_setup *s = &b->net->setup;
    const size_t batch = (size_t)s->batch, rows = (size_t)net_rows(s), places = batch * (size_t)s->chosen;
    b->token = random_numbers(rng, rows, s->classes, "the bench's words");
    b->numbers[NUMBERS_TYPES] = random_numbers(rng, rows, 2, "the bench's words");
    b->numbers[NUMBERS_LENGTHS] = random_numbers(rng, batch, 1, "the bench's words");
    for (size_t i = 0; i < batch; i++) b->numbers[NUMBERS_LENGTHS][i] = s->sequence;
    b->numbers[NUMBERS_CHOSEN] = random_numbers(rng, places, s->sequence, "the bench's words");
    b->y = random_numbers(rng, places, s->classes, "the bench's labels");
    b->next = random_numbers(rng, batch, 2, "the bench's labels");
}

/* Labels are characters, none of them the blank. */
static void make_utterances(struct bench *b, struct rng *rng) {
    const struct net_setup *s = &b->net->setup;
    const size_t batch = (size_t)s->batch, values = batch * (size_t)s->height * (size_t)s->width;
    b->x = mem_pinned_alloc(values, sizeof *b->x, "the bench's utterances");
    rng_normals(rng, 1, b->x, values);
    b->numbers[NUMBERS_LENGTHS] = random_numbers(rng, batch, 1, "the bench's utterances");
    for (size_t i = 0; i < batch; i++) b->numbers[NUMBERS_LENGTHS][i] = s->width;
    b->y = random_numbers(rng, batch * LABELS, s->classes - 1, "the bench's labels");
    for (size_t i = 0; i < batch * LABELS; i++) b->y[i]++;
}

/* What an utterance of so many frames was recorded as; nothing in a build without FFTW. */
static void make_recording(struct bench *b, struct rng *rng, int repeat) {
    struct err without = {0};
    if (!spectrogram_is_here(&without)) return;
    const size_t samples = (size_t)(b->net->setup.width - 1) * SPECTROGRAM_STRIDE;
    b->spectrogram = spectrogram_open();
    b->sample = mem_alloc(samples, sizeof *b->sample, "the bench's recording");
    for (size_t i = 0; i < samples; i++) b->sample[i] = (int16_t)(uint16_t)rng_u32(rng);
    b->feature = mem_alloc((size_t)repeat, sizeof *b->feature, "the bench's times");
}

static void make_batch(struct bench *b, int repeat) {
    const struct net_setup *setup = &b->net->setup;
    const size_t rows = (size_t)net_rows(setup);
    struct rng rng = rng_open(1, RNG_TEST, 0);
    if (b->net->model->input == MODEL_PAIRS) {
        make_pairs(b, &rng);
        return;
    }
    if (b->net->model->input == MODEL_SPEECH) {
        make_utterances(b, &rng);
        make_recording(b, &rng, repeat);
        return;
    }
    if (b->net->model->input == MODEL_TOKENS)
        b->token = random_numbers(&rng, rows, setup->classes, "the bench's words");
    else
        make_images(b, &rng);
    b->y = random_numbers(&rng, rows, setup->classes, "the bench's labels");
}

static void open_optimiser(struct bench *b, const struct request *r) {
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

static bool bench_open(struct bench *b, const struct request *r, int batch, struct err *e) {
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
    *b = (struct bench){.net = net_open(model, &setup, e)};
    if (!b->net) return false;
    open_optimiser(b, r);
    /* Of a vocabulary each word's gradient is small, beside what dropout does to the loss; Adam's first steps are as
     * long as any, where training has a warm-up; CTC's loss is a sum over the steps of an utterance. */
    b->lr = r->like->optimiser || speech ? r->like->lr / 10 : model->input == MODEL_TOKENS ? 1 : 0.01;
    b->rate = mem_alloc((size_t)r->repeat, sizeof *b->rate, "the bench's times");
    make_batch(b, r->repeat);
    return true;
}

static void bench_close(struct bench *b) {
    if (!b->net) return;
    optimiser_close(&b->optimiser);
    net_close(b->net);
    mem_pinned_free(b->x);
    mem_pinned_free(b->pixels);
    mem_pinned_free(b->cut);
    mem_pinned_free(b->token);
    mem_pinned_free(b->y);
    for (int k = 0; k < NET_NUMBERS; k++) mem_pinned_free(b->numbers[k]);
    mem_pinned_free(b->next);
    mem_free(b->table);
    mem_free(b->rate);
    spectrogram_close(b->spectrogram);
    mem_free(b->sample);
    mem_free(b->feature);
}

/* To the device, which is not waited for. */
static void give_step(struct bench *b) {
    const struct net_setup *s = &b->net->setup;
    if (b->net->model->input == MODEL_SPEECH)
        net_forward_input(b->net,
                          &(struct net_input){.x = b->x,
                                              .frames = s->width,
                                              .numbers = {[NUMBERS_LENGTHS] = b->numbers[NUMBERS_LENGTHS]},
                                              .label = {b->y},
                                              .label_stride = LABELS},
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

static void settle_step(struct bench *b) {
    struct net_result result;
    net_result(b->net, &result);
    b->loss = result.loss / result.count;
}

/* As in training: the loss is looked at when the step has been given to the device. */
static void step(struct bench *b) {
    give_step(b);
    settle_step(b);
}

static void one_round(struct bench *b, int steps, int number) {
    const struct device_ops *device = b->net->setup.device;
    device->sync();
    const double begin = clock_now();
    for (int i = 0; i < steps; i++) step(b);
    device->sync();
    b->rate[number] = (double)steps * net_rows(&b->net->setup) / (clock_now() - begin);
}

static void features_round(struct bench *b, int number) {
    const size_t frames = (size_t)b->net->setup.width;
    const int batch = b->net->setup.batch;
    float *to = mem_alloc(SPECTROGRAM_BINS * frames, sizeof *to, "the bench's features");
    const double begin = clock_now();
    for (int i = 0; i < batch; i++) spectrogram_fill(b->spectrogram, b->sample, (frames - 1) * SPECTROGRAM_STRIDE, to);
    b->feature[number] = (clock_now() - begin) / batch;
    mem_free(to);
}

/* What is counted. */
static const char *unit_of(const struct request *r) {
    return r->model->input == MODEL_IMAGES ? "images" : r->model->input == MODEL_SPEECH ? "utterances" : "words";
}

/* "SGD" where nothing else is the model's. */
static const char *method_of(const struct request *r) {
    return r->like->optimiser ? r->like->optimiser : "SGD";
}

static void print_head(const struct request *r) {
    char *device =
        device_is_host(r->device) ? mem_printf("%s", net_backend_version(r->device)) : device_option_text(r->device);
    printf("# net: forward, backward, %s step; %s%s%s, %d rounds of %d steps\n", method_of(r), device,
           r->precision == PRECISION_F32 ? "" : "; ",
           r->precision == PRECISION_F32 ? "" : net_precision_names[r->precision], r->repeat, r->steps);
    mem_free(device);
    if (r->model->input == MODEL_SPEECH)
        printf("# %d LSTM layers of %d features, %d frames an utterance\n", r->layers, r->hidden, r->frames);
    else if (r->model->input != MODEL_IMAGES)
        printf("# %d hidden features, %d words of each stream a step\n", r->hidden, r->sequence);
    printf("# model     batch  threads %8s/s       least         most    ms/step  wrong\n", unit_of(r));
}

/* "images_per_s" behind a word that goes before. */
static void json_rate(struct json *j, const struct request *r, const char *before, double rate) {
    char *key = mem_printf("%s%s_per_s", before, unit_of(r));
    json_number(j, key, rate);
    mem_free(key);
}

/* What was measured. */
static void json_about(const struct bench *b, const struct request *r, struct json *j) {
    json_string(j, "model", r->model->name);
    json_string(j, "device", r->device->label());
    json_string(j, "device_about", r->device->describe());
    json_string(j, "backend", net_backend_version(r->device));
    json_string(j, "precision", net_precision_names[r->precision]);
    if (r->like->optimiser) json_string(j, "optimiser", r->like->optimiser);
    json_integer(j, "batch", b->net->setup.batch);
    if (r->model->input != MODEL_IMAGES) {
        json_integer(j, "hidden", r->hidden);
        if (r->model->input == MODEL_SPEECH) {
            json_integer(j, "layers", r->layers);
            json_integer(j, "frames", r->frames);
        } else {
            json_integer(j, "sequence", r->sequence);
        }
    }
}

static void print_json(const struct bench *b, const struct request *r, int wrong) {
    struct json j;
    const char *why;
    const enum net_graphs graphs = net_graphs(b->net, &why);
    json_open(&j);
    json_object(&j, NULL);
    json_string(&j, "bench", "net");
    json_about(b, r, &j);
    if (graphs != NET_GRAPHS_NONE) json_boolean(&j, "graphs", graphs == NET_GRAPHS_USED);
    json_integer(&j, "threads", r->threads);
    json_integer(&j, "steps", r->steps);
    json_integer(&j, "repeat", r->repeat);
    json_rate(&j, r, "", median(b->rate, (size_t)r->repeat));
    json_rate(&j, r, "least_", b->rate[0]);
    json_rate(&j, r, "most_", b->rate[r->repeat - 1]);
    if (b->feature) json_number(&j, "feature_s", median(b->feature, (size_t)r->repeat));
    json_integer(&j, "wrong", wrong);
    json_integer(&j, "memory_max", (int64_t)mem_resident_peak());
    json_end(&j);
    puts(json_text(&j));
    json_close(&j);
}

/* Prints a row; returns the number of wrong results: 1 when training has not made the loss smaller. */
static int print_row(const struct bench *b, const struct request *r) {
    const int wrong = !(b->loss < b->first_loss);
    const double middle = median(b->rate, (size_t)r->repeat);
    if (r->json)
        print_json(b, r, wrong);
    else
        printf("%-10s %6d %8d %12.1f %12.1f %12.1f %10.2f %6d\n", r->model->name, b->net->setup.batch, r->threads,
               middle, b->rate[0], b->rate[r->repeat - 1], 1e3 * net_rows(&b->net->setup) / middle, wrong);
    if (b->feature && !r->json) {
        const double feature = median(b->feature, (size_t)r->repeat);
        printf("#   features, made anew for each batch: %.2f ms an utterance, %.2f%% of its part of a step\n",
               1e3 * feature, 100 * feature * middle);
    }
    return wrong;
}

/* Not an error, since it is only slower, but the row must not be taken for one with CUDA graphs. */
static void say_plain_passes(const struct bench *b) {
    const char *why;
    if (net_graphs(b->net, &why) != NET_GRAPHS_FAILED) return;
    fflush(stdout);
    fprintf(stderr, "sparsetrain: batch %d: passes cannot be recorded on this GPU, and ran call by call: %s\n",
            b->net->setup.batch, why);
}

static int fail(const struct err *e) {
    fprintf(stderr, "sparsetrain: %s\n", e->text);
    return err_status(e);
}

/* For bench_kernels. */
struct measured {
    struct bench *bench;
    const struct request *request;
};
static void give_step_of(void *measured) {
    give_step(((struct measured *)measured)->bench);
}
static void settle_step_of(void *measured) {
    settle_step(((struct measured *)measured)->bench);
}
static void about(const void *measured, struct json *j) {
    const struct measured *m = measured;
    json_about(m->bench, m->request, j);
}

/* Both: the number of wrong results. */
static int show_rates(struct bench *bench, const struct request *r) {
    int wrong = 0;
    for (int round = 0; round < r->repeat; round++)
        for (size_t i = 0; i < r->batch.count; i++) {
            one_round(&bench[i], r->steps, round);
            if (bench[i].feature) features_round(&bench[i], round);
        }
    if (!r->json) print_head(r);
    for (size_t i = 0; i < r->batch.count; i++) {
        wrong += print_row(&bench[i], r);
        say_plain_passes(&bench[i]);
    }
    return wrong;
}

static int show_kernels(struct bench *bench, const struct request *r) {
    int wrong = 0;
    for (size_t i = 0; i < r->batch.count; i++) {
        struct bench *b = &bench[i];
        if (!r->json) {
            char *device = device_option_text(r->device);
            printf("# %s, batch %d: forward, backward, %s step; %s; %s\n", r->model->name, b->net->setup.batch,
                   method_of(r), device, net_precision_names[r->precision]);
            mem_free(device);
        }
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
    struct request r;
    struct err e = {0};
    struct bench bench[BATCHES_MAX] = {0};
    if (!parse(argc, argv, &r, &e) || !device_option_alone("bench net: ", r.device_name, DEVICE_TRAINS, &r.device, &e))
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
