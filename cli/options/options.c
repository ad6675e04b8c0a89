/* options.c: the echo of options, and what they stand for. */
#include "cli/options/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/place.h"
#include "base/mem.h"

static size_t number_of(const char *name) {
    return (size_t)(option_find(&train_options, name, strlen(name)) - train_options.row);
}

bool options_given(const struct options *o, const char *name) {
    return o->given[number_of(name)];
}

const char *options_choice(const struct options *o, const char *name) {
    const struct option_row *row = &train_options.row[number_of(name)];
    return option_choice(row, (size_t) * (const int *)((const char *)o + row->offset));
}

void options_default(struct options *o) {
    memset(o, 0, sizeof *o);
    option_defaults(&train_options, o);
}

void options_set(struct options *o, const char *name, const char *text) {
    struct err e = {0};
    if (!option_set(&train_options.row[number_of(name)], o, text, &e)) die("%s", e.text);
}

void options_give(struct options *o, const char *name) {
    o->given[number_of(name)] = true;
}

void options_reset(struct options *o, const char *name) {
    option_default(&train_options.row[number_of(name)], o);
    o->given[number_of(name)] = false;
}

void options_ignore(struct options *o, const char *name) {
    o->ignored[number_of(name)] = true;
}

void options_ignored(const struct options *o, char *text, size_t size) {
    size_t left = 0, named = 0;
    text[0] = '\0';
    for (size_t i = 0; i < train_options.rows; i++) left += o->ignored[i];
    for (size_t i = 0; i < train_options.rows; i++) {
        size_t used = strlen(text);
        if (!o->ignored[i]) continue;
        left--;
        snprintf(text + used, size - used, "%s--%s",
                 named++ == 0 ? ""
                 : left > 0   ? ", "
                              : " and ",
                 train_options.row[i].name);
    }
}

bool options_auto(const struct options *o) {
    return options_exchange(o) == NULL;
}

bool options_parse(struct options *o, int argc, char **argv, int first, struct err *e) {
    return option_parse(&train_options, o, o->given, argc, argv, first, e);
}

char *options_text(const struct options *o, enum option_rule rule) {
    char *all = mem_printf("%s", "");
    for (size_t i = 0; i < train_options.rows; i++) {
        const struct option_row *row = &train_options.row[i];
        if (row->rule != rule || !option_has_value(row, o)) continue;
        char value[OPTION_TEXT_MAX];
        option_value(row, o, value);
        char *longer = mem_printf("%s%s=%s\n", all, row->name, value);
        mem_free(all);
        all = longer;
    }
    return all;
}

char *options_kept(const struct options *o) {
    char *run = options_text(o, RULE_RUN), *kept = options_text(o, RULE_KEPT), *both = mem_printf("%s%s", run, kept);
    mem_free(run);
    mem_free(kept);
    return both;
}

static void value_json(const struct options *o, const struct option_row *row, struct json *j) {
    char text[OPTION_TEXT_MAX];
    option_value(row, o, text);
    const void *value = (const char *)o + row->offset;
    if (row->type == OPTION_FLAG)
        json_boolean(j, row->name, *(const bool *)value);
    else if (row->type == OPTION_INT)
        json_integer(j, row->name, *(const int *)value);
    else if (row->type == OPTION_INTEGER)
        json_integer(j, row->name, *(const int64_t *)value);
    else if (row->type == OPTION_SIZE)
        json_integer(j, row->name, (int64_t)(*(const size_t *)value));
    else if (row->type == OPTION_REAL && isfinite(*(const double *)value))
        json_number(j, row->name, *(const double *)value);
    else
        json_string(j, row->name, text);
}

void options_json(const struct options *o, struct json *j) {
    json_object(j, "config");
    for (size_t i = 0; i < train_options.rows; i++) {
        const struct option_row *row = &train_options.row[i];
        if (option_has_value(row, o))
            value_json(o, row, j);
        else
            json_null(j, row->name);
    }
    json_end(j);
}

/* auto has the number of the NULL that ends the table. */
const struct exchange_ops *options_exchange(const struct options *o) {
    return exchanges[o->algo];
}

const struct selector_ops *options_selector(const struct options *o) {
    return o->select < 0 ? NULL : selectors[o->select];
}

void options_setup(const struct options *o, struct exchange_setup *setup) {
    setup->wire = wires[o->wire];
    setup->options = options_own(o);
    setup->bucket_bytes = (size_t)o->overlap_bytes;
    setup->wants_sent = o->local_update || o->momentum_masking || o->log_slices > 0 || options_record_selected(o);
}

struct option_values options_own(const struct options *o) {
    return (struct option_values){train_options.row, train_options.rows, o};
}

bool options_is_own(const struct option_row *row) {
    const size_t own = offsetof(struct options, own);
    return row->offset >= own && row->offset < own + sizeof(struct exchange_own);
}

const char *precision_name(size_t i) {
    return net_precision_names[i];
}

bool options_clip_local(const struct options *o) {
    return o->clip_norm > 0 && o->clip_at == CLIP_LOCAL;
}

bool options_record_selected(const struct options *o) {
    return o->record[0] && o->record_what == RECORD_SELECTED;
}

bool options_drift(const struct options *o) {
    return o->local_update || !exchange_of_gradients(options_exchange(o));
}

const struct model_ops *options_model(const struct options *o) {
    return models[o->model];
}

const struct model_reference *options_reference(const struct options *o) {
    const struct model_ops *model = options_model(o);
    const struct model_preset *preset = model_preset(model, o->preset);
    return preset ? &preset->reference : &model->reference;
}

int options_sequence(const struct options *o) {
    const struct model_ops *model = options_model(o);
    if (model->input == MODEL_IMAGES || model->input == MODEL_SPEECH) return 0;
    return (int)(model->windows ? o->context : o->bptt);
}

const struct dataset_ops *options_dataset(const char *data, const char **where) {
    const char *colon = strchr(data, ':');
    size_t length = colon ? (size_t)(colon - data) : strlen(data);
    for (size_t i = 0; datasets[i]; i++) {
        if (strlen(datasets[i]->name) != length || strncmp(datasets[i]->name, data, length) != 0) continue;
        *where = colon ? colon + 1 : datasets[i]->built_in ? "" : getenv("SPARSETRAIN_DATA");
        if (!*where) *where = place_data();
        return datasets[i];
    }
    return NULL;
}
