/* cost_table.h: a table of scripts/measure-costs.sh (docs/simulation.md has its columns): what local work takes, looked
 * up for one algorithm at a time.
 *
 *        struct cost_table t;
 *        struct cost_answer a;
 *        if (!cost_table_open(&t, "costs.csv", e)) return false;
 *        const struct cost_question q = {.model = "vgg16", .device = "cpu", .ops = &exchange_gtopk, .density = 0.001,
 *                                        .ranks_per_node = 1, .times = COST_ALL};
 *        bool there = cost_table_ask(&t, &q, &a, e);       // else: what is not in it, and what is there instead
 *        cost_table_close(&t);
 */
#ifndef ST_CLI_COST_TABLE_H
#define ST_CLI_COST_TABLE_H

#include "comm/exchange.h"

enum { COST_LINE = 512, COST_COLUMNS = 13, COST_DEVICES = 16, COST_NAME = 32 };

enum cost_column {
    COST_MODEL,
    COST_ENTRIES,
    COST_DEVICE,
    COST_WHAT,
    COST_ALGORITHM,
    COST_SELECTOR,
    COST_WIRE,
    COST_DENSITY,
    COST_BATCH,
    COST_RANKS,
    COST_SECONDS,
    COST_PER_SECOND,
    COST_SOURCE
};

/* A row: its columns as text, in a line of its own. */
struct cost_row {
    char line[COST_LINE];
    const char *cell[COST_COLUMNS];
};

struct cost_table {
    const char *path;     /* the caller's */
    struct cost_row *row; /* [rows] */
    size_t rows, room;    /* in use, there */
    struct cost_cores {
        char device[COST_NAME];
        double cores;
    } machine[COST_DEVICES]; /* what its lines with # say of the machines */
    size_t machines;
};

/* False: no such file, or no such table; one line in *e. */
bool cost_table_open(struct cost_table *t, const char *path, struct err *e);
void cost_table_close(struct cost_table *t);

/* The times that a question can be about. */
enum { COST_COMPUTE = 1, COST_SELECT = 2, COST_WORD = 4, COST_SUM = 8, COST_ALL = 15 };

struct cost_question {
    const char *model, *device;
    const char *compute_device; /* for computing; NULL: device */
    const char *tree;           /* the folder with results/published, for times that rows take from there; NULL: here */
    const struct exchange_ops *ops;
    const char *selector;        /* NULL: the one that the table has the algorithm with */
    const struct wire_ops *wire; /* NULL: coo32; without effect on an algorithm that takes no format */
    double density;
    int ranks_per_node; /* what goes by the nodes selects in such a part of the gradient */
    unsigned times;     /* COST_ of those that are wanted; what is not need not be in the table */
};

struct cost_answer {
    size_t n;             /* entries of the model's gradient */
    bool charged;         /* false: a dense sum, of which the additions alone are */
    const char *selector; /* the table's, or the question's; "" where it has none */
    double compute;       /* [s] a step; NAN: not known of this model on this device, or not asked for */
    double select;        /* [s] accumulating and selecting, of a step; NAN: not charged, or not asked for */
    double word;          /* [s] packing and merging, for a word received; likewise */
    double sum;           /* [s] adding a value of a dense sum; NAN: it is none, not in the table, or not asked for */
};

/* Of rows that differ in their ranks alone: the most that had a core each; where none had, the fewest. False: one line
 * in *e says what is not in the table, and what is there instead. */
bool cost_table_ask(const struct cost_table *t, const struct cost_question *q, struct cost_answer *a, struct err *e);

/* Is there a row of packing and merging of this algorithm, for this model and device? */
bool cost_table_has(const struct cost_table *t, const struct cost_question *q);

/* Is there a row of selection on this device? False: one line in *e says on which devices there are some. */
bool cost_table_selects(const struct cost_table *t, const char *device, struct err *e);

/* Is the text of a cell this number? 0.01 is 1e-2. */
bool cost_cell_is(const char *cell, double value);

#endif
