/* data_show.c: `sparsetrain data show`: what the network sees, as a picture or as text. */
#include "cli/data_show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/out_file.h"
#include "base/mem.h"
#include "cli/data_show_pairs.h"
#include "cli/options/options.h"
#include "data/pairs/pairs.h"
#include "data/sheets/sheet_speech.h"

struct show {
    const char *data, *png;
    int64_t seed;
    size_t epoch, samples;
    int context, columns, rows, zoom;
    bool test, plain, json;
    bool given[OPTION_ROWS_MAX]; /* by row: was it on the command line? */
};

static const struct option_row options[] = {
    {"data", "NAME[:WHERE]", OPTION_WORD, "cifar10", "the dataset; sparsetrain list shows them",
     OPTION_AT(struct show, data)},
    {"test", NULL, OPTION_FLAG, NULL,
     "the test set as it is evaluated: images and speech that are never augmented, speech by length, pairs with masks "
     "of their own",
     OPTION_AT(struct show, test)},
    {"seed", "N", OPTION_INTEGER, "1", "of order, augmentation and masks", OPTION_AT(struct show, seed), .max = 1e15},
    {"epoch", "E", OPTION_SIZE, "0", "of which the first samples are shown, from 0", OPTION_AT(struct show, epoch),
     .max = 1e9},
    {"png", "FILE", OPTION_WORD, NULL, "images, speech: the picture to write", OPTION_AT(struct show, png)},
    {"no-augment", NULL, OPTION_FLAG, NULL,
     "images as they are, no random crop, no flip; speech at its own tempo and loudness",
     OPTION_AT(struct show, plain)},
    {"columns", "N", OPTION_INT, "10",
     "images, speech: so many side by side; of speech 2 unless given (or what there is)",
     OPTION_AT(struct show, columns), .min = 1, .max = 100},
    {"rows", "N", OPTION_INT, "6", "images, speech: lines of them; of speech 4 unless given (or fewer)",
     OPTION_AT(struct show, rows), .min = 1, .max = 100},
    {"zoom", "N", OPTION_INT, "3",
     "images, speech: points of the picture for one of an image, or a frame; of speech 1 unless given",
     OPTION_AT(struct show, zoom), .min = 1, .max = 16},
    {"samples", "N", OPTION_SIZE, "4", "pairs: how many", OPTION_AT(struct show, samples), .min = 1, .max = 1e9},
    {"context", "T", OPTION_INT, "128", "pairs: pieces of a sequence, as of train", OPTION_AT(struct show, context),
     .min = PAIRS_LENGTH_MIN, .max = PAIRS_LENGTH_MAX},
    {"json", NULL, OPTION_FLAG, NULL, "pairs: a JSON object for each, with the numbers that the network gets",
     OPTION_AT(struct show, json)},
};

const struct option_table data_show_options = {
    .verb = "data show",
    .row = options,
    .rows = sizeof options / sizeof *options,
    .call = "sparsetrain data show",
    .about =
        "Shows the first samples of an epoch as the network sees them: of images a labelled contact sheet "
        "(--png FILE), of speech spectrograms with what is said in them (--png FILE), of pairs of texts (--data wiki) "
        "their pieces as text, with what is masked, or as numbers "
        "(--json).\n"
        "The order is that of train with the same --seed. With --batch B on P ranks, rank r takes the samples "
        "(t P + r) B to (t P + r) B + B - 1 in step t; steps, ranks and samples are counted from 0, and samples go "
        "on from epoch to epoch. With --accumulate N it is N B in place of B. Speech is shown in the order of batches "
        "of "
        "one on one rank; in larger ones it goes by length (docs/training.md).",
    .more = "The members of a JSON object: epoch; sample, its place in the epoch; sequence, its number in the split; "
            "length, pieces before the padding; token and type (0 or 1: of the second part) of each place; chosen, the "
            "places that are to be predicted, and y, the pieces that are to be found there (behind the last one 0 and "
            "-1); next, 1 where the second part is of another article.\n",
};

/* -- what goes with what ------------------------------------------------------------------------------------------- */

/* Refuses options that are given and mean nothing. names: ends with NULL. */
static bool none_of(const struct show *s, const char *const *names, const char *with, struct err *e) {
    for (; *names; names++)
        if (option_given(&data_show_options, s->given, *names))
            return err_set(e, "data show: --%s has no effect with %s; leave it out", *names, with);
    return true;
}
#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

