/* data_show_pairs.c: see data_show_pairs.h. */
#include "cli/data_show_pairs.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "data/loader.h"
#include "data/pairs/masked.h"

enum { WIDTH = 100, INDENT = 4 }; /* columns of a line of text, blanks that it begins with */

/* A sequence with its place in the order, and what it is shown by. */
struct shown {
    const struct show_pairs *how;
    const struct dataset *d;
    size_t epoch, sample;
    uint32_t sequence;
    struct masked x;   /* batch is 1 */
    int most;          /* places in x.chosen */
    const char **name; /* [classes + 1] where each piece begins in the vocabulary's lines; the last one: their end */
};

static const char **names_open(const struct dataset *d) {
    const char **name = mem_alloc((size_t)d->classes + 1, sizeof *name, "the pieces by number"),
               *at = d->vocabulary.lines;
    for (int i = 0; i < d->classes; i++) {
        name[i] = at;
        at = (const char *)memchr(at, '\n', (size_t)(d->vocabulary.lines + d->vocabulary.bytes - at)) + 1;
    }
    name[d->classes] = at;
    return name;
}

/* -- for programs -------------------------------------------------------------------------------------------------- */

static void integers(struct json *j, const char *key, const int32_t *x, int count) {
    json_array(j, key);
    for (int i = 0; i < count; i++) json_integer(j, NULL, x[i]);
    json_end(j);
}

/* Members are called as those of struct masked. */
static void print_json(const struct shown *s) {
    struct json j;
    json_open(&j);
    json_object(&j, NULL);
    if (!s->how->test) json_integer(&j, "epoch", (int64_t)s->epoch);
    json_integer(&j, "sample", (int64_t)s->sample);
    json_integer(&j, "sequence", s->sequence);
    json_integer(&j, "length", *s->x.lengths);
    integers(&j, "token", s->x.token, s->d->length);
    integers(&j, "type", s->x.type, s->d->length);
    integers(&j, "chosen", s->x.chosen, s->most);
    integers(&j, "y", s->x.y, s->most);
    json_integer(&j, "next", *s->x.next);
    json_end(&j);
    puts(json_text(&j));
    json_close(&j);
}

/* -- for people ---------------------------------------------------------------------------------------------------- */

/* A word of the output, so long as it needs. */
struct word {
    char *text;
    size_t bytes, room;
    int columns;
};

static void add(struct word *w, const char *text, size_t bytes) {
    if (w->bytes + bytes > w->room) {
        const size_t room = 2 * (w->bytes + bytes) + 64;
        w->text = mem_grow(w->text, w->bytes, room, 1, "a word");
        w->room = room;
    }
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char c = (unsigned char)text[i], after = i + 1 < bytes ? (unsigned char)text[i + 1] : 0;
        w->columns += (c & 0xc0) != 0x80;
        /* What would steer a terminal: control characters of ASCII, and those from U+0080 to U+009F */
        const bool steers = c < ' ' || c == 0x7f, steers_after = c == 0xc2 && after >= 0x80 && after < 0xa0;
        w->text[w->bytes++] = steers || steers_after ? '?' : text[i];
        i += steers_after;
    }
}

static void add_piece(struct word *w, const struct shown *s, int32_t piece) {
    add(w, s->name[piece], (size_t)(s->name[piece + 1] - s->name[piece] - 1));
}

/* {label}, {label->token}, {label=} of one that is to be predicted, else the piece; *next is of those, in order. */
static void add_place(struct word *w, const struct shown *s, int at, int *next) {
    const int32_t token = s->x.token[at];
    if (*next == s->most || s->x.y[*next] < 0 || s->x.chosen[*next] != at) {
        add_piece(w, s, token);
        return;
    }
    const int32_t label = s->x.y[(*next)++];
    add(w, "{", 1);
    add_piece(w, s, label);
    if (token == label) {
        add(w, "=", 1);
    } else if (token != s->d->special.mask) {
        add(w, "->", 2);
        add_piece(w, s, token);
    }
    add(w, "}", 1);
}

