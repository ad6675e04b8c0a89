/* main.c: the verbs, and the one place where a user's mistake is printed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alike.h"
#include "cli/bench/bench_exchange.h"
#include "cli/bench/bench_net.h"
#include "cli/bench/bench_p2p.h"
#include "cli/bench/bench_select.h"
#include "cli/bench/bench_wire.h"
#include "cli/compare/compare.h"
#include "cli/data_show.h"
#include "cli/export/export.h"
#include "cli/gradients/fit.h"
#include "cli/greeting.h"
#include "cli/launcher.h"
#include "cli/list.h"
#include "cli/network/costs.h"
#include "cli/network/predict.h"
#include "cli/options/completion.h"
#include "cli/options/config.h"
#include "cli/rows.h"
#include "cli/signals.h"
#include "cli/standard_streams.h"
#include "cli/study/study_verb.h"
#include "cli/train/dry_run.h"
#include "cli/train/evaluate_verb.h"
#include "cli/train/report.h"
#include "cli/train/run.h"
#include "cli/verbs.h"
#include "cli/version.h"

/* All ranks end together; the error is the same on all of them, and rank 0 says it. Returns the exit status. */
static int give_up(struct comm *c, const struct err *e) {
    if (c->rank == 0) {
        fflush(stdout);
        fprintf(stderr, "sparsetrain: %s\n", e->text);
    }
    comm_leave(c, err_status(e));
    return err_status(e);
}

/* All ranks end, with this status; with EXIT_SYSTEM where it would be EXIT_DONE and what was said has been lost. */
static int leave(struct comm *c, int status) {
    struct err e = {0};
    streams_check(&e);
    if (comm_agree(c, &e)) {
        if (c->rank == 0) fprintf(stderr, "sparsetrain: %s\n", e.text);
        if (status == EXIT_DONE) status = err_status(&e);
    }
    comm_leave(c, status);
    return status;
}

/* A run that ended well or not (e), and all that can still be said or saved of it. Its threads read what MPI takes back
 * at its end, so they end first. */
static int finish(struct run *r, int status, struct err *e) {
    struct comm *c = r->comm;
    if (!e->text[0]) {
        log_summary(r, run_check_replicas(r));
        log_flush(r, e);
    }
    run_write_trace(r, e);
    if (!e->text[0]) report_end(r, status);
    run_close(r);
    return e->text[0] ? give_up(c, e) : leave(c, status);
}

static int finish_complete(struct run *r) {
    struct comm *c = r->comm;
    report_complete(r);
    comm_shared_close(c, &r->data.memory); /* all that has been opened */
    return leave(c, EXIT_DONE);
}

static int finish_dry(struct run *r) {
    struct comm *c = r->comm;
    dry_run_report(r);
    run_close(r);
    return leave(c, EXIT_DONE);
}

static int train(int argc, char **argv, int first) {
    int status;
    struct comm *c = greeting_open(&argc, &argv, 0, false, &status);
    struct options o;
    struct err e = {0};
    if (!c) return status;
    signals_open();
    options_default(&o);
    options_parse(&o, argc, argv, first, &e);
    if (comm_agree(c, &e)) return give_up(c, &e);
    static struct run r; /* large */
    if (!run_open(&r, &o, argv[0], c, &e)) return give_up(c, &e);
    if (r.job.complete) return finish_complete(&r);
    report_begin(&r);
    if (r.options.dry_run) return finish_dry(&r);
    run_train(&r, &status, &e);
    return finish(&r, status, &e);
}

static void print_man(void) {
    options_man(stdout);
}

static void print_bash(void) {
    completion_bash(stdout);
}

static void print_zsh(void) {
    completion_zsh(stdout);
}

static void print_help(void) {
    options_help(stdout);
}

/* Verbs that take nothing, or --json alone: under a launcher rank 0 alone prints. */
static const struct plain {
    const char *first, *second;
    void (*print)(void), (*print_json)(void);
} plain_verbs[] = {
    {"list", NULL, list_print, list_print_json},
    {"version", NULL, version_print, version_print_json},
    {"--version", NULL, version_print, version_print_json},
    {"man", NULL, print_man, NULL},
    {"completion", "bash", print_bash, NULL},
    {"completion", "zsh", print_zsh, NULL},
    {"help", NULL, print_help, NULL},
    {"--help", NULL, print_help, NULL},
    {"-h", NULL, print_help, NULL},
};

/* Verbs without MPI: under a launcher rank 0 alone acts. argv[0] is the last word of the verb. */
static const struct {
    const char *first, *second;
    int (*run)(int argc, char **argv);
} verbs[] = {
    {"data", "show", data_show},
    {"bench", "select", bench_select},
    {"bench", "net", bench_net},
    {"bench", "wire", bench_wire},
    {"predict", NULL, predict},
    {"costs", NULL, costs},
    {"config", NULL, config}, /* what train would be, without it */
    {"fit", NULL, fit},
    {"export", NULL, export_verb},
    {"rows", NULL, rows},
    {"study", "memory", study_memory},
    {"compare", NULL, compare_verb},
    {"study", NULL, study},
};

/* Verbs that need MPI: every rank acts, and all return the same status. With e filled, the same on all
 * ranks (comm_agree): it is printed here. argv[0] is the last word of the verb. Looked at after the verbs above. */
static const struct {
    const char *first, *second;
    int (*run)(struct comm *c, int argc, char **argv, struct err *e);
} mpi_verbs[] = {
    {"p2p", NULL, bench_p2p},
    {"evaluate", NULL, evaluate_verb},
    {"bench", NULL, bench_exchange},
};

static int answer(void (*print)(void)) {
    if (launcher_rank() == 0) print();
    return EXIT_DONE;
}

