/* cells.c: tables of the scaling study cell by cell: see tables.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/study/tables.h"

static const char *name_of(const struct study_best *best) {
    return exchanges[best->algo]->name;
}

static const char *format_of(const struct study_best *best) {
    return study_format(best->format)->name;
}

/* -- cells.csv ------------------------------------------------------------------------------------- */
static void print_line(const struct study *s, const struct study_line *l) {
    const struct study_model *model = &s->model[study_model_of(s, l->cell)];
    printf("%s,%s,%zu,%g,%zu,%d,%s,", s->net[study_net_of(s, l->cell)].of.name, model->name, model->n,
           s->density[study_density_of(s, l->cell)], study_k(s, l->cell), study_p_of(s, l->cell),
           study_class_format(l->class)->name);
    printf("%s,%s,%.6g,%s,%.6g,%s,%.6g,", l->simulated ? "simulated" : "model", name_of(&l->winner), l->winner.seconds,
           name_of(&l->predicted), l->predicted.seconds, name_of(&l->published), l->published.seconds);
    printf("%s,%s,%.6g,%.4g,%s,%.4g,%d\n", name_of(&l->ours), format_of(&l->ours), l->ours.seconds, l->ahead,
           format_of(&l->winner), l->ahead_model, l->charged);
}

void table_cells(const struct study *s) {
    puts("net,model,n,density,k,P,wire,kind,winner,winner_s,predicted,predicted_s,published,published_s,ours,ours_wire,"
         "ours_s,ahead,winner_wire,ahead_model,local");
    for (size_t i = 0; i < study_lines(s); i++)
        if (s->line[i].there) print_line(s, &s->line[i]);
}

/* -- the map --------------------------------------------------------------------------------------- */
static void print_cell(const struct study *s, const struct study_line *l) {
    const struct study_best *winner = &l->winner;
    enum study_status status = study_status(s, l->ahead);
    bool other =
        best_takes_format(exchanges[winner->algo]) && study_format(winner->format) != study_class_format(l->class);
    const char *bold = status == STUDY_BEHIND ? "**" : "";
    printf(" %s%s%s %s%.2f%s%s%s |", name_of(winner), other ? " " : "", other ? format_of(winner) : "", bold, l->ahead,
           bold, status == STUDY_WITHIN ? "~" : "", l->simulated ? "" : " (m)");
}

static void map_of(const struct study *s, size_t class, size_t density) {
    printf("| network | model |");
    for (size_t p = 0; p < s->sizes; p++) printf(" %d |", s->P[p]);
    printf("\n|---|---|");
    for (size_t p = 0; p < s->sizes; p++) printf("---|");
    puts("");
    for (size_t net = 0; net < s->nets; net++)
        for (size_t m = 0; s->net[net].twin < 0 && m < s->models; m++) {
            printf("| %s | %s |", s->net[net].of.name, s->model[m].name);
            for (size_t p = 0; p < s->sizes; p++)
                print_cell(s, study_line_at(s, false, class, study_cell(s, net, density, m, p)));
            puts("");
        }
}

void table_map(const struct study *s, size_t class) {
    for (size_t d = 0; d < s->densities; d++) {
        printf("%sDensity %g:\n\n", d > 0 ? "\n" : "", s->density[d]);
        map_of(s, class, d);
    }
}

/* -- stretches of P -------------------------------------------------------------------------------- */
static const char *said_of(const struct study *s, const struct study_line *l, bool winner) {
    static const char *const words[] = {
        [STUDY_AHEAD] = "ahead", [STUDY_WITHIN] = "within", [STUDY_BEHIND] = "**behind**"};
    return !l->there ? "" : winner ? name_of(&l->winner) : words[study_status(s, l->ahead)];
}

static void print_stretch(const struct study *s, const char *what, size_t from, size_t to, bool simulated, bool first) {
    printf("%s%s", first ? "" : ", ", what);
    if (to + 1 == s->sizes)
        printf(from > 0 ? " from %d" : " everywhere", s->P[from]);
    else if (to == from)
        printf(" at %d", s->P[from]);
    else
        printf(" %d to %d", s->P[from], s->P[to]);
    printf("%s", simulated ? "" : " (m)");
}

/* Of the cells from `cell` on, one for each P. */
static void print_stretches(const struct study *s, size_t cell, size_t class, bool charged, bool winner) {
    bool first = true;
    for (size_t from = 0, to; from < s->sizes; from = to + 1) {
        const char *what = said_of(s, study_line_at(s, charged, class, cell + from), winner);
        bool simulated = false;
        for (to = from; to < s->sizes; to++) {
            const struct study_line *l = study_line_at(s, charged, class, cell + to);
            if (strcmp(said_of(s, l, winner), what) != 0) break;
            simulated |= l->simulated;
        }
        to--;
        if (*what) print_stretch(s, what, from, to, simulated, first);
        first &= !*what;
    }
}

void table_stretches(const struct study *s, bool charged, bool winner) {
    printf("| network | model | density |");
    for (size_t w = 0; w < STUDY_CLASSES; w++) printf(" %s |", study_class(w));
    printf("\n|---|---|---|");
    for (size_t w = 0; w < STUDY_CLASSES; w++) printf("---|");
    puts("");
    for (size_t net = 0; net < s->nets; net++)
        for (size_t m = 0; (charged || s->net[net].twin < 0) && m < s->models; m++)
            for (size_t d = 0; d < s->densities; d++) {
                printf("| %s | %s | %g |", s->net[net].of.name, s->model[m].name, s->density[d]);
                for (size_t w = 0; w < STUDY_CLASSES; w++) {
                    putchar(' ');
                    print_stretches(s, study_cell(s, net, d, m, 0), w, charged, winner);
                    printf(" |");
                }
                puts("");
            }
}
