/* tables.c: tables of the scaling study over all of its cells: see tables.h. */
#include "cli/study/tables.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/table.h"

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void table_sort(double *x, size_t count) {
    qsort(x, count, sizeof *x, ascending);
}

double table_median(const double *sorted, size_t count) {
    return sorted[(count + 1) / 2 - 1];
}

/* -- leads ----------------------------------------------------------------------------------------- */
enum { STATUSES = 3 };

/* Of the cells that are looked at. */
struct leads {
    size_t count[STUDY_MODELS][STATUSES], cells;
    double *ahead; /* [cells], ascending */
};

/* Over the cells that are simulated, or those that are not, as the view has them; net: of this network, s->nets: of
 * all. */
static struct leads leads_open(const struct study *s, struct study_view view, size_t class, size_t net) {
    struct leads leads = {.ahead = mem_alloc(study_cells(s), sizeof *leads.ahead, "leads of the scaling study")};
    for (size_t cell = 0; cell < study_cells(s); cell++) {
        const struct study_line *l = study_line_at(s, view.charged, class, cell);
        if (!l->there || l->simulated != view.simulated || !study_counts(s, l)) continue;
        if (net < s->nets && study_net_of(s, cell) != net) continue;
        double ahead = study_lead(s, view, cell, class);
        leads.ahead[leads.cells++] = ahead;
        leads.count[study_model_of(s, cell)][study_status(s, ahead)]++;
    }
    table_sort(leads.ahead, leads.cells);
    return leads;
}

static size_t sum_of(const struct leads *leads, enum study_status status) {
    size_t sum = 0;
    for (size_t m = 0; m < STUDY_MODELS; m++) sum += leads->count[m][status];
    return sum;
}

static void print_leads(const struct leads *leads, const char *class, const char *local) {
    size_t behind = sum_of(leads, STUDY_BEHIND);
    const char *bold = behind > 0 ? "**" : "";
    printf("| %s | %s | %zu | %zu | %zu | %s%zu%s | %.2f | %.2f | %.2f |", class, local, leads->cells,
           sum_of(leads, STUDY_AHEAD), sum_of(leads, STUDY_WITHIN), bold, behind, bold, leads->ahead[0],
           table_median(leads->ahead, leads->cells), leads->ahead[leads->cells - 1]);
}

static void lead(const struct study *s, struct study_view view, size_t class) {
    struct leads leads = leads_open(s, view, class, s->nets);
    if (leads.cells > 0) {
        print_leads(&leads, study_class(class), view.charged ? "charged" : "none");
        for (size_t m = 0; m < s->models; m++) {
            const size_t *count = leads.count[m];
            printf(" %zu / %zu / %zu |", count[STUDY_AHEAD], count[STUDY_WITHIN], count[STUDY_BEHIND]);
        }
        puts("");
    }
    mem_free(leads.ahead);
}

void table_leads(const struct study *s, bool simulated) {
    printf("| messages | local work | %s cells | ahead | within the error | behind | least | median | most |",
           simulated ? "simulated" : "model");
    for (size_t m = 0; m < s->models; m++) printf(" %s |", s->model[m].name);
    printf("\n|---|---|---|---|---|---|---|---|---|");
    for (size_t m = 0; m < s->models; m++) printf("---|");
    puts("");
    for (int charged = 0; charged < (s->has_local ? 2 : 1); charged++)
        for (size_t w = 0; w < STUDY_CLASSES; w++)
            lead(s, (struct study_view){.simulated = simulated, .charged = charged}, w);
}

void table_bound(const struct study *s) {
    static const struct {
        const char *name;
        struct study_view view;
    } local[] = {{"none", {.simulated = true}},
                 {"charged", {.simulated = true, .charged = true}},
                 {"charged, packing free", {.simulated = true, .charged = true, .free_packing = true}}};
    puts("| network | messages | local work | simulated cells | ahead | within the error | behind | least | median | "
         "most |\n|---|---|---|---|---|---|---|---|---|---|");
    for (size_t net = 0; net < s->nets; net++)
        for (size_t class = 1; class < STUDY_CLASSES; class ++)
            for (size_t i = 0; i < sizeof local / sizeof *local; i++) {
                struct leads leads = leads_open(s, local[i].view, class, net);
                if (leads.cells > 0) {
                    printf("| %s ", s->net[net].of.name);
                    print_leads(&leads, study_class(class), local[i].name);
                    puts("");
                }
                mem_free(leads.ahead);
            }
}

/* -- simulation against the model ------------------------------------------------------------------ */
static const char *reason(size_t algo) {
    if (!exchanges[algo]->sparse) return "not simulated: as its line has it";
    return exchanges[algo]->line_off ? exchanges[algo]->line_off : "";
}

static void ratio(const struct study *s, size_t algo, size_t format) {
    double *list = mem_alloc(study_cells(s), sizeof *list, "ratios of the scaling study");
    size_t count = 0;
    for (size_t cell = 0; cell < study_cells(s); cell++) {
        size_t at = study_at(cell, algo, format);
        if (!isnan(s->simulated[at])) list[count++] = s->simulated[at] / s->predicted[at];
    }
    table_sort(list, count);
    if (count > 0)
        printf("| %s | %s | %zu | %.2f | %.2f | %.2f | %s |\n", exchanges[algo]->name, study_format(format)->name,
               count, list[0], table_median(list, count), list[count - 1],
               format == 0 ? reason(algo)
                           : "as in coo32; and indices that cluster take fewer bits than evenly spread ones, which the "
                             "line has");
    mem_free(list);
}

