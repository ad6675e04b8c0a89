/* wiki.c: WikiText (Merity et al., "Pointer sentinel mixture models", 2016) in sequences of pieces of words for masked
 * language models with next-sentence prediction (Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers
 * for Language Understanding", 2019). articles.h says how a text is cut into articles and sentences, wordpiece.h how
 * these become pieces, pairs.h how sequences are made of them.
 *
 * Sequences are made with one seed, whatever that of a run is: runs of other seeds read the same ones in another order,
 * with other masks. */
#include <string.h>

#include "base/files/place.h"
#include "base/hash.h"
#include "base/mem.h"
#include "data/pairs/pairs_cache.h"
#include "data/pairs/unicode.h"

enum { PACK_SEED = 1, CHUNK = 1 << 20 };

static const struct text_naming naming[] = {
    {{"wiki.train.tokens", "wiki.valid.tokens", "wiki.test.tokens"}},
    {{"train.txt", "valid.txt", "test.txt"}},
    {{"train.tokens", "valid.tokens", "test.tokens"}},
};
static const char *const usual[] = {"", "wikitext-2"};
static const struct text_places places = {.naming = naming,
                                          .namings = sizeof naming / sizeof *naming,
                                          .folder = usual,
                                          .folders = sizeof usual / sizeof *usual,
                                          .get_it = "get WikiText-2 with `",
                                          .fetch = "wikitext2"};

/* -- find ---------------------------------------------------------------------------------------------------------- */

/* The files, and bounds of what they can be. */
struct files {
    struct text_splits text;
    char vocabulary[TEXT_PATH];
    uint64_t vocabulary_bytes;
};

static bool find_vocabulary(const char *where, struct files *f, struct err *e) {
    static const char *const name[] = {"vocab.txt", "bert-base-uncased/vocab.txt", "../bert-base-uncased/vocab.txt"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        if (!text_path(f->vocabulary, where, name[i], "", e)) return false;
        if (text_is_there(f->vocabulary)) return text_size(f->vocabulary, &f->vocabulary_bytes, e);
    }
    return err_set(e,
                   "%s has a text, but no vocab.txt nor bert-base-uncased/vocab.txt, by which it is cut into pieces; "
                   "get it with `%s`",
                   where, place_fetch("bertvocab"));
}

static bool find_files(const char *where, struct files *f, struct err *e) {
    char folder[TEXT_PATH];
    if (text_splits_find(&places, where, folder, &f->text, e)) return find_vocabulary(where, f, e);
    if (e->text[0]) return false;
    return err_set(e,
                   "%s holds no text: looked for wiki.{train,valid,test}.tokens, *.txt, *.tokens, each also as .gz, "
                   "there and in %s: get WikiText-2 with `%s`",
                   where, usual[1], place_fetch("wikitext2"));
}

/* Sequences that there is room for. A sentence takes two bytes, so half of the bytes would be enough for anything; of a
 * large text that would be memory for nothing, as its sentences are longer. WikiText-2 has one for 446 bytes at 128
 * pieces. */
static size_t most_pairs(uint64_t bytes) {
    const uint64_t all = bytes / 2 + 1, usual_ones = (1 << 16) + bytes / 16;
    return (size_t)(all < usual_ones ? all : usual_ones);
}

/* A piece takes a byte at the least. */
static size_t memory_of(const struct files *f) {
    uint64_t bytes = 0;
    for (int i = 0; i < TEXT_SPLITS; i++) bytes += f->text.bytes[i];
    return pairs_layout_bytes(most_pairs(bytes), (size_t)bytes, (size_t)f->vocabulary_bytes + 1);
}

static bool find(struct dataset *d, const char *where, struct err *e) {
    struct files f;
    if (!*where) where = ".";
    if (!wordpiece_is_here(e) || !text_path(d->source, where, "", "", e) || !find_files(where, &f, e)) return false;
    d->bytes = memory_of(&f);
    return true;
}

/* -- load ---------------------------------------------------------------------------------------------------------- */

/* What is read and packed. */
struct work {
    struct files files;
    struct wordpiece *vocabulary;
    char *text[TEXT_SPLITS]; /* [bytes of the key] */
    struct pairs_key key;
    struct pairs_content content;
};

