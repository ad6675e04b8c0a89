/* bench_net.c: images a second of one process: forward, backward and the SGD step on random images that stay in
 * memory; no exchange, no input. Every batch size is measured in each round, in turn, so that a machine whose speed
 * wanders slows all alike; the row gives the median round. What is timed is checked: the loss of the batch, which
 * never changes, must have become smaller by the end. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/table.h"
#include "cli/bench_net.h"
#include "cli/median.h"
#include "nets/net.h"
#include "nets/optimiser.h"

enum { BATCHES_MAX = 16, COUNT_MAX = 10000, CHANNELS = 3, SIDE = 32, CLASSES = 10 };

struct request {
    const struct model_ops *model;
    int batch[BATCHES_MAX], batches;
    int steps, repeat, threads; /* steps of a round, rounds, threads of the backend */
    bool json;
};

/* One batch size: its net, its images. */
struct bench {
    struct net *net;
    struct optimiser optimiser;
    float *x;                /* [batch][3][32][32] */
    int32_t *y;              /* [batch] */
    double *rate;            /* [repeat] images/s */
    double first_loss, loss; /* mean of the batch, at the first step and the last [nats] */
};

static const char usage[] =
    "usage: sparsetrain bench net [--model NAME] [--batch LIST] [--steps N] [--repeat N] [--threads N] [--json]\n"
    "Images a second of forward, backward and SGD step on random 32x32 images, one process.\n"
    "  --model NAME     (default resnet20; sparsetrain list shows them)\n"
    "  --batch LIST     images a step, with commas between (default 32,128)\n"
    "  --steps N        steps of a round (default 10)\n"
    "  --repeat N       rounds; the median is printed (default 7)\n"
    "  --threads N      of the backend (default 1)\n"
    "  --json           one JSON object per row instead of the table\n";

/* A whole number from 1 to `most` at *at, which moves behind it. */
static bool whole(const char *option, const char **at, long most, int *value, struct err *e) {
    char *end;
    errno = 0;
    long number = strtol(*at, &end, 10);
    if (end == *at || errno || number < 1 || number > most || (*end && *end != ','))
        return err_set(e, "bench net: %s takes whole numbers from 1 to %ld, not \"%s\"", option, most, *at);
    *at = end;
    *value = (int)number;
    return true;
}

static bool single(const char *option, const char *text, int *value, struct err *e) {
    const char *at = text;
    if (!whole(option, &at, COUNT_MAX, value, e)) return false;
    return *at == 0 || err_set(e, "bench net: %s takes one number, not \"%s\"", option, text);
}

static bool set_batches(struct request *r, const char *text, struct err *e) {
    r->batches = 0;
    for (const char *at = text;; at++) {
        if (r->batches == BATCHES_MAX) return err_set(e, "bench net: --batch takes at most %d numbers", BATCHES_MAX);
        if (!whole("--batch", &at, COUNT_MAX, &r->batch[r->batches++], e)) return false;
        if (!*at) return true;
    }
}

static bool set_model(struct request *r, const char *name, struct err *e) {
    TABLE_FIND(models, name, r->model);
    return r->model || err_set(e, "bench net: there is no model %s; sparsetrain list shows them", name);
}

static bool parse(int argc, char **argv, struct request *r, struct err *e) {
    *r = (struct request){.model = models[0], .batch = {32, 128}, .batches = 2, .steps = 10, .repeat = 7, .threads = 1};
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i];
        if (strcmp(option, "--json") == 0) {
            r->json = true;
            continue;
        }
        const char *value = argv[++i];
        bool model = strcmp(option, "--model") == 0, batch = strcmp(option, "--batch") == 0;
        int *number = strcmp(option, "--steps") == 0     ? &r->steps
                      : strcmp(option, "--repeat") == 0  ? &r->repeat
                      : strcmp(option, "--threads") == 0 ? &r->threads
                                                         : NULL;
        if (!model && !batch && !number)
            return err_set(e, "bench net: unknown option %s; --help shows them all", option);
        if (!value) return err_set(e, "bench net: %s needs a value", option);
        bool ok = model ? set_model(r, value, e) : batch ? set_batches(r, value, e) : single(option, value, number, e);
        if (!ok) return false;
    }
    return true;
}

