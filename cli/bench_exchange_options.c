/* bench_exchange_options.c: the command line of `bench`, see bench_exchange.h. */
#include <stdio.h>
#include <string.h>

#include "base/table.h"
#include "cli/bench_exchange.h"
#include "cli/numbers.h"
#include "cli/watching.h"
#include "comm/exchange_options.h"

const char bench_usage[] =
    "usage: mpirun -np P sparsetrain bench [OPTIONS]\n"
    "Gradient exchange without training: every algorithm at every length and density, timed and verified.\n"
    "A step accumulates a gradient (a new one each step) into the residual, selects and exchanges, until u is there.\n"
    "Ranks begin each step together; the time of a step is that of the slowest rank.\n"
    "\n"
    "  --algo LIST          all, or names with commas between them (default all; sparsetrain list shows them)\n"
    "  --select NAME        selector of all algorithms that take one (default: each one's own)\n"
    "  --wire NAME          wire format of sparse vectors (default coo32)\n"
    "  --n LIST             gradient lengths, or MIN:MAX:FACTOR (default 65536:4194304:8)\n"
    "  --density LIST       shares selected, k = density n (default 0.01; selected: and fitted: that of their run)\n"
    "  --pattern NAME       the gradients (default uniform):\n"
    "                         uniform        independent normal numbers\n"
    "                         clustered      large entries in runs that the ranks largely share\n"
    "                         layers:MODEL   scales of a model's layers, heavy-tailed; n is the model's\n"
    "                         real:FILE      recorded by train --record FILE; n is the file's. Rank r takes recorded\n"
    "                                        rank r mod R of R, r / R steps later; after the last step the first\n"
    "                         selected:FILE  recorded by train --record FILE --record-what selected, likewise\n"
    "                         fitted:PROFILE drawn as sparsetrain fit found recorded ones to be; --n and --density\n"
    "                                        scale them (default: those of the profile)\n"
    "  --ranks-per-node M   take every M consecutive ranks for a node (hitopk, torus2d)\n"
    "  --device NAME        where gradients and residuals lie: auto (default: a GPU where there is one), cpu, cuda,\n"
    "                       or sparse (lists of what is not zero)\n"
    "  --warmup N           steps before the timed ones (default 3)\n"
    "  --repeat N           timed steps (default 20)\n"
    "  --no-check           leave the verification out; it takes 12 bytes an entry on each rank\n"
    "  --seed S             of the gradients (default 1)\n"
    "  --phases             a second line under each row: where the time went\n"
    "  --timeout S          end the job, naming the rank, when one has given no sign of life for S seconds (default "
    "300;\n"
    "                       0: never)\n"
    "  --json               one JSON object per row instead of the table\n"
    "  --trace FILE         a Chrome trace of the phases of every rank\n"
    "  --gaussian-adjust on|off   selector gaussian: lower its threshold until more than 3k/4 entries pass (default "
    "on)\n"
    "  --tau-prime N        selector reuse, oktopk: steps between exact thresholds (default 32)\n"
    "  --oktopk-thresholds RULE   between them: guarded (default), led by the counts; paper, as they are\n"
    "  --tau N              oktopk: steps between new region boundaries (default 64)\n"
    "  --oktopk-bucket N    oktopk: messages in flight at once while regions are reduced (default 4)\n"
    "  --oktopk-off LIST    oktopk: techniques to leave out: regions, rotation, overlap, balance\n"
    "  --overlap-bytes B    dense-ovlp: bytes of one allreduce (default 4194304)\n"
    "  --compute SECONDS    each step begins with so long a forward and backward pass (1/3 and 2/3; the rank sleeps)\n"
    "  --network NAME       what the rows of --json call the network (any text)\n"
    "  --select-cost S, --word-cost S   in a simulation (docs/simulation.md), for sparse algorithms: seconds of\n"
    "                       selection a step, and of packing and merging a 4-byte word received (default 0)\n";

const char bench_usage_columns[] =
    "\n"
    "Columns: n, k; algorithm; median, 99th percentile and minimum of the timed steps; algbw = 4n bytes / median;\n"
    "effbw = the bytes that an allreduce of the dense gradient moves per rank, 4n 2(P-1)/P, / median (so for dense\n"
    "the bandwidth of the wire, for others that which dense would need); 4-byte words that a rank sent and received\n"
    "in a step: the most over ranks and steps, and the mean; bound: the most words that the algorithm's cost line\n"
    "allows when the selector keeps to k; ratio: words to bound; local: entries that a rank put in, global: entries\n"
    "of the sum, both means; wrong: entries that fail the verification.\n"
    "With --phases and --json: seconds a step in select, pack, communicate, merge and other, mean over ranks, and\n"
    "`outside`: the share that is not select, merge or communicate; and the time of writing u/P after it (update).\n"
    "Verified: sum of gradients = sum of u + residuals, entry by entry over all steps; u bit-identical on all ranks;\n"
    "dense, topka, topkdsa, gaussiank, gtopk-naive, and at P = 1 all, against their definition. Exit status 1 when\n"
    "wrong.\n";

