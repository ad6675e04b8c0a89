/* text_file.h: the bytes of a text from a file, plain or, of a name in .gz, packed: never more of them than were
 * promised, as there is memory for so many.
 *
 *        uint64_t bytes;
 *        struct text_file f;
 *        if (!text_size(path, &bytes, &e) || !text_file_open(&f, path, bytes, &e)) ...
 *        while (text_file_read(&f, buffer, sizeof buffer, &got, &e) && got) ...   // at the end got is 0
 *        text_file_close(&f);
 */
#ifndef ST_DATA_TEXT_FILE_H
#define ST_DATA_TEXT_FILE_H

#include <stdio.h>

#include "base/error.h"
#include "data/gzip.h"

struct text_file {
    const char *path;
    FILE *file; /* one of these two */
    struct gzip *gzip;
    uint64_t promised, left; /* bytes: that there may be, of these not yet read */
};

/* What a file holds at the most [bytes]: its size or, of a name in .gz, the size before packing. */
bool text_size(const char *path, uint64_t *bytes, struct err *e);

/* path: stays the caller's, as long as the file is open. */
bool text_file_open(struct text_file *f, const char *path, uint64_t promised, struct err *e);
void text_file_close(struct text_file *f); /* one that was opened, or not: then all zero */

/* Up to `room` bytes more; 0 of them only at the end. The file cannot be read, is damaged, or holds more than was
 * promised: false, with one line that names it. */
bool text_file_read(struct text_file *f, void *to, size_t room, size_t *got, struct err *e);

#endif
