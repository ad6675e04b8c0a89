/* cost.c: networks of the alpha-beta model: the built-in ones, and files of "key value" lines.
 *
 * A file:
 *
 *        # ping-pong between ranks 0 and 1 (comments and empty lines are passed over)
 *        name cluster
 *        source measured by sparsetrain p2p
 *        alpha 0.000436        [s]
 *        beta 3.6e-08          [s/word of 4 bytes]
 *        node_alpha 1e-06      the same inside a node; as alpha and beta where nodes make no difference
 *        node_beta 2e-10
 *
 * (with nothing behind the numbers). The four numbers must be there, once each. */
#include "comm/cost/cost.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/files/out_file.h"
#include "base/files/text_line.h"

/* Inside a node, where the source does not say: 1 us and 20 GB/s, about what two processes reach through memory. */
#define NODE_NOMINAL 1e-6, 2e-10

/* beta of a nominal one is 4 bytes at the line rate: 32 bits / (1e9 G bits/s). */
const struct network networks[] = {
    {"1gbe", 436e-6, 3.6e-8, NODE_NOMINAL, "measured: gTop-k (ICDCS 2019) Section IV-C, Fig. 8: 1 Gbit/s Ethernet"},
    {"10gbe", 30e-6, 32e-10, NODE_NOMINAL, "nominal: line rate of 10 Gbit/s Ethernet, 30 us through the kernel's TCP"},
    {"25gbe", 20e-6, 32e-9 / 25, NODE_NOMINAL,
     "nominal: line rate of 25 Gbit/s Ethernet (MSTopK's clouds), 20 us through the kernel's TCP"},
    {"100gbe", 3e-6, 32e-9 / 100, NODE_NOMINAL, "nominal: line rate of 100 Gbit/s Ethernet, 3 us by RDMA"},
    {"aries", 1.3e-6, 4 / 9607e6, NODE_NOMINAL,
     "Piz Daint, its operator's OSU checks (reframe pull 1232): 1.30 us, 9607 MB/s; Ok-Topk's paper states none"},
    {.name = ""},
};

/* alphas alpha + words beta, between nodes and inside them */
double cost_seconds(const struct cost *c, const struct network *net) {
    return c->alphas * net->alpha + c->words * net->beta + c->node_alphas * net->node_alpha +
           c->node_words * net->node_beta;
}

/* Factor from a message's length in coo32, 8 bytes an entry, to its length in this format. */
static double words_more(const struct cost_entries *s, const struct wire_ops *wire) {
    if (s->messages == 0) return 0;
    return s->messages * (wire->expected_bytes(s->entries, s->density) / 4 - 2 * s->entries);
}

/* In place of 4 bytes a value 2. */
static void halve(const struct cost_dense *dense, double *alphas, double *words) {
    *alphas += dense->alphas;
    *words -= dense->words / 2;
}

/* The same where indices and values travel apart, 4 bytes each. */
static double words_apart(const struct cost *coo32, const struct wire_ops *wire) {
    const struct cost_entries *i = &coo32->indices;
    if (i->messages == 0) return 0;
    return i->messages * (wire->indices->expected_bytes(i->entries, i->density) / 4 - i->entries) +
           coo32->values * ((double)wire->value_bytes / 4 - 1);
}

void cost_in_format(const struct cost *coo32, const struct wire_ops *wire, struct cost *to) {
    *to = *coo32;
    if (wire->pack) {
        halve(&coo32->dense, &to->alphas, &to->words);
        halve(&coo32->node_dense, &to->node_alphas, &to->node_words);
    }
    to->words += words_more(&coo32->sparse, wire) + words_apart(coo32, wire);
    to->node_words += words_more(&coo32->node_sparse, wire);
    if (wire->fixed || (coo32->sparse.messages == 0 && coo32->indices.messages == 0)) return;
    to->alphas += coo32->size_alphas;
    to->words += coo32->size_words;
}

/* -- local work ------------------------------------------------------------------------------------ */
static double message_words(const struct cost_entries *s, const struct wire_ops *wire) {
    return wire ? wire->expected_bytes(s->entries, s->density) / 4 : 2 * s->entries;
}

