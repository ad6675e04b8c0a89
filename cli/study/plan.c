/* plan.c: see plan.h. */
#include "cli/study/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/cost/simulation.h"

/* [s] what a job takes besides its steps, of which there are so many, with the one before them. */
static const double start = 0.3;
enum { STEPS = 3 };
/* [s] of an entry of a whole gradient, whose numbers are all drawn */
static const double entry = 1e-8;

static bool in_names(const struct option_names *list, size_t place) {
    for (size_t i = 0; i < list->count; i++)
        if ((size_t)list->at[i] == place) return true;
    return list->count == 0;
}

static bool in_numbers(const struct option_numbers *list, double x) {
    for (size_t i = 0; i < list->count; i++)
        if (list->x[i] == x) return true;
    return list->count == 0;
}

static bool is_chosen(const struct study *s, const struct plan_choice *choice, size_t cell) {
    return s->net[study_net_of(s, cell)].twin < 0 && (choice->P == 0 || study_p_of(s, cell) == choice->P) &&
           in_names(&choice->nets, study_net_of(s, cell)) && in_names(&choice->models, study_model_of(s, cell)) &&
           in_numbers(&choice->densities, s->density[study_density_of(s, cell)]);
}

/* As rows have it. */
static double rounded(double scale) {
    char text[32];
    snprintf(text, sizeof text, "%.6g", scale);
    return strtod(text, NULL);
}

size_t plan_jobs(const struct study *s, size_t cell, size_t format, struct plan_job job[PLAN_JOBS]) {
    int P = study_p_of(s, cell);
    size_t jobs = 0, k = study_k(s, cell);
    for (size_t i = 0; exchanges[i]; i++) {
        if (!study_wanted(s, cell, i, format) || study_has(s, cell, i, format)) continue;
        size_t least = study_least_k(s, exchanges[i], P, k), j = 0;
        double scale = rounded((double)k / (double)least);
        bool apart = study_runs_apart(exchanges[i]);
        double drawn = apart && format > 0 ? (double)P * (double)s->model[study_model_of(s, cell)].n / scale : 0;
        while (j < jobs && (job[j].scale != scale || job[j].apart != apart)) j++;
        if (j == jobs) job[jobs++] = (struct plan_job){.scale = scale, .seconds = start, .apart = apart};
        size_t used = strlen(job[j].algos);
        snprintf(job[j].algos + used, sizeof job[j].algos - used, "%s%s", used ? " " : "", exchanges[i]->name);
        job[j].seconds += STEPS * (simulation_seconds(exchanges[i], P, (double)least) + drawn * entry);
    }
    return jobs;
}

bool plan_profile(const struct study_model *model, double density, char path[PLAN_PROFILE], struct err *e) {
    const double near[] = {density, 0.01, 0.001};
    for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
        snprintf(path, PLAN_PROFILE, "results/measured/profiles/%s-%g", model->profile, near[i]);
        if (access(path, R_OK) == 0) return true;
    }
    return err_set(e,
                   "no profile results/measured/profiles/%s-*: it comes with the tree, and its folder says how it was "
                   "made",
                   model->profile);
}

static void print_with_commas(const char *algos) {
    for (; *algos; algos++) putchar(*algos == ' ' ? ',' : *algos);
}

static bool print_job(const struct study *s, size_t cell, size_t format, const struct plan_job *job, struct err *e) {
    const struct study_model *model = &s->model[study_model_of(s, cell)];
    const char *net = s->net[study_net_of(s, cell)].of.name, *wire = study_format(format)->name;
    double density = s->density[study_density_of(s, cell)];
    char profile[PLAN_PROFILE];
    size_t k = study_k(s, cell);
    int P = study_p_of(s, cell);
    if (!job->apart && !plan_profile(model, density, profile, e)) return false;
    printf("%s,%s,%zu,%g,%zu,%d,%s,%s,%g,%.1f\t", net, model->name, model->n, density, k, P, wire, job->algos,
           job->scale, job->seconds);
    printf("--net %s --p %d --algo ", net, P);
    print_with_commas(job->algos);
    if (job->apart && format == 0) /* its words follow from k and P alone: independent numbers, ten times k of them */
        printf(" --wire %s --n %zu --density 0.1", wire, 10 * k);
    else if (job->apart) /* and here from how far they are from each other */
        printf(" --wire %s --n %zu --density %g", wire, model->n, density);
    else
        printf(" --wire %s --n %zu --density %g --pattern fitted:%s --device sparse", wire, model->n, density, profile);
    if (job->scale != 1) printf(" --scale %g", job->scale);
    puts("");
    return true;
}

bool plan_map(const struct study *s, const struct plan_choice *choice, struct err *e) {
    struct plan_job job[PLAN_JOBS];
    for (size_t cell = 0; cell < study_cells(s); cell++)
        for (size_t w = 0; is_chosen(s, choice, cell) && w < study_formats(); w++) {
            size_t jobs = plan_jobs(s, cell, w, job);
            for (size_t j = 0; j < jobs; j++)
                if (!print_job(s, cell, w, &job[j], e)) return false;
        }
    return true;
}
