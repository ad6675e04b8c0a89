/* study_verb.c: the verb `study`, see study_verb.h. */
#include "cli/study/study_verb.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/table.h"
#include "cli/study/aims.h"
#include "cli/study/jobs.h"
#include "cli/study/plan.h"
#include "cli/study/tables.h"

struct request {
    const char *what, *rows, *costs, *device;
    struct option_numbers p;
    struct plan_choice plan;
    int kind, wire;
    bool charged, quick;
};

/* What a table is made from, and for whom. */
struct work {
    const struct request *r;
    struct study *s;
    struct aims *a;
    struct jobs *j;
};

enum kind { SIMULATED, MODEL };
static const char *const kinds[] = {[SIMULATED] = "simulated", [MODEL] = "model", NULL};

static const char *class_name(size_t i) {
    return i < STUDY_CLASSES ? study_class_format(i)->name : NULL;
}

static const struct option_row options[] = {
    {"rows", "DIR", OPTION_WORD, "results/measured/scaling", "the folder with simulated.csv, aims.csv and jobs.tsv",
     OPTION_AT(struct request, rows)},
    {"p", "LIST", OPTION_NUMBERS, "4,8,16,32,64,128,256", "the numbers of ranks that are simulated, rising",
     OPTION_AT(struct request, p), .min = 1, .max = 1e6, .whole = true},
    {"costs", "FILE|none", OPTION_WORD, "none", "a table of scripts/measure-costs.sh: local work, charged to all",
     OPTION_AT(struct request, costs)},
    {"device", "NAME", OPTION_WORD, "cpu", "of this device of the table", OPTION_AT(struct request, device)},
    {"charged", NULL, OPTION_FLAG, NULL, "where, winners, aims, plan-aims: with local work",
     OPTION_AT(struct request, charged)},
    {"kind", "KIND", OPTION_CHOICE, "simulated", "leads: over cells of this kind", OPTION_AT(struct request, kind),
     .names = kinds},
    {"wire", "FORMAT", OPTION_CHOICE, "coo32", "map: of the class of messages with this format and those before it",
     OPTION_AT(struct request, wire), .choice = class_name},
    {"at", "P", OPTION_INT, "0", "plan: at this number of ranks (0: at all of them)", OPTION_AT(struct request, plan.P),
     .max = 1e6},
    {"nets", "LIST|all", OPTION_NAMES, "all", "plan: on these networks", OPTION_AT(struct request, plan.nets),
     .choice = study_net_name},
    {"models", "LIST|all", OPTION_NAMES, "all", "plan: of these models", OPTION_AT(struct request, plan.models),
     .choice = study_model_name},
    {"densities", "LIST", OPTION_NUMBERS, NULL, "plan: at these densities", OPTION_AT(struct request, plan.densities),
     .max = 1, .above_min = true},
    {"quick", NULL, OPTION_FLAG, NULL, "plans: a few of the aims, and selections cut to 1024 entries",
     OPTION_AT(struct request, quick)},
};

static const char about[] =
    "The scaling study (docs/reproduce.md), at the top of the source tree: what is to be simulated, who wins where, "
    "and how far what is ours is ahead of what is published. WHAT: plan, plan-aims: what is yet to be simulated, with "
    "the arguments of scripts/simulate.sh behind a tab; cells: cells.csv; and tables in Markdown: leads (how often "
    "ours is ahead), bound (by network, and if packing were free), where (at which P), map and winners (who wins), "
    "aims (weak scaling on 1 Gbit/s), paper (against the gTop-k paper), ratios and disagreements (simulation and "
    "model), commits (of which the rows are); facts: one JSON object with the numbers that sentences about it need. "
    "sh scripts/scaling.sh does all of it.";

const struct option_table study_options = {
    .verb = "study",
    .row = options,
    .rows = sizeof options / sizeof *options,
    .operand = "table",
    .operand_at = offsetof(struct request, what),
    .wanted = "what is wanted? plan, cells, leads, ...: sparsetrain study --help lists them",
    .call = "sparsetrain study WHAT",
    .about = about,
};

/* -- what there is to ask for ---------------------------------------------------------------------- */
static bool plan(const struct work *w, struct err *e) {
    return plan_map(w->s, &w->r->plan, e);
}

