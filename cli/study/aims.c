/* aims.c: see aims.h. */
#include "cli/study/aims.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/table.h"
#include "cli/csv.h"
#include "cli/network/cost_table.h"
#include "cli/study/plan.h"
#include "topk/selector.h"

enum { MODELS = 4, SIZES = 2, ALGOS = 5, QUICK_MOST = 1024, MISSED = 2048 };

static const double density = 0.001;
static const char net[] = "1gbe";
static const char *const model_names[MODELS] = {"VGG-16", "ResNet-20", "AlexNet", "ResNet-50"};
static const struct size {
    int P;
    double goal; /* efficiency */
} size_of[SIZES] = {{32, 0.93}, {256, 0.90}};

/* Who is simulated, in coo32 alone or in every format, and with how many entries at most: of the selection; of dense of
 * the gradient, which nobody reads. */
static const struct aimed {
    const char *algo;
    bool formats;
    double most[SIZES];
} aimed[ALGOS] = {{"dense", false, {3e6, 3e6}},
                  {"topka", false, {8192, 1024}},
                  {"gtopk", false, {16384, 16384}},
                  {"gtopk-rd", true, {16384, 16384}},
                  {"spardl", true, {16384, 16384}}};

/* A row of aims.csv. */
struct aim {
    size_t model, size, algo, format; /* algo: in exchanges */
    double select, word;              /* [s] as they were injected */
    double efficiency;
};

struct aims {
    struct study_model model[MODELS];
    double compute[MODELS];                /* [s] a step on one GPU */
    double images[MODELS];                 /* a second, on one GPU; NAN: not measured */
    double measured[MODELS][ALGOS];        /* images a second on size_of[0].P GPUs; NAN: not measured */
    double local[MODELS][SIZES][BEST_MAX]; /* [s] as the cost lines have it, by study_at of a cell 0; NAN: not known */
    struct aim *row;                       /* [rows] */
    size_t rows, room;                     /* in use, there */
};

struct aims *aims_new(void) {
    return mem_zalloc(1, sizeof(struct aims), "the aims of the scaling study");
}

void aims_free(struct aims *a) {
    mem_free(a->row);
    mem_free(a);
}

/* -- reading --------------------------------------------------------------------------------------- */
static const struct exchange_ops *ops_of(size_t i) {
    return exchanges[study_find_algo(aimed[i].algo)];
}

/* What the paper measured; a number that is not there is NAN. */
static bool read_published(struct aims *a, size_t m, struct err *e) {
    static const char single[] = "results/published/gtopk-single-gpu.csv",
                      many[] = "results/published/gtopk-throughput.csv";
    const char *name = model_names[m];
    struct err none = {0};
    a->images[m] = NAN;
    csv_find(single, "images_per_s", "model", name, &a->images[m], &none);
    for (size_t i = 0; i < ALGOS; i++) {
        char column[64];
        snprintf(column, sizeof column, "%s_images_per_s", aimed[i].algo);
        a->measured[m][i] = NAN;
        csv_find(many, column, "model", name, &a->measured[m][i], &none);
    }
    return csv_find(single, "iteration_s", "model", name, &a->compute[m], e);
}

static bool read_model(struct aims *a, const struct study *s, size_t m, struct err *e) {
    a->model[m] = *study_find_model(model_names[m]);
    if (!study_model_n(&a->model[m], e) || !read_published(a, m, e)) return false;
    for (size_t p = 0; p < SIZES; p++) {
        for (size_t i = 0; i < BEST_MAX; i++) a->local[m][p][i] = NAN;
        study_local_of(s, &a->model[m], density, size_of[p].P, a->local[m][p]);
    }
    return true;
}

static struct aim *new_row(struct aims *a) {
    if (a->rows == a->room) {
        a->room = 2 * a->room + 64;
        a->row = mem_grow(a->row, a->rows, a->room, sizeof *a->row, "rows of aims");
    }
    return &a->row[a->rows++];
}

/* One simulation of an aim. */
struct job {
    size_t model, size, i, format; /* i: in aimed */
    double select, word;           /* [s]; 0: none is injected */
    double most;
};

/* With the times of the table; false: it has none of this. */
static bool find_times(const struct aims *a, const struct study *s, const struct cost_table *t, struct job *x) {
    struct err lacking = {0};
    struct cost_answer answer;
    const struct cost_question q = {.model = a->model[x->model].costs,
                                    .device = s->device,
                                    .ops = ops_of(x->i),
                                    .wire = study_format(x->format),
                                    .density = density,
                                    .ranks_per_node = 1,
                                    .times = COST_SELECT | COST_WORD};
    if (!q.ops->sparse || !cost_table_ask(t, &q, &answer, &lacking) || !answer.charged) return false;
    x->select = answer.select;
    x->word = answer.word;
    return true;
}

