/* profile.c: the text of a profile, see profile.h. */
#include "cli/gradients/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/file.h"
#include "base/files/out_file.h"
#include "base/mem.h"

enum { FILE_MAX = 1 << 28 };

double profile_union(const struct profile *p, double P) {
    double sum = 0;
    for (uint64_t j = 0; j < p->slices; j++) {
        struct overlap_slice s = profile_overlap_slice(&p->slice[j], p->k);
        sum += overlap_union(&p->overlap, &s, 1, P);
    }
    return sum;
}

void profile_close(struct profile *p) {
    mem_free(p->measured);
    mem_free(p->fitted);
    mem_free(p->slice);
    memset(p, 0, sizeof *p);
}

/* -- writing ------------------------------------------------------------------------------------------------------- */

/* The shortest text that reads back as the same number. */
static const char *shortest(double x, char text[32]) {
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, 32, "%.*g", digits, x);
        if (strtod(text, NULL) == x) break;
    }
    return text;
}

static void write_number(FILE *file, const char *key, double x) {
    char text[32];
    fprintf(file, "%s %s\n", key, shortest(x, text));
}

static void write_text(FILE *file, const char *key, const char *value) {
    fprintf(file, "%s ", key);
    for (; *value; value++) fputc((unsigned char)*value < ' ' ? '?' : *value, file);
    fputc('\n', file);
}

static void write_lines(const struct profile *p, FILE *file) {
    char text[2][32];
    fprintf(file, "sparsetrain-profile %d\n", PROFILE_VERSION);
    write_text(file, "model", p->model);
    write_text(file, "data", p->data);
    fprintf(file, "n %" PRIu64 "\nranks %" PRIu64 "\nsteps %" PRIu64 "\n", p->n, p->ranks, p->steps);
    write_number(file, "distance", p->distance);
    write_number(file, "k", p->k);
    write_number(file, "density", p->density);
    write_number(file, "q", p->overlap.q);
    write_number(file, "h", p->overlap.h);
    fprintf(file, "fixed %s\n", p->h_fixed ? "h" : "none");
    write_number(file, "sign_agreement", p->sign_agreement);
    write_number(file, "persistence", p->persistence);
    fputs("tail", file);
    for (int i = 0; i < PROFILE_TAIL; i++) fprintf(file, " %s", shortest(p->tail[i], text[0]));
    fputs("\n# union P measured fitted\n", file);
    for (uint64_t i = 0; i < p->ranks; i++)
        fprintf(file, "union %" PRIu64 " %s %s\n", i + 1, shortest(p->measured[i], text[0]),
                shortest(p->fitted[i], text[1]));
    fputs("# slice size share name\n", file);
    for (uint64_t j = 0; j < p->slices; j++) {
        fprintf(file, "slice %" PRIu64 " %s", p->slice[j].size, shortest(p->slice[j].share, text[0]));
        write_text(file, "", p->slice[j].name);
    }
}

