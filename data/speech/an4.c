/* an4.c: the census database of Carnegie Mellon University, AN4 (Acero, "Acoustical and environmental robustness in
 * automatic speech recognition", 1990): 948 utterances to train on and 130 to test on, in which people say their names,
 * addresses and birthdays, much of it spelled, and commands. As its authors distribute it in an4_raw.bigendian.tar.gz,
 * read from a directory or straight from a .tar.gz:
 *
 *   etc/an4_{train,test}.fileids         a line for each utterance: its file below wav/, without .raw
 *   etc/an4_{train,test}.transcription   the same lines: <s> WORDS </s> (NAME), without <s> and </s> in the test's
 *   wav/ID.raw                           16 bits at 16 kHz, the high byte first, whatever its README says; no header */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/place.h"
#include "base/mem.h"
#include "data/archive.h"
#include "data/speech/spectrogram.h"
#include "data/speech/speech_source.h"
#include "data/text/text_file.h"

enum { LISTS = 4, LIST_MAX = 16 << 20 };

/* Lists 2 i and 2 i + 1 are of split list_split[i]. */
static const char *const list_name[LISTS] = {"etc/an4_train.fileids", "etc/an4_train.transcription",
                                             "etc/an4_test.fileids", "etc/an4_test.transcription"};
static const int list_split[LISTS / 2] = {0, 2};

#define GET_IT place_fetch("an4")

struct lists {
    char *path[LISTS]; /* in messages, and where they are read from a directory */
    char *text[LISTS];
    size_t bytes[LISTS];
    struct speech_source source;
    char **name; /* [source.all] what the lists call them */
    size_t room;
};

static struct lists *lists_open(void) {
    return mem_zalloc(1, sizeof(struct lists), "the lists of AN4");
}

static void lists_close(struct lists *l) {
    for (size_t i = 0; i < l->source.all && i < l->room; i++) mem_free(l->name[i]);
    mem_free(l->name);
    for (int i = 0; i < LISTS; i++) {
        mem_free(l->path[i]);
        mem_free(l->text[i]);
    }
    speech_source_close(&l->source);
    mem_free(l);
}

static bool get_again(struct err *e, const struct err *why) {
    if (err_status(why) == EXIT_SYSTEM) return err_system(e, "%s", why->text);
    return err_set(e, "%.800s: get it again with `%s`", why->text, GET_IT);
}

static bool is_archive(const struct dataset *d) {
    struct stat s;
    return stat(d->source, &s) == 0 && !S_ISDIR(s.st_mode);
}

/* -- the lists
 * ------------------------------------------------------------------------------------------------------------ */

/* A line of a transcription to its words, and whether they are of the utterance `id`: "<s> A B </s> (name)". */
static bool take_words(const char **words, size_t *length, const char *id) {
    const char *name = strrchr(id, '/'), *line = *words, *open = line + *length;
    name = name ? name + 1 : id;
    while (open > line && open[-1] != '(') open--;
    const size_t bytes = (size_t)(line + *length - open);
    if (open == line || bytes != strlen(name) + 1 || memcmp(open, name, bytes - 1) != 0 || open[bytes - 1] != ')')
        return false;
    *length = (size_t)(open - 1 - line);
    while (*length && (line[*length - 1] == ' ' || line[*length - 1] == '\t')) --*length;
    if (*length >= 4 && memcmp(line + *length - 4, "</s>", 4) == 0) *length -= 4;
    if (*length >= 3 && memcmp(line, "<s>", 3) == 0) *words += 3, *length -= 3;
    return true;
}

static void keep_name(struct lists *l, char *name) {
    if (l->source.all == l->room) {
        l->room = l->room ? 2 * l->room : 2048;
        l->name = mem_grow(l->name, l->source.all, l->room, sizeof *l->name, "the names of recordings");
    }
    l->name[l->source.all] = name;
}

