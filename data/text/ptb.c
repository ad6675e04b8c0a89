/* ptb.c: texts for language models: three files of words between blanks, one sentence or paragraph a line. That is how
 * the Penn Treebank comes (Marcus et al., "Building a large annotated corpus of English", 1993, in the split and with
 * the 10,000 words of Mikolov et al., "Recurrent neural network based language model", 2010), WikiText-2 (Merity et
 * al., "Pointer sentinel mixture models", 2016), and any other text that has been cut into words.
 *
 * The vocabulary is that of the training text, in order of first appearance; other words of the other two are <unk>. */
#include "base/files/place.h"
#include "base/mem.h"
#include "data/dataset.h"
#include "data/text/text_layout.h"
#include "data/text/text_reader.h"
#include "data/text/text_splits.h"

static const struct text_naming naming[] = {
    {{"ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"}},
    {{"wiki.train.tokens", "wiki.valid.tokens", "wiki.test.tokens"}},
    {{"train.txt", "valid.txt", "test.txt"}},
    {{"train.tokens", "valid.tokens", "test.tokens"}},
};
static const char *const usual[] = {"", "ptb", "simple-examples/data", "wikitext-2"};
static const struct text_places places = {.naming = naming,
                                          .namings = sizeof naming / sizeof *naming,
                                          .folder = usual,
                                          .folders = sizeof usual / sizeof *usual,
                                          .get_it = "get the Penn Treebank with `",
                                          .fetch = "ptb"};

/* -- find ---------------------------------------------------------------------------------------------------------- */

/* What load needs to know, looked up again by it. */
static size_t memory_of(const struct text_splits *f) {
    size_t tokens = 0;
    for (int i = 0; i < TEXT_SPLITS; i++) tokens += text_most_tokens(f->bytes[i]);
    return text_layout_bytes(tokens, text_most_vocabulary(f->bytes[0]));
}

static bool find(struct dataset *d, const char *where, struct err *e) {
    struct text_splits f;
    if (text_splits_find(&places, where, d->source, &f, e)) {
        d->bytes = memory_of(&f);
        return true;
    }
    if (e->text[0]) return false;
    return err_set(e,
                   "%s holds no text: looked for ptb.{train,valid,test}.txt, wiki.*.tokens, *.txt, *.tokens, each also "
                   "as .gz, there and in %s, %s, %s: get the Penn Treebank with `%s`",
                   *where ? where : ".", usual[1], usual[2], usual[3], place_fetch("ptb"));
}

/* -- load ---------------------------------------------------------------------------------------------------------- */

static bool read_splits(const struct text_splits *f, struct vocabulary_index *v, int32_t *token,
                        size_t count[TEXT_SPLITS], struct err *e) {
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
    char source[TEXT_PATH];
    struct text_splits f;
    size_t count[TEXT_SPLITS];
    if (!text_splits_find(&places, d->source, source, &f, e))
        return err_set(e, "the files of the text are gone; start again");
    if (memory_of(&f) > d->bytes)
        return err_set(e, "the files in %s grew while they were read; start again", d->source);
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
