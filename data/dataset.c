/* dataset.c: the table of datasets, see dataset.h. */
#include "data/dataset.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/mem.h"
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

/* Not by the device, whose number may be another one in each rank's container, nor by the path: links lead to one
 * place. */
uint64_t dataset_place(const struct dataset *d) {
    struct stat s;
    if (d->ops->built_in || stat(d->source, &s) != 0) return 0;
    const uint64_t words[] = {(uint64_t)s.st_ino, (uint64_t)s.st_mtim.tv_sec, (uint64_t)s.st_mtim.tv_nsec, d->bytes};
    return hash64(0, words, sizeof words);
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

uint32_t vocabulary_crc(const struct vocabulary *v) {
    return crc32_of(0, v->lines, v->bytes);
}

/* Adds to count[word] for each word of a split. */
static void count_words(const struct text_set *text, const struct pair_set *pairs, size_t *count) {
    for (size_t i = 0; i < text->count; i++) count[text->token[i]]++;
    for (size_t i = 0; i < pairs->pieces; i++) count[pairs->piece[i]]++;
}

double dataset_unigram_loss(const struct dataset *d) {
    const size_t kinds = (size_t)d->classes;
    size_t *train = mem_alloc(2 * kinds, sizeof *train, "counts of words"), *valid = train + kinds;
    memset(train, 0, 2 * kinds * sizeof *train);
    count_words(&d->train_text, &d->train_pairs, train);
    count_words(&d->valid_text, &d->valid_pairs, valid);
    double loss = 0;
    const double total = (double)(d->train_text.count + d->train_pairs.pieces + kinds);
    const double words = (double)(d->valid_text.count + d->valid_pairs.pieces);
    for (size_t i = 0; i < kinds; i++)
        if (valid[i]) loss -= (double)valid[i] * log((double)(train[i] + 1) / total);
    mem_free(train);
    return loss / words;
}
