/* main.c: the verbs, and the one place where a user's mistake is printed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "cli/bench_exchange.h"
#include "cli/bench_net.h"
#include "cli/bench_p2p.h"
#include "cli/bench_select.h"
#include "cli/bench_wire.h"
#include "cli/completion.h"
#include "cli/data_show.h"
#include "cli/fit.h"
#include "cli/list.h"
#include "cli/predict.h"
#include "cli/report.h"
#include "cli/run.h"
#include "cli/signals.h"
#include "cli/version.h"

/* Under a launcher, the rank that it gave this process; 0 without one. For verbs that need no MPI. */
static int launcher_rank(void) {
    static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
    if (comm_simulated()) return comm_simulated_rank();
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value) return atoi(value);
    }
    return 0;
}

/* All ranks end together; the error is the same on all of them, and rank 0 says it. */
static int user_error(struct comm *c, const struct err *e) {
    if (c->rank == 0) {
        fflush(stdout);
        fprintf(stderr, "sparsetrain: %s\n", e->text);
    }
    comm_close(c);
    return EXIT_USER;
}

static int finish(struct run *r, int status) {
    uint64_t hash = run_check_replicas(r);
    struct err e = {0};
    log_summary(r, hash);
    if (!log_flush(r, &e) || !run_write_trace(r, &e)) return user_error(r->comm, &e);
    report_end(r, status);
    run_close(r);
    return status;
}

static int train(int argc, char **argv, int first) {
    struct comm *c = comm_open(&argc, &argv);
    struct options o;
    struct err e = {0};
    int status;
    signals_open();
    options_default(&o);
    options_parse(&o, argc, argv, first, &e);
    if (comm_agree(c, &e)) return user_error(c, &e);
    static struct run r; /* large */
    if (!run_open(&r, &o, argv[0], c, &e)) return user_error(c, &e);
    report_begin(&r);
    if (!run_train(&r, &status, &e)) return user_error(c, &e);
    status = finish(&r, status);
    if (status != EXIT_USER) comm_close(c);
    return status;
}

static int verb_list(int argc, char **argv) {
    (void)argc, (void)argv;
    list_print();
    return EXIT_DONE;
}

static int verb_man(int argc, char **argv) {
    (void)argc, (void)argv;
    options_man(stdout);
    return EXIT_DONE;
}

static int verb_bash(int argc, char **argv) {
    (void)argc, (void)argv;
    completion_bash(stdout);
    return EXIT_DONE;
}

static int verb_zsh(int argc, char **argv) {
    (void)argc, (void)argv;
    completion_zsh(stdout);
    return EXIT_DONE;
}

static int verb_help(int argc, char **argv) {
    (void)argc, (void)argv;
    options_help(stdout);
    return EXIT_DONE;
}

static int verb_version(int argc, char **argv) {
    (void)argc, (void)argv;
    version_print();
    return EXIT_DONE;
}

/* Verbs without MPI: under a launcher rank 0 alone acts. argv[0] is the last word of the verb. */
static const struct {
    const char *first, *second;
    int (*run)(int argc, char **argv);
} verbs[] = {
    {"list", NULL, verb_list},
    {"man", NULL, verb_man},
    {"help", NULL, verb_help},
    {"--help", NULL, verb_help},
    {"-h", NULL, verb_help},
    {"version", NULL, verb_version},
    {"--version", NULL, verb_version},
    {"data", "show", data_show},
    {"bench", "select", bench_select},
    {"bench", "net", bench_net},
    {"bench", "wire", bench_wire},
    {"predict", NULL, predict},
    {"fit", NULL, fit},
    {"completion", "bash", verb_bash},
    {"completion", "zsh", verb_zsh},
};

/* Verbs that need MPI: every rank acts, and all return the same status. EXIT_USER with e filled, the same on all
 * ranks (comm_agree): it is printed here. argv[0] is the last word of the verb. Looked at after the verbs above. */