static const char *held(enum data_kind kind) {
    static const char *const held[] = {
        [DATA_IMAGES] = "images", [DATA_PAIRS] = "pairs of texts", [DATA_SPEECH] = "speech"};
    return held[kind];
}

/* The options that mean nothing for a kind of data. */
static const char *const *idle(enum data_kind kind) {
    static const char *const pairs[] = {"png", "no-augment", "columns", "rows", "zoom", NULL},
                             *const speech[] = {"samples", "context", "json", NULL},
                             *const images[] = {"samples", "context", "json", NULL};
    return kind == DATA_PAIRS ? pairs : kind == DATA_SPEECH ? speech : images;
}

static bool check(const struct show *s, const struct dataset_ops *ops, struct err *e) {
    char with[96];
    if (ops->kind == DATA_TEXT)
        return err_set(e,
                       "data show shows images, speech and pairs of texts, and %s is a text; give --data with one of "
                       "these, as cifar10, an4 or wiki",
                       ops->name);
    snprintf(with, sizeof with, "--data %.32s, which holds %s", ops->name, held(ops->kind));
    if (!none_of(s, idle(ops->kind), with, e)) return false;
    if (s->test && !none_of(s, ops->kind == DATA_IMAGES ? NAMES("epoch") : NAMES("epoch", "seed"), "--test", e))
        return false;
    if (ops->kind == DATA_PAIRS) return true;
    if (!s->png) return err_set(e, "data show: --png FILE is needed, the picture to write");
    return out_file_check(s->png, "--png", e);
}

/* -- showing ------------------------------------------------------------------------------------------------------- */

static bool given(const struct show *s, const char *option) {
    return option_given(&data_show_options, s->given, option);
}

/* Speech is wider than images, and shown in fewer pictures, where there are so many: 2 x 4, a point for a frame. */
static void size_speech(const struct show *s, const struct speech_set *set, struct sheet_setup *setup) {
    if (!given(s, "zoom")) setup->zoom = 1;
    if (!given(s, "columns")) setup->columns = set->count < 2 ? 1 : 2;
    if (given(s, "rows")) return;
    setup->rows = 4;
    while (setup->rows > 1 && (size_t)setup->rows * (size_t)setup->columns > set->count) setup->rows--;
}

static bool show_sheet(const struct show *s, const struct dataset *d, struct err *e) {
    struct sheet_setup setup = {.data = d,
                                .test = s->test,
                                .augment = !s->test && !s->plain,
                                .seed = (uint64_t)s->seed,
                                .epoch = s->epoch,
                                .columns = s->columns,
                                .rows = s->rows,
                                .zoom = s->zoom};
    const bool speech = d->ops->kind == DATA_SPEECH;
    if (speech) size_speech(s, s->test ? &d->test_speech : &d->train_speech, &setup);
    if (!(speech ? sheet_speech_write : sheet_write)(&setup, s->png, e)) return false;
    if (!out_file_is_stream(s->png)) printf("wrote %s\n", s->png);
    return true;
}

static bool show_kind(const struct show *s, const struct dataset *d, struct err *e) {
    if (d->ops->kind != DATA_PAIRS) return show_sheet(s, d, e);
    const struct show_pairs how = {.data = d,
                                   .test = s->test,
                                   .json = s->json,
                                   .seed = (uint64_t)s->seed,
                                   .epoch = s->epoch,
                                   .samples = s->samples};
    return show_pairs(&how, e);
}

static bool show(const struct show *s, struct err *e) {
    const char *where;
    struct dataset d;
    const struct dataset_ops *ops = options_dataset(s->data, &where);
    if (!ops) return err_set(e, "--data has no \"%.60s\"; sparsetrain list shows what there is", s->data);
    if (!check(s, ops, e) || !dataset_find(ops, where, (uint64_t)s->seed, &d, e)) return false;
    if (ops->kind == DATA_PAIRS) d.length = s->context;
    void *memory = mem_alloc(d.bytes, 1, "the dataset");
    bool good = dataset_load(&d, memory, e);
    if (good) {
        dataset_attach(&d, memory);
        good = show_kind(s, &d, e);
    }
    mem_free(memory);
    return good;
}

int data_show(int argc, char **argv) {
    struct show s = {0};
    struct err e = {0};
    option_defaults(&data_show_options, &s);
    if (!option_parse(&data_show_options, &s, s.given, argc, argv, 1, &e) || !show(&s, &e)) {
        fprintf(stderr, "sparsetrain: %s\n", e.text);
        return err_status(&e);
    }
    return EXIT_DONE;
}
