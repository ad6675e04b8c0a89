/* dataset.c: the table of datasets, see dataset.h. */
#include "data/dataset.h"

#include <string.h>

#include "base/table.h"

#define DATASET(name) extern const struct dataset_ops dataset_##name;
#include "data/datasets.def"
#undef DATASET
#define DATASET(name) &dataset_##name,
const struct dataset_ops *const datasets[] = {
#include "data/datasets.def"
    NULL};

const char *dataset_name(size_t i) {
    const struct dataset_ops *row;
    TABLE_AT(datasets, i, row);
    return row ? row->name : NULL;
}

bool dataset_find(const struct dataset_ops *ops, const char *where, uint64_t seed, struct dataset *d, struct err *e) {
    memset(d, 0, sizeof *d);
    d->ops = ops;
    d->seed = seed;
    d->length = DATASET_LENGTH;
    return ops->find(d, where ? where : "", e);
}

bool dataset_load(struct dataset *d, void *memory, struct err *e) {
    return d->ops->load(d, memory, e);
}

void dataset_attach(struct dataset *d, const void *memory) {
    d->ops->attach(d, memory);
}

uint32_t dataset_checksum(const struct dataset *d) {
    return d->checksum;
}