static const struct {
    const char *first, *second;
    int (*run)(struct comm *c, int argc, char **argv, struct err *e);
} mpi_verbs[] = {
    {"p2p", NULL, bench_p2p},
    {"bench", NULL, bench_exchange},
};

/* --help and --version also count behind other options. */
static bool asks_for(int argc, char **argv, const char *option) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], option) == 0) return true;
    return false;
}

/* How many words of argv are this verb: 0 when it is another one. */
static int words_of(const char *first, const char *second, int argc, char **argv) {
    if (argc < 2 || strcmp(argv[1], first) != 0) return 0;
    if (!second) return 1;
    return argc > 2 && strcmp(argv[2], second) == 0 ? 2 : 0;
}

/* Ranks with other options than rank 0's would wait for each other for ever. argv[0]: the verb. */
static bool same_options(struct comm *c, int argc, char **argv, struct err *e) {
    enum traffic traffic = c->traffic;
    uint64_t mine = 0, first;
    c->traffic = TRAFFIC_CONTROL;
    for (int i = 0; i < argc; i++) mine = hash64(mine, argv[i], strlen(argv[i]));
    first = mine;
    comm_bcast(c, 0, &first, sizeof first);
    if (mine != first) err_set(e, "%s: rank %d was started with other options than rank 0", argv[0], c->rank);
    bool same = !comm_agree(c, e);
    c->traffic = traffic;
    return same;
}

static int run_mpi_verb(size_t verb, int words, int argc, char **argv) {
    struct err e = {0};
    struct comm *c = comm_open(&argc, &argv);
    bool same = same_options(c, argc - words, argv + words, &e);
    int status = same ? mpi_verbs[verb].run(c, argc - words, argv + words, &e) : EXIT_USER;
    if (status == EXIT_USER && e.text[0]) return user_error(c, &e);
    comm_close(c);
    return status;
}

int main(int argc, char **argv) {
    const char *word = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        int words = words_of(verbs[i].first, verbs[i].second, argc, argv);
        if (words) return launcher_rank() == 0 ? verbs[i].run(argc - words, argv + words) : EXIT_DONE;
    }
    for (size_t i = 0; i < sizeof mpi_verbs / sizeof *mpi_verbs; i++) {
        int words = words_of(mpi_verbs[i].first, mpi_verbs[i].second, argc, argv);
        if (words) return run_mpi_verb(i, words, argc, argv);
    }
    bool named = strcmp(word, "train") == 0;
    if (asks_for(argc, argv, "--help")) return launcher_rank() == 0 ? verb_help(0, NULL) : EXIT_DONE;
    if (asks_for(argc, argv, "--version")) return launcher_rank() == 0 ? verb_version(0, NULL) : EXIT_DONE;
    if (!named && *word && *word != '-') {
        /* The others leave with 0: a status of theirs could end the job before rank 0 has spoken. */
        if (launcher_rank() != 0) return EXIT_DONE;
        fprintf(stderr, "sparsetrain: there is no verb \"%.60s%s%.60s\"; sparsetrain --help lists them\n", word,
                argc > 2 && *argv[2] != '-' ? " " : "", argc > 2 && *argv[2] != '-' ? argv[2] : "");
        return EXIT_USER;
    }
    return train(argc, argv, named ? 2 : 1);
}

#ifdef ST_LOADER
/* build/sparsetrain-sim is a library for smpirun. Somebody who starts it as a program comes here: it names what Linux
 * is to load it with, and the Makefile makes this function its start. The C library has not been told of a main. */
_Noreturn void simulation_by_hand(void);
extern const char loader[];
const char loader[] __attribute__((section(".interp"))) = ST_LOADER;
void simulation_by_hand(void) {
    static const char text[] =
        "sparsetrain: this program runs in a simulation: start it by scripts/simulate.sh or, for "
        "one verb, smpirun (docs/simulation.md)\n";
    _exit(write(STDERR_FILENO, text, sizeof text - 1) > 0 ? EXIT_USER : EXIT_SYSTEM);
}
#endif
