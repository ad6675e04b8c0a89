/* study.c: the decisions of the scaling study, see study.h: pure, over tables that others fill. */
#include "cli/study/study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "comm/cost/simulation.h"
#include "comm/density.h"

/* What is far behind at one number of ranks goes on to be so as they grow. Near is whatever may still win: by the
 * model, which is off by less; or by the simulation at the P before, of which the published ones are held against each
 * other, too. */
static const double near_model = 1.3, near_before = 1.7, near_published = 1.5;
static const double room = 1e10; /* [bytes] of a simulation */

/* -- places ---------------------------------------------------------------------------------------- */
struct study *study_new(void) {
    return mem_zalloc(1, sizeof(struct study), "the scaling study");
}

void study_free(struct study *s) {
    mem_free(s->predicted);
    mem_free(s->simulated);
    mem_free(s->local);
    mem_free(s->line);
    mem_free(s);
}

static double *table_of(const struct study *s) {
    size_t count = study_cells(s) * BEST_MAX;
    double *table = mem_alloc(count, sizeof *table, "a table of the scaling study");
    for (size_t i = 0; i < count; i++) table[i] = NAN;
    return table;
}

void study_open(struct study *s) {
    s->predicted = table_of(s);
    s->simulated = table_of(s);
    s->local = table_of(s);
    s->line = mem_zalloc(study_lines(s), sizeof *s->line, "lines of the scaling study");
}

size_t study_formats(void) {
    size_t count = 0;
    for (size_t i = 0; wires[i]; i++) count += !wires[i]->pack;
    return count;
}

const struct wire_ops *study_format(size_t w) {
    for (int rounds = 0; rounds < 2; rounds++)
        for (size_t i = 0; wires[i]; i++)
            if (wires[i]->rounds == rounds && !wires[i]->pack && w-- == 0) return wires[i];
    return NULL;
}

const char *study_class(size_t class) {
    static const char *const names[STUDY_CLASSES] = {"coo32", "lossless", "rounded"};
    return names[class];
}

size_t study_class_formats(size_t class) {
    size_t count = class == 0 ? 1 : study_formats();
    while (class == 1 && study_format(count - 1)->rounds) count--;
    return count;
}

const struct wire_ops *study_class_format(size_t class) {
    return study_format(class == 0 ? 0 : study_class_formats(class - 1));
}

size_t study_cells(const struct study *s) {
    return s->nets * s->densities * s->models * s->sizes;
}

size_t study_cell(const struct study *s, size_t net, size_t density, size_t model, size_t size) {
    return ((net * s->densities + density) * s->models + model) * s->sizes + size;
}

size_t study_size_of(const struct study *s, size_t cell) {
    return cell % s->sizes;
}

size_t study_model_of(const struct study *s, size_t cell) {
    return cell / s->sizes % s->models;
}

size_t study_density_of(const struct study *s, size_t cell) {
    return cell / s->sizes / s->models % s->densities;
}

size_t study_net_of(const struct study *s, size_t cell) {
    return cell / s->sizes / s->models / s->densities;
}

int study_p_of(const struct study *s, size_t cell) {
    return s->P[study_size_of(s, cell)];
}

size_t study_k(const struct study *s, size_t cell) {
    return density_to_k(s->density[study_density_of(s, cell)], s->model[study_model_of(s, cell)].n);
}

size_t study_at(size_t cell, size_t algo, size_t format) {
    return (cell * BEST_ALGORITHMS + algo) * BEST_FORMATS + (best_takes_format(exchanges[algo]) ? format : 0);
}

bool study_ranked(size_t algo) {
    return exchange_apart(exchanges[algo]) == NULL;
}

/* -- who is the fastest ---------------------------------------------------------------------------- */
bool study_published(const struct exchange_ops *ops, size_t format) {
    return !ops->ours && (format == 0 || !best_takes_format(ops));
}

static double simulated_seconds(const struct study *s, size_t cell, size_t algo, size_t format) {
    const struct study_net *net = &s->net[study_net_of(s, cell)];
    if (net->twin < 0) return s->simulated[study_at(cell, algo, format)];
    size_t twin =
        study_cell(s, (size_t)net->twin, study_density_of(s, cell), study_model_of(s, cell), study_size_of(s, cell));
    return s->simulated[study_at(twin, algo, format)] * net->factor;
}

