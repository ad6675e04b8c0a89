/* option.h: options of a command line. They are rows of tables: what is parsed, what --help, the manual page and the
 * completion of shells say, and the echo of a configuration, all come from them. A row tells where in a struct the
 * value lies, so that a folder below `cli` can declare options of what it does and never read a command line:
 *
 *        struct request { size_t repeat; struct option_numbers n; bool json; };
 *        static const struct option_row rows[] = {
 *            {"repeat", "N", OPTION_SIZE, "20", "timed steps", OPTION_AT(struct request, repeat), .min = 1},
 *            {"n", "LIST", OPTION_NUMBERS, "1000", "lengths", OPTION_AT(struct request, n), .min = 1, .max = 1e9},
 *            {"json", NULL, OPTION_FLAG, NULL, "one JSON object per row", OPTION_AT(struct request, json)}};
 *        const struct option_table table = {"bench", .row = rows, .rows = 3};
 *
 *        option_defaults(&table, &request);
 *        if (!option_parse(&table, &request, given, argc, argv, 1, &e)) ...    // one line in e: what is wrong
 */
#ifndef ST_BASE_OPTION_H
#define ST_BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { OPTION_TEXT_MAX = 512, OPTION_LIST_MAX = 64, OPTION_ROWS_MAX = 96 };

/* What the value is in its struct. */
enum option_type {
    OPTION_FLAG,    /* bool */
    OPTION_INTEGER, /* int64_t; without a default -1 */
    OPTION_INT,     /* int; likewise */
    OPTION_SIZE,    /* size_t; likewise 0 */
    OPTION_REAL,    /* double; likewise NaN */
    OPTION_TEXT,    /* char [OPTION_TEXT_MAX]; likewise "" */
    OPTION_WORD,    /* const char *: the word of the command line itself; without a default NULL */
    OPTION_CHOICE,  /* int: the number of one of the row's choices; without a default -1 */
    OPTION_SET,     /* unsigned: some of them, the i-th as bit i, or none; without a default none */
    OPTION_NAMES,   /* struct option_names: several of them, or all */
    OPTION_NUMBERS, /* struct option_numbers */
    OPTION_OTHER    /* whatever the row's `set` makes of the text */
};

struct option_names {
    int at[OPTION_LIST_MAX]; /* [count] numbers of choices */
    size_t count;
    bool all; /* asked for as "all" */
};

struct option_numbers {
    double x[OPTION_LIST_MAX]; /* [count] */
    size_t count;
};

/* Words without dashes, where a table takes several: argv's own memory. */
struct option_words {
    char **at; /* [count] */
    size_t count;
};

/* A value that is no choice of a table, as it is written ("layers:MODEL"), and what it means. */
struct option_meaning {
    const char *value, *meaning;
};

enum option_rule {
    RULE_LOCAL, /* of this start alone: how far it goes, what it prints, and all names of files to write, which a file
                   that somebody made, such as a checkpoint, must not bring */
    RULE_RUN,   /* part of what a run computes: the same on all ranks, and a resumed run keeps it */
    RULE_KEPT   /* how a run is watched: a resumed run goes on with it unless told otherwise */
};

struct option_row {
    const char *name, *argument; /* without the dashes; the metavariable, NULL for a flag */
    enum option_type type;
    const char *standard; /* the default as a user would type it; NULL: none (`help` may say why) */
    const char *help;
    size_t offset;                        /* of the value in its struct */
    double min, max;                      /* of numbers, inclusive ... */
    bool above_min;                       /* ... but min itself is not allowed */
    bool whole, sweep;                    /* of OPTION_NUMBERS: integers; MIN:MAX:FACTOR will do */
    const char *const *names;             /* of choices: what there is to choose, ends with NULL; or */
    const char *(*choice)(size_t i);      /* the i-th name, NULL past the end */
    const char *infinite;                 /* of reals: the word for infinity; NULL: that is no value */
    const struct option_meaning *meaning; /* further values, ends with one of NULL */
    bool (*set)(void *value, const char *text, struct err *); /* of OPTION_OTHER */
    bool again;                                               /* may come more than once: each time it is set anew */
    const char *wanted;                                       /* what a user reads who left it out; NULL: may be */
    const char *group;                                        /* the heading that it comes under */
    enum option_rule rule;
};

