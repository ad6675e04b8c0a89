/* container.h: a file of named, checksummed sections: what a checkpoint is made of. All numbers are in the machine's
 * own byte order, which the header names; a file from a machine of the other order is refused.
 *
 *        struct section s[] = {{"param", param, 4 * n}, ...};
 *        if (!container_write(path, s, 2, &e)) ...       // complete and on the disk, or an error
 *        struct container c;
 *        if (!container_read(path, &c, &e)) ...          // every checksum has been verified
 *        if (!container_get(&c, "param", param, 4 * n, &e)) ...
 *        container_close(&c);
 *
 * To get a few sections of a large file, use container_open instead of container_read. */
#ifndef ST_CLI_CONTAINER_H
#define ST_CLI_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { SECTION_NAME_MAX = 24 };

struct section {
    const char *name; /* shorter than SECTION_NAME_MAX */
    const void *data;
    size_t bytes;
};

struct container {
    char path[1024];
    unsigned char *memory; /* the whole file; of one that was opened what it begins with, its table of contents */
    size_t bytes;          /* of the file */
    int file;              /* of one that was opened; else -1 */
};

/* Makes, writes and fsyncs path, which must not be there, in a directory that is no link. False, naming the file and
 * the reason; the caller removes what was written. */
bool container_write(const char *path, const struct section *sections, size_t count, struct err *e);

/* Reads all of path, a regular file or a link to one. False: missing, not a checkpoint, another format version or byte
 * order, truncated, longer than it says, or a checksum that does not fit; *e names the file. */
bool container_read(const char *path, struct container *c, struct err *e);
/* The same, but only the table of contents is read and verified; container_get reads and verifies a section. */
bool container_open(const char *path, struct container *c, struct err *e);
void container_close(struct container *c);

/* The section's bytes, after container_read, and their number, or NULL. */
const void *container_find(const struct container *c, const char *name, size_t *bytes);

/* Is there such a section? Its size. */
bool container_has(const struct container *c, const char *name, size_t *bytes);

/* Copies a section that must have exactly this size. */
bool container_get(const struct container *c, const char *name, void *data, size_t bytes, struct err *e);

#endif
