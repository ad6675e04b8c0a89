/* watching.c: see watching.h. */
#include "cli/observe/watching.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double standard = 300; /* as options_table.c says [s] */

double watching_limit(int argc, char **argv) {
    static const char name[] = "--timeout";
    const size_t length = sizeof name - 1;
    const char *text = NULL;
    char *end;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], name, length) != 0) continue;
        if (argv[i][length] == '=') text = argv[i] + length + 1;
        if (!argv[i][length] && i + 1 < argc) text = argv[i + 1];
    }
    double limit = text ? strtod(text, &end) : standard;
    return text && (end == text || *end || !(limit >= 0)) ? standard : limit;
}

static char advice[OPTION_TEXT_MAX + 200];

void watching_begin(const struct run *r) {
    snprintf(advice, sizeof advice,
             "; a checkpoint takes all ranks, so none is written now: --resume %s goes on from the last complete one",
             r->options.out);
    comm_watch_limit(r->comm, r->options.timeout);
    if (r->saved.last != SIZE_MAX) watching_saved(r);
}

void watching_saved(const struct run *r) {
    if (r->options.out[0]) comm_watch_advise(advice);
}

static void fault(int rank, enum activity activity, size_t step) {
    static const char *const names[ACTIVITY_COUNT] = {
        [ACTIVITY_STEP] = "step", [ACTIVITY_EVALUATION] = "evaluation", [ACTIVITY_CHECKPOINT] = "checkpoint"};
    const char *wanted = getenv("SPARSETRAIN_FAULT");
    char here[80];
    if (!wanted || !names[activity]) return;
    int length = snprintf(here, sizeof here, "%d:%s:%zu:", rank, names[activity], step);
    if (strncmp(wanted, here, (size_t)length) != 0) return;
    wanted += length;
    if (strcmp(wanted, "stop") == 0) raise(SIGSTOP);
    if (strcmp(wanted, "kill") == 0) raise(SIGKILL);
    volatile bool circles = strcmp(wanted, "loop") == 0;
    while (circles) {
    }
}

void watching_enter(const struct run *r, enum activity activity, size_t step) {
    beat_activity(activity, step);
    fault(r->comm->rank, activity, step);
}
