/* log_rows.c: see log_rows.h. */
#include "cli/log_rows.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool log_row_whole(const char *line) {
    const size_t length = strlen(line);
    return length >= 3 && line[0] == '{' && strcmp(line + length - 2, "}\n") == 0;
}

bool log_row_is(const char *row, const char *type) {
    char begins[64];
    const int length = snprintf(begins, sizeof begins, "{\"type\":\"%s\"", type);
    return strncmp(row, begins, (size_t)length) == 0;
}

long long log_row_step(const char *row) {
    static const char key[] = "\"step\":";
    const char *at = strstr(row, key);
    return at ? strtoll(at + sizeof key - 1, NULL, 10) : 0;
}

/* A regular file, opened for reading: it may be anything that somebody has put there. */
static FILE *open_regular(const char *path) {
    struct stat info;
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return NULL;
    FILE *stream = fstat(file, &info) == 0 && S_ISREG(info.st_mode) ? fdopen(file, "r") : NULL;
    if (!stream) close(file);
    return stream;
}

bool log_rows_run(const char *path, uint64_t *run_id) {
    FILE *f = open_regular(path);
    char *line = NULL;
    size_t size = 0;
    unsigned long long id = 0;
    if (!f) return false;
    const char *at = getline(&line, &size, f) > 0 ? strstr(line, "\"run\":\"") : NULL;
    bool good = at && sscanf(at, "\"run\":\"%16llx\"", &id) == 1;
    *run_id = id;
    free(line);
    fclose(f);
    return good;
}

bool log_rows_end(const char *path, size_t steps, const char *flag) {
    char *line = NULL, begins[64];
    FILE *f = open_regular(path);
    size_t size = 0;
    bool done = false;
    const int length = snprintf(begins, sizeof begins, "{\"type\":\"summary\",\"step\":%zu,", steps);
    while (f && getline(&line, &size, f) > 0)
        done = strncmp(line, begins, (size_t)length) == 0 && strstr(line, flag) && log_row_whole(line);
    if (f) fclose(f);
    free(line);
    return done;
}