static double local_seconds(const struct study *s, struct study_view view, size_t cell, size_t algo, size_t format) {
    double seconds = s->local[study_at(cell, algo, format)], first = s->local[study_at(cell, algo, 0)];
    return view.free_packing && first < seconds ? first : seconds;
}

/* What sends all entries is not simulated (study_wanted): it takes what its line has. */
double study_seconds(const struct study *s, struct study_view view, size_t cell, size_t algo, size_t format) {
    bool simulated = view.simulated && exchanges[algo]->sparse;
    double seconds = simulated ? simulated_seconds(s, cell, algo, format) : s->predicted[study_at(cell, algo, format)];
    return view.charged ? seconds + local_seconds(s, view, cell, algo, format) : seconds;
}

static bool is_of(enum study_who who, size_t algo, size_t format) {
    if (!study_ranked(algo)) return false;
    return who == STUDY_ALL || study_published(exchanges[algo], format) == (who == STUDY_PUBLISHED);
}

struct study_best study_best(const struct study *s, struct study_view view, enum study_who who, size_t cell,
                             size_t format) {
    struct study_best best = {.seconds = NAN};
    for (size_t i = 0; exchanges[i]; i++) {
        if (!is_of(who, i, format)) continue;
        double seconds = study_seconds(s, view, cell, i, format);
        if (isnan(seconds)) continue;
        bool shorter = strlen(exchanges[i]->name) < strlen(exchanges[best.algo]->name);
        if (isnan(best.seconds) || seconds < best.seconds || (seconds == best.seconds && shorter))
            best = (struct study_best){i, best_takes_format(exchanges[i]) ? format : 0, seconds};
    }
    return best;
}

struct study_best study_best_of_class(const struct study *s, struct study_view view, enum study_who who, size_t cell,
                                      size_t class) {
    struct study_best best = {.seconds = NAN};
    for (size_t w = 0; w < study_class_formats(class); w++) {
        struct study_best now = study_best(s, view, who, cell, w);
        if (!isnan(now.seconds) && (isnan(best.seconds) || now.seconds < best.seconds)) best = now;
    }
    return best;
}

/* -- what is to be simulated ----------------------------------------------------------------------- */
/* 16 entries a rank, where they are divided among the ranks, and 4096, so that MPI chooses the same collectives. */
size_t study_least_k(const struct study *s, const struct exchange_ops *ops, int P, size_t k) {
    size_t least = 4096, divided = 16 * (size_t)P;
    if (!simulation_of(ops)->undivided && divided > least) least = divided;
    if (s->least > 0) least = s->least;
    return k < least ? k : least;
}

bool study_runs_apart(const struct exchange_ops *ops) {
    return ops->own_parts && !ops->selects;
}

/* What chooses in parts of its own has whole gradients (in coo32 of ten times k entries), the others lists, of which
 * all entries that are left are selected. */
static bool fits(const struct study *s, size_t cell, const struct exchange_ops *ops, size_t format) {
    int P = study_p_of(s, cell);
    double all = (double)study_k(s, cell), k = (double)study_least_k(s, ops, P, study_k(s, cell));
    bool whole = study_runs_apart(ops) && format > 0;
    double n = whole ? (double)s->model[study_model_of(s, cell)].n * k / all : k;
    return simulation_memory(P, n, k / n, whole ? SIMULATION_ARRAYS : SIMULATION_LISTS, &ops, 1, false) < room;
}

/* The place of this P among those that are simulated; s->runs: it is not. */
static size_t run_of(const struct study *s, int P) {
    size_t i = 0;
    while (i < s->runs && s->run[i] != P) i++;
    return i;
}

/* The same cell at the number of ranks that was simulated before. */
static size_t cell_before(const struct study *s, size_t cell) {
    int P = s->run[run_of(s, study_p_of(s, cell)) - 1];
    while (study_p_of(s, cell) != P) cell--;
    return cell;
}

static bool near_by_model(const struct study *s, size_t cell, size_t algo, size_t format) {
    const struct study_view model = {0};
    double seconds = study_seconds(s, model, cell, algo, format);
    if (seconds <= near_model * study_best(s, model, STUDY_ALL, cell, format).seconds) return true;
    return study_published(exchanges[algo], format) &&
           seconds <= near_model * study_best(s, model, STUDY_PUBLISHED, cell, format).seconds;
}

static bool was_near(const struct study *s, size_t before, size_t algo, size_t format) {
    const struct study_view simulated = {.simulated = true};
    double seconds = simulated_seconds(s, before, algo, format);
    if (seconds <= near_before * study_best(s, simulated, STUDY_ALL, before, format).seconds) return true;
    return study_published(exchanges[algo], format) &&
           seconds <= near_published * study_best(s, simulated, STUDY_PUBLISHED, before, 0).seconds;
}