static bool set_n(struct bench_request *r, const char *text, struct err *e) {
    const struct number_rule rule = {"bench", "--n", 1, UINT32_MAX, true};
    r->n_given = true;
    return numbers_sweep(&rule, text, r->n, BENCH_LIST_MAX, &r->ns, e);
}

static bool set_density(struct bench_request *r, const char *text, struct err *e) {
    const struct number_rule rule = {"bench", "--density", NUMBER_ABOVE_0, 1, false};
    r->density_given = true;
    return numbers_list(&rule, text, r->density, BENCH_LIST_MAX, &r->densities, e);
}

/* "no x; there are: a, b, c" of a table. */
#define NO_SUCH(table, option, text, length, e)                                                                        \
    do {                                                                                                               \
        char names_[512] = "";                                                                                         \
        for (size_t i_ = 0; (table)[i_]; i_++) {                                                                       \
            size_t used_ = strlen(names_);                                                                             \
            snprintf(names_ + used_, sizeof names_ - used_, "%s%s", i_ ? ", " : "", (table)[i_]->name);                \
        }                                                                                                              \
        err_set((e), "bench: %s has no \"%.*s\"; there are: %s", (option), (int)(length), (text), names_);             \
    } while (0)

static bool set_algos(struct bench_request *r, const char *text, struct err *e) {
    r->algos = 0;
    r->all = strcmp(text, "all") == 0;
    for (size_t i = 0; r->all && exchanges[i]; i++)
        if (r->algos < BENCH_LIST_MAX) r->algo[r->algos++] = exchanges[i];
    if (r->algos) return true;
    for (const char *at = text;;) {
        size_t length = strcspn(at, ",");
        const struct exchange_ops *found = NULL;
        for (size_t i = 0; exchanges[i]; i++)
            if (strlen(exchanges[i]->name) == length && strncmp(exchanges[i]->name, at, length) == 0)
                found = exchanges[i];
        if (!found) NO_SUCH(exchanges, "--algo", at, length < 100 ? length : 100, e);
        if (!found) return false;
        if (r->algos == BENCH_LIST_MAX) return err_set(e, "bench: --algo takes at most %d names", BENCH_LIST_MAX);
        r->algo[r->algos++] = found;
        if (!at[length]) return true;
        at += length + 1;
    }
}

static bool set_select(struct bench_request *r, const char *text, struct err *e) {
    TABLE_FIND(selectors, text, r->select);
    if (!r->select) NO_SUCH(selectors, "--select", text, 100, e);
    return r->select != NULL;
}

static bool set_wire(struct bench_request *r, const char *text, struct err *e) {
    TABLE_FIND(wires, text, r->wire);
    if (!r->wire) NO_SUCH(wires, "--wire", text, 100, e);
    return r->wire != NULL;
}

static bool set_thresholds(struct bench_request *r, const char *text, struct err *e) {
    for (int i = 0; i <= REUSE_PAPER; i++) {
        if (strcmp(text, reuse_rule_names[i]) != 0) continue;
        r->oktopk.thresholds = (enum reuse_rule)i;
        return true;
    }
    return err_set(e, "bench: --oktopk-thresholds has no \"%.100s\"; there are: guarded, paper", text);
}

static bool set_text(const char **to, const char *text, const char *option, struct err *e) {
    *to = text;
    return *text || err_set(e, "bench: %s wants a value, not an empty text", option);
}

static bool set_whole(struct bench_request *r, const char *option, const char *text, struct err *e) {
    double value;
    const struct {
        const char *name;
        double least, most;
        size_t *size;
        int *number;
    } rows[] = {{"--warmup", 0, 1e6, &r->warmup, NULL},
                {"--repeat", 1, 1e6, &r->repeat, NULL},
                {"--ranks-per-node", 1, 1e6, NULL, &r->ranks_per_node},
                {"--tau-prime", 1, 1e9, NULL, &r->oktopk.period},
                {"--tau", 1, 1e9, NULL, &r->oktopk.balance_period},
                {"--oktopk-bucket", 1, 4096, NULL, &r->oktopk.bucket},
                {"--overlap-bytes", 4, 1e15, &r->bucket_bytes, NULL}};
    const struct {
        const char *name;
        double least;
        double *seconds;
    } times[] = {{"--compute", NUMBER_ABOVE_0, &r->compute},
                 {"--select-cost", 0, &r->select_cost},
                 {"--word-cost", 0, &r->word_cost}};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        const struct number_rule rule = {"bench", option, times[i].least, 1e6, false};
        if (strcmp(times[i].name, option) == 0) return numbers_one(&rule, text, times[i].seconds, e);
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, option) != 0) continue;
        const struct number_rule rule = {"bench", option, rows[i].least, rows[i].most, true};
        if (!numbers_one(&rule, text, &value, e)) return false;
        if (rows[i].size) *rows[i].size = (size_t)value;
        if (rows[i].number) *rows[i].number = (int)value;
        return true;
    }
    if (strcmp(option, "--seed") == 0) {
        const struct number_rule rule = {"bench", option, 0, 9007199254740992.0, true};
        if (!numbers_one(&rule, text, &value, e)) return false;
        r->seed = (uint64_t)value;
        return true;
    }
    return err_set(e, "bench: unknown option %.200s; sparsetrain bench --help shows them all", option);
}