static bool plan_aims(const struct work *w, struct err *e) {
    return aims_plan(w->a, w->s, w->r->charged, w->r->quick, e);
}

static void cells(const struct work *w) {
    table_cells(w->s);
}

static void leads(const struct work *w) {
    table_leads(w->s, w->r->kind == SIMULATED);
}

static void bound(const struct work *w) {
    table_bound(w->s);
}

static void where(const struct work *w) {
    table_stretches(w->s, w->r->charged, false);
}

static void winners(const struct work *w) {
    table_stretches(w->s, w->r->charged, true);
}

static void map(const struct work *w) {
    table_map(w->s, (size_t)w->r->wire);
}

static void ratios(const struct work *w) {
    table_ratios(w->s);
}

static void disagreements(const struct work *w) {
    table_disagreements(w->s);
}

static void aims(const struct work *w) {
    aims_table(w->a, w->r->charged);
}

static void paper(const struct work *w) {
    aims_paper(w->a, w->s);
}

static void commits(const struct work *w) {
    jobs_table(w->j);
}

static void json_digits(struct json *j, const char *key, const char *format, double x) {
    char text[64];
    snprintf(text, sizeof text, format, x);
    json_string(j, key, text);
}

/* Numbers as sentences have them. */
static void facts(const struct work *w) {
    char text[TABLE_TEXT], *made = jobs_commits(w->j);
    double least, most;
    size_t added = w->s->has_local ? aims_added(w->a, &least, &most) : 0;
    struct json j;
    json_open(&j);
    json_object(&j, NULL);
    json_digits(&j, "error", "%.1f%%", 100 * w->s->error);
    json_string(&j, "error_of", w->s->error_of);
    json_integer(&j, "simulated_to", table_simulated_to(w->s));
    json_digits(&j, "dense_behind", "%.1f", table_dense_behind(w->s));
    table_published(text);
    json_string(&j, "published", text);
    table_best_published(w->s, false, text);
    json_string(&j, "best_published", text);
    table_best_published(w->s, true, text);
    json_string(&j, "best_published_charged", text);
    json_boolean(&j, "local", w->s->has_local);
    json_integer(&j, "added", (int64_t)added);
    json_digits(&j, "added_least", "%.2f", added > 0 ? least : 0);
    json_digits(&j, "added_most", "%.2f", added > 0 ? most : 0);
    json_string(&j, "commits", made);
    json_digits(&j, "seconds", "%.0f", jobs_seconds(w->j));
    json_end(&j);
    puts(json_text(&j));
    json_close(&j);
    mem_free(made);
}

/* Options that not every table reads; with the others scripts/scaling.sh asks for all of them. */
enum own { CHARGED = 1, KIND = 2, WIRE = 4, CHOICE = 8 };
static const struct own_option {
    const char *name;
    enum own bit;
} own_options[] = {{"charged", CHARGED}, {"kind", KIND},     {"wire", WIRE},       {"at", CHOICE},
                   {"nets", CHOICE},     {"models", CHOICE}, {"densities", CHOICE}};

/* What a table needs besides map and rows: the lines of cells.csv, the simulator's error, the aims, the jobs. */
enum { LINES = 1, ERROR = 2, AIMS = 4, JOBS = 8 };
static const struct table {
    const char *name;
    unsigned needs, reads; /* reads: of enum own */
    void (*print)(const struct work *w);
    bool (*plan)(const struct work *w, struct err *e); /* in place of print, where something may be missing */
} tables[] = {{"plan", 0, CHOICE, NULL, plan},
              {"plan-aims", AIMS, CHARGED, NULL, plan_aims},
              {"cells", LINES, 0, cells, NULL},
              {"leads", LINES | ERROR, KIND, leads, NULL},
              {"bound", LINES | ERROR, 0, bound, NULL},
              {"where", LINES | ERROR, CHARGED, where, NULL},
              {"map", LINES | ERROR, WIRE, map, NULL},
              {"winners", LINES, CHARGED, winners, NULL},
              {"aims", AIMS, CHARGED, aims, NULL},
              {"paper", AIMS, 0, paper, NULL},
              {"ratios", 0, 0, ratios, NULL},
              {"disagreements", LINES, 0, disagreements, NULL},
              {"commits", JOBS, 0, commits, NULL},
              {"facts", LINES | ERROR | AIMS | JOBS, 0, facts, NULL},
              {.name = NULL}};

