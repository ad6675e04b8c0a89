/* wordpiece.c: see wordpiece.h. A text goes through in one pass, code point by code point; of what lies behind only the
 * word that has not ended is kept, and marks that canonical ordering may still move. */
#include "data/pairs/wordpiece.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "base/mem.h"
#include "data/pairs/unicode.h"
#include "data/text/vocabulary_index.h"

/* MARKS: UAX 15's "stream-safe" texts have at most 30 marks in a row; of longer rows the order within MARKS at a time
 * is what is made canonical. */
enum { MARKS = 32, HASHES = 2, WORD_BYTES = WORDPIECE_WORD_MAX * UNICODE_BYTES };

struct wordpiece {
    struct vocabulary_index *pieces;
    struct special_pieces special;
    size_t longest; /* bytes of a piece, "##" included */
};

/* A text on its way. */
struct state {
    const struct wordpiece *w;
    struct pieces *to;
    int32_t mark[MARKS]; /* of combining classes other than 0, in canonical order */
    int marks;
    size_t letters, bytes;              /* of the word: code points, bytes */
    char word[HASHES + WORD_BYTES + 1]; /* the letters from HASHES on, and one byte more */
};

/* -- pieces -------------------------------------------------------------------------------------------------------- */

void pieces_add(struct pieces *p, int32_t id) {
    if (p->count == p->room) {
        p->room = p->room ? 2 * p->room : 256;
        p->id = mem_grow(p->id, p->count, p->room, sizeof *p->id, "the pieces of a text");
    }
    p->id[p->count++] = id;
}

void pieces_close(struct pieces *p) {
    mem_free(p->id);
    *p = (struct pieces){0};
}

/* -- the list ------------------------------------------------------------------------------------------------------ */

static bool is_utf8(const char *text, size_t bytes) {
    int32_t code;
    for (size_t at = 0, used; at < bytes; at += used)
        if ((used = unicode_read(text + at, bytes - at, &code)) == 0) return false;
    return true;
}

/* Line `number`, from 1. */
static bool take_line(struct wordpiece *w, const char *path, size_t number, const char *line, size_t length,
                      struct err *e) {
    if (length > 0 && line[length - 1] == '\r') length--;
    if (length == 0) return err_set(e, "%s: line %zu is empty; each line must hold a piece", path, number);
    if (memchr(line, 0, length) || !is_utf8(line, length))
        return err_set(e, "%s: line %zu is not UTF-8; bring the file here anew", path, number);
    int32_t id = vocabulary_add(w->pieces, line, length);
    if (id < 0) return err_set(e, "%s: line %zu is one too many; there can be %d pieces", path, number, WORDPIECE_MOST);
    if ((size_t)id + 1 < number)
        return err_set(e, "%s: line %zu holds the piece of line %d once more; each may be there once", path, number,
                       id + 1);
    if (length > w->longest) w->longest = length;
    return true;
}

static bool find_special(struct wordpiece *w, const char *path, struct err *e) {
    static const char *const name[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    struct special_pieces *s = &w->special;
    int32_t *const to[] = {&s->pad, &s->unk, &s->cls, &s->sep, &s->mask};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        *to[i] = vocabulary_find(w->pieces, name[i], strlen(name[i]));
        if (*to[i] < 0)
            return err_set(e, "%s: none of its %zu lines is %s; give the vocabulary of an uncased BERT", path,
                           wordpiece_count(w), name[i]);
    }
    return true;
}

static bool take_lines(struct wordpiece *w, const char *path, const char *text, size_t bytes, struct err *e) {
    size_t number = 1;
    for (size_t at = 0; at < bytes; number++) {
        const char *end = memchr(text + at, '\n', bytes - at);
        size_t length = end ? (size_t)(end - (text + at)) : bytes - at;
        if (!take_line(w, path, number, text + at, length, e)) return false;
        at += length + 1;
    }
    return find_special(w, path, e);
}

/* The whole file, in fresh memory. */
static char *read_file(const char *path, size_t *bytes, struct err *e) {
    const char *why;
    FILE *file = file_read(path, &why);
    if (!file) {
        err_with(e, err_of_errno(errno), "cannot read %s: %s", path, why);
        return NULL;
    }
    char *text = NULL;
    size_t room = 1 << 16;
    for (*bytes = 0;; room *= 2) {
        text = mem_grow(text, *bytes, room, 1, "a vocabulary");
        *bytes += fread(text + *bytes, 1, room - *bytes, file);
        if (*bytes < room || room > WORDPIECE_FILE_MAX) break;
    }
    bool good = ferror(file) ? err_system(e, "cannot read %s: %s", path, strerror(errno))
                : room > WORDPIECE_FILE_MAX
                    ? err_set(e, "%s is too large for a vocabulary; give the vocab.txt of an uncased BERT", path)
                    : true;
    fclose(file);
    if (good) return text;
    mem_free(text);
    return NULL;
}

bool wordpiece_is_here(struct err *e) {
    return unicode_is_here() || err_set(e, "this build lacks utf8proc, by which texts are cut into pieces; install "
                                           "libutf8proc-dev and make it anew");
}

struct wordpiece *wordpiece_open(const char *path, struct err *e) {
    size_t bytes;
    if (!wordpiece_is_here(e)) return NULL;
    char *text = read_file(path, &bytes, e);
    if (!text) return NULL;
    struct wordpiece *w = mem_zalloc(1, sizeof *w, "a tokeniser");
    w->pieces = vocabulary_open(WORDPIECE_MOST);
    bool good = take_lines(w, path, text, bytes, e);
    mem_free(text);
    if (good) return w;
    wordpiece_close(w);
    return NULL;
}

void wordpiece_close(struct wordpiece *w) {
    if (!w) return;
    vocabulary_close(w->pieces);
    mem_free(w);
}

