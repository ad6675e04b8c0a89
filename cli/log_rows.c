/* log_rows.c: see log_rows.h. */
#include "cli/log_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

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
    const char *at = getline(&line, &size, f) > 0 ? strstr(line, "\"run\":\"") : NULL;
    bool good = at && sscanf(at, "\"run\":\"%16llx\"", &id) == 1;
    *run_id = id;
    free(line);
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
    while (f && getline(&line, &size, f) > 0)
        done = strncmp(line, begins, (size_t)length) == 0 && strstr(line, flag) && log_row_whole(line);
    if (f) fclose(f);
    free(line);
    return done;
}
