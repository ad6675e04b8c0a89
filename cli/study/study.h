/* study.h: the scaling study (docs/reproduce.md): which exchange wins in which cell, by the cost model and in
 * simulation; how far what is ours is ahead of what is published; and what is yet to be simulated.
 *
 * A cell is a network, a model, a density and a number of ranks P, one rank a node. Each is looked at in classes of
 * messages: in the first format, coo32, alone; lossless: in those that keep every value; rounded: in any format. A
 * published algorithm in the format of its paper, coo32, is what others have proposed. Ours is a row that says so, in
 * any format, and every algorithm in a format of ours. Rows that take no format stay what they are.
 *
 *        struct study *s = study_new();
 *        if (study_map(s, e) && study_local(s, costs, device, e) && study_simulated(s, folder, e))
 *            study_compare(s);                     // s->line: who wins where
 *        study_free(s);
 */
#ifndef ST_CLI_STUDY_H
#define ST_CLI_STUDY_H

#include "comm/cost/best.h"

enum { STUDY_PATH = 4096, STUDY_NETS = 8, STUDY_MODELS = 8, STUDY_DENSITIES = 8, STUDY_SIZES = 16 };

struct study_net {
    struct network of;
    /* An earlier network with the same alpha/beta, or -1: every time of communication is the twin's times factor, so
     * this one is not simulated again, and says nothing new. */
    int twin;
    double factor;
};

struct study_model {
    const char *name;    /* as the papers and the page have it */
    const char *costs;   /* as a table of scripts/measure-costs.sh has it */
    const char *profile; /* of the gradients that are drawn: results/measured/profiles/PROFILE-DENSITY */
    size_t n;            /* entries of its gradient */
};

/* Whose: of all that can be compared, of the published ones, of ours. */
enum study_who { STUDY_ALL, STUDY_PUBLISHED, STUDY_OURS };

/* Seconds by simulation or by the cost model; charged: with local work on top; free_packing: of which no format takes
 * more than the first, coo32, does: a bound on what a faster packing could bring. */
struct study_view {
    bool simulated, charged, free_packing;
};

/* A row of exchanges in a format (places in exchanges and in study_format); seconds NAN: there is none. */
struct study_best {
    size_t algo, format;
    double seconds;
};

/* A line of cells.csv. */
struct study_line {
    size_t cell, class;
    bool charged;
    bool there;     /* false: of its local work nothing is known */
    bool simulated; /* all that could win was simulated; else the numbers are the model's */
    struct study_best winner, predicted, published, ours; /* published: in coo32 */
    double ahead;       /* published.seconds / ours.seconds, in the four digits that cells.csv has */
    double ahead_model; /* the same by the cost model */
};

struct study {
    size_t nets, models, densities, sizes, runs; /* in use of the arrays below */
    struct study_net net[STUDY_NETS];
    struct study_model model[STUDY_MODELS];
    double density[STUDY_DENSITIES];
    int P[STUDY_SIZES], run[STUDY_SIZES];  /* of the map, rising; of these those that are simulated */
    size_t least;                          /* a long selection is cut to so many entries; 0: as each row needs */
    double error;                          /* the largest by which a simulated step was off, a fraction */
    char error_of[128];                    /* whose that was, and in which direction */
    const char *costs, *device;            /* the table of local work and its device; NULL: none */
    bool has_local;                        /* local work of something is known */
    double *predicted, *simulated, *local; /* [s] by study_at; NAN: none */
    struct study_line *line;               /* [study_lines(s)] by study_line_at, after study_compare */
};

/* -- places -------------------------------------------------------------------------------------------------------- */
struct study *study_new(void);
void study_free(struct study *s);

/* Memory for the tables, all NAN, once the numbers of nets, models, densities and sizes are there. */
void study_open(struct study *s);

/* The formats in the order of the classes: what keeps every value before what rounds it; NULL past the end. */
const struct wire_ops *study_format(size_t w);
size_t study_formats(void);
enum { STUDY_CLASSES = 3 };
const char *study_class(size_t class);                   /* coo32, lossless, rounded */
size_t study_class_formats(size_t class);                /* how many it has, of the first ones */
const struct wire_ops *study_class_format(size_t class); /* the one that cells.csv calls it by */

