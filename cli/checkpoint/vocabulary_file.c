/* vocabulary_file.c: see vocabulary_file.h. */
#include "cli/checkpoint/vocabulary_file.h"

#include <stdio.h>
#include <unistd.h>

#include "base/files/out_file.h"

bool vocabulary_write(const struct vocabulary *v, const char *dir, bool *made, struct err *e) {
    char path[1040];
    struct out_file out;
    snprintf(path, sizeof path, "%.1000s/vocabulary.txt", dir);
    const bool there = access(path, F_OK) == 0;
    if (!out_file_replace(&out, path, e)) return false;
    fwrite(v->lines, 1, v->bytes, out.file);
    const bool good = out_file_close(&out, e);
    *made = good && !there;
    return good;
}