static bool is_charged(const struct aim *x) {
    return x->select + x->word > 0;
}

static bool as_table_has(const struct aims *a, const struct study *s, const struct cost_table *costs,
                         const struct aim *x) {
    struct job now = {.model = x->model, .size = x->size, .format = x->format};
    while (now.i < ALGOS && study_find_algo(aimed[now.i].algo) != x->algo) now.i++;
    return now.i < ALGOS && find_times(a, s, costs, &now) && now.select == x->select && now.word == x->word;
}

/* A row of what is no aim is passed over, and one that was charged other times than the table now has. */
static void take_row(struct aims *a, const struct study *s, const struct cost_table *costs, const struct csv *t) {
    struct aim x = {.algo = study_find_algo(csv_cell(t, "algo")), .format = study_find_format(csv_cell(t, "wire"))};
    while (x.model < MODELS && strcmp(model_names[x.model], csv_cell(t, "model")) != 0) x.model++;
    while (x.size < SIZES && size_of[x.size].P != csv_number(t, "P")) x.size++;
    if (x.model == MODELS || x.size == SIZES || !exchanges[x.algo] || !study_format(x.format)) return;
    x.select = csv_number(t, "select_s");
    x.word = csv_number(t, "word_s");
    x.efficiency = csv_number(t, "compute_s") / csv_number(t, "step_s");
    if (is_charged(&x) && s->costs && !as_table_has(a, s, costs, &x)) return;
    *new_row(a) = x;
}

static bool read_rows(struct aims *a, const struct study *s, const struct cost_table *costs, const char *folder,
                      struct err *e) {
    char path[STUDY_PATH];
    struct csv t;
    if (!study_path(path, folder, "aims.csv", e)) return false;
    if (!csv_open(&t, path, "model,n,density,P,wire,algo,compute_s,select_s,word_s,step_s,job", e)) return false;
    while (csv_next(&t)) take_row(a, s, costs, &t);
    return csv_close(&t);
}

bool aims_read(struct aims *a, const struct study *s, const char *folder, struct err *e) {
    struct cost_table costs = {0};
    for (size_t m = 0; m < MODELS; m++)
        if (!read_model(a, s, m, e)) return false;
    if (s->costs && !cost_table_open(&costs, s->costs, e)) return false;
    bool good = read_rows(a, s, &costs, folder, e);
    cost_table_close(&costs);
    return good;
}

/* -- efficiencies ---------------------------------------------------------------------------------- */
/* Of the last such row; NAN: there is none. */
static double efficiency(const struct aims *a, size_t model, size_t size, size_t algo, size_t format, bool charged) {
    double efficiency = NAN;
    for (size_t i = 0; i < a->rows; i++) {
        const struct aim *x = &a->row[i];
        if (x->model == model && x->size == size && x->algo == algo && x->format == format && is_charged(x) == charged)
            efficiency = x->efficiency;
    }
    return efficiency;
}

static double local_of(const struct aims *a, size_t model, size_t size, size_t algo, size_t format) {
    return a->local[model][size][study_at(0, algo, format)];
}

/* What an efficiency leaves beside computing [ms] */
static double beside(const struct aims *a, size_t model, double efficiency) {
    return 1000 * a->compute[model] * (1 / efficiency - 1);
}

/* The best of ours in a class; efficiency NAN: there is none. */
struct best_aim {
    size_t algo, format;
    double efficiency;
};

static struct best_aim best_of(const struct aims *a, size_t model, size_t size, size_t class, bool charged) {
    struct best_aim best = {.efficiency = NAN};
    for (size_t w = 0; w < study_class_formats(class); w++)
        for (size_t i = 0; exchanges[i]; i++) {
            if (!study_ranked(i) || study_published(exchanges[i], w)) continue;
            double x = efficiency(a, model, size, i, w, charged);
            if (!isnan(x) && (isnan(best.efficiency) || x > best.efficiency)) best = (struct best_aim){i, w, x};
        }
    return best;
}

/* -- the table of aims ----------------------------------------------------------------------------- */
static void print_percent(double x) {
    if (isnan(x))
        printf("   |");
    else
        printf(" %.1f%% |", 100 * x);
}

/* Who stands in the table beside ours. */
static bool is_beside(size_t i) {
    return study_published(ops_of(i), 0);
}

static void print_head(void) {
    size_t columns = 3, last = 0;
    printf("| model | P | aim |");
    for (size_t w = 1; w < STUDY_CLASSES; w++, columns += 2) printf(" ours, %s | reached |", study_class(w));
    for (size_t i = 0; i < ALGOS; i++) last = is_beside(i) ? i : last;
    for (size_t i = 0; i < ALGOS; i++) {
        if (is_beside(i)) printf(" %s%s |", aimed[i].algo, i == last ? " in coo32" : "");
        columns += is_beside(i);
    }
    printf("\n|");
    for (size_t c = 0; c < columns; c++) printf("---|");
    puts("");
}

