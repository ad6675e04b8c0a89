/* bench_exchange_options.c: the command line of `bench`, see bench_exchange.h. */
#include <stdio.h>
#include <string.h>

#include "base/table.h"
#include "cli/bench/bench_exchange.h"
#include "cli/observe/watching.h"

static const struct option_meaning patterns[] = {
    {"uniform", "independent normal numbers"},
    {"clustered", "large entries in runs that the ranks largely share"},
    {"layers:MODEL", "scales of a model's layers, heavy-tailed; n is the model's"},
    {"real:FILE", "recorded by train --record FILE; n is the file's. Rank r takes recorded rank r mod R of R, r / R "
                  "steps later; after the last step the first"},
    {"selected:FILE", "recorded by train --record FILE --record-what selected, likewise"},
    {"fitted:PROFILE", "drawn as sparsetrain fit found recorded ones to be; --n and --density scale them (default: "
                       "those of the profile)"},
    {NULL, NULL}};

#define AT(field) OPTION_AT(struct bench_request, field)

static const struct option_row rows[] = {
    {"algo", "LIST|all", OPTION_NAMES, "all", "algorithms, with commas between them", AT(algo_names),
     .choice = exchange_name},
    {"select", "NAME", OPTION_CHOICE, NULL, "selector of all algorithms that take one (default: each one's own)",
     AT(select_number), .choice = selector_name},
    {"wire", "NAME", OPTION_CHOICE, "coo32", "wire format of sparse vectors", AT(wire_number), .choice = wire_name},
    {"n", "LIST|MIN:MAX:FACTOR", OPTION_NUMBERS, "65536:4194304:8", "gradient lengths", AT(n), .min = 1,
     .max = UINT32_MAX, .whole = true, .sweep = true},
    {"density", "LIST", OPTION_NUMBERS, "0.01",
     "shares selected, k = density n (of patterns selected: and fitted: that of their run)", AT(density), .max = 1,
     .above_min = true},
    {"pattern", "NAME", OPTION_WORD, "uniform", "the gradients", AT(pattern), .meaning = patterns},
    {"ranks-per-node", "M", OPTION_INT, NULL,
     "take every M consecutive ranks for a node (hitopk, torus2d; default: the nodes there are)", AT(ranks_per_node),
     .min = 1, .max = 1e6},
    {"device", "NAME", OPTION_WORD, "auto",
     "where gradients and residuals lie: auto (a GPU where there is one), cpu, cuda, or sparse (lists of what is not "
     "zero)",
     AT(device_name)},
    {"warmup", "N", OPTION_SIZE, "3", "steps before the timed ones", AT(warmup), .max = 1e6},
    {"repeat", "N", OPTION_SIZE, "20", "timed steps", AT(repeat), .min = 1, .max = 1e6},
    {"no-check", NULL, OPTION_FLAG, NULL, "leave the verification out; it takes 12 bytes an entry on each rank",
     AT(unchecked)},
    {"seed", "S", OPTION_INTEGER, "1", "of the gradients, and of what algorithms draw", AT(seed),
     .max = 9007199254740992.0},
    {"phases", NULL, OPTION_FLAG, NULL, "a second line under each row: where the time went", AT(phases)},
    {"timeout", "S", OPTION_REAL, "300", WATCHING_HELP, AT(timeout), .max = 1e9},
    {"json", NULL, OPTION_FLAG, NULL, "one JSON object per row instead of the table", AT(json)},
    {"wire-check", NULL, OPTION_FLAG, NULL,
     "each row a second time, with the checks of train --wire-check, and how much longer that takes", AT(wire_check)},
    {"trace", "FILE", OPTION_WORD, NULL, "a Chrome trace of the phases of every rank", AT(trace)},
    {NULL, AT(own)},
    {"overlap-bytes", "B", OPTION_SIZE, "4194304", "dense-ovlp: bytes of one allreduce", AT(bucket_bytes), .min = 4,
     .max = 1e15},
    {"compute", "SECONDS", OPTION_REAL, NULL,
     "each step begins with so long a forward and backward pass (1/3 and 2/3; the rank sleeps)", AT(compute),
     .max = 1e6, .above_min = true},
    {"network", "NAME", OPTION_WORD, NULL, "what the rows of --json call the network (any text)", AT(network)},
    {"select-cost", "S", OPTION_REAL, NULL,
     "in a simulation (docs/simulation.md), of algorithms that select: seconds of it a step (default: 0)",
     AT(select_cost), .max = 1e6},
    {"word-cost", "S", OPTION_REAL, NULL,
     "likewise, of sparse algorithms and those that code: of packing and merging a 4-byte word received (default: 0)",
     AT(word_cost), .max = 1e6},
};