static bool set_value(struct bench_request *r, const char *option, const char *text, struct err *e) {
    if (strcmp(option, "--algo") == 0) return set_algos(r, text, e);
    if (strcmp(option, "--select") == 0) return set_select(r, text, e);
    if (strcmp(option, "--wire") == 0) return set_wire(r, text, e);
    if (strcmp(option, "--n") == 0) return set_n(r, text, e);
    if (strcmp(option, "--density") == 0) return set_density(r, text, e);
    if (strcmp(option, "--pattern") == 0) return set_text(&r->pattern, text, option, e);
    if (strcmp(option, "--trace") == 0) return set_text(&r->trace, text, option, e);
    if (strcmp(option, "--network") == 0) return set_text(&r->network, text, option, e);
    if (strcmp(option, "--device") == 0) return set_text(&r->device_name, text, option, e);
    if (strcmp(option, "--oktopk-thresholds") == 0) return set_thresholds(r, text, e);
    if (strcmp(option, "--gaussian-adjust") == 0) return gaussian_adjust("--gaussian-adjust", text, &r->unadjusted, e);
    if (strcmp(option, "--timeout") == 0) return watching_parse("bench", text, e);
    if (strcmp(option, "--oktopk-off") == 0) return oktopk_leave_out("--oktopk-off", text, &r->oktopk, e);
    return set_whole(r, option, text, e);
}

static bool takes_value(const char *option) {
    static const char *const names[] = {"--algo",
                                        "--select",
                                        "--wire",
                                        "--n",
                                        "--density",
                                        "--pattern",
                                        "--trace",
                                        "--oktopk-off",
                                        "--warmup",
                                        "--repeat",
                                        "--tau-prime",
                                        "--tau",
                                        "--oktopk-bucket",
                                        "--seed",
                                        "--overlap-bytes",
                                        "--ranks-per-node",
                                        "--device",
                                        "--compute",
                                        "--select-cost",
                                        "--word-cost",
                                        "--network",
                                        "--oktopk-thresholds",
                                        "--gaussian-adjust",
                                        "--timeout"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], option) == 0) return true;
    return false;
}

static bool set_flag(struct bench_request *r, const char *option) {
    if (strcmp(option, "--no-check") == 0) r->check = false;
    if (strcmp(option, "--json") == 0) r->json = true;
    if (strcmp(option, "--phases") == 0) r->phases = true;
    if (strcmp(option, "--help") == 0 || strcmp(option, "-h") == 0) r->help = true;
    return strcmp(option, "--no-check") == 0 || strcmp(option, "--json") == 0 || strcmp(option, "--phases") == 0 ||
           strcmp(option, "--help") == 0 || strcmp(option, "-h") == 0;
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

bool bench_parse(struct bench_request *r, int argc, char **argv, struct err *e) {
    *r = (struct bench_request){.density = {0.01},
                                .densities = 1,
                                .n = {65536, 524288, 4194304},
                                .ns = 3,
                                .wire = wires[0],
                                .pattern = "uniform",
                                .device_name = "auto",
                                .warmup = 3,
                                .repeat = 20,
                                .seed = 1,
                                .select_cost = -1,
                                .word_cost = -1,
                                .check = true};
    set_algos(r, "all", e);
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i], *equals = strchr(option, '=');
        char name[64];
        if (set_flag(r, option)) continue;
        if (option[0] != '-')
            return err_set(e,
                           "bench: there is no bench \"%.200s\"; there are: bench (under mpirun), bench select, bench "
                           "net, bench wire",
                           option);
        snprintf(name, sizeof name, "%.*s", equals ? (int)(equals - option) : 63, option);
        if (!takes_value(name)) return set_whole(r, name, "1", e);
        if (!equals && i + 1 == argc) return err_set(e, "bench: %s needs a value", name);
        if (!set_value(r, name, equals ? equals + 1 : argv[++i], e)) return false;
    }
    return complete(r, e);
}
