/* articles.c: see articles.h. */
#include "data/pairs/articles.h"

#include <string.h>

#include "base/mem.h"

/* A stretch of the text, [from, to). */
struct stretch {
    const char *from, *to;
};

struct reader {
    struct articles *a;
    const struct wordpiece *w;
    struct pieces found; /* of a sentence */
    const char *path, *end;
    size_t number; /* of the line, from 1 */
};

/* -- what grows ---------------------------------------------------------------------------------------------------- */

/* Room for `more` things behind the `count` that are in it. */
static void *make_room(void *block, size_t count, size_t more, size_t *room, size_t size) {
    if (count + more <= *room) return block;
    *room = 2 * (count + more) + 1024;
    return mem_grow(block, count, *room, size, "a text in pieces");
}

/* sentence[sentences] and article[count] are where the next ones begin. */
static void open_articles(struct articles *a) {
    a->sentence = make_room(NULL, 0, 1, &a->sentence_room, sizeof *a->sentence);
    a->article = make_room(NULL, 0, 1, &a->article_room, sizeof *a->article);
    a->sentence[0] = a->article[0] = 0;
}

static void end_article(struct articles *a) {
    if (a->article[a->count] == a->sentences) return;
    a->article = make_room(a->article, a->count + 1, 1, &a->article_room, sizeof *a->article);
    a->article[++a->count] = (uint32_t)a->sentences;
}

static bool add_sentence(struct reader *r, struct stretch s, struct err *e) {
    struct articles *a = r->a;
    r->found.count = 0;
    if (!wordpiece_add(r->w, s.from, (size_t)(s.to - s.from), &r->found))
        return err_set(e, "%s: line %zu is not UTF-8; convert the text (iconv)", r->path, r->number);
    const size_t more = r->found.count;
    if (more == 0) return true;
    if (a->pieces + more > UINT32_MAX) return err_set(e, "%s has more than 2^32 pieces; cut it", r->path);
    a->piece = make_room(a->piece, a->pieces, more, &a->piece_room, sizeof *a->piece);
    for (size_t i = 0; i < more; i++) a->piece[a->pieces + i] = (uint16_t)r->found.id[i];
    a->pieces += more;
    a->sentence = make_room(a->sentence, a->sentences + 1, 1, &a->sentence_room, sizeof *a->sentence);
    a->sentence[++a->sentences] = (uint32_t)a->pieces;
    return true;
}

void articles_close(struct articles *a) {
    mem_free(a->piece);
    mem_free(a->sentence);
    mem_free(a->article);
    *a = (struct articles){0};
}

/* -- lines --------------------------------------------------------------------------------------------------------- */

static bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The line that begins at `from`, without the blanks around it; *next: where the one after it begins. */
static struct stretch line_at(const char *from, const char *end, const char **next) {
    const char *stop = memchr(from, '\n', (size_t)(end - from));
    struct stretch s = {from, stop ? stop : end};
    *next = stop ? stop + 1 : end;
    while (s.from < s.to && is_blank(*s.from)) s.from++;
    while (s.from < s.to && is_blank(s.to[-1])) s.to--;
    return s;
}

static bool is_empty(struct stretch s) {
    return s.from == s.to;
}

/* "= ... =", with something between. */
static bool is_heading(struct stretch s) {
    return s.to - s.from >= 5 && s.from[0] == '=' && is_blank(s.from[1]) && s.to[-1] == '=' && is_blank(s.to[-2]);
}

static bool is_title(struct stretch s) {
    return is_heading(s) && s.from[2] != '=' && s.to[-3] != '=';
}

/* Cut behind each word ".". */
static bool add_paragraph(struct reader *r, struct stretch s, struct err *e) {
    struct stretch sentence = {s.from, s.to};
    for (const char *at = s.from; at < s.to; at++) {
        bool word = (at == s.from || is_blank(at[-1])) && (at + 1 == s.to || is_blank(at[1]));
        if (*at != '.' || !word) continue;
        sentence.to = at + 1;
        if (!add_sentence(r, sentence, e)) return false;
        sentence.from = at + 1;
    }
    sentence.to = s.to;
    return is_empty(sentence) || add_sentence(r, sentence, e);
}

static bool read_lines(struct reader *r, const char *text, struct err *e) {
    bool after_blank = true;
    for (const char *next; text < r->end; text = next, r->number++) {
        const char *beyond;
        const struct stretch line = line_at(text, r->end, &next);
        if (memchr(line.from, 0, (size_t)(line.to - line.from)))
            return err_set(e, "%s: line %zu holds a zero byte, so this is not plain text; convert it to UTF-8 (iconv)",
                           r->path, r->number);
        if (is_title(line) && after_blank && is_empty(line_at(next, r->end, &beyond))) end_article(r->a);
        if (!(is_heading(line) ? add_sentence(r, line, e) : add_paragraph(r, line, e))) return false;
        after_blank = is_empty(line);
    }
    return true;
}

bool articles_read(struct articles *a, const struct wordpiece *w, const char *path, const char *text, size_t bytes,
                   struct err *e) {
    struct reader r = {.a = a, .w = w, .path = path, .end = text + bytes, .number = 1};
    open_articles(a);
    bool good = read_lines(&r, text, e);
    end_article(a);
    pieces_close(&r.found);
    return good;
}
