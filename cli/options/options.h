/* options.h: everything a user can ask of a training run. ONE table (options_table.c) drives the parsing, --help, the
 * man page, the echo of the configuration in logs and checkpoints, and what may change when a run resumes. */
#ifndef ST_CLI_OPTIONS_H
#define ST_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "base/option.h"
#include "comm/density.h"
#include "comm/exchange_options.h"
#include "data/dataset.h"
#include "nets/net.h"
#include "nets/optimisers/optimiser.h"
#include "nets/optimisers/outer.h"
#include "nets/optimisers/schedule.h"

enum select_scope { SCOPE_GLOBAL, SCOPE_LAYER };
enum overlap_how { OVERLAP_NONE, OVERLAP_LAYERS };
enum clip_place { CLIP_UPDATE, CLIP_LOCAL };
enum { BATCH_MAX = 65536 }; /* of --batch, on each rank */
enum resume_residuals { RESIDUALS_MEAN, RESIDUALS_SUM, RESIDUALS_RESET };
enum record_what { RECORD_GRADIENTS, RECORD_SELECTED };
enum progress_how { PROGRESS_AUTO, PROGRESS_BAR, PROGRESS_LINES, PROGRESS_NONE };

/* The values, in the order of the table. Text is kept as typed. A choice is its number: the row's in a folder's table,
 * or that of an enum; -1: none. */
struct options {
    int algo, select; /* exchanges, and behind them auto; selectors */
    char density_warmup[OPTION_TEXT_MAX];
    double density;
    int64_t dense_steps;
    int select_scope; /* enum select_scope */
    char dense_slices[OPTION_TEXT_MAX];
    int wire, overlap;       /* wires; enum overlap_how */
    struct exchange_own own; /* what algorithms and selectors declare */
    int64_t overlap_bytes, ranks_per_node, average_every;
    struct outer_rates outer; /* of the step that ends a round */
    bool local_update, momentum_correction, momentum_masking, fold_lr, wire_check;
    int model; /* models */
    char data[OPTION_TEXT_MAX], init_from[OPTION_TEXT_MAX];
    char preset[OPTION_TEXT_MAX];
    int64_t hidden, layers, heads, bptt, context;
    double dropout;
    bool no_augment;
    double epochs, stop_at;
    char target[OPTION_TEXT_MAX];
    int64_t steps, batch, accumulate, lr_warmup_steps;
    double lr, lr_warmup, clip_norm;
    struct optimiser_setup method; /* what optimisers declare, and the weight decay */
    int clip_at, optimiser;        /* enum clip_place, optimisers */
    char lr_schedule[OPTION_TEXT_MAX];
    int64_t seed;
    int device, precision; /* see device_option.h; enum precision */
    int64_t threads;
    double timeout;
    char out[OPTION_TEXT_MAX], resume[OPTION_TEXT_MAX];
    int64_t checkpoint_every, keep, keep_every, check_replicas, audit, log_slices, log_xi, record_every;
    char record[OPTION_TEXT_MAX], trace[OPTION_TEXT_MAX], mllog[OPTION_TEXT_MAX], log_tensorboard[OPTION_TEXT_MAX];
    int record_what;      /* enum record_what */
    int resume_residuals; /* enum resume_residuals */
    double eval_every;
    int64_t eval_samples, samples;
    bool quiet, dry_run;
    int progress;                  /* enum progress_how */
    bool given[OPTION_ROWS_MAX];   /* by row: was it on the command line? */
    bool ignored[OPTION_ROWS_MAX]; /* by row: it was, without effect on this algorithm, and is now as if it had not been
                                    */
    bool other_ranks; /* --resume: the checkpoint is of another number of ranks; set before options_resume */
    bool lenient;     /* the algorithm was not asked for by name: see options_candidate */
};

/* Of `train` and `config`: the same rows (options_table.c). */
extern struct option_table train_options, config_options;

/* All values as their defaults; numbers without one are NaN or -1. */
void options_default(struct options *o);

/* Reads argv[first...]. A mistake: false, one line in *e. */
bool options_parse(struct options *o, int argc, char **argv, int first, struct err *e);

/* After parsing (and after a checkpoint's values were taken over): fills what depends on other options (batch and
 * learning rate of the model, selector of the algorithm), ignores parameters that the algorithm asked for by name has
 * no use for, so that a loop over algorithms may give them to all, and refuses what else is without effect or
 * contradicts itself. */
bool options_resolve(struct options *o, struct err *e);