/* With what algorithms and selectors declare. */
static struct option_row options[OPTION_ROWS_MAX];

struct option_table bench_options = {
    .verb = "bench",
    .row = options,
    .call = "mpirun -np P sparsetrain bench",
    .about = "Gradient exchange without training: every algorithm at every length and density, timed and verified. A "
             "step accumulates a gradient (a new one each step) into the residual, selects and exchanges, until u is "
             "there. Ranks begin each step together; the time of a step is that of the slowest rank.",
    .more = "Columns: n, k; algorithm; median, 99th percentile and minimum of the timed steps; algbw = 4n bytes / "
            "median; effbw = the bytes that an allreduce of the dense gradient moves per rank, 4n 2(P-1)/P, / "
            "median (so for dense the bandwidth of the wire, for others that which dense would need); 4-byte "
            "words that a rank sent and received in a step: the most over ranks and steps, and the mean; bound: "
            "the most words that the algorithm's cost line allows when the selector keeps to k; ratio: words to "
            "bound; local: entries that a rank put in, global: entries of the sum, both means; wrong: entries "
            "that fail the verification.\n"
            "With --phases and --json: seconds a step in select, pack, communicate, merge and other, mean over "
            "ranks, and `outside`: the share that is not select, merge or communicate; and the time of writing "
            "u/P after it (update).\n"
            "Verified: sum of gradients = sum of u + residuals, entry by entry over all steps; u bit-identical on "
            "all ranks; dense, topka, topkdsa, gaussiank, gtopk-naive, and at P = 1 all, against their "
            "definition. Exit status 1 when wrong.",
};

/* Before main: the table of verbs has it in it. */
__attribute__((constructor)) static void gather(void) {
    bench_options.rows = exchange_options_gather(options, rows, sizeof rows / sizeof *rows, true);
}

struct option_values bench_own(const struct bench_request *r) {
    return (struct option_values){bench_options.row, bench_options.rows, r};
}

const struct selector_ops *bench_selector(const struct bench_request *r, const struct exchange_ops *ops) {
    const struct selector_ops *own = NULL;
    if (!ops->selects) return NULL;
    TABLE_FIND(selectors, ops->default_select, own);
    return r->select ? r->select : own;
}

static bool complete(struct bench_request *r, struct err *e) {
    bool recorded = strncmp(r->pattern, "real:", 5) == 0 || strncmp(r->pattern, "layers:", 7) == 0 ||
                    strncmp(r->pattern, "selected:", 9) == 0;
    if (recorded && r->n_given)
        return err_set(e, "bench: --n cannot be chosen with --pattern %.200s, which has its own; leave it out",
                       r->pattern);
    for (size_t i = 0; i < r->algos; i++)
        if (r->algo[i]->selects && !bench_selector(r, r->algo[i]))
            return err_set(e, "bench: %s wants a selector %s, which this program lacks; name one with --select",
                           r->algo[i]->name, r->algo[i]->default_select);
    return true;
}

/* What was named is looked up once. */
static void look_up(struct bench_request *r, const bool *given) {
    r->algos = r->algo_names.count;
    for (size_t i = 0; i < r->algos; i++) r->algo[i] = exchanges[r->algo_names.at[i]];
    r->select = r->select_number < 0 ? NULL : selectors[r->select_number];
    r->wire = wires[r->wire_number];
    r->n_given = option_given(&bench_options, given, "n");
    r->density_given = option_given(&bench_options, given, "density");
    r->check = !r->unchecked;
    if (r->ranks_per_node < 0) r->ranks_per_node = 0;
}

bool bench_parse(struct bench_request *r, int argc, char **argv, struct err *e) {
    bool given[OPTION_ROWS_MAX] = {false};
    option_defaults(&bench_options, r);
    if (argc > 1 && argv[1][0] != '-')
        return err_set(e,
                       "bench: there is no bench \"%.200s\"; there are: bench (under mpirun), bench select, bench net, "
                       "bench wire",
                       argv[1]);
    if (!option_parse(&bench_options, r, given, argc, argv, 1, e)) return false;
    look_up(r, given);
    return complete(r, e);
}
