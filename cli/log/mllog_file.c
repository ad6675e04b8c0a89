/* mllog_file.c: see mllog_file.h. */
#include "cli/log/mllog_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/out_file.h"
#include "base/mem.h"
#include "cli/log/log_rows.h"

static const char token[] = ":::MLLOG ", run_key[] = "sparsetrain_run";

int64_t mllog_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* It cannot be opened; errno. */
static bool cannot_write(const char *path, const char *why, struct err *e) {
    return err_with(e, err_of_errno(errno), "cannot write --mllog %.300s: %s; give another file", path, why);
}

/* -- what is there ------------------------------------------------------------------------------------------------- */

struct found {
    bool there;   /* the file is */
    bool lines;   /* there is something in it */
    bool torn;    /* a last line that has no end, */
    off_t whole;  /* behind so many bytes */
    bool begun;   /* it is all there is, and a line as ours are */
    bool ours;    /* the last run in it is this one, */
    bool started; /* and that has begun and not ended */
    bool ended;   /* it has */
    long epoch;   /* one that has begun and not ended; 0: none */
    bool eval;    /* so has an evaluation */
};

static bool has_key(const char *line, const char *key) {
    char text[64];
    snprintf(text, sizeof text, "\"key\":\"%s\"", key);
    return strstr(line, text) != NULL;
}

/* 0: there is no such number. */
static long integer_of(const char *line, const char *key) {
    char text[64];
    snprintf(text, sizeof text, "\"%s\":", key);
    const char *at = strstr(line, text);
    return at ? strtol(at + strlen(text), NULL, 10) : 0;
}

static void look_at(const char *line, uint64_t run, struct found *f) {
    char mine[48];
    if (strncmp(line, token, sizeof token - 1) != 0) return;
    snprintf(mine, sizeof mine, "\"value\":\"%016" PRIx64 "\"", run);
    if (has_key(line, run_key)) f->ours = strstr(line, mine) != NULL;
    if (has_key(line, "run_start")) f->started = f->ours;
    if (has_key(line, "run_stop")) {
        f->ended = f->started;
        f->started = false;
    }
    if (has_key(line, "epoch_start")) f->epoch = integer_of(line, "epoch_num");
    if (has_key(line, "epoch_stop")) f->epoch = 0;
    if (has_key(line, "eval_start")) f->eval = true;
    if (has_key(line, "eval_stop")) f->eval = false;
}

/* The first line of a log, or what a power failure has left of it? */
static bool is_begin(const char *line) {
    const size_t length = strlen(line);
    return length > 0 && strncmp(line, token, length < sizeof token - 1 ? length : sizeof token - 1) == 0;
}

/* A line without an end goes (cut), so that nothing it says counts. False: the file cannot be read; errno. */
static bool read_lines(FILE *file, uint64_t run, struct found *f) {
    char *line = NULL;
    size_t size = 0;
    while (log_row_next(file, &line, &size)) {
        f->lines = true;
        f->torn = feof(file);
        f->begun = f->torn && f->whole == 0 && is_begin(line);
        if (f->torn) break;
        look_at(line, run, f);
        f->whole = ftello(file);
    }
    const int reason = errno;
    mem_free(line);
    errno = reason;
    return !ferror(file);
}

/* False: it could not be found out, and a file that is there must not be taken for none, or for an empty one. */
static bool look(const char *path, uint64_t run, struct found *f, struct err *e) {
    const char *why;
    *f = (struct found){0};
    if (out_file_is_stream(path)) return true;
    f->there = access(path, F_OK) == 0;
    if (!f->there && errno != ENOENT && errno != ENOTDIR) return cannot_write(path, strerror(errno), e);
    if (!f->there) return true;
    FILE *file = file_read(path, &why);
    if (!file) return cannot_write(path, why, e);
    const bool good =
        read_lines(file, run, f) || err_system(e, "cannot read --mllog %.300s: %s", path, strerror(errno));
    fclose(file);
    return good;
}

/* run 0: a new one. */
static bool fits(const char *path, uint64_t run, struct found *f, struct err *e) {
    if (strlen(path) > 1000) return err_set(e, "--mllog: the name of the file is too long");
    if (!look(path, run, f, e)) return false;
    if (!f->lines || (run && (f->ours || f->begun))) return true;
    return err_set(e, "--mllog %.300s holds %s already; give another file", path,
                   run ? "something else than the log of this run" : "something");
}

/* Behind what is there. NULL: *why, and errno. */
static FILE *append(const char *path, const char **why) {
    return out_file_is_stream(path) ? out_file_stream(path, why) : file_append(path, why);
}

bool mllog_file_check(const char *path, uint64_t run, struct err *e) {
    struct found f;
    const char *why;
    if (!fits(path, run, &f, e)) return false;
    FILE *file = append(path, &why);
    if (!file) return cannot_write(path, why, e);
    fclose(file);
    if (!f.there && !out_file_is_stream(path)) unlink(path);
    return true;
}

