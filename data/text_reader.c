/* text_reader.c: see text_reader.h. */
#include "data/text_reader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "data/gzip.h"

enum { BUFFER = 64 << 10 };

struct reading {
    const char *path;
    FILE *file; /* one of these two */
    struct gzip *gzip;
    uint64_t promised, left; /* bytes: that there may be, of these not yet read */
    struct vocabulary_index *words;
    bool learn;
    int32_t unknown; /* without learn */
    int32_t *token;
    size_t count, line; /* lines that have ended */
    bool within;        /* there is something after the last '\n' */
    size_t length;      /* of word */
    char word[TEXT_WORD_MAX], buffer[BUFFER];
};

static bool is_gzip(const char *path) {
    size_t length = strlen(path);
    return length > 3 && strcmp(path + length - 3, ".gz") == 0;
}

static bool bring_anew(struct err *e, const struct err *why) {
    if (err_status(why) == EXIT_SYSTEM) return err_system(e, "%s", why->text);
    return err_set(e, "%.900s; bring the file here anew", why->text);
}

bool text_size(const char *path, uint64_t *bytes, struct err *e) {
    struct err why = {0};
    struct stat s;
    if (stat(path, &s) != 0) return err_with(e, err_of_errno(errno), "cannot read %s: %s", path, strerror(errno));
    if (!S_ISREG(s.st_mode)) return err_set(e, "%s is not a file; put the text there", path);
    if (is_gzip(path)) return gzip_unpacked_size(path, bytes, &why) || bring_anew(e, &why);
    *bytes = (uint64_t)s.st_size;
    return true;
}

size_t text_most_tokens(uint64_t bytes) {
    return (size_t)bytes + 1;
}

size_t text_most_vocabulary(uint64_t bytes) {
    return (size_t)bytes + 1 + sizeof TEXT_EOS + sizeof TEXT_UNKNOWN; /* each with its '\n' */
}

/* -- words and lines ----------------------------------------------------------------------------------------------- */

static bool take_word(struct reading *r, const char *word, size_t length, struct err *e) {
    int32_t number = r->learn ? vocabulary_add(r->words, word, length) : vocabulary_find(r->words, word, length);
    if (number < 0 && r->learn)
        return err_set(e,
                       "%s: line %zu begins the word after the %zu different ones that there can be; cut the text "
                       "into fewer kinds of words",
                       r->path, r->line + 1, vocabulary_most(r->words));
    r->token[r->count++] = number < 0 ? r->unknown : number;
    return true;
}

static bool end_word(struct reading *r, struct err *e) {
    size_t length = r->length;
    r->length = 0;
    return length == 0 || take_word(r, r->word, length, e);
}

static bool end_line(struct reading *r, struct err *e) {
    if (!end_word(r, e) || !take_word(r, TEXT_EOS, sizeof TEXT_EOS - 1, e)) return false;
    r->line++;
    r->within = false;
    return true;
}

static bool take_byte(struct reading *r, char c, struct err *e) {
    if (c == '\n') return end_line(r, e);
    r->within = true;
    if (c == ' ' || (c >= '\t' && c <= '\r')) return end_word(r, e);
    if (c == '\0')
        return err_set(e, "%s: line %zu holds a zero byte, so this is not plain text; convert it to UTF-8 (iconv)",
                       r->path, r->line + 1);
    if (r->length == TEXT_WORD_MAX)
        return err_set(e, "%s: line %zu holds a word of more than %d bytes; put blanks between the words", r->path,
                       r->line + 1, TEXT_WORD_MAX);
    r->word[r->length++] = c;
    return true;
}

/* -- the file ------------------------------------------------------------------------------------------------------ */

static bool open_file(struct reading *r, struct err *e) {
    struct err why = {0};
    if (is_gzip(r->path)) {
        r->gzip = gzip_open(r->path, &why);
        return r->gzip || bring_anew(e, &why);
    }
    const char *reason;
    r->file = file_read(r->path, &reason);
    return r->file || err_with(e, err_of_errno(errno), "cannot read %s: %s", r->path, reason);
}

/* The next bytes of the file into the buffer; *got is 0 at its end. */
static bool fill_buffer(struct reading *r, size_t *got, struct err *e) {
    struct err why = {0};
    errno = 0;
    if (r->gzip && !gzip_read(r->gzip, r->buffer, BUFFER, got, &why)) return bring_anew(e, &why);
    if (r->file) *got = fread(r->buffer, 1, BUFFER, r->file);
    if (r->file && ferror(r->file))
        return err_with(e, err_of_errno(errno), "cannot read %s: %s", r->path, strerror(errno));
    if (*got > r->left) /* there is memory for what was promised, and no more */
        return err_set(e, "%s holds more than the %llu bytes that %s; %s", r->path, (unsigned long long)r->promised,
                       r->gzip ? "its end says" : "it had", r->gzip ? "pack it anew, in one piece" : "start again");
    r->left -= *got;
    return true;
}

static bool read_all(struct reading *r, struct err *e) {
    size_t got = 0;
    do {
        if (!fill_buffer(r, &got, e)) return false;
        for (size_t i = 0; i < got; i++)
            if (!take_byte(r, r->buffer[i], e)) return false;
    } while (got);
    if (r->within && !end_line(r, e)) return false;
    return r->count || err_set(e, "%s is empty; put the text there", r->path);
}

bool text_read(const char *path, uint64_t bytes, struct vocabulary_index *v, bool learn, int32_t *token, size_t *count,
               struct err *e) {
    struct reading *r = mem_zalloc(1, sizeof *r, "reading a text");
    r->path = path;
    r->promised = r->left = bytes;
    r->words = v;
    r->learn = learn;
    r->token = token;
    r->unknown = vocabulary_find(v, TEXT_UNKNOWN, sizeof TEXT_UNKNOWN - 1);
    if (!learn && (r->unknown < 0 || vocabulary_find(v, TEXT_EOS, sizeof TEXT_EOS - 1) < 0))
        die("a vocabulary without " TEXT_UNKNOWN " or " TEXT_EOS);
    bool good = open_file(r, e) && read_all(r, e);
    if (r->file) fclose(r->file);
    gzip_close(r->gzip);
    *count = r->count;
    mem_free(r);
    return good;
}
