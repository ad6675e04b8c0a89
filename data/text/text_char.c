/* text_char.c: any text, character by character, for models of characters. A character is a code point of UTF-8; the
 * vocabulary has those of the whole text in their order, as sorted(set(text)) of Python has; the first nine tenths are
 * trained on, the rest validates, and there is no test text. That is how nanoGPT reads tiny Shakespeare (Karpathy,
 * "The unreasonable effectiveness of recurrent neural networks", 2015: 1,115,394 characters of 65 kinds). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/place.h"
#include "base/mem.h"
#include "data/dataset.h"
#include "data/text/text_file.h"
#include "data/text/text_layout.h"
#include "data/text/utf8.h"

enum { LEAST = 11, BUFFER = 64 << 10, PATH_ROOM = sizeof((struct dataset *)0)->source };

#define GET_IT place_fetch("tinyshakespeare")

/* -- find ---------------------------------------------------------------------------------------------------------- */

/* The file, where there is one; one whose state cannot be read counts as there: reading it will report the error. */
static bool find_file(const char *dir, char path[PATH_ROOM], struct err *e) {
    static const char *const name[] = {"input.txt", "input.txt.gz", "tinyshakespeare/input.txt",
                                       "tinyshakespeare/input.txt.gz"};
    struct stat s;
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        if (snprintf(path, PATH_ROOM, "%s/%s", dir, name[i]) >= PATH_ROOM)
            return err_set(e, "the path %.80s... is too long: at most %d bytes; use a shorter one", dir, PATH_ROOM - 1);
        if (stat(path, &s) == 0 || (errno != ENOENT && errno != ENOTDIR)) return true;
    }
    return err_set(e,
                   "%.300s holds no text: looked for input.txt and input.txt.gz there and in tinyshakespeare; name a "
                   "file, or get tiny Shakespeare with `%s`",
                   dir, GET_IT);
}

/* A kind of character is in the vocabulary once: its bytes and a '\n', and one byte more of the three that are written
 * with a backslash. */
static size_t most_vocabulary(uint64_t bytes) {
    const size_t most = (size_t)(UTF8_MOST + 1) * (UTF8_BYTES + 1);
    return bytes < most / 2 ? 2 * (size_t)bytes + 3 : most;
}

static bool size_up(struct dataset *d, uint64_t *bytes, struct err *e) {
    if (!text_size(d->source, bytes, e)) return false;
    if (*bytes > SIZE_MAX / 64) return err_set(e, "%s is too large for the memory; cut it", d->source);
    d->bytes = text_layout_bytes((size_t)*bytes, most_vocabulary(*bytes));
    return true;
}

static bool find(struct dataset *d, const char *where, struct err *e) {
    struct stat s;
    uint64_t bytes;
    if (!*where) where = ".";
    if (stat(where, &s) != 0)
        return err_set(e,
                       "cannot read %.300s: %s; name a file of text or a directory with input.txt, or get tiny "
                       "Shakespeare with `%s`",
                       where, strerror(errno), GET_IT);
    if (S_ISDIR(s.st_mode)) return find_file(where, d->source, e) && size_up(d, &bytes, e);
    if (snprintf(d->source, PATH_ROOM, "%s", where) >= PATH_ROOM)
        return err_set(e, "the path %.80s... is too long: at most %d bytes; use a shorter one", where, PATH_ROOM - 1);
    return size_up(d, &bytes, e);
}

/* -- load ---------------------------------------------------------------------------------------------------------- */

struct reading {
    struct text_file file;
    struct utf8 utf8;
    uint64_t at, begun;              /* bytes before this one; before the character */
    int32_t *token;                  /* [count] code points; then their numbers */
    size_t count, kinds, line_bytes; /* of the vocabulary */
    int32_t number[UTF8_MOST + 1];   /* of a code point: 1 where it was seen; then its number */
    uint8_t buffer[BUFFER];
};

