/* data_show.c: `sparsetrain data show`: a picture of what the network sees. */
#include "cli/data_show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/out_file.h"
#include "cli/options.h"
#include "data/sheet.h"

struct show {
    const char *data, *png;
    long seed, columns, rows, zoom;
    bool test, plain;
};

const char data_show_usage[] =
    "usage: sparsetrain data show --png FILE [--data NAME[:WHERE]] [--test] [--no-augment] [--seed N]\n"
    "                             [--columns N] [--rows N] [--zoom N]\n"
    "Writes a labelled contact sheet of the first images of epoch 0 as the network sees them.\n"
    "  --png FILE           the picture to write\n"
    "  --data NAME[:WHERE]  the dataset (default cifar10; sparsetrain list shows them)\n"
    "  --test               images of the test set, which are never augmented\n"
    "  --no-augment         the images as they are: no random crop, no flip\n"
    "  --seed N             of order and augmentation (default 1)\n"
    "  --columns N          images side by side (default 10)\n"
    "  --rows N             lines of images (default 6)\n"
    "  --zoom N             points of the picture for one of an image (default 3)\n";

static bool number(const char *name, const char *text, long low, long high, long *value, struct err *e) {
    char *end;
    *value = strtol(text, &end, 10);
    if (end != text && !*end && *value >= low && *value <= high) return true;
    return err_set(e, "%s wants a whole number from %ld to %ld, not \"%.60s\"", name, low, high, text);
}

static bool parse(struct show *s, int argc, char **argv, struct err *e) {
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(name, "--test") == 0) {
            s->test = true;
            continue;
        }
        if (strcmp(name, "--no-augment") == 0) {
            s->plain = true;
            continue;
        }
        if (!value) return err_set(e, "%.60s is not an option of data show, or its value is missing", name);
        i++;
        bool good = true;
        if (strcmp(name, "--data") == 0)
            s->data = value;
        else if (strcmp(name, "--png") == 0)
            s->png = value;
        else if (strcmp(name, "--seed") == 0)
            good = number(name, value, 0, 1000000000, &s->seed, e);
        else if (strcmp(name, "--columns") == 0)
            good = number(name, value, 1, 100, &s->columns, e);
        else if (strcmp(name, "--rows") == 0)
            good = number(name, value, 1, 100, &s->rows, e);
        else if (strcmp(name, "--zoom") == 0)
            good = number(name, value, 1, 16, &s->zoom, e);
        else
            return err_set(e, "data show has no option %.60s; see sparsetrain data show --help", name);
        if (!good) return false;
    }
    return s->png || err_set(e, "data show wants --png FILE, the picture to write");
}

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
                                          .columns = (int)s->columns,
                                          .rows = (int)s->rows,
                                          .zoom = (int)s->zoom};
        good = sheet_write(&setup, s->png, e);
    }
    mem_free(memory);
    return good;
}

int data_show(int argc, char **argv) {
    struct show s = {.data = "cifar10", .seed = 1, .columns = 10, .rows = 6, .zoom = 3};
    struct err e = {0};
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0) {
            fputs(data_show_usage, stdout);
            return EXIT_DONE;
        }
    if (!parse(&s, argc, argv, &e) || !out_file_check(s.png, "--png", &e) || !show(&s, &e)) {
        fprintf(stderr, "sparsetrain: %s\n", e.text);
        return err_status(&e);
    }
    if (!out_file_is_stream(s.png)) printf("wrote %s\n", s.png);
    return EXIT_DONE;
}
