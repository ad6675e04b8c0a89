/* zip_file.h: writing a zip archive of entries that are stored as they are, one after the other. Sizes and offsets of 4
 * GiB and more, and more than 65534 entries, take the fields of ZIP64.
 *
 *        struct zip_file z;
 *        zip_open(&z, file);
 *        zip_entry(&z, "conv1.weight.npy", bytes, crc);      // length and CRC-32 of what follows:
 *        zip_write(&z, data, bytes);                         // in as many pieces as it takes
 *        zip_close(&z, "a comment", 9);
 *
 * Whether everything arrived is for the caller to ask: ferror, fflush, fclose. */
#ifndef ST_CLI_ZIP_FILE_H
#define ST_CLI_ZIP_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { ZIP_NAME_MAX = 64 };

struct zip_entry {
    char name[ZIP_NAME_MAX];
    uint64_t bytes, offset;
    uint32_t crc;
};

struct zip_file {
    FILE *file;
    uint64_t offset;         /* written so far */
    struct zip_entry *entry; /* [entries] */
    size_t entries;
    uint64_t limit; /* numbers from here on go to the fields of ZIP64: 2^32 - 1, less in a test */
};

void zip_open(struct zip_file *z, FILE *file);
void zip_entry(struct zip_file *z, const char *name, uint64_t bytes, uint32_t crc);
void zip_write(struct zip_file *z, const void *data, size_t bytes);
void zip_close(struct zip_file *z, const char *comment, size_t length); /* length < 2^16 */

#endif
