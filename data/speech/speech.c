/* speech.c: recordings of one's own: a directory with the lists train.txt and test.txt and, where there is something to
 * validate on, valid.txt. A line of a list is the name of a WAV file (wav.h), below the directory unless it begins with
 * a slash, a TAB or blanks, and what is said in the file; where a line has a TAB, the name may have blanks in it. */
#include <string.h>

#include "base/mem.h"
#include "data/speech/spectrogram.h"
#include "data/speech/speech_source.h"
#include "data/speech/wav.h"
#include "data/text/text_file.h"

static const char *const list_name[TEXT_SPLITS] = {"train.txt", "valid.txt", "test.txt"};
enum { VALID = 1, CHUNK_BYTES = 12 + 8 + 16 + 8 }; /* the least that a WAV file has besides samples */

/* The lists, whose paths are named by the entries. */
struct lists {
    char path[TEXT_SPLITS][TEXT_PATH];
    struct speech_source source;
};

static bool take_line(struct lists *l, int split, const char *folder, const char *line, size_t length, size_t number,
                      struct err *e) {
    const char *gap = memchr(line, '\t', length), *list = l->path[split];
    size_t name = gap ? (size_t)(gap - line) : 0;
    if (memchr(line, '\0', length))
        return err_set(e, "%s: line %zu holds a zero byte, so this is not a list of recordings", list, number);
    while (!gap && name < length && line[name] != ' ') name++;
    if (name == 0) return err_set(e, "%s: line %zu does not begin with the name of a file", list, number);
    uint64_t size = 0;
    char *file = line[0] == '/' ? mem_printf("%.*s", (int)name, line) : mem_printf("%s/%.*s", folder, (int)name, line);
    if (!speech_size(file, list, number, &size, e)) {
        mem_free(file);
        return false;
    }
    size = size > CHUNK_BYTES ? size - CHUNK_BYTES : 0;
    return speech_source_add(&l->source, split, file, size, list, number, line + name, length - name, e);
}

static bool take_list(struct lists *l, int split, const char *folder, struct err *e) {
    uint64_t most;
    size_t bytes, number = 0, length, before = l->source.all;
    const char *line, *path = l->path[split];
    if (!text_size(path, &most, e)) return false;
    unsigned char *text = speech_read(path, most, &bytes, e);
    if (!text) return false;
    const char *at = (const char *)text, *end = at + bytes;
    if (bytes >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) at += 3; /* some editors begin a file of UTF-8 so */
    bool good = true;
    while (good && speech_line(&at, end, &line, &length, &number))
        good = take_line(l, split, folder, line, length, number, e);
    mem_free(text);
    if (!good) return false;
    return l->source.all > before || err_set(e, "%s names no recordings; put a line there for each", path);
}

static bool take_lists(struct lists *l, const char *folder, struct err *e) {
    for (int i = 0; i < TEXT_SPLITS; i++) {
        if (!text_path(l->path[i], folder, list_name[i], "", e)) return false;
        if (i == VALID && !text_is_there(l->path[i])) continue;
        if (!take_list(l, i, folder, e)) return false;
    }
    return true;
}

static struct lists *lists_open(void) {
    return mem_zalloc(1, sizeof(struct lists), "lists of recordings");
}

static void lists_close(struct lists *l) {
    speech_source_close(&l->source);
    mem_free(l);
}

/* Where the lists are: there, or in the folder that is called as the set is. */
static bool find_folder(const char *where, char folder[TEXT_PATH], struct err *e) {
    static const char *const usual[] = {"", "speech"};
    char path[TEXT_PATH];
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        if (!text_path(folder, where, usual[i], "", e) || !text_path(path, folder, list_name[0], "", e)) return false;
        if (text_is_there(path)) return true;
    }
    return err_set(
        e,
        "%s holds no recordings: looked for %s, whose lines are the name of a WAV file and what is said in it, "
        "there and in %s; give the directory that has it, as --data speech:DIR",
        where, list_name[0], usual[1]);
}

static bool find(struct dataset *d, const char *where, struct err *e) {
    if (!*where) where = ".";
    if (!spectrogram_is_here(e) || !find_folder(where, d->source, e)) return false;
    struct lists *l = lists_open();
    const bool good = take_lists(l, d->source, e);
    d->bytes = speech_source_memory(&l->source);
    lists_close(l);
    return good;
}

static bool fill(struct speech_filling *f, size_t number, struct err *e) {
    struct err why = {0};
    size_t bytes, at, length;
    const struct speech_entry *entry = &f->source->entry[number];
    unsigned char *file = speech_read(entry->file, entry->size + CHUNK_BYTES, &bytes, e);
    if (!file) return false;
    const bool good =
        wav_find(file, bytes, &at, &length, &why)
            ? speech_fill(f, number, file + at, length, SPEECH_LOW_FIRST, e)
            : err_set(e, "%s cannot be used: %s; put there one channel of 16 bits at 16 kHz", entry->file, why.text);
    mem_free(file);
    return good;
}

static bool load(struct dataset *d, void *memory, struct err *e) {
    struct speech_filling f = {0};
    struct lists *l = lists_open();
    bool good = take_lists(l, d->source, e) && speech_filling_open(&f, &l->source, memory, d->bytes, e);
    for (size_t i = 0; good && i < l->source.all; i++) good = fill(&f, i, e);
    speech_filling_close(&f, good ? memory : NULL);
    lists_close(l);
    return good;
}

const struct dataset_ops dataset_speech = {
    .name = "speech",
    .summary = "recordings of one's own, WAV at 16 kHz, with lists of what is said in them: speech:DIR",
    .kind = DATA_SPEECH,
    .find = find,
    .load = load,
    .attach = speech_layout_attach,
};
