/* bench_net_print.c: the rows of `bench net`, as a table or JSON. */
#include <stdio.h>

#include "base/mem.h"
#include "cli/bench/bench_net.h"
#include "cli/bench/median.h"
#include "cli/options/device_option.h"

/* What is counted. */
static const char *unit_of(const struct bench_net_request *r) {
    return r->model->input == MODEL_IMAGES ? "images" : r->model->input == MODEL_SPEECH ? "utterances" : "words";
}

/* "SGD" where nothing else is the model's. */
static const char *method_of(const struct bench_net_request *r) {
    return r->like->optimiser ? r->like->optimiser : "SGD";
}

void bench_net_print_head(const struct bench_net_request *r) {
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
static void json_rate(struct json *j, const struct bench_net_request *r, const char *before, double rate) {
    char *key = mem_printf("%s%s_per_s", before, unit_of(r));
    json_number(j, key, rate);
    mem_free(key);
}

void bench_net_about(const struct bench_net_case *b, const struct bench_net_request *r, struct json *j) {
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

static void print_json(const struct bench_net_case *b, const struct bench_net_request *r, int wrong) {
    struct json j;
    const char *why;
    const enum net_graphs graphs = net_graphs(b->net, &why);
    json_open(&j);
    json_object(&j, NULL);
    json_string(&j, "bench", "net");
    bench_net_about(b, r, &j);
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

int bench_net_print_row(const struct bench_net_case *b, const struct bench_net_request *r) {
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

void bench_net_print_kernels_head(const struct bench_net_case *b, const struct bench_net_request *r) {
    char *device = device_option_text(r->device);
    printf("# %s, batch %d: forward, backward, %s step; %s; %s\n", r->model->name, b->net->setup.batch, method_of(r),
           device, net_precision_names[r->precision]);
    mem_free(device);
}

void bench_net_say_plain_passes(const struct bench_net_case *b) {
    const char *why;
    if (net_graphs(b->net, &why) != NET_GRAPHS_FAILED) return;
    fflush(stdout);
    fprintf(stderr, "sparsetrain: batch %d: passes cannot be recorded on this GPU, and ran call by call: %s\n",
            b->net->setup.batch, why);
}
