/* options_table.c: the one table of options. See options.h. */
#include <string.h>

#include "cli/options/device_option.h"
#include "cli/options/options.h"

/* The names that --algo takes: the exchanges, and auto behind the last of them. */
static const char *algo_name(size_t i) {
    const char *name = exchange_name(i);
    return name || (i > 0 && !exchange_name(i - 1)) ? name : "auto";
}

/* Where a value is kept, under which heading of --help it stands, and how a resumed run treats it. */
#define AT(kept, heading, field) OPTION_AT(struct options, field), .group = heading##_group, .rule = RULE_##kept
#define NAMES(...)                                                                                                     \
    (const char *const[]) {                                                                                            \
        __VA_ARGS__                                                                                                    \
    }
#define HUGE_COUNT 1e15

static const char exchange_group[] = "Gradient exchange", model_group[] = "Model and data",
                  training_group[] = "Training", machine_group[] = "Machine", output_group[] = "Output and checkpoints";

static const struct option_row rows[] = {
    {"algo", "NAME", OPTION_CHOICE, "dense",
     "how gradients become one sum over the ranks; auto: the fastest on this network, for this model and density: "
     "predicted, tried at the start, and logged (docs/exchanges.md)",
     AT(RUN, exchange, algo), .choice = algo_name},
    {"select", "NAME", OPTION_CHOICE, NULL, "which entries leave a rank (default: the algorithm's own)",
     AT(RUN, exchange, select), .choice = selector_name},
    {"density", "RHO", OPTION_REAL, NULL,
     "part of the gradient's entries that each rank selects: k = max(1, floor(RHO n))", AT(RUN, exchange, density),
     .min = 0, .max = 1, .above_min = true},
    {"density-warmup", "LIST", OPTION_TEXT, NULL,
     "densities of the first epochs, as 0.25,0.0725,0.015,0.004 (which is gtopk); linear:N[:RHO0]: from RHO0 (1) in "
     "the "
     "first step down to --density after N (Aji et al. 2019: linear:1000); or none",
     AT(RUN, exchange, density_warmup)},
    {"select-scope", "SCOPE", OPTION_CHOICE, "global",
     "over what entries compete for k: the whole gradient, or each slice of it for its share of k",
     AT(RUN, exchange, select_scope), .names = NAMES([SCOPE_GLOBAL] = "global", [SCOPE_LAYER] = "layer", NULL)},
    {"dense-slices", "LIST", OPTION_TEXT, "none",
     "slices that are exchanged whole beside the sparse rest: beginnings of parts of their names, as bias,bn; 1d (all "
     "of "
     "one dimension); small:N (all of fewer than N entries)",
     AT(RUN, exchange, dense_slices)},
    {"dense-steps", "N", OPTION_INTEGER, "0", "exchange the whole gradient in the first N steps (Ok-Topk: 512 for VGG)",
     AT(RUN, exchange, dense_steps), .min = 0, .max = HUGE_COUNT},
    {"wire", "FORMAT", OPTION_CHOICE, "coo32",
     "how sparse vectors travel, and in bf16 and fp16 dense sums too; what a format rounds off stays in the residual "
     "(with --algo auto the fastest, unless "
     "given)",
     AT(RUN, exchange, wire), .choice = wire_name},
    {NULL, AT(RUN, exchange, own)},
    {"ranks-per-node", "M", OPTION_INTEGER, NULL,
     "hitopk, torus2d: take every M consecutive ranks for a node (default: the nodes there are)",
     AT(RUN, exchange, ranks_per_node), .min = 1, .max = 1e6},
    {"overlap", "HOW", OPTION_CHOICE, "none",
     "layers: select and exchange group by group while backward goes on with earlier layers",
     AT(RUN, exchange, overlap), .names = NAMES([OVERLAP_NONE] = "none", [OVERLAP_LAYERS] = "layers", NULL)},
    {"overlap-bytes", "B", OPTION_INTEGER, "4194304",
     "gradient bytes of one group of --overlap layers (at least) and of one allreduce of dense-ovlp",
     AT(RUN, exchange, overlap_bytes), .min = 4, .max = HUGE_COUNT},
    {"local-update", NULL, OPTION_FLAG, NULL,
     "step on the exchanged sum with this rank's part (hitopk: its node's) replaced by the whole fresh gradient "
     "(Aji et al. 2019)",
     AT(RUN, exchange, local_update)},
    {"momentum-correction", NULL, OPTION_FLAG, NULL,
     "momentum on each rank before the exchange, in place of momentum after it (DGC)",
     AT(RUN, exchange, momentum_correction)},
    {"momentum-masking", NULL, OPTION_FLAG, NULL,
     "with --momentum-correction: what a rank has delivered loses its momentum too (DGC)",
     AT(RUN, exchange, momentum_masking)},
    {"fold-lr", NULL, OPTION_FLAG, NULL,
     "add the learning rate times the gradient to the residual, and step by what arrives (Ok-Topk, Algorithm 2)",
     AT(RUN, exchange, fold_lr)},
    {"wire-check", NULL, OPTION_FLAG, NULL,
     "put a checksum on every message, check what MPI's own collectives bring, and end the run where a bit has changed "
     "on its way; the same bits as without, more traffic (docs/exchanges.md)",
     AT(KEPT, exchange, wire_check)},
    {"average-every", "N", OPTION_INTEGER, NULL,
     "average the parameters over the ranks every N steps; of diloco and sparseloco the length of a round "
     "(default: 500 with --local-update and diloco, 30 with sparseloco, 20 with fedavg)",
     AT(RUN, exchange, average_every), .min = 1, .max = HUGE_COUNT},
    {"outer-lr", "ETA", OPTION_REAL, NULL,
     "learning rate of the outer step, which ends a round (default: diloco 0.7, sparseloco 1)",
     AT(RUN, exchange, outer.rate), .min = 0, .max = 1e6, .above_min = true},
    {"outer-momentum", "MU", OPTION_REAL, NULL,
     "Nesterov's momentum of the outer step (default: diloco 0.9, sparseloco 0)", AT(RUN, exchange, outer.momentum),
     .min = 0, .max = 0.99999},

    {"model", "NAME", OPTION_CHOICE, "resnet20", "the network", AT(RUN, model, model), .choice = model_name},
    {"data", "NAME[:WHERE]", OPTION_TEXT, NULL,
     "the dataset; WHERE is its directory, archive or file (left out: $SPARSETRAIN_DATA, else in a clone build/data, "
     "of an installed program ~/.local/share/sparsetrain), or the size "
     "of a synthetic one: TRAINxTEST images, TRAINxVALIDxTEST words",
     AT(RUN, model, data)},
    {"preset", "NAME", OPTION_TEXT, NULL,
     "a size of a model, with all that goes with it: gpt char-cpu, char or gpt2; bert tiny, mini, small or base",
     AT(RUN, model, preset)},
    {"hidden", "H", OPTION_INTEGER, NULL,
     "features of a word and, lstm, of each layer's state, 200, 650 or 1500 in the literature; speech: of each LSTM "
     "layer's state",
     AT(RUN, model, hidden), .min = 1, .max = 65536},
    {"layers", "L", OPTION_INTEGER, NULL, "gpt, bert: blocks of attention and feed-forward layers; speech: LSTM layers",
     AT(RUN, model, layers), .min = 1, .max = 64},
    {"heads", "N", OPTION_INTEGER, NULL, "gpt, bert: heads of attention, among which the features are shared out",
     AT(RUN, model, heads), .min = 1, .max = 65536},
    {"bptt", "T", OPTION_INTEGER, NULL, "lstm: words of a window, through which gradients go back in time",
     AT(RUN, model, bptt), .min = 1, .max = 65536},
    {"context", "T", OPTION_INTEGER, NULL, "gpt, bert: tokens of a window", AT(RUN, model, context), .min = 1,
     .max = 65536},
    {"dropout", "P", OPTION_REAL, NULL,
     "part of the elements dropped: lstm from the embedding, between the layers and from the output (unless given 0 "
     "with --hidden below 650, 0.5 below 1500, else 0.65); gpt, bert from the embedding, from probabilities of "
     "attention and from what each part adds",
     AT(RUN, model, dropout), .min = 0, .max = 0.99},
    {"init-from", "DIR", OPTION_TEXT, NULL,
     "begin with the parameters and batch-norm statistics of a checkpoint, or of the newest one of a run, of the same "
     "model; all else is new: step, optimiser, residuals, ranks, options",
     AT(RUN, model, init_from)},
    {"no-augment", NULL, OPTION_FLAG, NULL,
     "train on the images as they are, no random crop, no flip; on speech as it is, at its own tempo and loudness",
     AT(RUN, model, no_augment)},

    {"epochs", "E", OPTION_REAL, NULL, "length of the run in epochs", AT(RUN, training, epochs), .min = 0, .max = 1e9,
     .above_min = true},
    {"steps", "N", OPTION_INTEGER, NULL, "length of the run in steps, instead of --epochs", AT(RUN, training, steps),
     .min = 1, .max = HUGE_COUNT},
    {"stop-at", "E", OPTION_REAL, NULL,
     "stop after the first E epochs of the run, whose schedules stay those of the whole; evaluated and with a "
     "checkpoint, from which --resume goes on",
     AT(LOCAL, training, stop_at), .min = 0, .max = 1e9, .above_min = true},
    {"target", "METRIC:VALUE", OPTION_TEXT, "none",
     "stop at the first evaluation that reaches it, and report what that took: accuracy:0.9, perplexity:120, loss:1.5, "
     "bpc:2 (bits per character); of speech wer, cer; of bert next_accuracy, next_loss; of gpt loss_sampled; with "
     "valid: or test: before it of that set (else valid where there is one); a resumed run may have another",
     AT(KEPT, training, target)},
    {"batch", "B", OPTION_INTEGER, NULL,
     "images, streams or windows of text, pairs of sentences or utterances, of each rank that are computed at once",
     AT(RUN, training, batch), .min = 1, .max = BATCH_MAX},
    {"accumulate", "N", OPTION_INTEGER, "1",
     "each rank's gradient of a step is the mean over N batches, or over N windows of its streams, one after the other "
     "(gTop-k's ResNet-50: 16 batches of 16)",
     AT(RUN, training, accumulate), .min = 1, .max = 65536},
    {"optimiser", "NAME", OPTION_CHOICE, NULL, "from the mean gradient to new parameters", AT(RUN, training, optimiser),
     .choice = optimiser_name},
    {"lr", "ETA", OPTION_REAL, NULL,
     "learning rate; with another optimiser than the model's that one's, as 0.001 of adam", AT(RUN, training, lr),
     .min = 0, .max = 1e6, .above_min = true},
    {"lr-schedule", "TEXT", OPTION_TEXT, NULL,
     "constant; step:E,E,...[:FACTOR]: times FACTOR (0.1) at each epoch E, or at E% of the run; decay:E:FACTOR: times "
     "FACTOR at every epoch from E on; linear: to 0 at the end; cosine[:FLOOR]: half a cosine to FLOOR (0) times the "
     "rate at the end; inverse-sqrt: with the inverse square root of the step, behind --lr-warmup-steps",
     AT(RUN, training, lr_schedule)},
    {"lr-warmup", "E", OPTION_REAL, NULL, "ramp the learning rate from 1/P of it over the first E epochs",
     AT(RUN, training, lr_warmup), .min = 0, .max = 1e9},
    {"lr-warmup-steps", "N", OPTION_INTEGER, NULL,
     "ramp it over the first N steps instead, at any P alike: step t, from 0, has (t + 1)/(N + 1) of it",
     AT(RUN, training, lr_warmup_steps), .min = 0, .max = HUGE_COUNT},
    {NULL, AT(RUN, training, method)},
    {"weight-decay", "L", OPTION_REAL, NULL,
     "added to the mean gradient as L times the parameters, with adamw taken off the parameters instead; gpt and bert "
     "with another optimiser: 0",
     AT(RUN, training, method.weight_decay), .min = 0, .max = 1},
    {"clip-norm", "G", OPTION_REAL, NULL,
     "scale gradients down to this Euclidean norm where they are longer; 0: never, as always of demo's signs",
     AT(RUN, training, clip_norm), .min = 0, .max = 1e9},
    {"clip-at", "PLACE", OPTION_CHOICE, "update",
     "what is clipped: update, the mean gradient after the exchange; local, each rank's own before it, to G sqrt(P) "
     "(DGC)",
     AT(RUN, training, clip_at), .names = NAMES([CLIP_UPDATE] = "update", [CLIP_LOCAL] = "local", NULL)},
    {"seed", "N", OPTION_INTEGER, "1",
     "of all that is random: initial parameters, order and augmentation of images, dropout, made-up data, "
     "the entries that randomk sends",
     AT(RUN, training, seed), .min = 0, .max = HUGE_COUNT},

    {"device", "NAME", OPTION_CHOICE, "auto", "where the network runs; auto takes a GPU where one can be used",
     AT(RUN, machine, device), .choice = device_option_name},
    {"precision", "NAME", OPTION_CHOICE, "f32",
     "in which activations and products are computed (f32-winograd: convolutions by a faster algorithm that rounds "
     "more, on a CPU where oneDNN has it: 2.x, AVX-512; of a GPU tf32: products of 10-bit mantissas, and bf16: "
     "activations and products, but those of an LSTM, which are as in tf32; parameters, gradients and sums stay f32)",
     AT(RUN, machine, precision), .choice = precision_name},
    {"threads", "N", OPTION_INTEGER, "1",
     "threads of the CPU backend on each rank; more ranks are faster than more threads", AT(RUN, machine, threads),
     .min = 1, .max = 1024},
    {"timeout", "S", OPTION_REAL, "300",
     "end the job, naming the rank, when one that the others wait for has given no sign of life for S seconds, or for "
     "10 S in a checkpoint and while files are opened; 0: wait for ever",
     AT(KEPT, machine, timeout), .min = 0, .max = 1e9},

    {"out", "DIR", OPTION_TEXT, NULL, "write run.jsonl and checkpoints to DIR; without it nothing is written",
     AT(LOCAL, output, out)},
    {"resume", "DIR", OPTION_TEXT, NULL,
     "go on from the last checkpoint of the run in DIR that is whole (or from the checkpoint DIR itself); its options "
     "are taken over",
     AT(LOCAL, output, resume)},
    {"resume-residuals", "HOW", OPTION_CHOICE, "mean",
     "what becomes of residuals and velocities where another number of ranks resumes: mean, what they still have to "
     "move the parameters by is kept; sum, their sum is, of which the update has 1/P; reset, they are zero (with as "
     "many "
     "ranks, too)",
     AT(LOCAL, output, resume_residuals),
     .names = NAMES([RESIDUALS_MEAN] = "mean", [RESIDUALS_SUM] = "sum", [RESIDUALS_RESET] = "reset", NULL)},
    {"checkpoint-every", "N", OPTION_INTEGER, NULL, "write a checkpoint every N steps (default: with every evaluation)",
     AT(KEPT, output, checkpoint_every), .min = 1, .max = HUGE_COUNT},
    {"keep", "N", OPTION_INTEGER, "2", "how many checkpoints are kept: the newest ones", AT(RUN, output, keep),
     .min = 1, .max = HUGE_COUNT},
    {"keep-every", "N", OPTION_INTEGER, NULL, "keep, besides, every checkpoint of a step that is a multiple of N",
     AT(RUN, output, keep_every), .min = 1, .max = HUGE_COUNT},
    {"check-replicas", "N", OPTION_INTEGER, "0",
     "compare the parameters of all ranks, bit for bit, every N steps (0: only at the end)",
     AT(KEPT, output, check_replicas), .min = 0, .max = HUGE_COUNT},
    {"eval-every", "E", OPTION_REAL, "1",
     "evaluate on the test set, or on the validation and test texts, every E epochs (0: only at start and end; never: "
     "not even then)",
     AT(RUN, output, eval_every), .min = 0, .max = 1e9, .infinite = "never"},
    {"eval-samples", "N", OPTION_INTEGER, NULL,
     "gpt: score so many windows from random places of the validation text besides all of it, as nanoGPT does",
     AT(RUN, output, eval_samples), .min = 0, .max = HUGE_COUNT},
    {"samples", "N", OPTION_INTEGER, NULL,
     "speech: log with each evaluation what is heard of N utterances of the test beside what is said, and print it at "
     "the end",
     AT(KEPT, output, samples), .min = 0, .max = 1000},
    {"audit", "N", OPTION_INTEGER, "0",
     "log the exact threshold beside the selector's every N steps, and how many entries pass Gaussiank's",
     AT(KEPT, output, audit), .min = 0, .max = HUGE_COUNT},
    {"log-slices", "N", OPTION_INTEGER, "0",
     "log for every slice how much of its gradient is not zero, sent and in the sum, every N steps",
     AT(KEPT, output, log_slices), .min = 0, .max = HUGE_COUNT},
    {"log-xi", "N", OPTION_INTEGER, "0",
     "log every N steps xi of Ok-Topk's Assumption 1: how far the sum is from the k largest of the sum of everything",
     AT(KEPT, output, log_xi), .min = 0, .max = HUGE_COUNT},
    {"record", "FILE", OPTION_TEXT, NULL,
     "write the gradients of all ranks to FILE, for sparsetrain bench --pattern real:FILE", AT(LOCAL, output, record)},
    {"record-what", "WHAT", OPTION_CHOICE, "gradients",
     "what --record writes: whole gradients, or the entries that every rank selected (topka, topkdsa, gaussiank), for "
     "sparsetrain fit and bench --pattern selected:FILE",
     AT(KEPT, output, record_what),
     .names = NAMES([RECORD_GRADIENTS] = "gradients", [RECORD_SELECTED] = "selected", NULL)},
    {"record-every", "N", OPTION_INTEGER, "1", "of every N-th step", AT(KEPT, output, record_every), .min = 1,
     .max = HUGE_COUNT},
    {"trace", "FILE", OPTION_TEXT, NULL,
     "write a Chrome trace (chrome://tracing, Perfetto) of the phases of every rank to FILE", AT(LOCAL, output, trace)},
    {"mllog", "FILE", OPTION_TEXT, NULL,
     "write the run as an MLPerf log (:::MLLOG lines) to FILE; a resumed run that is given it again goes on in it",
     AT(LOCAL, output, mllog)},
    {"log-tensorboard", "DIR", OPTION_TEXT, NULL,
     "write losses, rates, scores, traffic and times to an event file in DIR, for TensorBoard; a resumed run adds "
     "another",
     AT(LOCAL, output, log_tensorboard)},
    {"progress", "HOW", OPTION_CHOICE, "auto", "a bar on a terminal, lines elsewhere, or none",
     AT(LOCAL, output, progress),
     .names =
         NAMES([PROGRESS_AUTO] = "auto", [PROGRESS_BAR] = "bar", [PROGRESS_LINES] = "lines", [PROGRESS_NONE] = "none",
               NULL)},
    {"dry-run", NULL, OPTION_FLAG, NULL,
     "check everything, say what would run and what it takes (traffic, memory, disk), and end without training or "
     "writing",
     AT(LOCAL, output, dry_run)},
    {"quiet", NULL, OPTION_FLAG, NULL, "print nothing but errors", AT(LOCAL, output, quiet)},
};

