/* options_table.c: the one table of options. See options.h. */
#include <math.h>

#include "cli/device_option.h"
#include "cli/options.h"
#include "comm/exchange_options.h"
#include "nets/optimiser.h"

/* And, behind them, their judge. */
static const char *exchange_name(size_t i) {
    size_t rows = 0;
    while (exchanges[rows]) rows++;
    return i < rows ? exchanges[i]->name : i == rows ? "auto" : NULL;
}
static const char *selector_name(size_t i) {
    return selectors[i] ? selectors[i]->name : NULL;
}
static const char *model_name(size_t i) {
    return models[i] ? models[i]->name : NULL;
}
static const char *optimiser_name(size_t i) {
    return optimisers[i] ? optimisers[i]->name : NULL;
}
static const char *precision_name(size_t i) {
    return net_precision_names[i];
}

static const char *overlap_name(size_t i) {
    static const char *const names[] = {"none", "layers", NULL};
    return names[i];
}

static const char *scope_name(size_t i) {
    static const char *const names[] = {"global", "layer", NULL};
    return names[i];
}

static const char *clip_name(size_t i) {
    static const char *const names[] = {"update", "local", NULL};
    return names[i];
}

static const char *record_name(size_t i) {
    static const char *const names[] = {"gradients", "selected", NULL};
    return names[i];
}

static const char *residual_name(size_t i) {
    static const char *const names[] = {"conserve", "paper", NULL};
    return names[i];
}

static const char *thresholds_name(size_t i) {
    return i <= REUSE_PAPER ? reuse_rule_names[i] : NULL;
}

static const char *progress_name(size_t i) {
    static const char *const names[] = {"auto", "bar", "lines", "none", NULL};
    return names[i];
}

/* Also silences the warning about fields that a row leaves out. */
#define AT(field) .offset = offsetof(struct options, field)
#define HUGE_COUNT 1e15
#define HUGE_STEPS 1e9

static const char exchange_group[] = "Gradient exchange", model_group[] = "Model and data",
                  training_group[] = "Training", machine_group[] = "Machine", output_group[] = "Output and checkpoints";

