/* compare.c: see compare.h. A run is its log's last header and last summary; runs that differ in nothing but the seed
 * and where their files go are of one configuration. */
#include "cli/compare/compare.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/file.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/mem.h"
#include "cli/compare/compare_print.h"
#include "cli/compare/log_target.h"
#include "cli/compare/rival.h"
#include "cli/log/log_rows.h"

const char *const group_measures[MEASURES] = {"steps", "seconds", "bytes_sent"};

struct request {
    struct option_words runs;
    const char *against, *target;
    bool json, csv;
    struct target_wish wish; /* --target */
};

struct log {
    const char *name;
    char *header_line, *summary_line; /* the last ones, of which these are: */
    struct json_value header, summary;
    struct log_target wanted; /* what it took to --target */
};

static const struct option_row options[] = {
    {"against", "NAME", OPTION_WORD, "dense",
     "what the others are held against: an algorithm (of its configurations, where they differ in --wire alone, the "
     "one in coo32; if in more, none), or one of the runs, as it is written here, for its configuration",
     OPTION_AT(struct request, against)},
    {"target", "SCORE", OPTION_WORD, NULL,
     "what they took to this score, as loss:2.0 or valid:perplexity:120, by the evaluations and steps in their logs, "
     "however they were started",
     OPTION_AT(struct request, target)},
    {"json", NULL, OPTION_FLAG, NULL, "one JSON object for each configuration", OPTION_AT(struct request, json)},
    {"csv", NULL, OPTION_FLAG, NULL, "comma-separated values, a row for each configuration and measure",
     OPTION_AT(struct request, csv)},
};

const struct option_table compare_options = {
    .verb = "compare",
    .row = options,
    .rows = sizeof options / sizeof *options,
    .operand = "run",
    .operand_at = offsetof(struct request, runs),
    .operands = true,
    .wanted = "runs are needed: their directories or logs",
    .call = "sparsetrain compare RUN...",
    .about =
        "What runs took to their --target, or to the one that is given here: steps, seconds in steps, bytes that a "
        "rank sent. RUN: the directory of a run, or its log. Runs that differ in the seed alone are of one "
        "configuration, for which stand the olympic mean "
        "(without the least and the greatest; of 3 runs and more), the mean, the spread, the standard deviation and, "
        "beside that of --against, a one-sided Welch t-test: p is the probability of being so far below it by chance. "
        "Runs that did not reach their target are counted and in no mean; those that ended before their length without "
        "it are counted apart, as unfinished. A run that is given twice, or as a copy of its log, counts once.",
};

/* -- reading ------------------------------------------------------------------------------------------------------- */

/* False: they cannot be read to their end; errno. */
static bool read_rows(FILE *f, struct log *log) {
    char *line = NULL;
    size_t size = 0;
    while (log_row_next(f, &line, &size)) {
        log_target_row(&log->wanted, line);
        char **kept = log_row_is(line, "header")    ? &log->header_line
                      : log_row_is(line, "summary") ? &log->summary_line
                                                    : NULL;
        if (!kept || !log_row_whole(line)) continue;
        mem_free(*kept);
        *kept = mem_printf("%s", line);
    }
    const int reason = errno;
    log_target_end(&log->wanted);
    mem_free(line);
    errno = reason;
    return !ferror(f);
}

/* The lines of the log of that name, fresh memory, also where it cannot be read to its end; NULL where there is none.
 */
static bool read_log(struct log *log, struct err *e) {
    struct stat info;
    const char *why;
    const bool folder = stat(log->name, &info) == 0 && S_ISDIR(info.st_mode);
    char *path = mem_printf("%s%s", log->name, folder ? "/run.jsonl" : "");
    FILE *f = file_read(path, &why);
    if (!f) err_with(e, err_of_errno(errno), "compare: cannot read %.300s: %s", path, why);
    if (f && !read_rows(f, log)) err_system(e, "compare: cannot read %.300s: %s", path, strerror(errno));
    if (f) fclose(f);
    mem_free(path);
    return !e->text[0];
}

/* What says nothing of what a run computes, and the seed. */
static bool left_out(const char *key) {
    static const char *const names[] = {"seed",       "out",     "resume", "stop-at",         "quiet",   "progress",
                                        "record",     "trace",   "mllog",  "log-tensorboard", "dry-run", "keep",
                                        "keep-every", "timeout", "target", "checkpoint-every"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(key, names[i]) == 0) return true;
    return false;
}

/* Its text, without what a terminal takes for more than text, or a line's end: a log may be anybody's. */
static char *plain(const struct json_value *v) {
    char *text = mem_alloc(v->length + 1, 1, "a value of a log");
    const size_t length = json_plain(v, text);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) text[i] = ' ';
    text[length] = '\0';
    return text;
}

/* "ranks=2\nalgo=gtopk\n..." of a header. What a run took that went on with other ranks or another batch, it did not
 * take with these alone: such runs are told from those that always had them. An option that is null says what a
 * version without it says; of --init-from that it was given counts, and not with what. */