/* What a full disk or a power failure has left of a line goes. */
static bool cut(struct mllog_file *m, const struct found *f, struct err *e) {
    if (!f->torn || ftruncate(fileno(m->file), f->whole) == 0) return true;
    return err_system(e, "cannot write --mllog %.300s: %s", m->path, strerror(errno));
}

bool mllog_file_open(struct mllog_file *m, const char *path, uint64_t run, bool resumed, struct err *e) {
    struct found f;
    const char *why;
    if (!fits(path, resumed ? run : 0, &f, e)) return false;
    if (f.ended) /* another run_start and run_stop behind it would make two runs of it */
        return err_set(e, "--mllog %.300s has the end of this run already; to go on, give another file", path);
    snprintf(m->path, sizeof m->path, "%s", path);
    m->made = !f.there && !out_file_is_stream(path);
    m->file = append(path, &why);
    if (!m->file) return cannot_write(path, why, e);
    json_open(&m->json);
    m->begun = f.started;
    m->epoch = f.started ? f.epoch : 0;
    m->eval = f.started && f.eval;
    return cut(m, &f, e);
}

void mllog_file_close(struct mllog_file *m) {
    if (!m->file) return;
    fclose(m->file);
    m->file = NULL;
    json_close(&m->json);
}

void mllog_file_abandon(struct mllog_file *m) {
    const bool made = m->file && m->made;
    mllog_file_close(m);
    if (made) unlink(m->path);
}

/* -- lines --------------------------------------------------------------------------------------------------------- */

static void begin(struct mllog_file *m, enum mllog_event event, const char *key, int64_t time_ms) {
    static const char *const names[] = {
        [MLLOG_POINT] = "POINT_IN_TIME", [MLLOG_START] = "INTERVAL_START", [MLLOG_STOP] = "INTERVAL_END"};
    json_reset(&m->json);
    json_object(&m->json, NULL);
    json_string(&m->json, "namespace", "");
    json_integer(&m->json, "time_ms", time_ms);
    json_string(&m->json, "event_type", names[event]);
    json_string(&m->json, "key", key);
}

static struct json *metadata(struct mllog_file *m) {
    json_object(&m->json, "metadata");
    json_string(&m->json, "file", m->at.file);
    json_integer(&m->json, "lineno", m->at.line);
    return &m->json;
}

/* The open metadata of a line. */
static struct json *begin_line(struct mllog_file *m, enum mllog_event event, const char *key, int64_t time_ms,
                               const double *value) {
    begin(m, event, key, time_ms);
    if (value)
        json_number(&m->json, "value", *value);
    else
        json_null(&m->json, "value");
    return metadata(m);
}

struct json *mllog_begin(struct mllog_file *m, enum mllog_event event, const char *key) {
    return begin_line(m, event, key, mllog_now(), NULL);
}

struct json *mllog_begin_then(struct mllog_file *m, enum mllog_event event, const char *key, int64_t time_ms) {
    return begin_line(m, event, key, time_ms, NULL);
}

struct json *mllog_begin_number(struct mllog_file *m, enum mllog_event event, const char *key, double value) {
    return begin_line(m, event, key, mllog_now(), &value);
}

void mllog_end(struct mllog_file *m) {
    json_end(&m->json);
    json_end(&m->json);
    if (m->failed.text[0]) return;
    if (out_file_is_stream(m->path)) fflush(stdout); /* of which a part of a line may be out already */
    errno = 0;
    if (fprintf(m->file, "%s%s\n", token, json_text(&m->json)) < 0 || fflush(m->file) != 0)
        err_system(&m->failed, "cannot write --mllog %.300s: %s", m->path, strerror(errno ? errno : EIO));
}

/* A whole line, whose value is what stands between. */
#define POINT(m, key, write)                                                                                           \
    do {                                                                                                               \
        if (!(m)->file) return;                                                                                        \
        begin(m, MLLOG_POINT, key, mllog_now());                                                                       \
        write;                                                                                                         \
        metadata(m);                                                                                                   \
        mllog_end(m);                                                                                                  \
    } while (0)

void mllog_text(struct mllog_file *m, const char *key, const char *value) {
    POINT(m, key, json_string(&m->json, "value", value));
}

void mllog_integer(struct mllog_file *m, const char *key, int64_t value) {
    POINT(m, key, json_integer(&m->json, "value", value));
}

void mllog_number(struct mllog_file *m, const char *key, double value) {
    POINT(m, key, json_number(&m->json, "value", value));
}

void mllog_flag(struct mllog_file *m, const char *key, bool value) {
    POINT(m, key, json_boolean(&m->json, "value", value));
}

static void write_numbers(struct json *j, const double *value, size_t count) {
    json_array(j, "value");
    for (size_t i = 0; i < count; i++) json_number(j, NULL, value[i]);
    json_end(j);
}

void mllog_numbers(struct mllog_file *m, const char *key, const double *value, size_t count) {
    POINT(m, key, write_numbers(&m->json, value, count));
}