#define OPTION_AT(type, field) .offset = offsetof(type, field)

/* The options of a verb. */
struct option_table {
    const char *verb; /* as messages begin: "bench net"; NULL: they begin with the option */
    const struct option_row *row;
    size_t rows;
    const char *operand; /* what a word without dashes is, as "file"; NULL: none is taken */
    size_t operand_at;   /* where it goes in the struct: const char *, or */
    bool operands;       /* as many as there are: struct option_words */
    const char *wanted;  /* what a user reads who left the operand out; NULL: it may be */
    const char *call;    /* how it is called, "sparsetrain fit RECORDING"; the options are added */
    const char *about;   /* what it does, in paragraphs: before the options in its --help ... */
    const char *more;    /* ... and behind them; NULL: nothing */
};

/* -- options of parts --
 * A row of another table, an algorithm's say, declares in its own file what it alone reads, its values in a struct of
 * its own. A verb's table gathers such rows, from which each part takes its values by name when it is opened:
 *
 *        struct use { int tau; };
 *        static const struct option_row rows[] = {{"tau", "N", OPTION_INT, "64", ..., OPTION_AT(struct use, tau)}};
 *        const struct exchange_ops exchange_oktopk = {.options = OPTION_PART(rows), ...};
 *        ... option_take(&ops->options, &use, &setup->options);
 *
 * Parts may declare one of the same name, type and default: it is one option, and all of them read it. */
struct option_part {
    const struct option_row *row;
    size_t rows;
};
#define OPTION_PART(table)                                                                                             \
    { (table), sizeof(table) / sizeof *(table) }

/* Values of whatever rows, in the struct at base; all zero: there are none. */
struct option_values {
    const struct option_row *row;
    size_t rows;
    const void *base;
};

/* Behind to[0..count-1], of [OPTION_ROWS_MAX], copies of those rows whose name `to` lacks, with the group and the rule
 * of `place`. Their values lie in the part's struct at place->offset; or, where many parts are to share memory, packed
 * from *packed on, which moves behind them. Returns how many rows there are now. */
size_t option_gather(struct option_row *to, size_t count, const struct option_part *part,
                     const struct option_row *place, size_t *packed);

/* The part's struct `to`: each value the one of its name in `from`, or its default. */
void option_take(const struct option_part *part, void *to, const struct option_values *from);
bool option_declares(const struct option_part *part, const char *name);

/* The row of this name, so many characters, or NULL. */
const struct option_row *option_find(const struct option_table *t, const char *name, size_t length);

/* All values of the struct at `base` as their defaults; nothing else of it changes. */
void option_defaults(const struct option_table *t, void *base);
void option_default(const struct option_row *row, void *base);

/* One option from its text, as a command line would. False: "--name ...", without the verb. */
bool option_set(const struct option_row *row, void *base, const char *text, struct err *e);

/* Reads argv[first...]: --name value, --name=value. given: [rows], which are there, or NULL. */
bool option_parse(const struct option_table *t, void *base, bool *given, int argc, char **argv, int first,
                  struct err *e);

/* Was the option of this name there? */
bool option_given(const struct option_table *t, const bool *given, const char *name);

/* Is --help, or -h, among the words behind argv[0]? */
bool option_help_wanted(int argc, char **argv);

/* The value as text that option_set reads back to the same value; of flags, numbers, texts, choices. */
void option_value(const struct option_row *row, const void *base, char text[OPTION_TEXT_MAX]);
/* Has it one? Not what was neither given nor filled in. */
bool option_has_value(const struct option_row *row, const void *base);

/* The row's i-th choice; NULL past the end, and of a row that has none. */
const char *option_choice(const struct option_row *row, size_t i);
/* "a, b, c": all of them; cut off where the text ends. */
void option_choices(const struct option_row *row, char *text, size_t size);

#endif
