/* log_file.c: opening OUT/run.jsonl, see log.h: a new one, or that of a run that resumes, of which the rows up to the
 * checkpoint stay. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/run.h"
#include "cli/shell_quote.h"

/* Makes DIR and its parents. */
static bool make_directories(const char *dir, struct err *e) {
    char path[1024];
    snprintf(path, sizeof path, "%s", dir);
    for (char *p = path + 1; *p; p++) {
        if (*p != '/') continue;
        *p = '\0';
        mkdir(path, 0777);
        *p = '/';
    }
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return true;
    return err_set(e, "cannot make the directory --out %s: %s", dir, strerror(errno));
}

/* The step of a row, so that rows after the checkpoint can be dropped; they will be computed again. */
static long long row_step(const char *line) {
    const char *at = strstr(line, "\"step\":");
    return at ? atoll(at + 7) : 0;
}

static bool is_row(const char *line, const char *type) {
    char begins[64];
    snprintf(begins, sizeof begins, "{\"type\":\"%s\"", type);
    return strncmp(line, begins, strlen(begins)) == 0;
}

/* Rows after the checkpoint go, since they are made again, and so does the summary; a killed process may have left half
 * a line. */
static bool kept(const struct run *r, const char *line) {
    return strchr(line, '\n') && !is_row(line, "summary") && row_step(line) <= (long long)r->first_step;
}

/* Copies what a resumed run keeps of its log to a new file, which then takes the old one's place. */
static bool keep_rows(struct run *r, struct err *e) {
    struct log *l = &r->log;
    char temporary[1040];
    snprintf(temporary, sizeof temporary, "%s.tmp", l->path);
    FILE *old = fopen(l->path, "r");
    if (!old) return true;
    FILE *new = fopen(temporary, "w");
    char *line = NULL;
    size_t size = 0;
    bool good = new != NULL;
    while (good && getline(&line, &size, old) > 0) {
        if (!kept(r, line)) continue;
        good = fputs(line, new) >= 0;
        l->evaluated |= is_row(line, "eval") && row_step(line) == (long long)r->first_step;
    }
    free(line);
    fclose(old);
    if (new) good = fclose(new) == 0 && good;
    good = good && rename(temporary, l->path) == 0;
    if (good) return true;
    err_set(e, "cannot rewrite %s: %s", l->path, strerror(errno));
    unlink(temporary);
    return false;
}

bool log_check(struct run *r, struct err *e) {
    struct log *l = &r->log;
    const char *out = r->options.out;
    if (snprintf(l->path, sizeof l->path, "%s/run.jsonl", out) >= (int)sizeof l->path)
        return err_set(e, "--out: the name of the directory is too long");
    if (access(l->path, F_OK) != 0) return true;
    if (!r->options.resume[0]) {
        char *quoted = shell_quote(out);
        err_set(e, "%s already holds a run; choose another --out, or continue it with --resume %s", out, quoted);
        mem_free(quoted);
        return false;
    }
    return access(l->path, W_OK) == 0 ||
           err_set(e, "cannot write %s: %s; choose another --out", l->path, strerror(errno));
}

bool log_open_file(struct run *r, struct err *e) {
    struct log *l = &r->log;
    if (!log_check(r, e) || !make_directories(r->options.out, e)) return false;
    bool there = access(l->path, F_OK) == 0;
    if (there && !keep_rows(r, e)) return false;
    l->file = fopen(l->path, "a");
    if (!l->file) return err_set(e, "cannot write %s: %s; choose another --out", l->path, strerror(errno));
    l->made = !there;
    return true;
}
