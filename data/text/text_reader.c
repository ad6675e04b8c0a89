/* text_reader.c: see text_reader.h. */
#include "data/text/text_reader.h"

#include "base/mem.h"

enum { BUFFER = 64 << 10 };

struct reading {
    struct text_file file;
    struct vocabulary_index *words;
    bool learn;
    int32_t unknown; /* without learn */
    int32_t *token;
    size_t count, line; /* lines that have ended */
    bool within;        /* there is something after the last '\n' */
    size_t length;      /* of word */
    char word[TEXT_WORD_MAX], buffer[BUFFER];
};

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
                       r->file.path, r->line + 1, vocabulary_most(r->words));
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
                       r->file.path, r->line + 1);
    if (r->length == TEXT_WORD_MAX)
        return err_set(e, "%s: line %zu holds a word of more than %d bytes; put blanks between the words", r->file.path,
                       r->line + 1, TEXT_WORD_MAX);
    r->word[r->length++] = c;
    return true;
}

/* -- the file ------------------------------------------------------------------------------------------------------ */

static bool read_all(struct reading *r, struct err *e) {
    size_t got = 0;
    do {
        if (!text_file_read(&r->file, r->buffer, BUFFER, &got, e)) return false;
        for (size_t i = 0; i < got; i++)
            if (!take_byte(r, r->buffer[i], e)) return false;
    } while (got);
    if (r->within && !end_line(r, e)) return false;
    return r->count || err_set(e, "%s is empty; put the text there", r->file.path);
}

bool text_read(const char *path, uint64_t bytes, struct vocabulary_index *v, bool learn, int32_t *token, size_t *count,
               struct err *e) {
    struct reading *r = mem_zalloc(1, sizeof *r, "reading a text");
    r->words = v;
    r->learn = learn;
    r->token = token;
    r->unknown = vocabulary_find(v, TEXT_UNKNOWN, sizeof TEXT_UNKNOWN - 1);
    if (!learn && (r->unknown < 0 || vocabulary_find(v, TEXT_EOS, sizeof TEXT_EOS - 1) < 0))
        die("a vocabulary without " TEXT_UNKNOWN " or " TEXT_EOS);
    bool good = text_file_open(&r->file, path, bytes, e) && read_all(r, e);
    text_file_close(&r->file);
    *count = r->count;
    mem_free(r);
    return good;
}
