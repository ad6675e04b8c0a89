/* archive.h: reading a .tar.gz in place, front to back, nothing unpacked to the disk. Regular files are handed out
 * one by one; directories, links and the records that carry long names (GNU 'L', pax 'x') are digested here.
 *
 *        struct archive *a = archive_open(path, &e);
 *        struct archive_member m;
 *        while (archive_next(a, &m, &e))
 *            if (wanted(m.name) && !archive_read(a, to, m.size, &e)) break;
 *        bool good = !e.text[0];                 // at the end the gzip CRC of the whole has been verified
 *        archive_close(a);
 */
#ifndef ST_DATA_ARCHIVE_H
#define ST_DATA_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct archive;

struct archive_member {
    char name[512]; /* as stored, folders included */
    uint64_t size;  /* bytes */
};

/* NULL: not there, not readable, or not gzip. */
struct archive *archive_open(const char *path, struct err *e);
void archive_close(struct archive *a); /* NULL is allowed */

/* The next regular file, whatever is left of the last one skipped. False: the end (e->text stays empty) or damage. */
bool archive_next(struct archive *a, struct archive_member *m, struct err *e);

/* The next `bytes` of the current file; fewer being left is an error. */
bool archive_read(struct archive *a, void *to, size_t bytes, struct err *e);

/* Size of the unpacked tar [bytes] from the gzip trailer, without inflating anything: exact for tars below 4 GiB that
 * were packed in one piece. False when the file cannot be a whole .tar.gz. */
bool archive_unpacked_size(const char *path, uint64_t *bytes, struct err *e);

#endif
