/* memory_verb.c: the verb `study memory`, see study_verb.h. */
#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli/options/device_option.h"
#include "cli/study/study_verb.h"
#include "comm/cost/simulation.h"

struct request {
    int P, device;
    double n;
    struct option_numbers density;
    struct option_names algos;
    bool check, json;
};

static const struct option_row options[] = {
    {"p", "P", OPTION_INT, NULL, "ranks", OPTION_AT(struct request, P), .min = 1, .max = 1e9,
     .wanted = "--p is needed: how many ranks"},
    {"n", "N", OPTION_REAL, "1000000", "entries of the gradient", OPTION_AT(struct request, n), .max = 4294967295.0},
    {"density", "LIST", OPTION_NUMBERS, "0.001", "shares selected, of which the largest counts",
     OPTION_AT(struct request, density), .max = 1},
    {"algo", "LIST|all", OPTION_NAMES, "gtopk", "algorithms, of which the one that needs the most counts",
     OPTION_AT(struct request, algos), .choice = exchange_name},
    {"device", "NAME", OPTION_CHOICE, "auto", "where gradients are held", OPTION_AT(struct request, device),
     .choice = device_option_name},
    {"check", NULL, OPTION_FLAG, NULL, "with a plain sum to compare with", OPTION_AT(struct request, check)},
    {"json", NULL, OPTION_FLAG, NULL, "one JSON object", OPTION_AT(struct request, json)},
};

const struct option_table study_memory_options = {
    .verb = "study memory",
    .row = options,
    .rows = sizeof options / sizeof *options,
    .call = "sparsetrain study memory",
    .about =
        "What simulating so many ranks on this machine takes of its memory (docs/simulation.md), and what there is.",
};

/* The device auto holds arrays, as the cpu and a GPU do. */
static enum simulation_held held_by(const char *name) {
    for (size_t i = 0; devices[i]; i++)
        if (strcmp(devices[i]->name, name) == 0 && devices[i]->no_arrays) return SIMULATION_LISTS;
    return SIMULATION_ARRAYS;
}

int study_memory(int argc, char **argv) {
    const struct exchange_ops *ops[OPTION_LIST_MAX];
    struct request r = {0};
    struct err e = {0};
    double density = 0, available = (double)mem_available();
    option_defaults(&study_memory_options, &r);
    if (!option_parse(&study_memory_options, &r, NULL, argc, argv, 1, &e)) {
        fprintf(stderr, "sparsetrain: %s\n", e.text);
        return err_status(&e);
    }
    for (size_t i = 0; i < r.density.count; i++) density = fmax(density, r.density.x[i]);
    for (size_t i = 0; i < r.algos.count; i++) ops[i] = exchanges[r.algos.at[i]];
    double needed = simulation_memory(r.P, r.n, density, held_by(device_option_name((size_t)r.device)), ops,
                                      r.algos.count, r.check);
    if (!r.json) {
        printf("about %.1f GB are needed, and %.1f GB are free\n", needed / 1e9, available / 1e9);
        return EXIT_DONE;
    }
    struct json j;
    json_open(&j);
    json_object(&j, NULL);
    json_number(&j, "needed", needed);
    json_number(&j, "available", available);
    json_boolean(&j, "fits", available == 0 || needed < available);
    json_end(&j);
    puts(json_text(&j));
    json_close(&j);
    return EXIT_DONE;
}
