/* list.c: see list.h. A table that is shown is one line of `tables`, for people and for programs alike. */
#include "cli/list.h"

#include <stdio.h>

#include "cli/export/export.h"
#include "cli/options/options.h"
#include "nets/optimisers/optimiser.h"

static const struct option_row list_rows[] = {
    {"json", NULL, OPTION_FLAG, NULL, "one JSON object: an array for each table, an object for each row", .offset = 0}};

const struct option_table list_options = {
    .verb = "list",
    .row = list_rows,
    .rows = 1,
    .call = "sparsetrain list",
    .about =
        "Every row of every table: models, datasets, gradient exchanges, selectors, wire formats, optimisers, devices, "
        "formats of export; what it is, where it comes from, and whether it can be used here.",
};

/* What is said of a row. */
struct row {
    const char *name, *summary, *paper; /* paper: where it comes from, or NULL */
    bool usable;
    struct err why;    /* why not, where it is not usable */
    const char *found; /* where it is usable: what was found; NULL: nothing had to be */
    struct dataset dataset;
};

static void make_row(struct row *r, const char *name, const char *summary, const char *paper) {
    *r = (struct row){.name = name, .summary = summary, .paper = paper, .usable = true};
}

static void json_text_or_null(struct json *j, const char *key, const char *text) {
    if (text)
        json_string(j, key, text);
    else
        json_null(j, key);
}

/* -- tables: their i-th row, false past the end; what else a program may want to know of it ----------------------- */

static bool model_row(size_t i, struct row *r) {
    if (models[i]) make_row(r, models[i]->name, models[i]->summary, models[i]->paper);
    return models[i] != NULL;
}

static void model_more(size_t i, struct json *j) {
    json_string(j, "input", model_input_names[models[i]->input]);
    json_integer(j, "parameters", (int64_t)models[i]->parameters);
    json_integer(j, "classes", models[i]->classes);
    json_string(j, "data", models[i]->reference.data);
}

static bool dataset_row(size_t i, struct row *r) {
    const char *where;
    if (!datasets[i]) return false;
    make_row(r, datasets[i]->name, datasets[i]->summary, datasets[i]->paper);
    options_dataset(datasets[i]->name, &where);
    r->usable = dataset_find(datasets[i], where, 1, &r->dataset, &r->why);
    r->found = r->dataset.source;
    return true;
}

static void dataset_more(size_t i, struct json *j) {
    static const char *const kinds[] = {
        [DATA_IMAGES] = "images", [DATA_TEXT] = "text", [DATA_PAIRS] = "pairs", [DATA_SPEECH] = "speech"};
    json_string(j, "kind", kinds[datasets[i]->kind]);
    json_boolean(j, "built_in", datasets[i]->built_in);
}

static bool exchange_row(size_t i, struct row *r) {
    if (exchanges[i]) make_row(r, exchanges[i]->name, exchanges[i]->summary, exchanges[i]->paper);
    return exchanges[i] != NULL;
}

static void exchange_more(size_t i, struct json *j) {
    const struct exchange_ops *x = exchanges[i];
    const struct {
        const char *key;
        bool value;
    } flags[] = {{"sparse", x->sparse},   {"conserves", x->conserves}, {"drifts", x->drifts},
                 {"outer", x->outer},     {"by_node", x->by_node},     {"codes", x->rounds},
                 {"selects", x->selects}, {"own_parts", x->own_parts}, {"blind", x->blind},
                 {"overlaps", x->begin},  {"ours", x->ours},           {"sends_all", x->sends_all},
                 {"keeps_k", x->keeps_k}, {"low_rank", x->low_rank}};
    for (size_t f = 0; f < sizeof flags / sizeof *flags; f++) json_boolean(j, flags[f].key, flags[f].value);
    json_text_or_null(j, "select", x->selects ? x->default_select : NULL);
    json_text_or_null(j, "moves_as", x->moves_as);
}

static bool selector_row(size_t i, struct row *r) {
    if (selectors[i]) make_row(r, selectors[i]->name, selectors[i]->summary, selectors[i]->paper);
    return selectors[i] != NULL;
}