static bool bench_open(struct bench *b, const struct request *r, int batch, struct err *e) {
    struct net_setup setup = {.batch = batch,
                              .channels = CHANNELS,
                              .height = SIDE,
                              .width = SIDE,
                              .classes = CLASSES,
                              .threads = r->threads,
                              .seed = 1,
                              .device = device_find("cpu")};
    *b = (struct bench){.net = net_open(r->model, &setup, e)};
    if (!b->net) return false;
    size_t images = (size_t)batch, floats = images * CHANNELS * SIDE * SIDE;
    optimiser_open(&b->optimiser, optimisers[0], b->net->arena.n, setup.device,
                   &(struct optimiser_setup){.momentum = 0.9, .weight_decay = 1e-4});
    b->x = mem_alloc(floats, sizeof *b->x, "the bench's images");
    b->y = mem_alloc(images, sizeof *b->y, "the bench's labels");
    b->rate = mem_alloc((size_t)r->repeat, sizeof *b->rate, "the bench's times");
    struct rng rng = rng_open(1, RNG_TEST, 0);
    for (size_t i = 0; i < floats; i++) b->x[i] = (float)rng_normal(&rng);
    for (size_t i = 0; i < images; i++) b->y[i] = (int32_t)rng_below(&rng, CLASSES);
    return true;
}

static void bench_close(struct bench *b) {
    if (!b->net) return;
    optimiser_close(&b->optimiser);
    net_close(b->net);
    mem_free(b->x);
    mem_free(b->y);
    mem_free(b->rate);
}

static void step(struct bench *b) {
    struct net_result result;
    net_forward(b->net, b->x, b->y, &result);
    net_backward(b->net);
    optimiser_step(&b->optimiser, b->net->arena.param, b->net->arena.grad, 0.01);
    b->loss = result.loss / result.count;
}

static void one_round(struct bench *b, int steps, int number) {
    double begin = clock_now();
    for (int i = 0; i < steps; i++) step(b);
    b->rate[number] = steps * b->net->setup.batch / (clock_now() - begin);
}

/* Prints a row; returns the number of wrong results: 1 when training has not made the loss smaller. */
static int print_row(const struct bench *b, const struct request *r) {
    int n = r->repeat, wrong = !(b->loss < b->first_loss);
    double middle = median(b->rate, (size_t)n);
    if (!r->json) {
        printf("%-10s %6d %8d %12.1f %12.1f %12.1f %10.2f %6d\n", r->model->name, b->net->setup.batch, r->threads,
               middle, b->rate[0], b->rate[n - 1], 1e3 * b->net->setup.batch / middle, wrong);
        return wrong;
    }
    struct json j;
    json_open(&j);
    json_object(&j, NULL);
    json_string(&j, "bench", "net");
    json_string(&j, "model", r->model->name);
    json_string(&j, "backend", net_backend_version(device_find("cpu")));
    json_integer(&j, "batch", b->net->setup.batch);
    json_integer(&j, "threads", r->threads);
    json_integer(&j, "steps", r->steps);
    json_integer(&j, "repeat", r->repeat);
    json_number(&j, "images_per_s", middle);
    json_number(&j, "least_images_per_s", b->rate[0]);
    json_number(&j, "most_images_per_s", b->rate[n - 1]);
    json_integer(&j, "wrong", wrong);
    json_end(&j);
    puts(json_text(&j));
    json_close(&j);
    return wrong;
}

static int fail(const struct err *e) {
    fprintf(stderr, "sparsetrain: %s\n", e->text);
    return EXIT_USER;
}

int bench_net(int argc, char **argv) {
    struct request r;
    struct err e = {0};
    struct bench bench[BATCHES_MAX] = {0};
    if (argc > 1 && strcmp(argv[1], "--help") == 0) return fputs(usage, stdout) < 0 ? EXIT_SYSTEM : EXIT_DONE;
    if (!parse(argc, argv, &r, &e)) return fail(&e);
    bool opened = true;
    for (int i = 0; opened && i < r.batches; i++) opened = bench_open(&bench[i], &r, r.batch[i], &e);
    for (int i = 0; opened && i < r.batches; i++) { /* warm-up */
        step(&bench[i]);
        bench[i].first_loss = bench[i].loss;
        step(&bench[i]);
    }
    for (int round = 0; opened && round < r.repeat; round++)
        for (int i = 0; i < r.batches; i++) one_round(&bench[i], r.steps, round);
    if (opened && !r.json)
        printf("# net: forward, backward, SGD step; %s, %d rounds of %d steps\n"
               "# model     batch  threads   images/s       least         most    ms/step  wrong\n",
               net_backend_version(device_find("cpu")), r.repeat, r.steps);
    int wrong = 0;
    for (int i = 0; opened && i < r.batches; i++) wrong += print_row(&bench[i], &r);
    for (int i = 0; i < r.batches; i++) bench_close(&bench[i]);
    if (!opened) return fail(&e);
    return wrong ? EXIT_SYSTEM : EXIT_DONE;
}
