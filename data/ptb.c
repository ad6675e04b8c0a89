/* ptb.c: texts for language models: three files of words between blanks, one sentence or paragraph a line. That is how
 * the Penn Treebank comes (Marcus et al., "Building a large annotated corpus of English", 1993, in the split and with
 * the 10,000 words of Mikolov et al., "Recurrent neural network based language model", 2010), WikiText-2 (Merity et
 * al., "Pointer sentinel mixture models", 2016), and any other text that has been cut into words.
 *
 * The vocabulary is that of the training text, in order of first appearance; other words of the other two are <unk>. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/place.h"
#include "data/dataset.h"
#include "data/text_layout.h"
#include "data/text_reader.h"

enum { NAMINGS = 4, FOLDERS = 4, PATH_ROOM = 512 };

static const char *const file_name[NAMINGS][TEXT_SPLITS] = {
    {"ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"},
    {"wiki.train.tokens", "wiki.valid.tokens", "wiki.test.tokens"},
    {"train.txt", "valid.txt", "test.txt"},
    {"train.tokens", "valid.tokens", "test.tokens"},
};
static const char *const usual[FOLDERS] = {"", "ptb", "simple-examples/data", "wikitext-2"};

#define GET_IT place_fetch("ptb")

/* The three files, and what they hold at the most [bytes]. */
struct files {
    char path[TEXT_SPLITS][PATH_ROOM];
    uint64_t bytes[TEXT_SPLITS];
};

/* -- find ---------------------------------------------------------------------------------------------------------- */

static bool path_join(char path[PATH_ROOM], const char *dir, const char *name, const char *ending, struct err *e) {
    int length = snprintf(path, PATH_ROOM, "%s%s%s%s", dir, *name ? "/" : "", name, ending);
    return length < PATH_ROOM || err_set(e, "the path %.80s... is too long: at most 511 bytes; use a shorter one", dir);
}

/* A file whose size cannot be read counts as there: reading it will report the error. */
static bool is_there(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

/* The path of one split, plain or packed. */
static bool find_split(const char *dir, int naming, int split, char path[PATH_ROOM], struct err *e) {
    static const char *const ending[2] = {"", ".gz"};
    for (int i = 0; i < 2; i++) {
        if (!path_join(path, dir, file_name[naming][split], ending[i], e)) return false;
        if (is_there(path)) return true;
    }
    return false;
}

/* The first of the naming schemes for which all three files exist. If none is complete, the first one of which some
 * files exist, so that the message can name the missing ones. */
static bool find_files(const char *dir, struct files *f, struct err *part, struct err *e) {
    for (int naming = 0; naming < NAMINGS; naming++) {
        int found = 0, have = 0, lack = 0;
        for (int i = 0; i < TEXT_SPLITS; i++) {
            bool there = find_split(dir, naming, i, f->path[i], e);
            if (e->text[0]) return false;
            found += there;
            *(there ? &have : &lack) = i;
        }
        if (found == TEXT_SPLITS) return true;
        if (found)
            err_set(part, "%s has %s, but no %s (nor .gz); put it there, or get the Penn Treebank with `%s`", dir,
                    file_name[naming][have], file_name[naming][lack], GET_IT);
    }
    return false;
}

/* What load needs to know, looked up again by it: sizes of the files of d->source, and with them d->bytes. */
static bool size_up(struct dataset *d, struct files *f, struct err *e) {
    size_t tokens = 0;
    for (int i = 0; i < TEXT_SPLITS; i++) {
        if (!text_size(f->path[i], &f->bytes[i], e)) return false;
        if (f->bytes[i] > SIZE_MAX / 64) return err_set(e, "%s is too large for the memory; cut it", f->path[i]);
        tokens += text_most_tokens(f->bytes[i]);
    }
    d->bytes = text_layout_bytes(tokens, text_most_vocabulary(f->bytes[0]));
    return true;
}

static bool find(struct dataset *d, const char *where, struct err *e) {
    struct err part = {0};
    struct files f = {0};
    struct stat s;
    if (!*where) where = ".";
    if (stat(where, &s) == 0 && !S_ISDIR(s.st_mode))
        return err_set(e, "%s is a file; give the directory that holds train, valid and test", where);
    for (int i = 0; i < FOLDERS; i++) {
        if (!path_join(d->source, where, usual[i], "", e)) return false;
        if (find_files(d->source, &f, &part, e)) return size_up(d, &f, e);
        if (e->text[0]) return false;
    }
    if (part.text[0]) return err_set(e, "%s", part.text);
    return err_set(e,
                   "%s holds no text: looked for ptb.{train,valid,test}.txt, wiki.*.tokens, *.txt, *.tokens, each also "
                   "as .gz, there and in %s, %s, %s: get the Penn Treebank with `%s`",
                   where, usual[1], usual[2], usual[3], GET_IT);
}

/* -- load ---------------------------------------------------------------------------------------------------------- */

static bool read_splits(const struct files *f, struct vocabulary_index *v, int32_t *token, size_t count[TEXT_SPLITS],
                        struct err *e) {
    for (int i = 0; i < TEXT_SPLITS; token += count[i], i++) {
        if (!text_read(f->path[i], f->bytes[i], v, i == 0, token, &count[i], e)) return false;
        if (i > 0) continue;
        if (count[0] < 2) return err_set(e, "%s holds one word alone; put a text there to train on", f->path[0]);
        if (vocabulary_add(v, TEXT_UNKNOWN, sizeof TEXT_UNKNOWN - 1) < 0)
            return err_set(e, "%s has %zu different words, one too many; cut the text into fewer kinds of words",
                           f->path[0], vocabulary_most(v));
    }
    return true;
}

static bool load(struct dataset *d, void *memory, struct err *e) {
    struct err part = {0};
    struct files f = {0};
    size_t count[TEXT_SPLITS], room = d->bytes;
    struct dataset now = *d;
    if (!find_files(d->source, &f, &part, e))
        return err_set(e, "%s", part.text[0] ? part.text : "the files of the text are gone; start again");
    if (!size_up(&now, &f, e)) return false;
    if (now.bytes > room) return err_set(e, "the files in %s grew while they were read; start again", d->source);
    struct vocabulary_index *v = vocabulary_open(INT32_MAX);
    bool good = read_splits(&f, v, text_layout_tokens(memory), count, e);
    if (good) text_layout_seal(memory, count, vocabulary_words(v), vocabulary_lines(v));
    vocabulary_close(v);
    return good;
}

const struct dataset_ops dataset_ptb = {
    .name = "ptb",
    .summary = "a text, word by word: Penn Treebank, or any directory with train, valid and test, as WikiText-2",
    .paper = "Marcus et al. 1993; Mikolov et al. 2010",
    .kind = DATA_TEXT,
    .find = find,
    .load = load,
    .attach = text_layout_attach,
};