/* The rows above, with those that algorithms, selectors and optimisers declare put in their places. */
static struct option_row options[OPTION_ROWS_MAX];

struct option_table train_options = {.row = options};

struct option_table config_options = {
    .row = options,
    .call = "sparsetrain config",
    .about =
        "Prints what train would be set to by these options of its own, one name=value a line, and starts nothing: "
        "first "
        "what the run computes with, then, behind an empty line, how it is watched and where its files go, and behind "
        "another one the names of options that were given and have no effect. Options that mean nothing together end "
        "it "
        "with status 2 and one line, as they would end train, and so does an --out in which a run is under way. What a "
        "run "
        "would be resumed from (--resume) is not looked at.",
};

/* Runs before main, because tables of other verbs refer to this one. A row without a name marks the place of the
 * options that algorithms and selectors, or optimisers, declare. */
__attribute__((constructor)) static void gather(void) {
    size_t count = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (count == OPTION_ROWS_MAX) die("there are more options than OPTION_ROWS_MAX");
        if (rows[i].name)
            options[count++] = rows[i];
        else if (rows[i].offset == offsetof(struct options, own))
            count = exchange_options_add(options, count, &rows[i], true);
        else
            for (size_t o = 0; optimisers[o]; o++)
                count = option_gather(options, count, &optimisers[o]->options, &rows[i], NULL);
    }
    train_options.rows = config_options.rows = count;
}
