/* file.c: see file.h. */
#include "base/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/beat.h"
#include "base/mem.h"

enum { PIECE = 1 << 26 }; /* between two signs of life */

const char *file_kind(mode_t mode) {
    switch (mode & S_IFMT) {
    case S_IFREG:
        return NULL;
    case S_IFDIR:
        return "it is a directory, not a regular file";
    case S_IFIFO:
        return "it is a FIFO, not a regular file";
    case S_IFSOCK:
        return "it is a socket, not a regular file";
    case S_IFLNK:
        return "it is a link, not a regular file";
    default:
        return "it is a device, not a regular file";
    }
}

/* Something that this process has had since it began, by its name. */
static bool is_stream(const char *path) {
    return strcmp(path, "/dev/stdin") == 0 || strncmp(path, "/dev/fd/", 8) == 0 ||
           strncmp(path, "/proc/self/fd/", 14) == 0;
}

static bool is_regular(const struct stat *info, bool stream, const char **why) {
    if (stream && S_ISFIFO(info->st_mode)) return true;
    *why = file_kind(info->st_mode);
    if (*why) errno = S_ISDIR(info->st_mode) ? EISDIR : EINVAL;
    return !*why;
}

/* The type is checked before opening, because opening a device may have an effect, and again afterwards, because the
 * name may have come to mean another file. O_NONBLOCK: such a file must not block the open either. */
static int take(const char *path, bool stream, const char **why) {
    struct stat info;
    *why = NULL;
    int file = stat(path, &info) == 0 && is_regular(&info, stream, why)
                   ? open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)
                   : -1;
    if (file >= 0 && fstat(file, &info) == 0 && is_regular(&info, stream, why) &&
        fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK) == 0)
        return file;
    int reason = errno;
    if (!*why) *why = strerror(reason);
    if (file >= 0) close(file);
    errno = reason;
    return -1;
}

static FILE *with_buffer(int file, const char *mode, const char **why) {
    FILE *f = file >= 0 ? fdopen(file, mode) : NULL;
    if (file >= 0 && !f) {
        *why = strerror(errno);
        close(file);
    }
    return f;
}

int file_read_descriptor(const char *path, const char **why) {
    return take(path, false, why);
}

FILE *file_read(const char *path, const char **why) {
    return with_buffer(take(path, false, why), "rb", why);
}

FILE *file_read_stream(const char *path, const char **why) {
    return with_buffer(take(path, is_stream(path), why), "rb", why);
}

FILE *file_create(const char *path, const char **why) {
    unlink(path);
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file < 0) *why = strerror(errno);
    return with_buffer(file, "wb", why);
}

FILE *file_append(const char *path, const char **why) {
    struct stat info;
    *why = NULL;
    if (lstat(path, &info) == 0 && !is_regular(&info, false, why)) return NULL;
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC | O_NONBLOCK, 0666);
    if (file >= 0 && fstat(file, &info) == 0 && is_regular(&info, false, why) &&
        fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK) == 0)
        return with_buffer(file, "ab", why);
    int reason = errno;
    if (!*why) *why = strerror(reason);
    if (file >= 0) close(file);
    errno = reason;
    return NULL;
}

bool file_write_all(int file, const void *data, size_t bytes) {
    const char *p = data;
    while (bytes) {
        ssize_t n = write(file, p, bytes < PIECE ? bytes : PIECE);
        beat();
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        p += n;
        bytes -= (size_t)n;
    }
    return true;
}

int file_make_folders(const char *path, int *made) {
    char *part = mem_printf("%s", path);
    for (char *p = part + 1; *part && *p; p++) {
        if (*p != '/' || p[-1] == '/') continue;
        *p = '\0';
        *made += mkdir(part, 0777) == 0;
        *p = '/';
    }
    const int reason = mkdir(part, 0777) == 0 ? 0 : errno;
    *made += reason == 0;
    mem_free(part);
    return reason == EEXIST ? 0 : reason;
}

void file_remove_folders(const char *path, int made) {
    char *part = mem_printf("%s", path);
    while (made-- > 0 && rmdir(part) == 0) {
        size_t length = strlen(part);
        while (length > 0 && part[length - 1] == '/') length--;
        while (length > 0 && part[length - 1] != '/') length--;
        part[length] = '\0';
    }
    mem_free(part);
}