static void selector_more(size_t i, struct json *j) {
    json_boolean(j, "exact_count", selectors[i]->exact_count);
    json_boolean(j, "exact", selectors[i]->exact);
}

static bool wire_row(size_t i, struct row *r) {
    if (wires[i]) make_row(r, wires[i]->name, wires[i]->summary, wires[i]->paper);
    return wires[i] != NULL;
}

static void wire_more(size_t i, struct json *j) {
    json_boolean(j, "rounds", wires[i]->rounds);
}

static bool optimiser_row(size_t i, struct row *r) {
    if (optimisers[i]) make_row(r, optimisers[i]->name, optimisers[i]->summary, NULL);
    return optimisers[i] != NULL;
}

static bool device_row(size_t i, struct row *r) {
    if (!devices[i]) return false;
    make_row(r, devices[i]->name, devices[i]->summary, NULL);
    r->usable = devices[i]->available(&r->why);
    r->found = r->usable && !device_is_host(devices[i]) ? devices[i]->describe() : NULL;
    return true;
}

static void device_more(size_t i, struct json *j) {
    json_boolean(j, "trains", !devices[i]->no_arrays);
}

static bool format_row(size_t i, struct row *r) {
    if (export_formats[i]) make_row(r, export_formats[i]->name, export_formats[i]->summary, NULL);
    return export_formats[i] != NULL;
}

static const struct {
    const char *title, *option, *key;
    bool (*row)(size_t i, struct row *r);
    void (*more)(size_t i, struct json *j);
} tables[] = {
    {"Models", "--model", "models", model_row, model_more},
    {"Datasets", "--data", "datasets", dataset_row, dataset_more},
    {"Gradient exchanges", "--algo", "exchanges", exchange_row, exchange_more},
    {"Selectors", "--select", "selectors", selector_row, selector_more},
    {"Wire formats", "--wire", "wires", wire_row, wire_more},
    {"Optimisers", "--optimiser", "optimisers", optimiser_row, NULL},
    {"Devices", "--device", "devices", device_row, device_more},
    {"Formats of export", "export --format", "export_formats", format_row, NULL},
};
enum { TABLES = sizeof tables / sizeof *tables };

/* -- for people ------------------------------------------------------------------------------------------------ */

static void print_more(const char *text, const char *text_too) {
    printf("  %-14s      %s%s\n", "", text, text_too);
}

static void print_row(const struct row *r) {
    printf("  %-14s %-4s %s\n", r->name, r->usable ? "yes" : "no", r->summary);
    if (r->paper) print_more(r->paper, "");
    if (!r->usable) print_more(r->why.text, "");
    if (r->usable && r->found) print_more(r->dataset.ops ? "found: " : "", r->found);
}

void list_print(void) {
    static struct row r;
    for (size_t t = 0; t < TABLES; t++) {
        printf("%s%s (%s)\n", t ? "\n" : "", tables[t].title, tables[t].option);
        for (size_t i = 0; tables[t].row(i, &r); i++) print_row(&r);
    }
}

/* -- for programs ---------------------------------------------------------------------------------------------- */

void list_print_json(void) {
    static struct row r;
    struct json j;
    json_open(&j);
    json_object(&j, NULL);
    for (size_t t = 0; t < TABLES; t++) {
        json_array(&j, tables[t].key);
        for (size_t i = 0; tables[t].row(i, &r); i++) {
            json_object(&j, NULL);
            json_string(&j, "name", r.name);
            json_string(&j, "option", tables[t].option);
            json_string(&j, "summary", r.summary);
            json_text_or_null(&j, "paper", r.paper);
            json_boolean(&j, "available", r.usable);
            json_text_or_null(&j, "reason", r.usable ? NULL : r.why.text);
            json_text_or_null(&j, "found", r.usable ? r.found : NULL);
            if (tables[t].more) tables[t].more(i, &j);
            json_end(&j);
        }
        json_end(&j);
    }
    json_end(&j);
    puts(json_text(&j));
    json_close(&j);
}