/* One that is not reached goes to missed, with what selecting, packing and merging have to do with it. */
static void note_missed(const struct aims *a, size_t model, size_t size, size_t class, bool charged, double ours,
                        char missed[MISSED]) {
    double goal = size_of[size].goal, alone = best_of(a, model, size, class, false).efficiency;
    size_t used = strlen(missed);
    snprintf(missed + used, MISSED - used, "%s%s at P = %d (%.1f%%)", used ? "; " : "", model_names[model],
             size_of[size].P, 100 * ours);
    used = strlen(missed);
    if (charged && alone >= goal)
        snprintf(missed + used, MISSED - used,
                 ": the aim leaves %.1f ms for selecting, packing and merging, which take %.1f ms",
                 beside(a, model, goal) - beside(a, model, alone), beside(a, model, ours) - beside(a, model, alone));
}

/* Two columns: the best of ours in a class, and whether it reaches the aim. */
static void print_ours(const struct aims *a, size_t model, size_t size, size_t class, bool charged,
                       char missed[MISSED]) {
    struct best_aim ours = best_of(a, model, size, class, charged);
    bool reached = ours.efficiency >= size_of[size].goal;
    if (isnan(ours.efficiency)) {
        printf(" | |");
        return;
    }
    printf(" %.1f%% %s, %s | %s |", 100 * ours.efficiency, exchanges[ours.algo]->name, study_format(ours.format)->name,
           reached ? "yes" : "**no**");
    if (!reached) note_missed(a, model, size, class, charged, ours.efficiency, missed);
}

/* False: nothing of ours was simulated. */
static bool print_row(const struct aims *a, size_t model, size_t size, bool charged, char missed[][MISSED]) {
    if (isnan(best_of(a, model, size, STUDY_CLASSES - 1, charged).efficiency)) return false;
    printf("| %s | %d | %.1f%% |", model_names[model], size_of[size].P, 100 * size_of[size].goal);
    for (size_t w = 1; w < STUDY_CLASSES; w++) print_ours(a, model, size, w, charged, missed[w]);
    for (size_t i = 0; i < ALGOS; i++) { /* of a dense sum nothing is charged: on 1 Gbit/s its transfers hide it */
        bool with = charged && ops_of(i)->sparse;
        if (is_beside(i)) print_percent(efficiency(a, model, size, study_find_algo(aimed[i].algo), 0, with));
    }
    puts("");
    return true;
}

void aims_table(const struct aims *a, bool charged) {
    char missed[STUDY_CLASSES][MISSED] = {""};
    bool any = false;
    print_head();
    for (size_t m = 0; m < MODELS; m++)
        for (size_t p = 0; p < SIZES; p++) any |= print_row(a, m, p, charged, missed);
    for (size_t w = 1; any && w < STUDY_CLASSES; w++) {
        if (*missed[w])
            printf("\n**Not reached, %s:** %s.\n", study_class(w), missed[w]);
        else
            printf("\nWith %s messages every aim that was simulated is reached.\n", study_class(w));
    }
}

/* -- against the paper ----------------------------------------------------------------------------- */
/* By the paper's own cost model, its Table I. Of topka and gtopk that is their line here; its dense sum is a ring, with
 * 2 (P - 1) start-ups in place of the 2 log2(P) of the line here, and the same words. */
static double by_table_1(const struct aims *a, const struct study *s, size_t model, size_t i) {
    const struct exchange_ops *ops = ops_of(i);
    const struct cost_case c = {
        .n = a->model[model].n, .k = density_to_k(density, a->model[model].n), .P = size_of[0].P, .ranks_per_node = 1};
    struct network network = {.alpha = NAN};
    struct cost cost;
    for (size_t n = 0; n < s->nets; n++)
        if (strcmp(s->net[n].of.name, net) == 0) network = s->net[n].of;
    ops->cost(&c, &cost);
    if (ops == &exchange_dense) cost.alphas = 2.0 * (c.P - 1);
    return a->compute[model] / (a->compute[model] + cost_seconds(&cost, &network));
}

static bool has_rows(const struct aims *a, size_t model) {
    for (size_t i = 0; i < a->rows; i++)
        if (a->row[i].model == model) return true;
    return false;
}

