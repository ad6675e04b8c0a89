/* signals.c: see signals.h. The four are blocked, and the loop asks between steps, and between batches of an
 * evaluation, which of them wait. A thread that was there before, MPI's own, does not block them: it may be given one,
 * and its handler sets a flag. */
#include "cli/signals.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static volatile sig_atomic_t caught;

static const int asking[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};
enum { KINDS = sizeof asking / sizeof *asking };

static void remember(int number) {
    caught = number;
}

/* nohup ignores SIGHUP for good reason. */
static bool ignored_hangup(int number) {
    struct sigaction old;
    return number == SIGHUP && (sigaction(SIGHUP, NULL, &old) != 0 || old.sa_handler == SIG_IGN);
}

void signals_open(void) {
    struct sigaction action;
    sigset_t blocked;
    memset(&action, 0, sizeof action);
    action.sa_handler = remember;
    action.sa_flags = SA_RESTART;
    sigemptyset(&blocked);
    for (int i = 0; i < KINDS; i++) {
        if (ignored_hangup(asking[i])) continue;
        sigaddset(&blocked, asking[i]);
        sigaction(asking[i], &action, NULL);
    }
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
}

int signals_caught(void) {
    sigset_t waiting;
    sigpending(&waiting);
    for (int i = 0; !caught && i < KINDS; i++)
        if (sigismember(&waiting, asking[i]) == 1) return asking[i];
    return caught;
}