void table_ratios(const struct study *s) {
    puts("| algorithm | format | simulated cells | least | median | most | why |\n|---|---|---|---|---|---|---|");
    for (size_t i = 0; exchanges[i]; i++)
        for (size_t w = 0; study_format(w) && (best_takes_format(exchanges[i]) || w == 0); w++) ratio(s, i, w);
}

/* Cells of one predicted winner and another simulated one. */
struct disagreement {
    size_t predicted, simulated, times;
    char examples[TABLE_TEXT];
};

static void note(const struct study *s, const struct study_line *l, struct disagreement *d) {
    enum { EXAMPLES = 3 };
    size_t used = strlen(d->examples);
    if (++d->times > EXAMPLES) return;
    snprintf(d->examples + used, sizeof d->examples - used, "%s%s, %s, %g, P = %d, %s", used ? "; " : "",
             s->net[study_net_of(s, l->cell)].of.name, s->model[study_model_of(s, l->cell)].name,
             s->density[study_density_of(s, l->cell)], study_p_of(s, l->cell), study_class_format(l->class)->name);
}

static struct disagreement *find(struct disagreement *list, size_t *count, const struct study_line *l) {
    size_t i = 0;
    while (i < *count && (list[i].predicted != l->predicted.algo || list[i].simulated != l->winner.algo)) i++;
    if (i == *count) list[(*count)++] = (struct disagreement){l->predicted.algo, l->winner.algo, 0, ""};
    return &list[i];
}

static void print_disagreements(const struct disagreement *list, size_t count) {
    puts("| predicted | simulated | cells | for example | why |\n|---|---|---|---|---|");
    for (size_t i = 0; i < count; i++) {
        const char *predicted = exchanges[list[i].predicted]->name, *simulated = exchanges[list[i].simulated]->name;
        printf("| %s | %s | %zu | %s | %s: %s. %s: %s |\n", predicted, simulated, list[i].times, list[i].examples,
               simulated, reason(list[i].simulated), predicted, reason(list[i].predicted));
    }
}

void table_disagreements(const struct study *s) {
    size_t all = 0, cells = 0, count = 0;
    struct disagreement *list = mem_zalloc(study_lines(s), sizeof *list, "winners that the model did not expect");
    for (size_t i = 0; i < study_lines(s); i++) {
        const struct study_line *l = &s->line[i];
        if (l->charged || !l->there || !l->simulated || !study_counts(s, l)) continue;
        all++;
        if (l->winner.algo == l->predicted.algo) continue;
        cells++;
        note(s, l, find(list, &count, l));
    }
    if (cells == 0)
        printf("In all %zu simulated cells and formats the winner is the predicted one.\n", all);
    else
        printf("In %zu of %zu simulated cells and formats another algorithm wins than the model says:\n\n", cells, all);
    if (cells > 0) print_disagreements(list, count);
    mem_free(list);
}

/* -- for sentences --------------------------------------------------------------------------------- */
void table_published(char text[TABLE_TEXT]) {
    *text = '\0';
    for (size_t i = 0; exchanges[i]; i++) {
        const char *as = exchanges[i]->moves_as;
        if (!study_ranked(i) || !study_published(exchanges[i], 0)) continue;
        if (!as || strcmp(as, exchange_dense.name) != 0) names_add(text, TABLE_TEXT, exchanges[i]->name);
    }
}

void table_best_published(const struct study *s, bool charged, char text[TABLE_TEXT]) {
    size_t times[BEST_ALGORITHMS] = {0};
    for (size_t cell = 0; cell < study_cells(s); cell++) {
        const struct study_line *l = study_line_at(s, charged, 0, cell);
        if (l->there && l->simulated && study_counts(s, l)) times[l->published.algo]++;
    }
    *text = '\0';
    for (;;) {
        size_t most = 0;
        for (size_t i = 1; exchanges[i]; i++) {
            bool before = strcmp(exchanges[i]->name, exchanges[most]->name) < 0;
            if (times[i] > times[most] || (times[i] == times[most] && before)) most = i;
        }
        if (times[most] == 0) return;
        char one[64];
        snprintf(one, sizeof one, "%s in %zu", exchanges[most]->name, times[most]);
        names_add(text, TABLE_TEXT, one);
        times[most] = 0;
    }
}

double table_dense_behind(const struct study *s) {
    const struct study_view model = {0};
    double least = NAN;
    for (size_t cell = 0; cell < study_cells(s); cell++)
        for (size_t i = 0; exchanges[i]; i++) {
            if (exchanges[i] != &exchange_dense) continue;
            double behind = s->predicted[study_at(cell, i, 0)] / study_best(s, model, STUDY_ALL, cell, 0).seconds;
            if (!(behind >= least)) least = behind;
        }
    return least;
}

int table_simulated_to(const struct study *s) {
    int most = 0;
    for (size_t i = 0; i < study_lines(s); i++) {
        const struct study_line *l = &s->line[i];
        if (l->there && l->simulated && study_p_of(s, l->cell) > most) most = study_p_of(s, l->cell);
    }
    return most;
}
