/* model.c: the table of models, see net.h. */
#include "nets/net.h"

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

const char *const model_input_names[] = {"images", "text"};