const struct option_row option_table[] = {
    {"algo", "NAME", OPTION_CHOICE, RULE_RUN, exchange_group, "dense",
     "how gradients become one sum over the ranks; auto: the fastest on this network, for this model and density: "
     "predicted, tried at the start, and logged (docs/exchanges.md)",
     AT(algo), .choice = exchange_name},
    {"select", "NAME", OPTION_CHOICE, RULE_RUN, exchange_group, NULL,
     "which entries leave a rank (default: the algorithm's own)", AT(select), .choice = selector_name},
    {"density", "RHO", OPTION_REAL, RULE_RUN, exchange_group, NULL,
     "part of the gradient's entries that each rank selects: k = max(1, floor(RHO n)) (default: 0.001, lstm 0.005)",
     AT(density), 0, 1, .above_min = true},
    {"density-warmup", "LIST", OPTION_TEXT, RULE_RUN, exchange_group, "gtopk",
     "densities of the first epochs, as 0.25,0.0725,0.015,0.004 (which is gtopk); linear:N[:RHO0]: from RHO0 (1) in "
     "the "
     "first step down to --density after N (Aji et al. 2019: linear:1000); or none",
     AT(density_warmup)},
    {"select-scope", "SCOPE", OPTION_CHOICE, RULE_RUN, exchange_group, "global",
     "over what entries compete for k: the whole gradient, or each slice of it for its share of k", AT(select_scope),
     .choice = scope_name},
    {"dense-slices", "LIST", OPTION_TEXT, RULE_RUN, exchange_group, "none",
     "slices that are exchanged whole beside the sparse rest: beginnings of parts of their names, as bias,bn; 1d (all "
     "of "
     "one dimension); small:N (all of fewer than N entries)",
     AT(dense_slices)},
    {"dense-steps", "N", OPTION_INTEGER, RULE_RUN, exchange_group, "0",
     "exchange the whole gradient in the first N steps (Ok-Topk: 512 for VGG)", AT(dense_steps), 0, HUGE_COUNT},
    {"gtopk-residual", "RULE", OPTION_CHOICE, RULE_RUN, exchange_group, "conserve",
     "what gtopk keeps: conserve loses no gradient; paper follows the publication, which does for P >= 3, and logs how "
     "much",
     AT(gtopk_residual), .choice = residual_name},
    {"wire", "FORMAT", OPTION_CHOICE, RULE_RUN, exchange_group, "coo32",
     "how sparse vectors travel; what a format rounds off stays in the residual (with --algo auto the fastest, unless "
     "given)",
     AT(wire), .choice = wire_name},
    {"gaussian-adjust", "HOW", OPTION_CHOICE, RULE_RUN, exchange_group, "on",
     "selector gaussian: divide its threshold by 1.02 until more than 3k/4 entries pass it; off: as it is first found",
     AT(gaussian_adjust), .choice = adjust_name},
    {"tau-prime", "N", OPTION_INTEGER, RULE_RUN, exchange_group, "32",
     "selector reuse and oktopk: steps between exact thresholds (128 for BERT in Ok-Topk)", AT(tau_prime), 1,
     HUGE_STEPS},
    {"oktopk-thresholds", "RULE", OPTION_CHOICE, RULE_RUN, exchange_group, "guarded",
     "selector reuse and oktopk, between two exact thresholds: guarded leads them by the counts, to k/2..3k/2; paper "
     "uses them as they are, whatever passes",
     AT(oktopk_thresholds), .choice = thresholds_name},
    {"tau", "N", OPTION_INTEGER, RULE_RUN, exchange_group, "64", "oktopk: steps between new region boundaries", AT(tau),
     1, HUGE_STEPS},
    {"oktopk-bucket", "N", OPTION_INTEGER, RULE_RUN, exchange_group, "4",
     "oktopk: messages in flight at once while regions are reduced", AT(oktopk_bucket), 1, 4096},
    {"oktopk-off", "LIST", OPTION_TEXT, RULE_RUN, exchange_group, "none",
     "oktopk: techniques to leave out, for ablations: regions,rotation,overlap,balance", AT(oktopk_off)},
    {"ranks-per-node", "M", OPTION_INTEGER, RULE_RUN, exchange_group, NULL,
     "hitopk, torus2d: take every M consecutive ranks for a node (default: the nodes there are)", AT(ranks_per_node), 1,
     1e6},
    {"overlap", "HOW", OPTION_CHOICE, RULE_RUN, exchange_group, "none",
     "layers: select and exchange group by group while backward goes on with earlier layers", AT(overlap),
     .choice = overlap_name},
    {"overlap-bytes", "B", OPTION_INTEGER, RULE_RUN, exchange_group, "4194304",
     "gradient bytes of one group of --overlap layers (at least) and of one allreduce of dense-ovlp", AT(overlap_bytes),
     4, HUGE_COUNT},
    {"local-update", NULL, OPTION_FLAG, RULE_RUN, exchange_group, NULL,
     "step on the exchanged sum with this rank's part (hitopk: its node's) replaced by the whole fresh gradient "
     "(Aji et al. 2019)",
     AT(local_update)},
    {"momentum-correction", NULL, OPTION_FLAG, RULE_RUN, exchange_group, NULL,
     "momentum on each rank before the exchange, in place of momentum after it (DGC)", AT(momentum_correction)},
    {"momentum-masking", NULL, OPTION_FLAG, RULE_RUN, exchange_group, NULL,
     "with --momentum-correction: what a rank has delivered loses its momentum too (DGC)", AT(momentum_masking)},
    {"fold-lr", NULL, OPTION_FLAG, RULE_RUN, exchange_group, NULL,
     "add the learning rate times the gradient to the residual, and step by what arrives (Ok-Topk, Algorithm 2)",
     AT(fold_lr)},
    {"wire-check", NULL, OPTION_FLAG, RULE_KEPT, exchange_group, NULL,
     "put a checksum on every message, check what MPI's own collectives bring, and end the run where a bit has changed "
     "on its way; the same bits as without, more traffic (docs/exchanges.md)",
     AT(wire_check)},
    {"average-every", "N", OPTION_INTEGER, RULE_RUN, exchange_group, NULL,
     "average the parameters over the ranks every N steps (default: 500 with --local-update, 20 with fedavg)",
     AT(average_every), 1, HUGE_COUNT},

    {"model", "NAME", OPTION_CHOICE, RULE_RUN, model_group, "resnet20", "the network", AT(model), .choice = model_name},
    {"data", "NAME[:WHERE]", OPTION_TEXT, RULE_RUN, model_group, NULL,
     "the dataset; WHERE is its directory or archive (default: $SPARSETRAIN_DATA, else in a clone build/data, "
     "of an installed program ~/.local/share/sparsetrain), or the size "
     "of a synthetic one: TRAINxTEST images, TRAINxVALIDxTEST words (default: cifar10, lstm ptb)",
     AT(data)},
    {"hidden", "H", OPTION_INTEGER, RULE_RUN, model_group, NULL,
     "lstm: features of a word and of each layer's state, 200, 650 or 1500 in the literature (default: 1500)",
     AT(hidden), 1, 65536},
    {"bptt", "T", OPTION_INTEGER, RULE_RUN, model_group, NULL,
     "lstm: words of a window, through which gradients go back in time (default: 35)", AT(bptt), 1, 65536},
    {"dropout", "P", OPTION_REAL, RULE_RUN, model_group, NULL,
     "lstm: part of the elements dropped from the embedding, between the layers and from the output (default: 0 with "
     "--hidden below 650, 0.5 below 1500, else 0.65)",
     AT(dropout), 0, 0.99},
    {"init-from", "DIR", OPTION_TEXT, RULE_RUN, model_group, NULL,
     "begin with the parameters and batch-norm statistics of a checkpoint, or of the newest one of a run, of the same "
     "model; all else is new: step, optimiser, residuals, ranks, options",
     AT(init_from)},
    {"no-augment", NULL, OPTION_FLAG, RULE_RUN, model_group, NULL,
     "train on the images as they are: no random crop, no flip", AT(no_augment)},

    {"epochs", "E", OPTION_REAL, RULE_RUN, training_group, NULL, "length of the run in epochs (default: 140, lstm 40)",
     AT(epochs), 0, 1e9, .above_min = true},
    {"steps", "N", OPTION_INTEGER, RULE_RUN, training_group, NULL, "length of the run in steps, instead of --epochs",
     AT(steps), 1, HUGE_COUNT},
    {"stop-at", "E", OPTION_REAL, RULE_LOCAL, training_group, NULL,
     "stop after the first E epochs of the run, whose schedules stay those of the whole; evaluated and with a "
     "checkpoint, from which --resume goes on",
     AT(stop_at), 0, 1e9, .above_min = true},
    {"batch", "B", OPTION_INTEGER, RULE_RUN, training_group, NULL,
     "images, or streams of text, of each rank that are computed at once (default: 128, lstm 20)", AT(batch), 1, 65536},
    {"accumulate", "N", OPTION_INTEGER, RULE_RUN, training_group, "1",
     "each rank's gradient of a step is the mean over N batches, or over N windows of its streams, one after the other "
     "(gTop-k's ResNet-50: 16 batches of 16)",
     AT(accumulate), 1, 65536},
    {"optimiser", "NAME", OPTION_CHOICE, RULE_RUN, training_group, "sgd", "from the mean gradient to new parameters",
     AT(optimiser), .choice = optimiser_name},
    {"lr", "ETA", OPTION_REAL, RULE_RUN, training_group, NULL, "learning rate (default: 0.1, lstm 1; with adam 0.001)",
     AT(lr), 0, 1e6, .above_min = true},
    {"lr-schedule", "TEXT", OPTION_TEXT, RULE_RUN, training_group, NULL,
     "constant; step:E,E,...[:FACTOR]: times FACTOR (0.1) at each epoch E, or at E% of the run; decay:E:FACTOR: times "
     "FACTOR at every epoch from E on; linear: to 0 at the end (default: step:50%,75%, lstm constant)",
     AT(lr_schedule)},
    {"lr-warmup", "E", OPTION_REAL, RULE_RUN, training_group, NULL,
     "ramp the learning rate from 1/P of it over the first E epochs (default: 4)", AT(lr_warmup), 0, 1e9},
    {"momentum", "MU", OPTION_REAL, RULE_RUN, training_group, NULL, "of SGD (default: 0.9)", AT(momentum), 0, 0.99999},
    {"weight-decay", "L", OPTION_REAL, RULE_RUN, training_group, NULL,
     "added to the mean gradient as L times the parameters (default: 1e-4, lstm 0)", AT(weight_decay), 0, 1},
    {"beta1", "B", OPTION_REAL, RULE_RUN, training_group, "0.9", "adam: of the mean of gradients", AT(beta1), 0,
     0.99999999},
    {"beta2", "B", OPTION_REAL, RULE_RUN, training_group, "0.999", "adam: of the mean of their squares", AT(beta2), 0,
     0.99999999},
    {"epsilon", "E", OPTION_REAL, RULE_RUN, training_group, "1e-8", "adam: added to the root of that mean", AT(epsilon),
     0, 1, .above_min = true},
    {"clip-norm", "G", OPTION_REAL, RULE_RUN, training_group, NULL,
     "scale gradients down to this Euclidean norm where they are longer; 0: never (default: 0, lstm 0.25)",
     AT(clip_norm), 0, 1e9},
    {"clip-at", "PLACE", OPTION_CHOICE, RULE_RUN, training_group, "update",
     "what is clipped: update, the mean gradient after the exchange; local, each rank's own before it, to G sqrt(P) "
     "(DGC)",
     AT(clip_at), .choice = clip_name},
    {"seed", "N", OPTION_INTEGER, RULE_RUN, training_group, "1",
     "of all that is random: initial parameters, order and augmentation of images, dropout, made-up data", AT(seed), 0,
     HUGE_COUNT},

    {"device", "NAME", OPTION_CHOICE, RULE_RUN, machine_group, "auto",
     "where the network runs; auto takes a GPU where one can be used", AT(device), .choice = device_option_name},
    {"precision", "NAME", OPTION_CHOICE, RULE_RUN, machine_group, "f32",
     "in which a GPU computes activations and products (f32-winograd: a faster algorithm that rounds more; tf32: "
     "10-bit "
     "mantissas; parameters, gradients and sums stay f32)",
     AT(precision), .choice = precision_name},
    {"threads", "N", OPTION_INTEGER, RULE_RUN, machine_group, "1",
     "threads of the CPU backend on each rank; more ranks are faster than more threads", AT(threads), 1, 1024},
    {"timeout", "S", OPTION_REAL, RULE_KEPT, machine_group, "300",
     "end the job, naming the rank, when one that the others wait for has given no sign of life for S seconds, or for "
     "10 S in a checkpoint and while files are opened; 0: wait for ever",
     AT(timeout), 0, 1e9},

    {"out", "DIR", OPTION_TEXT, RULE_LOCAL, output_group, NULL,
     "write run.jsonl and checkpoints to DIR; without it nothing is written", AT(out)},
    {"resume", "DIR", OPTION_TEXT, RULE_LOCAL, output_group, NULL,
     "go on from the last checkpoint of the run in DIR that is whole (or from the checkpoint DIR itself); its options "
     "are taken over",
     AT(resume)},
    {"checkpoint-every", "N", OPTION_INTEGER, RULE_KEPT, output_group, NULL,
     "write a checkpoint every N steps (default: with every evaluation)", AT(checkpoint_every), 1, HUGE_COUNT},
    {"keep", "N", OPTION_INTEGER, RULE_RUN, output_group, "2", "how many checkpoints are kept: the newest ones",
     AT(keep), 1, HUGE_COUNT},
    {"keep-every", "N", OPTION_INTEGER, RULE_RUN, output_group, NULL,
     "keep, besides, every checkpoint of a step that is a multiple of N", AT(keep_every), 1, HUGE_COUNT},
    {"check-replicas", "N", OPTION_INTEGER, RULE_KEPT, output_group, "0",
     "compare the parameters of all ranks, bit for bit, every N steps (0: only at the end)", AT(check_replicas), 0,
     HUGE_COUNT},
    {"eval-every", "E", OPTION_REAL, RULE_RUN, output_group, "1",
     "evaluate on the test set, or on the validation and test texts, every E epochs (0: only at start and end; never: "
     "not even then)",
     AT(eval_every), 0, 1e9, .infinite = "never"},
    {"audit", "N", OPTION_INTEGER, RULE_KEPT, output_group, "0",
     "log the exact threshold beside the selector's every N steps", AT(audit), 0, HUGE_COUNT},
    {"log-slices", "N", OPTION_INTEGER, RULE_KEPT, output_group, "0",
     "log for every slice how much of its gradient is not zero, sent and in the sum, every N steps", AT(log_slices), 0,
     HUGE_COUNT},
    {"log-xi", "N", OPTION_INTEGER, RULE_KEPT, output_group, "0",
     "log every N steps xi of Ok-Topk's Assumption 1: how far the sum is from the k largest of the sum of everything",
     AT(log_xi), 0, HUGE_COUNT},
    {"record", "FILE", OPTION_TEXT, RULE_LOCAL, output_group, NULL,
     "write the gradients of all ranks to FILE, for sparsetrain bench --pattern real:FILE", AT(record)},
    {"record-what", "WHAT", OPTION_CHOICE, RULE_KEPT, output_group, "gradients",
     "what --record writes: whole gradients, or the entries that every rank selected (topka, topkdsa, gaussiank), for "
     "sparsetrain fit and bench --pattern selected:FILE",
     AT(record_what), .choice = record_name},
    {"record-every", "N", OPTION_INTEGER, RULE_KEPT, output_group, "1", "of every N-th step", AT(record_every), 1,
     HUGE_COUNT},
    {"trace", "FILE", OPTION_TEXT, RULE_LOCAL, output_group, NULL,
     "write a Chrome trace (chrome://tracing, Perfetto) of the phases of every rank to FILE", AT(trace)},
    {"progress", "HOW", OPTION_CHOICE, RULE_LOCAL, output_group, "auto",
     "a bar on a terminal, lines elsewhere, or none", AT(progress), .choice = progress_name},
    {"dry-run", NULL, OPTION_FLAG, RULE_LOCAL, output_group, NULL,
     "check everything, say what would run and what it takes (traffic, memory, disk), and end without training or "
     "writing",
     AT(dry_run)},
    {"quiet", NULL, OPTION_FLAG, RULE_LOCAL, output_group, NULL, "print nothing but errors", AT(quiet)},
};

const size_t option_rows = sizeof option_table / sizeof *option_table;
_Static_assert(sizeof option_table / sizeof *option_table <= OPTIONS_MAX, "struct options.given is too short");
