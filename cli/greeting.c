/* greeting.c: see greeting.h. */
#include "cli/greeting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/launcher.h"
#include "cli/observe/watching.h"
#include "cli/options/limits.h"
#include "cli/version.h"

/* Environment variables that decide which MPI calls a rank makes or how it computes, so that all ranks must agree on
 * them. Others may differ from node to node. */
static const char *const variables[] = {"SPARSETRAIN_PART_BYTES", "SPARSETRAIN_NO_SHARED", "SPARSETRAIN_CUDA_GRAPH",
                                        "SPARSETRAIN_CUDNN_PLANS"};
enum { VARIABLES = sizeof variables / sizeof *variables, ROW_MAX = 200 };
enum { ROW_VERB, ROW_VERSION, ROW_COMMIT, ROW_LIBRARY, ROW_OPTIONS, ROW_VARIABLE, ROWS = ROW_VARIABLE + VARIABLES };
_Static_assert((int)ROWS <= (int)COMM_HELLO_ROWS, "the greeting has too few rows");

struct greeting {
    char text[COMM_HELLO_ROWS][ROW_MAX];
    struct comm_hello hello;
};

/* Words with blanks between them; what does not fit is left out. */
static void add_words(char text[ROW_MAX], int count, char **word) {
    for (int i = 0; i < count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, ROW_MAX - used, " %s", word[i]);
    }
}

/* Of long options the end counts as well as the beginning. */
static void add_hash(char text[ROW_MAX], int count, char **word) {
    unsigned sum = 0;
    size_t length = 0;
    for (int i = 0; i < count; i++, length++)
        for (const char *at = word[i]; *at; at++, length++) sum = sum * 31 + (unsigned char)*at;
    if (length > ROW_MAX - 50) snprintf(text + ROW_MAX - 24, 24, "... (%u)", sum);
}

/* second: of a verb of two words, else NULL. word: what follows, [count]. */
static void greeting_set(struct greeting *g, const char *first, const char *second, int count, char **word) {
    memset(g, 0, sizeof *g);
    snprintf(g->text[ROW_VERB], ROW_MAX, "the verb %.100s%s%.60s", first, second ? " " : "", second ? second : "");
    snprintf(g->text[ROW_VERSION], ROW_MAX, "version=%s", version_number());
    snprintf(g->text[ROW_COMMIT], ROW_MAX, "commit=%.180s", version_commit());
    snprintf(g->text[ROW_LIBRARY], ROW_MAX, "%.180s", comm_library());
    snprintf(g->text[ROW_OPTIONS], ROW_MAX, "%.60s", first);
    add_words(g->text[ROW_OPTIONS], count, word);
    add_hash(g->text[ROW_OPTIONS], count, word);
    for (int i = 0; i < VARIABLES; i++) {
        const char *value = getenv(variables[i]);
        if (value)
            snprintf(g->text[ROW_VARIABLE + i], ROW_MAX, "%s=%.150s", variables[i], value);
        else
            snprintf(g->text[ROW_VARIABLE + i], ROW_MAX, "no %s", variables[i]);
    }
    g->hello.rank = launcher_rank();
    for (int i = 0; i < COMM_HELLO_ROWS; i++) g->hello.row[i] = g->text[i];
}

static int refuse(struct comm *c, bool speaks, const struct err *e) {
    if (speaks) {
        fflush(stdout);
        fprintf(stderr, "sparsetrain: %s\n", e->text);
    }
    comm_leave(c, EXIT_USER);
    return EXIT_USER;
}

/* Before MPI has started, all ranks may find the same error without knowing of each other. Only the lowest should
 * print it: higher ranks wait, and the launcher ends them when the first process has ended. */
static bool limits_allow(const struct launcher *l, int *status) {
    struct err e = {0};
    int rank = launcher_rank();
    if (comm_simulated() || limits_check(l->ranks, &e)) return true;
    int tenths = rank > 0 ? 15 + 3 * (rank < 10 ? rank : 10) : 0;
    struct timespec turn = {tenths / 10, tenths % 10 * 100000000L};
    nanosleep(&turn, NULL);
    fprintf(stderr, "sparsetrain: %s\n", e.text);
    *status = EXIT_USER;
    return false;
}

/* Where the launcher is of another MPI, of its processes one speaks. The others leave with 0: a status of theirs could
 * end the job before it has spoken. */
struct comm *greeting_open(int *argc, char ***argv, int words, bool options, int *status) {
    static struct greeting mine;
    const struct launcher launcher = launcher_look();
    struct err e = {0};
    char **word = *argv + 1 + words;
    greeting_set(&mine, words > 0 ? word[-words] : "train", words > 1 ? word[-1] : NULL,
                 options ? *argc - 1 - words : 0, word);
    mine.hello.limit = watching_limit(*argc, *argv);
    if (!limits_allow(&launcher, status)) return NULL;
    struct comm *c = comm_open_alike(argc, argv, &mine.hello, &e);
    *status = EXIT_DONE;
    if (e.text[0]) {
        *status = refuse(c, c->rank == 0, &e);
        return NULL;
    }
    if (launcher_fits(&launcher, c->size, comm_library(), &e)) return c;
    if (launcher.speaks)
        *status = refuse(c, true, &e);
    else
        comm_close(c);
    return NULL;
}

bool greeting_plain(const char *first, const char *second, int *status) {
    static struct greeting mine;
    struct err e = {0};
    *status = EXIT_DONE;
    if (!launcher_joins(comm_library())) return true;
    const struct launcher launcher = launcher_look();
    if (!limits_allow(&launcher, status)) return false;
    greeting_set(&mine, first, second, 0, NULL);
    mine.hello.limit = watching_limit(0, NULL);
    struct comm *c = comm_open_alike(NULL, NULL, &mine.hello, &e);
    if (e.text[0])
        *status = refuse(c, c->rank == 0, &e);
    else
        comm_close(c);
    return !e.text[0];
}
