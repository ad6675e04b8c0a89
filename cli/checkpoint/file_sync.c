/* file_sync.c: see file_sync.h. */
#include "cli/checkpoint/file_sync.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* 0 or the reason. What may be written and not read (EACCES) cannot be synced. */
static int sync_now(const char *dir) {
    int file = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0) return errno == EACCES ? 0 : errno;
    int reason = fsync(file) != 0 ? errno : 0;
    close(file);
    return reason == EINVAL || reason == ENOTSUP || reason == EOPNOTSUPP ? 0 : reason;
}

bool directory_sync(const char *dir, struct err *e) {
    int reason = sync_now(dir);
    return reason == 0 || err_system(e, "cannot write the directory %s to the disk: %s", dir, strerror(reason));
}