void aims_paper(const struct aims *a, const struct study *s) {
    int P = size_of[0].P;
    printf("| model, P = %d | algorithm | measured in the paper | by the paper's cost model | simulated here | step "
           "measured in the paper | step by its cost model |\n|---|---|---|---|---|---|---|\n",
           P);
    for (size_t m = 0; m < MODELS; m++)
        for (size_t i = 0; i < ALGOS; i++) {
            if (!has_rows(a, m) || isnan(a->measured[m][i])) continue;
            double measured = a->measured[m][i] / (P * a->images[m]), predicted = by_table_1(a, s, m, i);
            printf("| %s | %s |", model_names[m], aimed[i].algo);
            print_percent(measured);
            print_percent(predicted);
            print_percent(efficiency(a, m, 0, study_find_algo(aimed[i].algo), 0, false));
            printf(" %.3g s | %.3g s |\n", a->compute[m] / measured, a->compute[m] / predicted);
        }
}

size_t aims_added(const struct aims *a, double *least, double *most) {
    size_t count = 0;
    *least = INFINITY;
    *most = 0;
    for (size_t m = 0; m < MODELS; m++)
        for (size_t p = 0; p < SIZES; p++)
            for (size_t i = 0; exchanges[i]; i++)
                for (size_t w = 0; w < study_formats(); w++) {
                    double alone = beside(a, m, efficiency(a, m, p, i, w, false)) / 1000,
                           both = beside(a, m, efficiency(a, m, p, i, w, true)) / 1000,
                           ratio = (alone + local_of(a, m, p, i, w)) / both;
                    if (isnan(ratio)) continue;
                    count++;
                    *least = fmin(*least, ratio);
                    *most = fmax(*most, ratio);
                }
    return count;
}

/* -- what is to be simulated ----------------------------------------------------------------------- */
static bool is_there(const struct aims *a, const struct job *x) {
    size_t algo = study_find_algo(aimed[x->i].algo);
    for (size_t i = 0; i < a->rows; i++) {
        const struct aim *row = &a->row[i];
        if (row->model == x->model && row->size == x->size && row->algo == algo && row->format == x->format &&
            row->select == x->select && row->word == x->word)
            return true;
    }
    return false;
}

static bool print_job(const struct aims *a, const struct job *x, struct err *e) {
    const struct study_model *model = &a->model[x->model];
    const char *algo = aimed[x->i].algo, *wire = study_format(x->format)->name;
    bool sparse = ops_of(x->i)->sparse;
    double entries = (double)(sparse ? density_to_k(density, model->n) : model->n), compute = a->compute[x->model];
    char profile[PLAN_PROFILE], select[JSON_NUMBER_MAX], word[JSON_NUMBER_MAX], scale[32];
    int P = size_of[x->size].P;
    if (sparse && !plan_profile(model, density, profile, e)) return false;
    json_number_text(x->select, select);
    json_number_text(x->word, word);
    snprintf(scale, sizeof scale, "%.6g", fmax(entries / x->most, 1));
    printf("%s,%zu,%g,%d,%s,%s,%g,%s,%s,%s\t", model->name, model->n, density, P, wire, algo, compute, select, word,
           scale);
    printf("--net %s --p %d --algo %s --wire %s --n %zu --density %g --compute %g", net, P, algo, wire, model->n,
           density, compute);
    if (sparse) printf(" --pattern fitted:%s --device sparse", profile);
    if (strcmp(scale, "1") != 0) printf(" --scale %s", scale);
    if (x->select > 0 || x->word > 0) printf(" --select-cost %s --word-cost %s", select, word);
    puts("");
    return true;
}

/* t NULL: without times. */
static bool plan_of(const struct aims *a, const struct study *s, const struct cost_table *t, bool quick, size_t model,
                    size_t size, struct err *e) {
    for (size_t i = 0; i < ALGOS; i++) {
        size_t last = aimed[i].formats ? study_formats() - 1 : 0;
        if (quick && !ops_of(i)->sparse) continue;
        for (size_t w = quick ? last : 0; w <= last; w++) {
            struct job x = {.model = model, .size = size, .i = i, .format = w};
            x.most = quick ? QUICK_MOST : aimed[i].most[size];
            if ((t && !find_times(a, s, t, &x)) || is_there(a, &x)) continue;
            if (!print_job(a, &x, e)) return false;
        }
    }
    return true;
}

bool aims_plan(const struct aims *a, const struct study *s, bool charged, bool quick, struct err *e) {
    struct cost_table t = {0};
    bool good = true;
    if (charged && !s->costs) return true;
    if (charged && !cost_table_open(&t, s->costs, e)) return false;
    for (size_t m = 0; m < (quick ? 1 : MODELS); m++)
        for (size_t p = 0; p < (quick ? 1 : SIZES); p++)
            good = good && plan_of(a, s, charged ? &t : NULL, quick, m, p, e);
    cost_table_close(&t);
    return good;
}
