/* study_rows.c: the rows that the scaling study has simulated, and how far a simulated step may be off: see study.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/csv.h"
#include "cli/study/study.h"

size_t study_find_algo(const char *name) {
    size_t i = 0;
    while (exchanges[i] && strcmp(exchanges[i]->name, name) != 0) i++;
    return i;
}

size_t study_find_format(const char *name) {
    size_t w = 0;
    while (study_format(w) && strcmp(study_format(w)->name, name) != 0) w++;
    return w;
}

static size_t find_net(const struct study *s, const char *name) {
    size_t i = 0;
    while (i < s->nets && strcmp(s->net[i].of.name, name) != 0) i++;
    return i;
}

static size_t find_model(const struct study *s, const char *name) {
    size_t i = 0;
    while (i < s->models && strcmp(s->model[i].name, name) != 0) i++;
    return i;
}

size_t study_find_density(const struct study *s, double density) {
    size_t i = 0;
    while (i < s->densities && s->density[i] != density) i++;
    return i;
}

size_t study_find_size(const struct study *s, double P) {
    size_t i = 0;
    while (i < s->sizes && s->P[i] != P) i++;
    return i;
}

/* A row of what is not on the map is passed over. */
static void take_row(struct study *s, const struct csv *t) {
    size_t net = find_net(s, csv_cell(t, "net")), model = find_model(s, csv_cell(t, "model")),
           density = study_find_density(s, csv_number(t, "density")), size = study_find_size(s, csv_number(t, "P")),
           algo = study_find_algo(csv_cell(t, "algo")), format = study_find_format(csv_cell(t, "wire"));
    if (net == s->nets || model == s->models || density == s->densities || size == s->sizes) return;
    if (!exchanges[algo] || !study_format(format)) return;
    s->simulated[study_at(study_cell(s, net, density, model, size), algo, format)] = csv_number(t, "seconds");
}

bool study_simulated(struct study *s, const char *folder, struct err *e) {
    char path[STUDY_PATH];
    struct csv t;
    if (!study_path(path, folder, "simulated.csv", e)) return false;
    if (!csv_open(&t, path, "net,model,density,P,wire,algo,seconds,job", e)) return false;
    while (csv_next(&t)) take_row(s, &t);
    return csv_close(&t);
}

bool study_path(char path[STUDY_PATH], const char *folder, const char *file, struct err *e) {
    return snprintf(path, STUDY_PATH, "%s/%s", folder, file) < STUDY_PATH ||
           err_set(e, "study: the name of the folder of --rows is too long");
}

/* The largest by which a simulated step differs from the same step on an emulated network. */
bool study_error(struct study *s, struct err *e) {
    struct csv t;
    double most = 0;
    char item[sizeof s->error_of - 32] = "";
    if (!csv_open(&t, "results/measured/sim-calibration/comparison.csv", "item,paper,ours,kind", e)) return false;
    while (csv_next(&t)) {
        double off = csv_number(&t, "ours") / csv_number(&t, "paper") - 1;
        if (strcmp(csv_cell(&t, "kind"), "simulated") != 0 || !(fabs(off) > fabs(most))) continue;
        most = off;
        snprintf(item, sizeof item, "%s", csv_cell(&t, "item"));
    }
    s->error = fabs(most);
    snprintf(s->error_of, sizeof s->error_of, "%s, %.1f%% too %s", item, 100 * s->error, most < 0 ? "short" : "long");
    return csv_close(&t);
}