/* Its --help, or what verbs.h says of it: words of argv from the first on. */
static int help_of(int words, char **argv) {
    char name[64];
    size_t i = 0;
    if (launcher_rank() != 0) return EXIT_DONE;
    snprintf(name, sizeof name, words > 1 ? "%s %s" : "%s", argv[1], argv[2]);
    while (i < verb_rows && strcmp(verb_table[i].words, name) != 0) i++;
    if (i < verb_rows && verb_table[i].options)
        options_help_of(verb_table[i].options, stdout);
    else
        printf("usage: sparsetrain %s\n%s\n", name, i < verb_rows ? verb_table[i].summary : "");
    return EXIT_DONE;
}

/* argv[0] is the last word of the verb; options are mistakes like any other word, but for --help and --json. */
static int run_plain(const struct plain *verb, int argc, char **argv) {
    char words[64];
    bool option = *verb->first == '-'; /* with which no word is a mistake */
    if (verb->print_json && argc == 2 && strcmp(argv[1], "--json") == 0) return answer(verb->print_json);
    if (argc == 1 || option) return answer(verb->print);
    if (launcher_rank() != 0) return EXIT_DONE;
    snprintf(words, sizeof words, "%s%s%s", verb->first, verb->second ? " " : "", verb->second ? verb->second : "");
    const char *wrong = argv[verb->print_json && argc > 2 && strcmp(argv[1], "--json") == 0 ? 2 : 1];
    fprintf(stderr, "sparsetrain: %s %s; leave out \"%.60s\"%s\n", words,
            verb->print_json ? "takes nothing but --json" : "stands alone", wrong,
            strcmp(words, "help") == 0 ? " (a verb's own help: sparsetrain VERB --help)" : "");
    return EXIT_USER;
}

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

static int run_mpi_verb(size_t verb, int words, int argc, char **argv) {
    int status;
    struct err e = {0};
    bool help = option_help_wanted(argc - words, argv + words);
    if (help && !launcher_joins(comm_library())) return help_of(words, argv); /* nobody to meet: no MPI for a text */
    struct comm *c = greeting_open(&argc, &argv, words, true, &status);
    if (!c) return status;
    if (help) return help_of(words, argv), leave(c, EXIT_DONE);
    status = mpi_verbs[verb].run(c, argc - words, argv + words, &e);
    return e.text[0] ? give_up(c, &e) : leave(c, status);
}

/* The others leave with 0: a status of theirs could end the job before rank 0 has spoken. */
static int no_such_verb(int argc, char **argv) {
    bool second = argc > 2 && *argv[2] != '-';
    char words[128];
    if (launcher_rank() != 0) return EXIT_DONE;
    snprintf(words, sizeof words, "%.60s%s%.60s", argv[1], second ? " " : "", second ? argv[2] : "");
    struct alike meant = {.word = words, .length = strlen(words)};
    for (size_t i = 0; i < verb_rows; i++) alike_try(&meant, verb_table[i].words);
    fprintf(stderr, "sparsetrain: there is no verb \"%s\"; ", words);
    if (meant.nearest)
        fprintf(stderr, "did you mean \"%s\"?\n", meant.nearest);
    else
        fputs("sparsetrain --help lists them\n", stderr);
    return EXIT_USER;
}

static int act(int argc, char **argv) {
    const char *word = argc > 1 ? argv[1] : "";
    int status;
    for (size_t i = 0; i < sizeof plain_verbs / sizeof *plain_verbs; i++) {
        int words = words_of(plain_verbs[i].first, plain_verbs[i].second, argc, argv);
        if (words && !greeting_plain(plain_verbs[i].first, plain_verbs[i].second, &status)) return status;
        if (words && option_help_wanted(argc - words, argv + words)) return help_of(words, argv);
        if (words) return run_plain(&plain_verbs[i], argc - words, argv + words);
    }
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        int words = words_of(verbs[i].first, verbs[i].second, argc, argv);
        if (words && !greeting_plain(verbs[i].first, verbs[i].second, &status)) return status;
        if (words && option_help_wanted(argc - words, argv + words)) return help_of(words, argv);
        if (words) return launcher_rank() == 0 ? verbs[i].run(argc - words, argv + words) : EXIT_DONE;
    }
    for (size_t i = 0; i < sizeof mpi_verbs / sizeof *mpi_verbs; i++) {
        int words = words_of(mpi_verbs[i].first, mpi_verbs[i].second, argc, argv);
        if (words) return run_mpi_verb(i, words, argc, argv);
    }
    bool named = strcmp(word, "train") == 0;
    if (option_help_wanted(argc, argv)) return greeting_plain("help", NULL, &status) ? answer(print_help) : status;
    if (asks_for(argc, argv, "--version"))
        return greeting_plain("version", NULL, &status) ? answer(version_print) : status;
    if (!named && *word && *word != '-') return greeting_plain(word, NULL, &status) ? no_such_verb(argc, argv) : status;
    return train(argc, argv, named ? 2 : 1);
}

/* A verb without MPI has ended; with MPI all ranks have looked together (leave). */
int main(int argc, char **argv) {
    struct err e = {0};
    streams_open();
    int status = act(argc, argv);
    if (streams_check(&e)) return status;
    fprintf(stderr, "sparsetrain: %s\n", e.text);
    return status == EXIT_DONE ? err_status(&e) : status;
}

#ifdef ST_LOADER
/* build/sparsetrain-sim is a shared library for smpirun. If it is started as a program, this function runs: the
 * string below names the dynamic linker, and the Makefile makes the function the entry point. The C library's
 * start-up code has not run and no main is called. */
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
