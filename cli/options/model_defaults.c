/* model_defaults.c: the defaults that a model brings, as a sentence of --help. They are found as those of a run are: by
 * resolving options in which nothing but the model was asked for. See options_model_defaults in options.h. */
#include <string.h>

#include "base/table.h"
#include "cli/options/options.h"

static bool is_named(const struct option_row *row, const char *name) {
    return strcmp(row->name, name) == 0;
}

/* Is it an option of optimisers, and the run's is none of these? */
static bool is_others(const struct option_row *row, const struct options *o) {
    bool declared = false;
    for (size_t i = 0; optimisers[i]; i++) declared |= option_declares(&optimisers[i]->options, row->name);
    return declared && !option_declares(&optimisers[o->optimiser]->options, row->name);
}

/* What a run with this model is set to, with this preset of it (NULL: its own first); "" where that is nothing. */
static void value_with(const struct option_row *row, const char *model, const char *preset,
                       char value[OPTION_TEXT_MAX]) {
    struct options o;
    struct err e = {0};
    options_default(&o);
    options_set(&o, "model", model);
    if (preset) options_set(&o, "preset", preset);
    if (!options_resolve(&o, &e)) die("model %s cannot be trained with its own defaults: %s", model, e.text);
    value[0] = '\0';
    if (is_named(row, "epochs") && o.steps > 0)
        strcpy(value, "by --steps");
    else if (option_has_value(row, &o) && !is_others(row, &o))
        option_value(row, &o, value);
}

static void value_of(const struct option_row *row, const struct model_ops *model, char value[OPTION_TEXT_MAX]) {
    char other[OPTION_TEXT_MAX];
    value_with(row, model->name, NULL, value);
    if (is_named(row, "preset")) return;
    for (const struct model_preset *preset = model->presets; preset && preset->name; preset++) {
        value_with(row, model->name, preset->name, other);
        if (strcmp(other, value) == 0) continue;
        strcpy(value, "the preset's");
        return;
    }
}

void options_model_defaults(const struct option_row *row, char *text, size_t size) {
    enum { MODELS_MAX = 16 };
    char value[MODELS_MAX][OPTION_TEXT_MAX];
    size_t count = 0, used = 0;
    text[0] = '\0';
    const bool of_a_run = row >= train_options.row && row < train_options.row + train_options.rows;
    if (!of_a_run || row->type == OPTION_FLAG) return;
    for (; models[count]; count++) {
        if (count == MODELS_MAX) die("there are more models than MODELS_MAX");
        value_of(row, models[count], value[count]);
    }
    for (size_t i = 0; i < count && used < size; i++) {
        char names[OPTION_TEXT_MAX] = "";
        size_t first = 0;
        while (strcmp(value[first], value[i]) != 0) first++;
        if (first < i || !value[i][0]) continue;
        for (size_t k = i; i > 0 && k < count; k++)
            if (strcmp(value[k], value[i]) == 0) names_add(names, sizeof names, models[k]->name);
        used += (size_t)snprintf(text + used, size - used, "%s%s%s%s", used > 0 ? "; " : "", names, names[0] ? " " : "",
                                 value[i]);
    }
}