/* --algo auto, as long as nothing has been chosen; options_exchange is then NULL. */
bool options_auto(const struct options *o);

/* *out: these options (resolved, with --algo auto) as if this row, and this format where it takes one (NULL: as they
 * are), had been asked for by name. Parameters that the row has no use for, as --density with dense, fall back to their
 * defaults; what else it could not go with is refused, and so are rows that lose gradient or cannot be compared
 * (exchange_apart): false, one line in *e. */
bool options_candidate(const struct options *o, const struct exchange_ops *x, const struct wire_ops *wire,
                       struct options *out, struct err *e);

/* The name of what was chosen for an option: of one that has choices, and a value. */
const char *options_choice(const struct options *o, const char *name);

/* One value from its text, which must be one that it can have. */
void options_set(struct options *o, const char *name, const char *text);

/* That it counts as given; back to its default, as if not given; and that it counts as ignored. */
void options_give(struct options *o, const char *name);
void options_reset(struct options *o, const char *name);
void options_ignore(struct options *o, const char *name);

/* Parameters back to their defaults that the algorithm has no use for. chosen: it was by --algo auto, and they
 * concerned others; else by name, and they count as ignored. */
void options_drop_unused(struct options *o, bool chosen);

/* "--density, --density-warmup and --wire": those that count as ignored; else "". */
void options_ignored(const struct options *o, char *text, size_t size);

/* "name=value\n" for every row of this rule, in table order; fresh memory. */
char *options_text(const struct options *o, enum option_rule rule);

/* What a checkpoint has of the options, and a resumed run goes on with: the rows of RULE_RUN and RULE_KEPT; fresh
 * memory. */
char *options_kept(const struct options *o);

/* Takes from such a text every value that was not given on the command line; a given one that differs is refused. The
 * length of the run (epochs, steps), which checkpoints are kept, the batch and the rows of RULE_KEPT may change, with
 * other_ranks the ranks of a node, too, and --algo auto is content with the text's. */
bool options_resume(struct options *o, const char *text, struct err *e);

/* Is it such a text? Every line an option that a checkpoint may bring, none twice, each value one that it can have. */
bool options_stored(const char *text, struct err *e);

/* The value of one option in such a text, "" where it has none. */
void options_text_value(const char *text, const char *name, char value[OPTION_TEXT_MAX]);

/* Takes from such a text every value that was not given on the command line. */
bool options_inherit(struct options *o, const char *text, struct err *e);

/* "config": {...} with typed values. */
void options_json(const struct options *o, struct json *j);

bool options_given(const struct options *o, const char *name);

/* What each model brings for this row, which has no default of its own, where it is not given: "0.001; lstm 0.005; gpt,
 * bert the preset's", the first value that of --model's own default and of the models that are not named. "" where no
 * model brings anything, of a flag, and of a row that is none of train_options. */
void options_model_defaults(const struct option_row *row, char *text, size_t size);

/* A row's help with the choices and the default added. */
void options_sentence(const struct option_row *row, char *text, size_t size);

/* --help of the program, and of a verb. */
void options_help(FILE *stream);
void options_help_of(const struct option_table *t, FILE *stream);
void options_man(FILE *stream);

/* The rows that were chosen. */
const struct exchange_ops *options_exchange(const struct options *o);
const struct selector_ops *options_selector(const struct options *o); /* NULL where the algorithm takes none */
const struct model_ops *options_model(const struct options *o);

/* How the model is trained that was chosen: its preset's values, or its own. */
const struct model_reference *options_reference(const struct options *o);

/* Words of a window: --bptt or --context, whichever the model has; 0: it takes images. */
int options_sequence(const struct options *o);

/* The values of the algorithms' own options among them, as long as *o is there; is the row one of these? */
struct option_values options_own(const struct options *o);
bool options_is_own(const struct option_row *row);

/* What the options say of the exchange: wire format, the algorithm's own options, bucket size. */
void options_setup(const struct options *o, struct exchange_setup *setup);

/* For tables of options. */
const char *precision_name(size_t i);

/* --clip-at local: each rank's own gradient, before it is exchanged. */
bool options_clip_local(const struct options *o);

/* --record-what selected: the entries that every rank puts into the exchange. */
bool options_record_selected(const struct options *o);

/* Do the replicas differ between two averages of the parameters? */
bool options_drift(const struct options *o);

/* --data NAME[:WHERE]: the row, or NULL; *where points to WHERE, else to $SPARSETRAIN_DATA, else
 * to place_data(). */
const struct dataset_ops *options_dataset(const char *data, const char **where);

#endif
