/* text_line.c: see text_line.h. */
#include "base/files/text_line.h"

#include <errno.h>
#include <string.h>

bool text_line_whole(const char *line, size_t length, const char *path, size_t number, struct err *e) {
    return strlen(line) == length ||
           err_set(e, "%s:%zu: there is a zero byte in the line; is this a text?", path, number);
}

bool text_line(FILE *file, char *line, size_t size, const char *path, size_t *number, struct err *e) {
    size_t length = 0;
    int c = 0;
    while (c != '\n' && length + 1 < size && (c = getc_unlocked(file)) != EOF) line[length++] = (char)c;
    line[length] = '\0';
    if (ferror(file)) return err_system(e, "cannot read %s: %s", path, strerror(errno));
    if (length == 0) return false;
    ++*number;
    if (!text_line_whole(line, length, path, *number, e)) return false;
    return c == '\n' || length + 1 < size ||
           err_set(e, "%s:%zu: the line has more than %zu characters", path, *number, size - 2);
}