size_t wordpiece_count(const struct wordpiece *w) {
    return vocabulary_words(w->pieces);
}

struct special_pieces wordpiece_special(const struct wordpiece *w) {
    return w->special;
}

struct vocabulary wordpiece_lines(const struct wordpiece *w) {
    return vocabulary_lines(w->pieces);
}

/* -- words to pieces ----------------------------------------------------------------------------------------------- */

/* The longest piece at word[from .. *to), *to being lowered to its end; -1: none. The word is letters from HASHES on;
 * what lies before `from` is done with, so that the "##" of a piece that is no beginning can be written over it. */
static int32_t longest_piece(const struct wordpiece *w, char *word, size_t from, size_t *to) {
    size_t start = from == HASHES ? from : from - HASHES;
    if (start < from) memcpy(word + start, "##", HASHES);
    if (*to - start > w->longest) *to = start + w->longest;
    for (; *to > from; --*to) {
        if (((unsigned char)word[*to] & 0xc0) == 0x80) continue; /* within a code point */
        int32_t id = vocabulary_find(w->pieces, word + start, *to - start);
        if (id >= 0) return id;
    }
    return -1;
}

static void end_word(struct state *s) {
    size_t from = HASHES, end = HASHES + s->bytes, before = s->to->count;
    bool good = s->letters <= WORDPIECE_WORD_MAX;
    s->letters = s->bytes = 0;
    if (from == end) return;
    s->word[end] = 0; /* no byte within a code point */
    while (good && from < end) {
        size_t to = end;
        int32_t id = longest_piece(s->w, s->word, from, &to);
        good = id >= 0;
        if (good) pieces_add(s->to, id);
        from = to;
    }
    if (good) return;
    s->to->count = before;
    pieces_add(s->to, s->w->special.unk);
}

static void letter(struct state *s, int32_t code) {
    if (++s->letters <= WORDPIECE_WORD_MAX) s->bytes += unicode_write(code, s->word + HASHES + s->bytes);
}

static void word_of_one(struct state *s, int32_t code) {
    end_word(s);
    letter(s, code);
    end_word(s);
}

/* -- a text to words ----------------------------------------------------------------------------------------------- */

/* A code point that has been through all of 1. */
static void take_letter(struct state *s, int32_t code) {
    code = unicode_lower(code);
    enum unicode_kind kind = unicode_kind(code);
    bool ascii = code > ' ' && code < 127 && !(code >= 'a' && code <= 'z') && !(code >= '0' && code <= '9');
    if (kind == UNICODE_BLANK)
        end_word(s);
    else if (kind == UNICODE_PUNCTUATION || ascii)
        word_of_one(s, code);
    else
        letter(s, code);
}

static void take_marks(struct state *s) {
    for (int i = 0; i < s->marks; i++) take_letter(s, s->mark[i]);
    s->marks = 0;
}

/* A code point of the decomposed text. Marks are sorted by their classes, equal ones staying as they are, between the
 * starters around them; those that go do so before, which changes nothing for the others. */
static void take_part(struct state *s, int32_t code) {
    int class = unicode_combining(code);
    bool goes = unicode_kind(code) == UNICODE_NONSPACING;
    if (class == 0 || (!goes && s->marks == MARKS)) take_marks(s);
    if (goes) return;
    if (class == 0) {
        take_letter(s, code);
        return;
    }
    int at = s->marks++;
    for (; at > 0 && unicode_combining(s->mark[at - 1]) > class; at--) s->mark[at] = s->mark[at - 1];
    s->mark[at] = code;
}

/* The blocks of unified and compatibility ideographs that BERT's tokeniser names. */
static bool is_ideograph(int32_t code) {
    static const struct {
        int32_t first, last;
    } block[] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},   {0x20000, 0x2a6df},
                 {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b820, 0x2ceaf}, {0x2f800, 0x2fa1f}};
    for (size_t i = 0; i < sizeof block / sizeof *block; i++)
        if (code >= block[i].first && code <= block[i].last) return true;
    return false;
}

static void end_here(struct state *s) {
    take_marks(s);
    end_word(s);
}

/* A code point as it stands in the text. */
static void take_code(struct state *s, int32_t code) {
    int32_t part[UNICODE_PARTS];
    bool blank = code == ' ' || code == '\t' || code == '\n' || code == '\r', alone = is_ideograph(code);
    enum unicode_kind kind = blank ? UNICODE_BLANK : unicode_kind(code);
    bool control = (code < ' ' && !blank) || code == 0x85; /* blanks of a kind, but cleaned as controls are */
    if (kind == UNICODE_CONTROL || control || code == 0xfffd) return;
    if (kind == UNICODE_BLANK || alone) end_here(s);
    if (kind == UNICODE_BLANK) return;
    int parts = unicode_decompose(code, part);
    for (int i = 0; i < parts; i++) take_part(s, part[i]);
    if (alone) end_here(s);
}

/* ASCII by itself: the same, without a look into tables. */
static void take_ascii(struct state *s, char c) {
    take_marks(s);
    if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
        letter(s, c);
    else if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
        end_word(s);
    else if (c > ' ' && c < 127)
        word_of_one(s, c);
}

bool wordpiece_add(const struct wordpiece *w, const char *text, size_t bytes, struct pieces *to) {
    struct state s = {.w = w, .to = to};
    for (size_t at = 0, used; at < bytes; at += used) {
        int32_t code;
        used = 1;
        if ((unsigned char)text[at] < 128) {
            take_ascii(&s, text[at]);
            continue;
        }
        used = unicode_read(text + at, bytes - at, &code);
        if (used == 0) return false;
        take_code(&s, code);
    }
    end_here(&s);
    return true;
}