/* The utterance of a line of both lists. packed: it is in an archive. */
static bool take_utterance(struct lists *l, int pair, const struct dataset *d, bool packed, const char *id,
                           size_t length, size_t number, const char *words, size_t bytes, struct err *e) {
    uint64_t size = 0;
    char *name = mem_printf("%.*s", (int)length, id);
    char *file = mem_printf(packed ? "%s: wav/%s.raw" : "%s/wav/%s.raw", d->source, name);
    const char *list = l->path[2 * pair + 1];
    bool good = take_words(&words, &bytes, name) ||
                err_set(e, "%s: line %zu is not of %s, which is in this line of %s: get it again with `%s`", list,
                        number, name, l->path[2 * pair], GET_IT);
    good = good && (packed || speech_size(file, l->path[2 * pair], number, &size, e));
    if (!good) {
        mem_free(name);
        mem_free(file);
        return false;
    }
    keep_name(l, name);
    return speech_source_add(&l->source, list_split[pair], file, size, list, number, words, bytes, e);
}

static bool take_pair(struct lists *l, int pair, const struct dataset *d, bool packed, struct err *e) {
    const char *at[2], *end[2], *line[2];
    size_t length[2], number[2] = {0, 0}, before = l->source.all;
    bool more[2];
    for (int i = 0; i < 2; i++) {
        at[i] = l->text[2 * pair + i];
        end[i] = at[i] + l->bytes[2 * pair + i];
    }
    for (;;) {
        for (int i = 0; i < 2; i++) more[i] = speech_line(&at[i], end[i], &line[i], &length[i], &number[i]);
        if (!more[0] || !more[1]) break;
        if (!take_utterance(l, pair, d, packed, line[0], length[0], number[0], line[1], length[1], e)) return false;
    }
    if (more[0] || more[1])
        return err_set(e, "%s has fewer lines than %s: get it again with `%s`", l->path[2 * pair + more[0]],
                       l->path[2 * pair + more[1]], GET_IT);
    return l->source.all > before ||
           err_set(e, "%s names no recordings: get it again with `%s`", l->path[2 * pair], GET_IT);
}

/* The names of the lists in order, to find one by it. */
struct named {
    const char *name;
    size_t number;
};

