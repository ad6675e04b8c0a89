/* signals.c: see signals.h. The handler sets one flag; the loop looks at it between steps. */
#include "cli/signals.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>

static volatile sig_atomic_t caught;

static void remember(int number) {
    caught = number;
}

/* nohup ignores SIGHUP for good reason. */
static void catch_hangup(const struct sigaction *action) {
    struct sigaction old;
    if (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN) sigaction(SIGHUP, action, NULL);
}

void signals_open(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = remember;
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    catch_hangup(&action);
}

int signals_caught(void) {
    return caught;
}
