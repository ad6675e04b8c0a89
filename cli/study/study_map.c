/* study_map.c: what the scaling study is about, and what the cost model and a table of costs say of it: see study.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/table.h"
#include "cli/csv.h"
#include "cli/network/cost_table.h"
#include "cli/network/local_costs.h"
#include "cli/study/study.h"

static const char *const nets[] = {"1gbe", "10gbe", "25gbe", "100gbe"};
static const double densities[] = {0.001, 0.01, 0.02};
static const int sizes[] = {4, 8, 16, 32, 64, 128, 256, 512, 1024};

/* Parameters as the program and the papers count them; AlexNet's and ResNet-50's as usual for 1000 classes. n = 0: it
 * stands in results/published. A model without recorded gradients has the profile of the nearest model. */
enum { MAP_MODELS = 4 }; /* the first ones are on the map */
static const struct study_model models[] = {{"ResNet-20", "resnet20", "resnet20-p8", 269722},
                                            {"VGG-16", "vgg16", "vgg16-p8", 0},
                                            {"LSTM-PTB", "lstm", "lstm-ptb-p8", 66034000},
                                            {"BERT", "bert", "lstm-ptb-p8", 0},
                                            {"AlexNet", "alexnet", "vgg16-p8", 61100840},
                                            {"ResNet-50", "resnet50", "resnet20-p8", 25557032},
                                            {.name = NULL}};

const struct study_model *study_find_model(const char *name) {
    const struct study_model *model = models;
    while (model->name && strcmp(model->name, name) != 0) model++;
    return model->name ? model : NULL;
}

bool study_model_n(struct study_model *model, struct err *e) {
    double n = (double)model->n;
    if (model->n > 0) return true;
    if (!csv_find("results/published/oktopk-models.csv", "parameters", "model", model->name, &n, e)) return false;
    model->n = (size_t)n;
    return true;
}

const char *study_net_name(size_t i) {
    return i < sizeof nets / sizeof *nets ? nets[i] : NULL;
}

const char *study_model_name(size_t i) {
    return i < MAP_MODELS ? models[i].name : NULL;
}

/* -- the map --------------------------------------------------------------------------------------- */
void study_find_twins(struct study *s) {
    for (size_t i = 0; i < s->nets; i++) {
        struct study_net *net = &s->net[i];
        net->twin = -1;
        net->factor = 1;
        for (size_t j = 0; j < i && net->twin < 0; j++) {
            const struct network *old = &s->net[j].of;
            if (fabs(net->of.alpha / net->of.beta / (old->alpha / old->beta) - 1) >= 1e-9) continue;
            net->twin = (int)j;
            net->factor = net->of.alpha / old->alpha;
        }
    }
}

static struct cost_case case_of(const struct study *s, size_t cell) {
    return (struct cost_case){
        .n = s->model[study_model_of(s, cell)].n, .k = study_k(s, cell), .P = study_p_of(s, cell), .ranks_per_node = 1};
}

static void predict_cell(struct study *s, size_t cell) {
    const struct cost_case c = case_of(s, cell);
    const struct network *net = &s->net[study_net_of(s, cell)].of;
    for (size_t i = 0; exchanges[i]; i++) {
        bool format = best_takes_format(exchanges[i]);
        for (size_t w = 0; study_format(w) && (format || w == 0); w++)
            s->predicted[study_at(cell, i, w)] = best_seconds(exchanges[i], format ? study_format(w) : NULL, &c, net);
    }
}

bool study_map(struct study *s, struct err *e) {
    s->nets = sizeof nets / sizeof *nets;
    s->densities = sizeof densities / sizeof *densities;
    s->sizes = sizeof sizes / sizeof *sizes;
    s->models = MAP_MODELS;
    memcpy(s->density, densities, sizeof densities);
    memcpy(s->P, sizes, sizeof sizes);
    for (size_t i = 0; i < s->nets; i++)
        if (!network_find(nets[i], &s->net[i].of, e)) return false;
    for (size_t i = 0; i < s->models; i++) {
        s->model[i] = models[i];
        if (!study_model_n(&s->model[i], e)) return false;
    }
    study_find_twins(s);
    study_open(s);
    for (size_t cell = 0; cell < study_cells(s); cell++) predict_cell(s, cell);
    return true;
}

/* -- local work ------------------------------------------------------------------------------------ */
/* The place in wires, by which local costs go. */
static size_t wire_at(const struct wire_ops *wire) {
    size_t i = 0;
    while (wires[i] != wire) i++;
    return i;
}

/* seconds: [exchanges][formats] by study_at of a cell 0, [BEST_MAX]. */
static void charge(const struct local_costs *costs, const struct cost_case *c, const struct network *net,
                   double *seconds) {
    for (size_t i = 0; i < BEST_MAX; i++) seconds[i] = NAN;
    for (size_t i = 0; exchanges[i]; i++) {
        bool format = best_takes_format(exchanges[i]);
        for (size_t w = 0; study_format(w) && (format || w == 0); w++) {
            const struct local_cost *local = &costs->of[i][format ? wire_at(study_format(w)) : 0];
            if (!isnan(local->select))
                seconds[study_at(0, i, w)] =
                    best_local_seconds(exchanges[i], format ? study_format(w) : NULL, c, local, net);
        }
    }
}

/* Costs of a model at a density; false: the table has none. */
static bool find_costs(const struct study *s, const struct study_model *model, double density,
                       struct local_costs *costs) {
    char name[LOCAL_NAME];
    struct local_missing missing;
    struct err lacking = {0};
    return s->costs && local_from_table(s->costs, s->device, model->n, density, costs, name, &missing, &lacking);
}

bool study_local_of(const struct study *s, const struct study_model *model, double density, int P, double *seconds) {
    static struct local_costs costs; /* large */
    const struct cost_case c = {.n = model->n, .k = density_to_k(density, model->n), .P = P, .ranks_per_node = 1};
    if (!find_costs(s, model, density, &costs)) return false;
    charge(&costs, &c, NULL, seconds);
    return true;
}

/* Of a model and a density, at every P on every network. */
static bool charge_cells(struct study *s, size_t density, size_t model) {
    static struct local_costs costs; /* large */
    if (!find_costs(s, &s->model[model], s->density[density], &costs)) return false;
    for (size_t net = 0; net < s->nets; net++)
        for (size_t size = 0; size < s->sizes; size++) {
            size_t cell = study_cell(s, net, density, model, size);
            const struct cost_case c = case_of(s, cell);
            charge(&costs, &c, &s->net[net].of, &s->local[study_at(cell, 0, 0)]);
        }
    return true;
}

bool study_local(struct study *s, const char *costs, const char *device, struct err *e) {
    struct cost_table t;
    s->costs = costs;
    s->device = device;
    if (!costs) return true;
    if (!cost_table_open(&t, costs, e)) return false;
    bool there = cost_table_selects(&t, device, e);
    cost_table_close(&t);
    for (size_t d = 0; there && d < s->densities; d++)
        for (size_t m = 0; m < s->models; m++) s->has_local |= charge_cells(s, d, m);
    return there;
}