static const struct table *find_table(const char *name, struct err *e) {
    char names[256] = "";
    for (const struct table *t = tables; t->name; t++) {
        if (strcmp(t->name, name) == 0) return t;
        names_add(names, sizeof names, t->name);
    }
    err_set(e, "study: there is no table \"%.60s\"; there are: %s", name, names);
    return NULL;
}

/* given: of options, which are there. */
static bool check_own(const struct table *t, const bool *given, struct err *e) {
    for (size_t i = 0; i < sizeof own_options / sizeof *own_options; i++) {
        const struct own_option *o = &own_options[i];
        if (option_given(&study_options, given, o->name) && !(t->reads & o->bit))
            return err_set(e, "study: --%s has no effect on %s; leave it out", o->name, t->name);
    }
    return true;
}

/* -- the request ----------------------------------------------------------------------------------- */
static void add_number(char *list, size_t size, double x) {
    size_t used = strlen(list);
    snprintf(list + used, size - used, "%s%g", used > 0 ? "," : "", x);
}

/* The simulated P, which the map must have. */
static bool take_runs(struct study *s, const struct option_numbers *p, struct err *e) {
    char list[128] = "";
    for (size_t i = 0; i < s->sizes; i++) add_number(list, sizeof list, s->P[i]);
    for (size_t i = 0; i < p->count; i++) {
        size_t size = study_find_size(s, p->x[i]);
        if (size == s->sizes) return err_set(e, "study: --p %g: the map has %s", p->x[i], list);
        if (i > 0 && p->x[i] <= p->x[i - 1]) return err_set(e, "study: --p: the numbers of ranks must rise");
        s->run[s->runs++] = s->P[size];
    }
    return true;
}

/* What of the map is asked for must be there. */
static bool check_choice(const struct study *s, const struct plan_choice *choice, struct err *e) {
    char list[128] = "";
    size_t run = 0;
    while (run < s->runs && s->run[run] != choice->P) run++;
    if (choice->P > 0 && run == s->runs)
        return err_set(e, "study: --at %d: it is none of the numbers of ranks of --p", choice->P);
    for (size_t i = 0; i < s->densities; i++) add_number(list, sizeof list, s->density[i]);
    for (size_t i = 0; i < choice->densities.count; i++)
        if (study_find_density(s, choice->densities.x[i]) == s->densities)
            return err_set(e, "study: --densities %g: the map has %s", choice->densities.x[i], list);
    return true;
}

static bool fill(struct work *w, const struct table *table, struct err *e) {
    const struct request *r = w->r;
    const char *costs = strcmp(r->costs, "none") == 0 ? NULL : r->costs;
    w->s->least = r->quick ? 1024 : 0;
    if (!study_map(w->s, e) || !take_runs(w->s, &r->p, e)) return false;
    if (!check_choice(w->s, &r->plan, e)) return false;
    if (!study_local(w->s, costs, r->device, e) || !study_simulated(w->s, r->rows, e)) return false;
    if (table->needs & ERROR && !study_error(w->s, e)) return false;
    if (table->needs & AIMS && !aims_read(w->a, w->s, r->rows, e)) return false;
    if (table->needs & JOBS && !jobs_read(&w->j, r->rows, e)) return false;
    if (table->needs & LINES) study_compare(w->s);
    return true;
}

static bool run(const struct request *r, const bool *given, struct err *e) {
    const struct table *table = find_table(r->what, e);
    if (!table || !check_own(table, given, e)) return false;
    struct work w = {.r = r, .s = study_new(), .a = aims_new()};
    bool good = fill(&w, table, e);
    if (good && table->print) table->print(&w);
    if (good && table->plan) good = table->plan(&w, e);
    jobs_free(w.j);
    aims_free(w.a);
    study_free(w.s);
    return good;
}

int study(int argc, char **argv) {
    static struct request r; /* large */
    bool given[sizeof options / sizeof *options] = {false};
    struct err e = {0};
    option_defaults(&study_options, &r);
    if (option_parse(&study_options, &r, given, argc, argv, 1, &e) && run(&r, given, &e)) return EXIT_DONE;
    fflush(stdout);
    fprintf(stderr, "sparsetrain: %s\n", e.text);
    return err_status(&e);
}