static char *config_of(const struct log *log) {
    struct json_value ranks, config;
    struct json_member m = {.end = NULL};
    const bool known = json_at(&log->header, "ranks", &ranks);
    const double resized = json_number_at(&log->summary, "resized");
    char *all = mem_printf("ranks=%.*s\n", known ? (int)ranks.length : 1, known ? ranks.at : "-");
    if (resized > 0) {
        char *longer = mem_printf("%sresized=%.0f\n", all, resized);
        mem_free(all);
        all = longer;
    }
    if (!json_at(&log->header, "config", &config)) return all;
    while (json_next(&config, &m)) {
        char *key = plain(&m.key), *value = plain(&m.value);
        if (!left_out(key) && *m.value.at != 'n') {
            char *longer = mem_printf("%s%s=%s\n", all, key, strcmp(key, "init-from") == 0 ? "given" : value);
            mem_free(all);
            all = longer;
        }
        mem_free(key);
        mem_free(value);
    }
    return all;
}

/* What copies of a log have in common, by whatever name: which run it is; of a log that does not say, its header. */
static char *id_of(const struct json_value *header) {
    struct json_value id;
    return plain(json_at(header, "run", &id) ? &id : header);
}

static struct group *group_of(struct groups *all, char *config, char *target) {
    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->at[i].config, config) == 0 && strcmp(all->at[i].target, target) == 0) {
            mem_free(config);
            mem_free(target);
            return &all->at[i];
        }
    struct group *g = &all->at[all->count++];
    const char *algo = strstr(config, "\nalgo=");
    *g = (struct group){.config = config, .target = target};
    g->algo = mem_printf("%.*s", algo ? (int)strcspn(algo + 6, "\n") : 0, algo ? algo + 6 : "");
    for (int m = 0; m < MEASURES; m++) g->value[m] = mem_alloc(all->room, sizeof(double), "what runs took");
    return g;
}

/* Has this run been taken before? Its copies and parts are of its configuration; what has gone on from it otherwise is
 * not, and another run. */
static struct taken *taken_before(const struct groups *all, const struct group *g, const char *id) {
    for (size_t i = 0; i < all->runs; i++)
        if (all->run[i].group == g && strcmp(all->run[i].id, id) == 0) return &all->run[i];
    return NULL;
}

/* Did it end before its length (a signal, --stop-at, a target of its own)? One that does not say did not. */
static bool is_short(const struct log *log) {
    struct json_value completed;
    return json_at(&log->summary, "completed", &completed) && *completed.at == 'f';
}

/* A run of that configuration, which took so much to the target where it has reached it; once, by whatever names it
 * comes. NULL: it comes by two logs that are no copies, of which either may be meant. */
static const struct group *take(struct groups *all, const struct log *log, char *target, bool reached,
                                const double took[MEASURES], struct err *e) {
    struct group *g = group_of(all, config_of(log), target);
    char *id = id_of(&log->header);
    struct taken *before = taken_before(all, g, id);
    if (before) {
        mem_free(id);
        if (strcmp(before->summary, log->summary_line) == 0) {
            before->copy = log->name;
            return g;
        }
        err_set(e, "compare: %.300s and %.300s are logs of one run; leave one of them out", before->name, log->name);
        return NULL;
    }
    all->run[all->runs++] = (struct taken){log->name, id, mem_printf("%s", log->summary_line), g, NULL};
    const bool unfinished = !reached && is_short(log);
    g->unfinished += unfinished;
    g->runs += !unfinished;
    for (int m = 0; m < MEASURES && reached; m++) g->value[m][g->reached] = took[m];
    g->reached += reached;
    return g;
}

static const struct group *take_target(struct groups *all, const struct log *log, const struct json_value *target,
                                       struct err *e) {
    struct json_value metric, split, value, reached;
    double took[MEASURES];
    json_at(target, "metric", &metric);
    json_at(target, "split", &split);
    json_at(target, "value", &value);
    char *name = plain(&metric), *set = plain(&split);
    char *text = mem_printf("%s:%s:%.*s", set, name, (int)value.length, value.at);
    mem_free(name);
    mem_free(set);
    for (int m = 0; m < MEASURES; m++) took[m] = json_number_at(target, group_measures[m]);
    return take(all, log, text, json_at(target, "reached", &reached) && *reached.at == 't', took, e);
}

/* --target */
static const struct group *take_wish(struct groups *all, const struct log *log, struct err *e) {
    const struct log_target *t = &log->wanted;
    char value[JSON_NUMBER_MAX], score[TARGET_SCORE_MAX];
    const double took[MEASURES] = {t->steps, t->seconds, t->bytes_sent};
    const struct target_wish found = {.split = t->split, .metric = t->wish.metric};
    json_number_text(t->wish.value, value);
    return take(all, log, mem_printf("%s:%s", target_score_name(&found, score), value), t->reached, took, e);
}

static bool is_target(const struct json_value *t) {
    struct json_value v;
    return *t->at == '{' && json_at(t, "metric", &v) && json_at(t, "split", &v) && json_at(t, "value", &v);
}

