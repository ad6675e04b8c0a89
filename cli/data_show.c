/* data_show.c: `sparsetrain data show`: a picture of what the network sees. */
#include "cli/data_show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/out_file.h"
#include "cli/options/options.h"
#include "data/sheet.h"

struct show {
    const char *data, *png;
    int64_t seed;
    int columns, rows, zoom;
    bool test, plain;
};

static const struct option_row options[] = {
    {"png", "FILE", OPTION_WORD, NULL, "the picture to write", OPTION_AT(struct show, png),
     .wanted = "--png FILE is needed, the picture to write"},
    {"data", "NAME[:WHERE]", OPTION_WORD, "cifar10", "the dataset; sparsetrain list shows them",
     OPTION_AT(struct show, data)},
    {"test", NULL, OPTION_FLAG, NULL, "images of the test set, which are never augmented",
     OPTION_AT(struct show, test)},
    {"no-augment", NULL, OPTION_FLAG, NULL, "the images as they are: no random crop, no flip",
     OPTION_AT(struct show, plain)},
    {"seed", "N", OPTION_INTEGER, "1", "of order and augmentation", OPTION_AT(struct show, seed), .max = 1e9},
    {"columns", "N", OPTION_INT, "10", "images side by side", OPTION_AT(struct show, columns), .min = 1, .max = 100},
    {"rows", "N", OPTION_INT, "6", "lines of images", OPTION_AT(struct show, rows), .min = 1, .max = 100},
    {"zoom", "N", OPTION_INT, "3", "points of the picture for one of an image", OPTION_AT(struct show, zoom), .min = 1,
     .max = 16},
};

const struct option_table data_show_options = {
    .verb = "data show",
    .row = options,
    .rows = sizeof options / sizeof *options,
    .call = "sparsetrain data show",
    .about = "Writes a labelled contact sheet of the first images of epoch 0 as the network sees them.",
};

static bool show(const struct show *s, struct err *e) {
    const char *where;
    struct dataset d;
    const struct dataset_ops *ops = options_dataset(s->data, &where);
    if (!ops) return err_set(e, "--data has no \"%.60s\"; sparsetrain list shows what there is", s->data);
    if (ops->kind != DATA_IMAGES)
        return err_set(e, "data show draws images and %s is a text; give --data with a set of images, as cifar10",
                       ops->name);
    if (!dataset_find(ops, where, (uint64_t)s->seed, &d, e)) return false;
    void *memory = mem_alloc(d.bytes, 1, "the dataset");
    bool good = dataset_load(&d, memory, e);
    if (good) {
        dataset_attach(&d, memory);
        const struct sheet_setup setup = {.data = &d,
                                          .test = s->test,
                                          .augment = !s->test && !s->plain,
                                          .seed = (uint64_t)s->seed,
                                          .columns = s->columns,
                                          .rows = s->rows,
                                          .zoom = s->zoom};
        good = sheet_write(&setup, s->png, e);
    }
    mem_free(memory);
    return good;
}

int data_show(int argc, char **argv) {
    struct show s;
    struct err e = {0};
    option_defaults(&data_show_options, &s);
    if (!option_parse(&data_show_options, &s, NULL, argc, argv, 1, &e) || !out_file_check(s.png, "--png", &e) ||
        !show(&s, &e)) {
        fprintf(stderr, "sparsetrain: %s\n", e.text);
        return err_status(&e);
    }
    if (!out_file_is_stream(s.png)) printf("wrote %s\n", s.png);
    return EXIT_DONE;
}