static int compare(const void *a, const void *b) {
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static struct named *index_open(const struct lists *l) {
    const size_t count = l->source.all;
    struct named *index = mem_alloc(count, sizeof *index, "the recordings of AN4 by name");
    for (size_t i = 0; i < count; i++) index[i] = (struct named){l->name[i], i};
    qsort(index, count, sizeof *index, compare);
    return index;
}

static bool named_once(const struct lists *l, const struct dataset *d, struct err *e) {
    struct named *index = index_open(l);
    bool good = true;
    for (size_t i = 1; good && i < l->source.all; i++)
        good = compare(&index[i - 1], &index[i]) != 0 ||
               err_set(e, "%s: its lists name %s twice: get it again with `%s`", d->source, index[i].name, GET_IT);
    mem_free(index);
    return good;
}

static bool take_lists(struct lists *l, const struct dataset *d, bool packed, struct err *e) {
    for (int i = 0; i < LISTS / 2; i++)
        if (!take_pair(l, i, d, packed, e)) return false;
    return true;
}

static bool read_lists(struct lists *l, const struct dataset *d, struct err *e) {
    for (int i = 0; i < LISTS; i++) {
        struct err why = {0};
        uint64_t most;
        l->path[i] = mem_printf("%s/%s", d->source, list_name[i]);
        if (!text_size(l->path[i], &most, &why)) return get_again(e, &why);
        l->text[i] = (char *)speech_read(l->path[i], most, &l->bytes[i], e);
        if (!l->text[i]) return false;
    }
    return take_lists(l, d, false, e);
}

/* -- find
 * ----------------------------------------------------------------------------------------------------------------- */

static bool find_directory(struct dataset *d, struct err *e) {
    struct lists *l = lists_open();
    const bool good = read_lists(l, d, e) && named_once(l, d, e);
    d->bytes = speech_source_memory(&l->source);
    lists_close(l);
    return good;
}

/* Samples that there can be in an archive. */
static bool most_samples(const struct dataset *d, size_t *samples, struct err *e) {
    struct err why = {0};
    uint64_t bytes;
    if (!archive_unpacked_size(d->source, &bytes, &why)) return get_again(e, &why);
    *samples = (size_t)bytes / 2;
    return true;
}

/* Two bytes of a file are a sample, 160 of these 161 floats: so many bytes of features for a byte of the tar. What an
 * utterance has besides, a frame, labels and an entry of the table, is less than that of the 512 bytes that stand
 * before each file, and of its line in a list. */
static bool find_archive(struct dataset *d, struct err *e) {
    struct speech_counts none = {0};
    if (!most_samples(d, &none.samples, e)) return false;
    d->bytes = speech_layout_bytes(&none, none.samples / SPECTROGRAM_STRIDE + 1);
    return true;
}

static bool path_join(char path[TEXT_PATH], const char *dir, const char *name, bool *there, struct err *e) {
    if (!text_path(path, dir, name, "", e)) return false;
    *there = text_is_there(path);
    return true;
}

static bool find(struct dataset *d, const char *where, struct err *e) {
    static const char *const folder[] = {"", "an4"}, archive[] = "an4_raw.bigendian.tar.gz";
    char path[TEXT_PATH];
    bool there;
    if (!*where) where = ".";
    if (!spectrogram_is_here(e) || !text_path(d->source, where, "", "", e)) return false;
    if (is_archive(d)) return find_archive(d, e);
    for (size_t i = 0; i < sizeof folder / sizeof *folder; i++) {
        if (!text_path(d->source, where, folder[i], "", e) || !path_join(path, d->source, list_name[0], &there, e))
            return false;
        if (there) return find_directory(d, e);
    }
    if (!path_join(d->source, where, archive, &there, e)) return false;
    if (there) return find_archive(d, e);
    return err_set(e, "%s holds no AN4: expected %s and the rest there, in %s, or %s: get it with `%s`", where,
                   list_name[0], folder[1], archive, GET_IT);
}

/* -- load: from files
 * ----------------------------------------------------------------------------------------------------- */

static bool load_file(struct speech_filling *f, size_t number, struct err *e) {
    size_t bytes;
    const struct speech_entry *entry = &f->source->entry[number];
    unsigned char *file = speech_read(entry->file, entry->size, &bytes, e);
    const bool good = file && speech_fill(f, number, file, bytes, SPEECH_HIGH_FIRST, e);
    mem_free(file);
    return good;
}

static bool load_directory(struct dataset *d, struct lists *l, void *memory, struct err *e) {
    struct speech_filling f = {0};
    bool good = read_lists(l, d, e) && speech_filling_open(&f, &l->source, memory, d->bytes, e);
    for (size_t i = 0; good && i < l->source.all; i++) good = load_file(&f, i, e);
    speech_filling_close(&f, good ? memory : NULL);
    return good;
}

/* -- load: from an archive, whose files may come in any order: once over it for the lists, once for the recordings
 * --------- */

/* Behind the folders of a member's name in which `folder` is; NULL: it is not there. */
static const char *below(const char *member, const char *folder) {
    const size_t length = strlen(folder);
    for (const char *at = member; at; at = strchr(at, '/')) {
        if (*at == '/') at++;
        if (strncmp(at, folder, length) == 0) return at + length;
    }
    return NULL;
}

static int list_of(const char *member) {
    int i = 0;
    for (const char *rest; i < LISTS; i++)
        if ((rest = below(member, list_name[i])) && !*rest) break;
    return i;
}

static bool take_list(struct lists *l, struct archive *a, const struct archive_member *m, int list, struct err *e) {
    if (l->text[list] || m->size > LIST_MAX)
        return err_set(e, "%s %s", l->path[list], l->text[list] ? "occurs twice" : "is far too large");
    l->bytes[list] = (size_t)m->size;
    l->text[list] = mem_zalloc(l->bytes[list] + 1, 1, "a list of AN4");
    return archive_read(a, l->text[list], l->bytes[list], e);
}

static bool unpack_lists(struct lists *l, const struct dataset *d, struct err *e) {
    struct archive_member m;
    struct err why = {0};
    int missing = LISTS;
    for (int i = 0; i < LISTS; i++) l->path[i] = mem_printf("%s: %s", d->source, list_name[i]);
    struct archive *a = archive_open(d->source, &why);
    while (a && missing && !why.text[0] && archive_next(a, &m, &why)) {
        const int list = list_of(m.name);
        if (list < LISTS && take_list(l, a, &m, list, &why)) missing--;
    }
    archive_close(a);
    for (int i = 0; i < LISTS; i++)
        if (!l->text[i]) err_set(&why, "%s holds no %s", d->source, list_name[i]);
    return why.text[0] ? get_again(e, &why) : take_lists(l, d, true, e) && named_once(l, d, e);
}

/* The recording that a member is, or NULL: no list names it. */
static const struct named *recording_of(const struct named *index, size_t count, const char *member) {
    char name[sizeof((struct archive_member *)0)->name];
    const char *rest = below(member, "wav/");
    const size_t length = rest ? strlen(rest) : 0;
    if (length < 4 || strcmp(rest + length - 4, ".raw") != 0) return NULL;
    snprintf(name, sizeof name, "%.*s", (int)length - 4, rest);
    const struct named wanted = {.name = name};
    return bsearch(&wanted, index, count, sizeof *index, compare);
}

/* why: the archive is to blame; e: the recording. */
static bool load_member(struct speech_filling *f, struct archive *a, const struct archive_member *m, size_t number,
                        struct err *why, struct err *e) {
    const char *file = f->source->entry[number].file;
    if (f->filled[number]) return err_set(why, "%s occurs twice", file);
    if (m->size > SPEECH_BYTES_MAX) return err_set(why, "%s is longer than an hour", file);
    unsigned char *bytes = mem_alloc((size_t)m->size, 1, "a recording");
    const bool good = archive_read(a, bytes, (size_t)m->size, why) &&
                      speech_fill(f, number, bytes, (size_t)m->size, SPEECH_HIGH_FIRST, e);
    mem_free(bytes);
    return good;
}

static bool load_members(struct speech_filling *f, const struct dataset *d, const struct lists *l, struct err *e) {
    struct archive_member m;
    struct err why = {0};
    const size_t count = l->source.all;
    struct named *index = index_open(l);
    struct archive *a = archive_open(d->source, &why);
    bool good = true;
    while (a && good && archive_next(a, &m, &why)) {
        const struct named *found = recording_of(index, count, m.name);
        good = !found || load_member(f, a, &m, found->number, &why, e);
    }
    archive_close(a);
    mem_free(index);
    for (size_t i = 0; i < count && good && !why.text[0]; i++)
        if (!f->filled[i]) err_set(&why, "%s is not in it", l->source.entry[i].file);
    return why.text[0] ? get_again(e, &why) : good;
}

static bool load_archive(struct dataset *d, struct lists *l, void *memory, struct err *e) {
    struct speech_filling f = {0};
    const bool good = unpack_lists(l, d, e) && most_samples(d, &l->source.counts.samples, e) &&
                      speech_filling_open(&f, &l->source, memory, d->bytes, e) && load_members(&f, d, l, e);
    speech_filling_close(&f, good ? memory : NULL);
    return good;
}

static bool load(struct dataset *d, void *memory, struct err *e) {
    struct lists *l = lists_open();
    const bool good = (is_archive(d) ? load_archive : load_directory)(d, l, memory, e);
    lists_close(l);
    return good;
}

const struct dataset_ops dataset_an4 = {
    .name = "an4",
    .summary = "speech: names, addresses and commands, much of it spelled; 948 utterances to train on and 130 to test",
    .paper = "Acero 1990 (CMU census database)",
    .kind = DATA_SPEECH,
    .find = find,
    .load = load,
    .attach = speech_layout_attach,
};
