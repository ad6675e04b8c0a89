/* verbs.c: see verbs.h. */
#include "cli/verbs.h"

#include "cli/bench/bench_exchange.h"
#include "cli/bench/bench_net.h"
#include "cli/bench/bench_p2p.h"
#include "cli/bench/bench_select.h"
#include "cli/bench/bench_wire.h"
#include "cli/compare/compare.h"
#include "cli/data_show.h"
#include "cli/export/export.h"
#include "cli/gradients/fit.h"
#include "cli/list.h"
#include "cli/network/costs.h"
#include "cli/network/predict.h"
#include "cli/options/config.h"
#include "cli/options/options.h"
#include "cli/rows.h"
#include "cli/study/study_verb.h"
#include "cli/train/evaluate_verb.h"
#include "cli/version.h"

const struct verb_row verb_table[] = {
    {"train", "train a network (the verb may be left out)", &train_options},
    {"list",
     "models, datasets, algorithms, selectors, wire formats, devices: with source, and whether they can be used here "
     "(--json)",
     &list_options},
    {"evaluate",
     "the scores of a checkpoint, on any number of ranks: mpirun -np P sparsetrain evaluate RUN (evaluate --help)",
     &evaluate_options},
    {"export",
     "the model of a checkpoint as a file for PyTorch or NumPy: export RUN --format safetensors (export --help)",
     &export_options},
    {"data show",
     "what the network sees: a picture of images, pairs of texts with their masks: --data NAME[:WHERE] (data show "
     "--help)",
     &data_show_options},
    {"bench", "time and verify every exchange without training: mpirun -np P sparsetrain bench (bench --help)",
     &bench_options},
    {"bench select", "time the selectors on this machine (bench select --help)", &select_options},
    {"bench net", "time a network on this machine (bench net --help)", &net_options},
    {"bench wire", "size and speed of the wire formats on this machine (bench wire --help)", &wire_options},
    {"p2p", "time messages between ranks, fit the network's alpha and beta: mpirun -np 2 sparsetrain p2p --out FILE",
     &p2p_options},
    {"predict", "what each algorithm costs on a network, without running it: --net FILE|1gbe|... (predict --help)",
     &predict_options},
    {"costs", "what a step takes on a machine that was measured: costs TABLE --model vgg16 (costs --help)",
     &costs_options},
    {"fit", "how the ranks' selections overlap in a run that recorded them: fit RECORDING --out PROFILE (fit --help)",
     &fit_options},
    {"rows", "values out of logs and other files of JSON lines, as a table: rows RUN --keys step,loss (rows --help)",
     &rows_options},
    {"compare",
     "what runs took to their --target, over the seeds of each configuration: compare RUN... (compare --help)",
     &compare_options},
    {"study", "the scaling study: what to simulate, who wins where, by how much: study WHAT (study --help)",
     &study_options},
    {"study memory", "what a simulation needs of this machine's memory: study memory --p P --n N (study memory --help)",
     &study_memory_options},
    {"config", "what train would be set to by these options, defaults and all, without starting it", &config_options},
    {"man", "this text as a manual page", NULL},
    {"completion bash", "completion of verbs, options and names for bash; make install puts it where bash looks", NULL},
    {"completion zsh", "the same for zsh", NULL},
    {"version", "version, commit, libraries, compiler (--json)", &version_options},
    {"help", "this text", NULL},
};

const size_t verb_rows = sizeof verb_table / sizeof *verb_table;