bool profile_write(const struct profile *p, const char *path, struct err *e) {
    struct out_file out;
    if (!out_file_open(&out, path, "--out", e)) return false;
    write_lines(p, out.file);
    return out_file_close(&out, e);
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

char *profile_load(const char *path, struct err *e) {
    struct stat info;
    const char *why;
    FILE *file = file_read(path, &why);
    if (!file) {
        err_with(e, err_of_errno(errno), "cannot read the profile %s: %s", path, why);
        return NULL;
    }
    char *text = NULL;
    if (fstat(fileno(file), &info) != 0 || info.st_size > FILE_MAX) {
        err_set(e, "%s is no profile (sparsetrain fit RECORDING --out FILE makes one)", path);
    } else {
        size_t bytes = (size_t)info.st_size;
        text = mem_zalloc(bytes + 1, 1, "a profile");
        if (fread(text, 1, bytes, file) != bytes) {
            if (ferror(file))
                err_system(e, "cannot read the profile %s: %s", path, strerror(errno));
            else
                err_set(e, "cannot read the profile %s: it became shorter while it was read", path);
            mem_free(text);
            text = NULL;
        } else if (strlen(text) != bytes) {
            err_set(e, "%s is no profile: it is no text (sparsetrain fit RECORDING --out FILE makes one)", path);
            mem_free(text);
            text = NULL;
        }
    }
    fclose(file);
    return text;
}

struct parser {
    struct profile *p;
    const char *path;
    size_t line;
    uint64_t unions, slices; /* read so far */
    double shares;
    uint64_t sizes;
};

static bool wrong(const struct parser *r, const char *what, struct err *e) {
    return err_set(e, "%s, line %zu: %s", r->path, r->line, what);
}

/* A number at *at within these bounds; *at moves behind it and one blank. */
static bool number(char **at, double least, double most, double *value) {
    char *end;
    if (**at == ' ') return false;
    *value = strtod(*at, &end);
    bool good = end != *at && (*end == ' ' || !*end) && *value >= least && *value <= most;
    *at = end + (*end == ' ');
    return good;
}

static bool whole(char **at, double least, double most, uint64_t *value) {
    double x;
    if (!number(at, least, most, &x) || x != floor(x)) return false;
    *value = (uint64_t)x;
    return true;
}

static bool take_text(char *to, size_t room, const char *value) {
    return (size_t)snprintf(to, room, "%s", value) < room;
}

static bool take_fixed(struct profile *p, const char *value) {
    p->h_fixed = strcmp(value, "h") == 0;
    return p->h_fixed || strcmp(value, "none") == 0;
}

static bool take_tail(struct profile *p, char *value) {
    for (int i = 0; i < PROFILE_TAIL; i++)
        if (!number(&value, i ? p->tail[i - 1] : 0, 80, &p->tail[i])) return false;
    return *value == '\0';
}

/* The keys in the order in which they come; those of lists come at the end. */
enum { KEYS = 15 };
static const char *const keys[KEYS] = {
    "sparsetrain-profile", "model",       "data", "n", "ranks", "steps", "distance", "k", "density", "q", "h", "fixed",
    "sign_agreement",      "persistence", "tail"};

static bool take_single(struct parser *r, int key, char *at) {
    struct profile *p = r->p;
    uint64_t version;
    switch (key) {
    case 0:
        return whole(&at, PROFILE_VERSION, PROFILE_VERSION, &version) && !*at;
    case 1:
        return take_text(p->model, sizeof p->model, at);
    case 2:
        return take_text(p->data, sizeof p->data, at);
    case 3:
        return whole(&at, 1, UINT32_MAX, &p->n) && !*at;
    case 4:
        return whole(&at, 2, PROFILE_RANKS_MAX, &p->ranks) && !*at;
    case 5:
        return whole(&at, 1, 1e15, &p->steps) && !*at;
    case 6:
        return number(&at, 0, 1e15, &p->distance) && !*at;
    case 7:
        return number(&at, 0, (double)p->n, &p->k) && p->k > 0 && !*at;
    case 8:
        return number(&at, 0, 1, &p->density) && p->density > 0 && !*at;
    case 9:
        return number(&at, 0, 1, &p->overlap.q) && !*at;
    case 10:
        return number(&at, p->overlap.q, 1e9, &p->overlap.h) && p->overlap.h > 0 && !*at;
    case 11:
        return take_fixed(p, at);
    case 12:
        return number(&at, 0, 1, &p->sign_agreement) && !*at;
    case 13:
        return number(&at, 0, 1, &p->persistence) && !*at;
    default:
        return take_tail(p, at);
    }
}

static bool take_union(struct parser *r, char *at) {
    struct profile *p = r->p;
    uint64_t P, i = r->unions++;
    if (i >= p->ranks) return false;
    return whole(&at, (double)i + 1, (double)i + 1, &P) && number(&at, 0, (double)p->n, &p->measured[i]) &&
           number(&at, 0, (double)p->n, &p->fitted[i]) && !*at;
}

static bool take_slice(struct parser *r, char *at) {
    struct profile *p = r->p;
    if (r->slices == PROFILE_SLICES_MAX) return false;
    if ((r->slices & (r->slices - 1)) == 0) { /* full: it has room for a power of two */
        struct profile_slice *more = mem_zalloc(2 * (r->slices ? r->slices : 1), sizeof *more, "slices of a profile");
        if (r->slices) memcpy(more, p->slice, r->slices * sizeof *more);
        mem_free(p->slice);
        p->slice = more;
    }
    struct profile_slice *s = &p->slice[r->slices++];
    if (!whole(&at, 0, (double)p->n, &s->size) || !number(&at, 0, 1, &s->share)) return false;
    p->slices = r->slices;
    r->sizes += s->size;
    r->shares += s->share;
    return take_text(s->name, sizeof s->name, at) && s->share * p->k <= (double)s->size * (1 + 1e-9) + 1e-9;
}

/* One line, of which `key` must be the first word. */
static bool take_line(struct parser *r, int *next, char *line, struct err *e) {
    char *at = line + strcspn(line, " ");
    if (*at) *at++ = '\0';
    bool good = true;
    if (*next < KEYS) {
        if (strcmp(line, keys[*next]) != 0) {
            if (*next == 0)
                return err_set(e, "%s is no profile (sparsetrain fit RECORDING --out FILE makes one)", r->path);
            return err_set(e, "%s, line %zu: \"%.40s\" where %s must be", r->path, r->line, line, keys[*next]);
        }
        good = take_single(r, (*next)++, at);
        if (!good && *next == 1)
            return err_set(e, "%s, line %zu: this program reads profiles of version %d", r->path, r->line,
                           PROFILE_VERSION);
        if (*next == KEYS) {
            r->p->measured = mem_zalloc(r->p->ranks, sizeof(double), "unions of a profile");
            r->p->fitted = mem_zalloc(r->p->ranks, sizeof(double), "unions of a profile");
        }
    } else if (strcmp(line, "union") == 0) {
        good = take_union(r, at);
    } else if (strcmp(line, "slice") == 0) {
        good = take_slice(r, at);
    } else {
        return err_set(e, "%s, line %zu: there is no \"%.40s\" in a profile", r->path, r->line, line);
    }
    if (good) return true;
    return err_set(e, "%s, line %zu: what stands behind %.40s makes no sense", r->path, r->line, line);
}

static bool complete(struct parser *r, int next, struct err *e) {
    if (next == 0) return err_set(e, "%s is no profile (sparsetrain fit RECORDING --out FILE makes one)", r->path);
    if (next < KEYS) return err_set(e, "%s is not complete: %s is missing", r->path, keys[next]);
    if (r->unions != r->p->ranks) return wrong(r, "there must be a line union for each number of ranks", e);
    if (r->slices == 0 || r->sizes != r->p->n) return wrong(r, "the slices do not add up to n", e);
    if (!(fabs(r->shares - 1) < 1e-6)) return wrong(r, "the shares of the slices do not add up to 1", e);
    return true;
}

bool profile_parse(struct profile *p, char *text, const char *path, struct err *e) {
    struct parser r = {.p = p, .path = path};
    int next = 0;
    bool good = true;
    memset(p, 0, sizeof *p);
    for (char *line = text; good && *line;) {
        char *end = line + strcspn(line, "\n"), *following = end + (*end == '\n');
        *end = '\0';
        r.line++;
        if (*line && *line != '#') good = take_line(&r, &next, line, e);
        line = following;
    }
    good = good && complete(&r, next, e);
    if (!good) profile_close(p);
    return good;
}

bool profile_read(struct profile *p, const char *path, struct err *e) {
    memset(p, 0, sizeof *p);
    char *text = profile_load(path, e);
    bool good = text && profile_parse(p, text, path, e);
    mem_free(text);
    return good;
}
