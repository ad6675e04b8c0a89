/* standard_streams.c: see standard_streams.h. */
#include "cli/standard_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What replaces a closed stream: reads find an end of file, and writes fail as on the closed one (EBADF); only
 * standard error takes its text and drops it. */
static const int instead[] = {[STDIN_FILENO] = O_RDONLY, [STDOUT_FILENO] = O_RDONLY, [STDERR_FILENO] = O_WRONLY};

void streams_open(void) {
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++) {
        if (fcntl(file, F_GETFD) >= 0 || errno != EBADF) continue;
        if (open("/dev/null", instead[file]) != file) _exit(EXIT_SYSTEM); /* the lowest number that is free, or none */
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

/* Why standard output cannot be written, where the call that failed was an earlier one; 0: it can, by now. */
static int reason_now(void) {
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    if (write(STDOUT_FILENO, "", 0) < 0) return errno;
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) ? EPIPE : 0;
}

/* Some file systems (NFS) tell of an error only when a file is closed; of this one there may be other users. */
static int close_copy(void) {
    int copy = dup(STDOUT_FILENO);
    return copy >= 0 && close(copy) != 0 ? errno : 0;
}

bool streams_check(struct err *e) {
    errno = 0;
    int reason = fflush(stdout) != 0 ? errno : 0;
    const bool lost = reason || ferror(stdout);
    if (lost && !reason) reason = reason_now();
    if (!lost) reason = close_copy();
    clearerr(stdout);
    if (!lost && !reason) return true;
    return err_system(e, "cannot write to standard output: %s",
                      reason ? strerror(reason) : "something that was said is lost");
}