/* Words of so many of these messages. */
static double words_of(const struct cost_entries *s, double messages, const struct wire_ops *wire) {
    return messages == 0 ? 0 : messages * message_words(s, wire);
}

double cost_received(const struct cost *coo32, const struct wire_ops *wire) {
    const struct cost_entries *s = &coo32->sparse, *in_node = &coo32->node_sparse;
    struct cost now = *coo32;
    if (wire) cost_in_format(coo32, wire, &now);
    return now.words + now.node_words - words_of(s, s->messages - s->unpacked, wire) -
           words_of(in_node, in_node->messages - in_node->unpacked, wire);
}

/* Words that are no part of sparse vectors, whatever the format of these. */
static double words_outside(const struct cost *coo32) {
    return coo32->words - words_of(&coo32->sparse, coo32->sparse.messages, NULL) + coo32->node_words -
           words_of(&coo32->node_sparse, coo32->node_sparse.messages, NULL);
}

static double halves(const struct cost *coo32, const struct wire_ops *wire) {
    const struct cost_dense *d = &coo32->dense, *in_node = &coo32->node_dense;
    return wire && wire->pack ? d->packed + d->unpacked + in_node->packed + in_node->unpacked : 0;
}

/* indices packed (pack - round) + indices unpacked decode + values rounded round; in coo32 they are moved as they are,
 * which is in `add`. */
static double local_apart(const struct cost *coo32, const struct wire_ops *wire, const struct local_cost *local) {
    const struct cost_entries *i = &coo32->indices;
    if (!wire) return 0;
    double rounded = wire->rounds ? coo32->rounded * local->round : 0;
    if (wire->indices->fixed) return rounded;
    return i->entries * (i->packed * (local->pack - local->round) + i->unpacked * local->decode) + rounded;
}

/* n select + entries packed pack + entries unpacked unpack + indices and values apart + words outside add +
 * halves half + values coded code + words received word */
double cost_local(const struct cost *coo32, const struct wire_ops *wire, double n, const struct local_cost *local) {
    const struct cost_entries *s = &coo32->sparse, *in_node = &coo32->node_sparse;
    return n * local->select + (s->packed * s->entries + in_node->packed * in_node->entries) * local->pack +
           (s->unpacked * s->entries + in_node->unpacked * in_node->entries) * local->unpack +
           local_apart(coo32, wire, local) + words_outside(coo32) * local->add + halves(coo32, wire) * local->half +
           coo32->coded * local->code + cost_received(coo32, wire) * local->word;
}

/* sums max(0, sum - beta), and the same inside the nodes */
double cost_sums(const struct cost *coo32, const struct wire_ops *wire, const struct local_cost *local,
                 const struct network *net) {
    if (!net || (wire && wire->pack)) return 0;
    return coo32->sums * fmax(0, local->sum - net->beta) + coo32->node_sums * fmax(0, local->sum - net->node_beta);
}

/* -- files ----------------------------------------------------------------------------------------- */
enum { LINE = 512, NUMBERS = 4 };

static const char *const number_keys[NUMBERS] = {"alpha", "beta", "node_alpha", "node_beta"};

static double *number_of(struct network *net, size_t i) {
    double *const numbers[NUMBERS] = {&net->alpha, &net->beta, &net->node_alpha, &net->node_beta};
    return numbers[i];
}

/* Without blanks at both ends. */
static char *trim(char *text) {
    while (isspace((unsigned char)*text)) text++;
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1])) text[--length] = 0;
    return text;
}

/* Text of an unknown file on its way to the terminal. */
static const char *printable(char *text) {
    for (char *at = text; *at; at++)
        if (!isprint((unsigned char)*at)) *at = '?';
    return text;
}

struct reader {
    const char *path;
    size_t line;
    bool seen[NUMBERS], seen_name, seen_source;
};

static bool take_text(const struct reader *r, const char *key, char *value, bool *seen, char *to, size_t size,
                      struct err *e) {
    if (*seen) return err_set(e, "%s:%zu: %s is there twice", r->path, r->line, key);
    *seen = true;
    snprintf(to, size, "%s", printable(value));
    return true;
}