/* The pieces before the padding, each part on lines of its own. */
static void print_pieces(const struct shown *s) {
    struct word w = {0};
    int column = WIDTH, next = 0, part = -1;
    for (int at = 0; at < *s->x.lengths; at++) {
        const int32_t type = s->x.type[at];
        w.bytes = 0;
        w.columns = 0;
        add_place(&w, s, at, &next);
        const bool begins = at == 0 || (type != part && type == 1);
        if (begins || column + 1 + w.columns > WIDTH) {
            printf("%s%*s", at ? "\n" : "", INDENT - 1, begins ? (type ? "B" : "A") : "");
            column = INDENT - 1;
        }
        printf(" %.*s", (int)w.bytes, w.text);
        column += 1 + w.columns;
        part = type;
    }
    putchar('\n');
    mem_free(w.text);
}

static void print_text(const struct shown *s) {
    const int length = *s->x.lengths, padding = s->d->length - length;
    int labels = 0;
    while (labels < s->most && s->x.y[labels] >= 0) labels++;
    printf("\nsample %zu", s->sample);
    if (s->epoch != s->how->epoch) printf(" of epoch %zu", s->epoch);
    printf(", sequence %u: %d pieces", s->sequence, length);
    if (padding > 0) printf(" and %d of padding", padding);
    printf(", %d to be predicted; B %s\n", labels, *s->x.next ? "is of another article" : "follows A");
    print_pieces(s);
}

static void print_head(const struct show_pairs *s) {
    const struct dataset *d = s->data;
    printf("%s, %s pairs (%zu) of up to %d pieces, ", d->ops->name, s->test ? "test" : "training",
           s->test ? d->test_pairs.count : d->train_pairs.count, d->length);
    if (s->test)
        puts("in the order and with the masks of an evaluation");
    else
        printf("seed %llu, epoch %zu\n", (unsigned long long)s->seed, s->epoch);
    puts("To be predicted: {word} hidden by [MASK], {word->other} replaced by another, {word=} left as it is");
}

/* -- where they come from ------------------------------------------------------------------------------------------ */

static void show(const struct shown *s) {
    if (s->how->json)
        print_json(s);
    else
        print_text(s);
}

static void show_training(struct shown *s) {
    const struct show_pairs *how = s->how;
    const size_t count = s->d->train_pairs.count;
    struct loader *l = loader_open(&(struct loader_setup){.data = s->d,
                                                          .batch = 1,
                                                          .rank = 0,
                                                          .size = 1,
                                                          .seed = how->seed,
                                                          .first_step = how->epoch * count,
                                                          .predictions = s->most});
    for (size_t i = 0; i < how->samples; i++) {
        const struct batch *b = loader_next(l);
        s->epoch = b->step / count;
        s->sample = b->step % count;
        s->sequence = *b->index;
        s->x = (struct masked){b->token, b->type, b->chosen, b->y, b->lengths, b->next};
        show(s);
    }
    loader_close(l);
}

static void show_test(struct shown *s) {
    const size_t length = (size_t)s->d->length, most = (size_t)s->most;
    int32_t *all = mem_alloc(2 * length + 2 * most + 2, sizeof *all, "a sequence");
    s->x = (struct masked){all,
                           all + length,
                           all + 2 * length,
                           all + 2 * length + most,
                           all + 2 * (length + most),
                           all + 2 * (length + most) + 1};
    for (size_t i = 0; i < s->how->samples; i++) {
        s->sample = i;
        s->sequence = (uint32_t)i;
        masked_fill_eval(s->d, &s->d->test_pairs, i, 1, 1, s->most, &s->x);
        show(s);
    }
    mem_free(all);
}

bool show_pairs(const struct show_pairs *how, struct err *e) {
    const struct dataset *d = how->data;
    struct shown s = {.how = how, .d = d, .most = masked_most(d->length)};
    if (how->test && how->samples > d->test_pairs.count)
        return err_set(e, "data show: --samples %zu is more than the %zu test pairs there are; ask for fewer",
                       how->samples, d->test_pairs.count);
    s.name = names_open(d);
    if (!how->json) print_head(how);
    if (how->test)
        show_test(&s);
    else
        show_training(&s);
    mem_free(s.name);
    return true;
}