static bool near(const struct study *s, size_t cell, size_t algo, size_t format) {
    return near_by_model(s, cell, algo, format) || was_near(s, cell_before(s, cell), algo, format);
}

/* Not simulated is what sends as another algorithm does (with one rank a node), and what sends all entries, which has
 * the seconds of its line in every cell (study_seconds). At the first P all others are; then those that were not far
 * behind at the P before, those that the model holds to be among the first, and what is ours; and whoever is in coo32
 * is in every format, for with local work the order may be another. */
bool study_wanted(const struct study *s, size_t cell, size_t algo, size_t format) {
    const struct exchange_ops *ops = exchanges[algo];
    size_t run = run_of(s, study_p_of(s, cell));
    if (!study_ranked(algo) || !ops->sparse || ops->moves_as || run == s->runs) return false;
    if ((format > 0 && !best_takes_format(ops)) || !fits(s, cell, ops, format)) return false;
    if (run == 0 || ops->ours) return true;
    return near(s, cell, algo, format) || near(s, cell, algo, 0);
}

bool study_has(const struct study *s, size_t cell, size_t algo, size_t format) {
    return !isnan(simulated_seconds(s, cell, algo, format));
}

static bool all_simulated(const struct study *s, size_t cell, size_t format) {
    if (run_of(s, study_p_of(s, cell)) == s->runs) return false;
    for (size_t i = 0; exchanges[i]; i++)
        if (study_wanted(s, cell, i, format) && !study_has(s, cell, i, format)) return false;
    return true;
}

/* -- lines ----------------------------------------------------------------------------------------- */
size_t study_lines(const struct study *s) {
    return 2 * STUDY_CLASSES * study_cells(s);
}

const struct study_line *study_line_at(const struct study *s, bool charged, size_t class, size_t cell) {
    return &s->line[(charged * STUDY_CLASSES + class) * study_cells(s) + cell];
}

/* In the digits of cells.csv, so that whoever computes with the file comes to the same numbers. */
static double as_written(double x) {
    char text[32];
    snprintf(text, sizeof text, "%.4g", x);
    return strtod(text, NULL);
}

static double ratio(struct study_best published, struct study_best ours) {
    return as_written(published.seconds / ours.seconds);
}

double study_lead(const struct study *s, struct study_view view, size_t cell, size_t class) {
    return ratio(study_best(s, view, STUDY_PUBLISHED, cell, 0), study_best_of_class(s, view, STUDY_OURS, cell, class));
}

static void compare(const struct study *s, size_t cell, size_t class, bool charged, struct study_line *line) {
    const struct study_view model = {.charged = charged};
    struct study_view view = {.simulated = true, .charged = charged};
    for (size_t w = 0; w < study_class_formats(class); w++) view.simulated &= all_simulated(s, cell, w);
    *line = (struct study_line){.cell = cell, .class = class, .charged = charged, .simulated = view.simulated};
    line->predicted = study_best_of_class(s, model, STUDY_ALL, cell, class);
    line->ahead_model = study_best(s, model, STUDY_PUBLISHED, cell, 0).seconds /
                        study_best_of_class(s, model, STUDY_OURS, cell, class).seconds;
    line->winner = study_best_of_class(s, view, STUDY_ALL, cell, class);
    line->published = study_best(s, view, STUDY_PUBLISHED, cell, 0);
    line->ours = study_best_of_class(s, view, STUDY_OURS, cell, class);
    line->ahead = ratio(line->published, line->ours);
    line->there = !isnan(line->ahead);
}

void study_compare(struct study *s) {
    size_t cells = study_cells(s), at = 0;
    for (int charged = 0; charged < 2; charged++)
        for (size_t class = 0; class < STUDY_CLASSES; class ++)
            for (size_t cell = 0; cell < cells; cell++) compare(s, cell, class, charged, &s->line[at++]);
}

enum study_status study_status(const struct study *s, double ahead) {
    if (ahead * (1 - s->error) > 1) return STUDY_AHEAD;
    return ahead < 1 - s->error ? STUDY_BEHIND : STUDY_WITHIN;
}

bool study_counts(const struct study *s, const struct study_line *line) {
    return line->charged || s->net[study_net_of(s, line->cell)].twin < 0;
}