size_t study_cells(const struct study *s);
size_t study_cell(const struct study *s, size_t net, size_t density, size_t model, size_t size);
size_t study_net_of(const struct study *s, size_t cell);
size_t study_density_of(const struct study *s, size_t cell);
size_t study_model_of(const struct study *s, size_t cell);
size_t study_size_of(const struct study *s, size_t cell);
int study_p_of(const struct study *s, size_t cell);
size_t study_k(const struct study *s, size_t cell); /* entries that a rank selects */

/* Of a row of exchanges in a format; where it takes none, the format is without effect. */
size_t study_at(size_t cell, size_t algo, size_t format);
bool study_ranked(size_t algo); /* can it be compared? */

/* -- decisions ----------------------------------------------------------------------------------------------------- */
bool study_published(const struct exchange_ops *ops, size_t format);

double study_seconds(const struct study *s, struct study_view view, size_t cell, size_t algo, size_t format);
/* The fastest in one format, and in those of a class. Of equal ones that of the shorter name: what a paper builds on
 * another paper comes later and is called longer. */
struct study_best study_best(const struct study *s, struct study_view view, enum study_who who, size_t cell,
                             size_t format);
struct study_best study_best_of_class(const struct study *s, struct study_view view, enum study_who who, size_t cell,
                                      size_t class);

/* A selection of k is simulated with k/S entries, over an S-th of the bandwidth, where that is still enough: how many
 * entries that leaves. */
size_t study_least_k(const struct study *s, const struct exchange_ops *ops, int P, size_t k);
/* What chooses by thresholds in partitions of its own must find its share in each of them, which drawn gradients do not
 * have: it runs over independent numbers, so on its own. */
bool study_runs_apart(const struct exchange_ops *ops);
/* Is it to be simulated, and has it been? */
bool study_wanted(const struct study *s, size_t cell, size_t algo, size_t format);
bool study_has(const struct study *s, size_t cell, size_t algo, size_t format);

/* s->line of everything. */
void study_compare(struct study *s);
size_t study_lines(const struct study *s);
const struct study_line *study_line_at(const struct study *s, bool charged, size_t class, size_t cell);

/* A lead counts where it is more than the error of a simulated step. */
enum study_status { STUDY_AHEAD, STUDY_WITHIN, STUDY_BEHIND };
/* Of a lead: by more than the error of a simulated step, or not. */
enum study_status study_status(const struct study *s, double ahead);
/* Seconds of the best published one over those of the best of ours in a class, in the digits of cells.csv; NAN: none.
 */
double study_lead(const struct study *s, struct study_view view, size_t cell, size_t class);
/* Of communication alone a twin says nothing new; local work tells the two apart. */
bool study_counts(const struct study *s, const struct study_line *line);

/* -- what it is made from ------------------------------------------------------------------------------------------ */
/* The map: networks, models, densities, P, and the cost model in every cell. False: a published number is not there. */
bool study_map(struct study *s, struct err *e);
/* Names of its networks and models, in its order; NULL past the end. */
const char *study_net_name(size_t i);
const char *study_model_name(size_t i);
/* Marks the networks that have a twin. */
void study_find_twins(struct study *s);
/* Models by name; also those of the aims alone, which the map lacks. NULL: there is none. */
const struct study_model *study_find_model(const char *name);
/* n of a model of the study. */
bool study_model_n(struct study_model *model, struct err *e);

/* What local work takes, of a table of costs; where costs is NULL nothing. A model that the table lacks has none. */
bool study_local(struct study *s, const char *costs, const char *device, struct err *e);
/* The same of one model at one density and P, where transfers hide dense additions (1 Gbit/s): seconds:
 * [exchanges][study_formats], [BEST_MAX]. False: it has none. */
bool study_local_of(const struct study *s, const struct study_model *model, double density, int P, double *seconds);

/* Places in exchanges and of formats by name; those past the end: there is none. */
size_t study_find_algo(const char *name);
size_t study_find_format(const char *name);
/* Places on the map; past the end: it has none. */
size_t study_find_density(const struct study *s, double density);
size_t study_find_size(const struct study *s, double P);
bool study_path(char path[STUDY_PATH], const char *folder, const char *file, struct err *e);
/* FOLDER/simulated.csv, and by how much the simulator is off (results/measured/sim-calibration). */
bool study_simulated(struct study *s, const char *folder, struct err *e);
bool study_error(struct study *s, struct err *e);

#endif