static bool take_number(struct reader *r, size_t i, char *value, struct network *net, struct err *e) {
    const char *key = number_keys[i];
    char *end;
    if (r->seen[i]) return err_set(e, "%s:%zu: %s is there twice", r->path, r->line, key);
    r->seen[i] = true;
    double x = strtod(value, &end);
    if (!*value || *end || !isfinite(x))
        return err_set(e, "%s:%zu: %s %.60s: a number of seconds is needed", r->path, r->line, key, printable(value));
    if (signbit(x) && x != 0)
        return err_set(e, "%s:%zu: %s %.60s: it must not be negative", r->path, r->line, key, value);
    *number_of(net, i) = x + 0.0; /* no -0 */
    return true;
}

static bool take_line(struct reader *r, char *line, struct network *net, struct err *e) {
    char *key = trim(line);
    if (!*key || *key == '#') return true;
    char *value = key + strcspn(key, " \t");
    if (*value) *value++ = 0;
    value = trim(value);
    if (strcmp(key, "name") == 0) return take_text(r, key, value, &r->seen_name, net->name, sizeof net->name, e);
    if (strcmp(key, "source") == 0)
        return take_text(r, key, value, &r->seen_source, net->source, sizeof net->source, e);
    for (size_t i = 0; i < NUMBERS; i++)
        if (strcmp(key, number_keys[i]) == 0) return take_number(r, i, value, net, e);
    return err_set(e, "%s:%zu: unknown key \"%.60s\"; known are name, source, alpha, beta, node_alpha, node_beta",
                   r->path, r->line, printable(key));
}

static bool read_lines(struct reader *r, FILE *file, struct network *net, struct err *e) {
    char line[LINE];
    while (text_line(file, line, sizeof line, r->path, &r->line, e))
        if (!take_line(r, line, net, e)) return false;
    if (e->text[0]) return false;
    for (size_t i = 0; i < NUMBERS; i++)
        if (!r->seen[i])
            return err_set(e, "%s: %s is missing%s", r->path, number_keys[i],
                           i < 2 ? "" : " (where nodes make no difference, give it the value of alpha or beta)");
    return true;
}

bool network_find(const char *name, struct network *net, struct err *e) {
    for (const struct network *known = networks; *known->name; known++) {
        if (strcmp(name, known->name) != 0) continue;
        *net = *known;
        return true;
    }
    const char *why;
    FILE *file = file_read(name, &why);
    if (!file && errno == ENOENT) {
        char list[128] = "";
        for (const struct network *known = networks; *known->name; known++)
            snprintf(list + strlen(list), sizeof list - strlen(list), "%.16s, ", known->name);
        return err_set(e, "there is no network %s: known are %sor a file that sparsetrain p2p --out wrote", name, list);
    }
    if (!file) return err_with(e, err_of_errno(errno), "cannot open %s: %s", name, why);
    struct reader r = {.path = name};
    const char *base = strrchr(name, '/');
    *net = (struct network){0};
    bool ok = read_lines(&r, file, net, e);
    fclose(file);
    if (!*net->name) snprintf(net->name, sizeof net->name, "%s", base ? base + 1 : name);
    return ok;
}

/* The shortest text that reads back as the same number. */
static void write_number(FILE *file, const char *key, double x) {
    char text[32];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x) break;
    }
    fprintf(file, "%s %s\n", key, text);
}

bool network_write(const char *path, const struct network *net, const char *comment, struct err *e) {
    struct network copy = *net;
    struct out_file out;
    if (!out_file_open(&out, path, NULL, e)) return false;
    for (const char *at = comment ? comment : ""; *at; at += strcspn(at, "\n"), at += *at == '\n')
        fprintf(out.file, "# %.*s\n", (int)strcspn(at, "\n"), at);
    if (*copy.name) fprintf(out.file, "name %s\n", printable(copy.name));
    if (*copy.source) fprintf(out.file, "source %s\n", printable(copy.source));
    for (size_t i = 0; i < NUMBERS; i++) write_number(out.file, number_keys[i], *number_of(&copy, i));
    return out_file_close(&out, e);
}
