/* file.h: opening files whose names and contents nobody vouches for. A FIFO without a writer would hang the program, a
 * directory read as a file gives nonsense, and to open a device may be to do something: what is read is a regular file,
 * or a link to one, and anything else is refused unopened.
 *
 *        const char *why;
 *        FILE *file = file_read(path, &why);
 *        if (!file) return err_set(e, "cannot read %s: %s", path, why);
 */
#ifndef ST_BASE_FILE_H
#define ST_BASE_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

/* Opens a file for reading. NULL: *why says why not, in words that go behind "cannot read NAME: ", and errno, where
 * that is of use. The text is static, or strerror's. */
FILE *file_read(const char *path, const char **why);
/* The same, as a descriptor; -1: none. */
int file_read_descriptor(const char *path, const char **why);

/* The same for what is read once, from its beginning to its end: /dev/stdin and /dev/fd/N (as of a shell's <(...)) may
 * be pipes, too, since somebody holds their other end. */
FILE *file_read_stream(const char *path, const char **why);

/* For files of the program's own names, as in the directory of a run, where no link is followed. NULL: errno and *why.
 * file_create: a new one in the place of whatever was there but a directory. file_append: to a regular file, or a new
 * one. */
FILE *file_create(const char *path, const char **why);
FILE *file_append(const char *path, const char **why);

/* Writes all of it, in pieces, however often the kernel takes a part only. False: errno says why, and some of it may be
 * written. */
bool file_write_all(int file, const void *data, size_t bytes);

/* Makes a folder and those above it, and adds to *made how many were made. 0, also where it is there as whatever it is,
 * or errno. And away with so many of them, from the last one up, as long as they are empty. */
int file_make_folders(const char *path, int *made);
void file_remove_folders(const char *path, int made);

/* "it is a FIFO, not a regular file"; NULL: it is a regular one. */
const char *file_kind(mode_t mode);

#endif