static bool take_byte(struct reading *r, uint8_t byte, struct err *e) {
    const char *path = r->file.path;
    if (byte == 0)
        return err_set(e, "%s: byte %llu is zero, so this is not plain text; convert it to UTF-8 (iconv)", path,
                       (unsigned long long)r->at);
    if (!utf8_within(&r->utf8)) r->begun = r->at;
    const enum utf8_step step = utf8_take(&r->utf8, byte);
    r->at++;
    if (step == UTF8_BAD)
        return err_set(e,
                       "%s: byte %llu does not begin a character of UTF-8, in which the text has to be; convert it "
                       "(iconv)",
                       path, (unsigned long long)r->begun);
    if (step == UTF8_WHOLE) {
        r->token[r->count++] = (int32_t)r->utf8.code;
        r->number[r->utf8.code] = 1;
    }
    return true;
}

static bool read_all(struct reading *r, struct err *e) {
    size_t got = 0;
    do {
        if (!text_file_read(&r->file, r->buffer, BUFFER, &got, e)) return false;
        for (size_t i = 0; i < got; i++)
            if (!take_byte(r, r->buffer[i], e)) return false;
    } while (got);
    if (utf8_within(&r->utf8))
        return err_set(e, "%s ends within the character of UTF-8 that byte %llu begins; bring the file here anew",
                       r->file.path, (unsigned long long)r->begun);
    if (r->count == 0) return err_set(e, "%s is empty; put a text there", r->file.path);
    if (r->count < LEAST)
        return err_set(e,
                       "%s has %zu character%s: nine tenths to train on and two at least to validate with take %d; put "
                       "a longer text there",
                       r->file.path, r->count, r->count > 1 ? "s" : "", LEAST);
    return true;
}

/* Numbers in the order of the code points, which are written to `lines`, one a line. */
static void number_all(struct reading *r, char *lines) {
    for (uint32_t code = 0; code <= UTF8_MOST; code++) {
        if (r->number[code] == 0) continue;
        r->number[code] = (int32_t)r->kinds++;
        const char escape = code == '\n' ? 'n' : code == '\r' ? 'r' : code == '\\' ? '\\' : '\0';
        if (escape) lines[r->line_bytes++] = '\\';
        if (escape)
            lines[r->line_bytes++] = escape;
        else
            r->line_bytes += utf8_put(code, lines + r->line_bytes);
        lines[r->line_bytes++] = '\n';
    }
    for (size_t i = 0; i < r->count; i++) r->token[i] = r->number[r->token[i]];
}

static bool seal(struct reading *r, void *memory, size_t room, struct err *e) {
    char *lines = mem_alloc(room, 1, "a vocabulary");
    number_all(r, lines);
    const size_t train = r->count * 9 / 10, count[TEXT_SPLITS] = {train, r->count - train, 0};
    if (r->kinds > 1)
        text_layout_seal(memory, count, r->kinds, (struct vocabulary){lines, r->line_bytes});
    else
        err_set(e, "%s has one kind of character alone, of which there is nothing to learn; put a text there",
                r->file.path);
    mem_free(lines);
    return r->kinds > 1;
}

static bool load(struct dataset *d, void *memory, struct err *e) {
    uint64_t bytes;
    struct dataset now = *d;
    if (!size_up(&now, &bytes, e)) return false;
    if (now.bytes > d->bytes) return err_set(e, "%s grew while it was read; start again", d->source);
    struct reading *r = mem_zalloc(1, sizeof *r, "reading a text");
    r->token = text_layout_tokens(memory);
    bool good =
        text_file_open(&r->file, d->source, bytes, e) && read_all(r, e) && seal(r, memory, most_vocabulary(bytes), e);
    text_file_close(&r->file);
    mem_free(r);
    return good;
}

const struct dataset_ops dataset_text_char = {
    .name = "text-char",
    .summary = "any text, character by character, 9 tenths to train on: tiny Shakespeare, or a file of UTF-8",
    .paper = "Karpathy 2015",
    .kind = DATA_TEXT,
    .unit = "character",
    .find = find,
    .load = load,
    .attach = text_layout_attach,
};
