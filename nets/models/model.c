/* model.c: the table of models, see net.h. */
#include "nets/net.h"

#include <stdio.h>
#include <string.h>

#include "base/table.h"

#define MODEL(name) extern const struct model_ops model_##name;
#include "nets/models/models.def"
#undef MODEL
#define MODEL(name) &model_##name,
const struct model_ops *const models[] = {
#include "nets/models/models.def"
    NULL};

const char *model_name(size_t i) {
    const struct model_ops *row;
    TABLE_AT(models, i, row);
    return row ? row->name : NULL;
}

const struct model_preset *model_preset(const struct model_ops *model, const char *name) {
    for (const struct model_preset *p = model->presets; p && p->name; p++)
        if (strcmp(p->name, name) == 0) return p;
    return NULL;
}

void model_preset_names(const struct model_ops *model, char *text, size_t size) {
    snprintf(text, size, "%s", model->presets ? "" : "none");
    for (const struct model_preset *p = model->presets; p && p->name; p++) names_add(text, size, p->name);
}

const char *const model_input_names[] = {"images", "text", "pairs of texts", "speech"};
