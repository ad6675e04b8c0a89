/* checkpoint_replace.c: a new checkpoint under its name, where one of the same step may lie already: that which a run
 * goes on from which is to go no further. See checkpoint_files.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/checkpoint/checkpoint_files.h"

/* Both names, at once; not all file systems can. */
static bool exchange(const char *a, const char *b) {
#ifdef RENAME_EXCHANGE
    return renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) == 0;
#else
    errno = ENOSYS;
    return false;
#endif
}

/* Is something there that a rename does not replace? */
static bool is_occupied(int reason) {
    return reason == ENOTEMPTY || reason == EEXIST || reason == ENOTDIR;
}

/* In two steps; where the second fails, all is as before. */
static bool move(const char *from, const char *to, const char *aside) {
    if (rename(to, aside) != 0) return false;
    if (rename(from, to) == 0) return true;
    const int reason = errno;
    rename(aside, to);
    errno = reason;
    return false;
}

bool checkpoint_replace(const char *from, const char *to, const char *aside, struct err *e) {
    if (rename(from, to) == 0) return true;
    if (is_occupied(errno) && (exchange(from, to) || move(from, to, aside))) return true;
    return err_system(e, "cannot rename %s: %s", from, strerror(errno));
}