/* As paths: slashes at the end, which a shell's globs of directories leave, say nothing. */
static bool same_name(const char *a, const char *b) {
    size_t i = strlen(a), j = strlen(b);
    while (i > 0 && a[i - 1] == '/') i--;
    while (j > 0 && b[j - 1] == '/') j--;
    return i == j && memcmp(a, b, i) == 0;
}

static bool take_run(struct groups *all, const struct request *q, const char *run, struct err *e) {
    char score[TARGET_SCORE_MAX];
    const struct group *g = NULL;
    struct json_value target;
    struct json_fault wrong;
    struct log log = {.name = run, .wanted.wish = q->wish};
    const struct log_target *t = &log.wanted;
    if (!read_log(&log, e) || !log.header_line || !log.summary_line ||
        !json_read(log.header_line, &log.header, &wrong) || !json_read(log.summary_line, &log.summary, &wrong))
        err_set(e, "compare: %.300s holds no run that has ended", run); /* unless it could not be read */
    else if (t->begins > 0)
        err_set(e,
                "compare: the log %.300s begins at step %.0f, and what was before is not in it: for --target give the "
                "run that it was resumed from, or one that went on in its own directory",
                run, t->begins);
    else if (t->wish.wanted && t->split == TARGET_EITHER)
        err_set(e, "compare: the evaluations in %.300s give no %s", run, target_score_name(&t->wish, score));
    else if (t->wish.wanted)
        g = take_wish(all, &log, e);
    else if (!json_at(&log.summary, "target", &target) || !is_target(&target))
        err_set(e, "compare: the run in %.300s has no target: start it with --target, or give one here", run);
    else
        g = take_target(all, &log, &target, e);
    if (g && same_name(run, q->against)) all->against = g;
    mem_free(log.header_line);
    mem_free(log.summary_line);
    return !e->text[0];
}

/* -- what they are called ------------------------------------------------------------------------------------------ */

/* Has every group this line of a configuration, "key=value\n"? */
static bool in_all(const struct groups *all, const char *line, size_t length) {
    char *whole = mem_printf("\n%.*s", (int)length, line);
    bool good = true;
    for (size_t i = 0; i < all->count && good; i++) {
        char *config = mem_printf("\n%s", all->at[i].config);
        good = strstr(config, whole) != NULL;
        mem_free(config);
    }
    mem_free(whole);
    return good;
}

/* The algorithm, and what else tells it from the others: all of that, however long, as it is the key in tables. */
static void name(const struct groups *all, struct group *g) {
    g->label = mem_printf("%s", g->algo);
    for (const char *line = g->config; *line;) {
        const size_t length = strcspn(line, "\n") + 1;
        if (strncmp(line, "algo=", 5) != 0 && !in_all(all, line, length)) {
            char *longer = mem_printf("%s %.*s", g->label, (int)length - 1, line);
            mem_free(g->label);
            g->label = longer;
        }
        line += length;
    }
}

static void settle(struct groups *all) {
    for (size_t i = 0; i < all->count; i++) {
        struct group *g = &all->at[i];
        name(all, g);
        for (int m = 0; m < MEASURES; m++) {
            size_t known = 0;
            for (size_t r = 0; r < g->reached; r++)
                if (isfinite(g->value[m][r])) g->value[m][known++] = g->value[m][r];
            g->sample[m] = sample_of(g->value[m], known);
        }
    }
}

static void close_groups(struct groups *all) {
    for (size_t i = 0; i < all->count; i++) {
        mem_free(all->at[i].config);
        mem_free(all->at[i].target);
        mem_free(all->at[i].algo);
        mem_free(all->at[i].label);
        for (int m = 0; m < MEASURES; m++) mem_free(all->at[i].value[m]);
    }
    for (size_t i = 0; i < all->runs; i++) {
        mem_free(all->run[i].id);
        mem_free(all->run[i].summary);
    }
    mem_free(all->run);
    mem_free(all->at);
}

int compare_verb(int argc, char **argv) {
    struct request q = {.runs = {NULL, 0}};
    bool given[sizeof options / sizeof *options] = {false};
    struct err e = {0};
    option_defaults(&compare_options, &q);
    bool good = option_parse(&compare_options, &q, given, argc, argv, 1, &e);
    if (good && q.json && q.csv) good = err_set(&e, "compare: --json and --csv exclude each other; give one of them");
    if (good && q.target) good = target_parse(q.target, &q.wish, &e);
    struct groups all = {.room = good ? q.runs.count : 0};
    if (good) all.at = mem_zalloc(all.room, sizeof *all.at, "configurations");
    if (good) all.run = mem_zalloc(all.room, sizeof *all.run, "runs");
    for (size_t i = 0; good && i < q.runs.count; i++) good = take_run(&all, &q, q.runs.at[i], &e);
    if (good) settle(&all);
    if (good && option_given(&compare_options, given, "against")) good = rival_check(&all, q.against, &e);
    if (good) {
        compare_print(&all, q.against, q.csv ? COMPARE_CSV : q.json ? COMPARE_JSON : COMPARE_TEXT);
    } else {
        fprintf(stderr, "sparsetrain: %s\n", e.text);
    }
    close_groups(&all);
    return good ? EXIT_DONE : err_status(&e);
}