/* A whole text, into memory for all that it may hold. */
static bool read_text(struct work *w, int split, struct err *e) {
    struct text_file f = {0};
    size_t got = 0, used = 0;
    const uint64_t bytes = w->files.text.bytes[split];
    w->text[split] = mem_alloc((size_t)bytes + 1, 1, "a text");
    bool good = text_file_open(&f, w->files.text.path[split], bytes, e);
    do {
        size_t room = (size_t)bytes + 1 - used;
        good = good && text_file_read(&f, w->text[split] + used, room < CHUNK ? room : CHUNK, &got, e);
        used += good ? got : 0;
    } while (good && got);
    text_file_close(&f);
    w->key.bytes[split] = used;
    w->key.crc[split] = crc32_of(0, w->text[split], used);
    return good && (used || err_set(e, "%s is empty; put the text there", w->files.text.path[split]));
}

static bool read_all(struct work *w, int length, struct err *e) {
    if (!(w->vocabulary = wordpiece_open(w->files.vocabulary, e))) return false;
    for (int i = 0; i < TEXT_SPLITS; i++)
        if (!read_text(w, i, e)) return false;
    const struct vocabulary lines = wordpiece_lines(w->vocabulary);
    w->key.vocabulary_bytes = lines.bytes;
    w->key.vocabulary_crc = crc32_of(0, lines.lines, lines.bytes);
    w->key.unicode = crc32_of(0, unicode_version(), strlen(unicode_version()));
    w->key.seed = PACK_SEED;
    w->key.length = length;
    return true;
}

static bool pack(struct work *w, struct err *e) {
    struct pairs_content *c = &w->content;
    c->vocabulary = w->vocabulary;
    c->length = w->key.length;
    for (int i = 0; i < TEXT_SPLITS; i++) {
        const char *path = w->files.text.path[i];
        if (!articles_read(&c->articles[i], w->vocabulary, path, w->text[i], (size_t)w->key.bytes[i], e)) return false;
        if (c->articles[i].count < 2)
            return err_set(e,
                           "%s has %s; the second part of a sequence is of another article than the first, one half of "
                           "the time: put there two at least, which begin with a line like \"= Title =\" between blank "
                           "ones",
                           path, c->articles[i].count ? "one article alone" : "no words");
        pairs_pack(&c->articles[i], c->length, w->key.seed, (unsigned)i, &c->pairs[i]);
    }
    return true;
}

static bool fill(struct work *w, struct dataset *d, void *memory, struct err *e) {
    if (pairs_cache_read(&w->key, memory, d->bytes)) return true;
    if (!pack(w, e)) return false;
    const size_t size = pairs_layout_size(&w->content);
    if (size > d->bytes)
        return err_set(
            e,
            "the text in %s makes more sequences of %d pieces than there is room for, %zu of the training text "
            "alone: its articles are too short; put longer ones there",
            d->source, d->length, w->content.pairs[0].count);
    pairs_layout_seal(memory, &w->content);
    pairs_cache_write(&w->key, memory, size);
    return true;
}

static void close_work(struct work *w) {
    for (int i = 0; i < TEXT_SPLITS; i++) {
        mem_free(w->text[i]);
        articles_close(&w->content.articles[i]);
        pair_list_close(&w->content.pairs[i]);
    }
    wordpiece_close(w->vocabulary);
    mem_free(w);
}

static bool load(struct dataset *d, void *memory, struct err *e) {
    if (d->length < PAIRS_LENGTH_MIN || d->length > PAIRS_LENGTH_MAX)
        return err_set(e, "sequences of %d pieces: there can be %d to %d", d->length, PAIRS_LENGTH_MIN,
                       PAIRS_LENGTH_MAX);
    struct work *w = mem_zalloc(1, sizeof *w, "packing a text");
    bool good = find_files(d->source, &w->files, e);
    if (good && memory_of(&w->files) > d->bytes)
        good = err_set(e, "the files in %s grew while they were read; start again", d->source);
    good = good && read_all(w, d->length, e) && fill(w, d, memory, e);
    close_work(w);
    return good;
}

const struct dataset_ops dataset_wiki = {
    .name = "wiki",
    .summary = "WikiText in pairs of sentences, cut into BERT's pieces of words, for masked language models",
    .paper = "Merity et al. 2016; Devlin et al. 2019",
    .kind = DATA_PAIRS,
    .find = find,
    .load = load,
    .attach = pairs_layout_attach,
};
