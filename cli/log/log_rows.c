/* log_rows.c: see log_rows.h. */
#include "cli/log/log_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/mem.h"

enum { LONGEST_ROW = 16 << 20 }; /* of a log of slices (--log-slices) with their names: 100,000 of them */

static void make_room(char **line, size_t length, size_t *size) {
    *size = 2 * *size + 256;
    char *larger = mem_alloc(*size, 1, "a row of a log");
    if (length) memcpy(larger, *line, length);
    mem_free(*line);
    *line = larger;
}

bool log_row_next(FILE *f, char **line, size_t *size) {
    size_t length = 0;
    int c = 0;
    while (c != '\n' && (c = getc_unlocked(f)) != EOF) {
        if (length + 2 > *size) make_room(line, length, size);
        if (length < LONGEST_ROW) (*line)[length++] = (char)c;
    }
    if (length == 0) return false;
    if (length >= 2 && (*line)[length - 2] == '\r' && (*line)[length - 1] == '\n') (*line)[--length - 1] = '\n';
    (*line)[length] = '\0';
    return !ferror(f);
}

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

bool log_rows_run(const char *path, uint64_t *run_id) {
    const char *why;
    FILE *f = file_read(path, &why);
    char *line = NULL;
    size_t size = 0;
    unsigned long long id = 0;
    if (!f) return false;
    const char *at = log_row_next(f, &line, &size) ? strstr(line, "\"run\":\"") : NULL;
    bool good = at && sscanf(at, "\"run\":\"%16llx\"", &id) == 1;
    *run_id = id;
    mem_free(line);
    fclose(f);
    return good;
}

bool log_rows_end(const char *path, size_t steps, const char *flag) {
    char *line = NULL, begins[64];
    const char *why;
    FILE *f = file_read(path, &why);
    size_t size = 0;
    bool done = false;
    const int length = snprintf(begins, sizeof begins, "{\"type\":\"summary\",\"step\":%zu,", steps);
    while (f && log_row_next(f, &line, &size))
        done = strncmp(line, begins, (size_t)length) == 0 && strstr(line, flag) && log_row_whole(line);
    if (f) fclose(f);
    mem_free(line);
    return done;
}
