/* options_man.c: the manual page: verbs and options from their tables, the rest from the tables of this file. It is
 * made before anybody knows where it will lie, so that paths of an installation begin with PREFIX. */
#include <string.h>

#include "cli/options/options.h"
#include "cli/verbs.h"
#include "cli/version.h"

enum { MAN_WIDTH = 76 }; /* of the page's source */

/* Of the last change of what is written below. */
static const char page_date[] = "2026-11-22";

struct man_row {
    const char *term, *text;
};

static const struct man_row exit_rows[] = {
    {"0", "The run, or what a verb was asked for, is done."},
    {"1", "An error of the system: no memory, a full disk, output that nobody takes, a message that MPI could not "
          "deliver; of "
          "bench also: an "
          "exchange did not pass its verification."},
    {"2", "A mistake of the user's: one line says what is wrong and what to do. The same on all ranks."},
    {"3", "NaN or infinity in training; the line names step, rank and parameter."},
    {"4", "Stopped by SIGINT, SIGTERM, SIGUSR1 or SIGHUP, after the step or a batch of an evaluation was finished "
          "and, with --out, a checkpoint written: --resume goes on. After Ctrl-C Open MPI's mpirun itself says 1."},
};

static const struct man_row environment_rows[] = {
    {"SPARSETRAIN_DATA", "Where datasets are looked for. Without it: in a clone build/data; of an installed program "
                         "$XDG_DATA_HOME/sparsetrain, else ~/.local/share/sparsetrain, and where there is no home "
                         "PREFIX/share/sparsetrain/data. scripts/fetch-data.sh brings them there."},
    {"SPARSETRAIN_SIMD", "generic, avx2 or avx512: the instruction set of the selection (default: the best there is)."},
    {"SPARSETRAIN_NO_SHARED", "1: every rank holds the dataset itself, where the ranks of a node would share it in "
                              "/dev/shm."},
    {"SPARSETRAIN_WAIT",
     "spin (default) or sleep: how ranks wait for others. sleep leaves the cores to other work between looks, and is "
     "slower where there is none; on any rank it is for all. The same bits."},
    {"SPARSETRAIN_PLUGIN", "The file that serves --device cuda (else libsparsetrain_cuda.so, beside the program or in "
                           "../lib/sparsetrain)."},
    {"SPARSETRAIN_CACHE",
     "The folder in which the program keeps what it can make again: the convolution algorithms that "
     "--device cuda has measured, texts that --data wiki has packed (else $XDG_CACHE_HOME/sparsetrain or "
     "~/.cache/sparsetrain)."},
    {"SPARSETRAIN_CUDA_GRAPH",
     "0: --device cuda launches every kernel by itself instead of repeating recorded passes."},
    {"SPARSETRAIN_CUDNN_PLANS",
     "0: --device cuda computes convolutions by cuDNN's functions of old alone, without plans of "
     "its graph API."},
    {"SPARSETRAIN_CUDA_AWARE", "0 or 1: whether MPI takes pointers of CUDA memory (else as it says itself)."},
    {"SPARSETRAIN_BENCH", "In a clone, of make bench: which parts, of select wire exchange train step."},
    {"SPARSETRAIN_NETLAB", "In a clone, of scripts/netlab.sh: the folder of the emulated network (else "
                           "/run/sparsetrain-netlab)."},
    {"MPIRUN", "What the scripts start jobs with (else the mpirun of the MPI that is installed for building)."},
};

static const struct man_row file_rows[] = {
    {"OUT/run.jsonl", "With --out OUT: the log, one JSON object a line; docs/run-jsonl.md describes every field."},
    {"OUT/checkpoint-STEP/", "The last two checkpoints, or those of --keep and --keep-every: model.ckpt, and for each "
                             "rank a file, rank0000.ckpt and on, with "
                             "what it has of its own. All ranks must be able to read and write OUT."},
    {"OUT/lock", "While a run goes on there: host, process and start of whoever writes to OUT."},
    {"OUT/vocabulary.txt", "Of a run on a text: line i is word i, from 0."},
    {"PREFIX/share/sparsetrain/scripts/", "fetch-data.sh, plot.sh, sweep.sh, slurm/generate.sh and what they need; "
                                          "PREFIX is the folder above the program's bin. In a clone: scripts/."},
    {"PREFIX/share/doc/sparsetrain/", "README.md, CHANGELOG.md and the pages docs/*.md. In a clone: its top."},
    {"PREFIX/lib/sparsetrain/", "The plugin for --device cuda, where it was built."},
    {"PREFIX/lib/pkgconfig/sparsetrain.pc", "Where an installation has what: pkg-config --variable=scriptdir "
                                            "sparsetrain."},
};

static const struct man_row example_rows[] = {
    {"mpirun -np 4 sparsetrain --algo gtopk --out runs/gtopk",
     "ResNet-20 on CIFAR-10 in the configuration of the gTop-k paper, on four ranks; log and checkpoints go to "
     "runs/gtopk:"},
    {"mpirun -np 4 sparsetrain --resume runs/gtopk", "To go on after an interruption, to the same bits:"},
    {"sparsetrain export runs/gtopk --format safetensors --out gtopk.safetensors", "The trained model for PyTorch:"},
    {"mpirun -np 4 sparsetrain --data synthetic:4096x512 --batch 16 --epochs 1",
     "Without any data and in a minute, to see that all is well:"},
    {"mpirun -np 4 sparsetrain --model lstm --hidden 200 --algo oktopk --wire packed",
     "A language model on Penn Treebank, exchanged by Ok-Topk in packed messages:"},
    {"mpirun --hostfile hosts --map-by ppr:2:node --bind-to core sparsetrain --algo auto",
     "On several nodes, two ranks on each, with the algorithm that is fastest on their network (docs/nodes.md):"},
    {"mpirun -np 2 sparsetrain p2p --out my.net\nsparsetrain predict --net my.net --p 4,32,256 --n 14728266 --density "
     "0.001",
     "Latency and rate of a network, and what every algorithm would take on it:"},
    {"sh PREFIX/share/sparsetrain/scripts/plot.sh runs/gtopk runs/dense --format pdf", "Curves of two runs:"},
    {"sh PREFIX/share/sparsetrain/scripts/sweep.sh --np 4 --out runs/sweep \\\n    --algo dense,gtopk --density "
     "0.01,0.001 --seed 1,2,3 -- --epochs 10",
     "Every combination of some options, with a table of means and spreads over the seeds:"},
};

/* Text for roff, in lines that are not long: hyphens of options must stay hyphens, and a dot or a quote at the
 * beginning of a line must not be a request. fill: blanks may become line ends. */
static void roff(FILE *stream, const char *text, bool fill) {
    for (size_t column = 0; *text; text++) {
        if (column == 0 && (*text == '.' || *text == '\'')) fputs("\\&", stream);
        column++;
        if (*text == '\n' || (fill && *text == ' ' && column + strcspn(text + 1, " ") > MAN_WIDTH)) {
            fputc('\n', stream);
            column = 0;
            continue;
        }
        if (*text == '-' || *text == '\\') fputc('\\', stream), column++;
        fputc(*text == '\\' ? 'e' : *text, stream);
    }
}

static void tagged(FILE *stream, const char *before, const char *term, const char *text) {
    fprintf(stream, ".TP\n.B %s", before);
    roff(stream, term, false);
    fputc('\n', stream);
    roff(stream, text, true);
    fputc('\n', stream);
}

static void section(FILE *stream, const char *name, const struct man_row *row, size_t rows) {
    fprintf(stream, ".SH %s\n", name);
    for (size_t i = 0; i < rows; i++) tagged(stream, "", row[i].term, row[i].text);
}
#define ROWS(table) table, sizeof table / sizeof *(table)

static void examples(FILE *stream, const struct man_row *row, size_t rows) {
    fputs(".SH EXAMPLES\n", stream);
    for (size_t i = 0; i < rows; i++) {
        if (i > 0) fputs(".PP\n", stream);
        roff(stream, row[i].text, true);
        fputs("\n.PP\n.RS 4\n.nf\n", stream);
        roff(stream, row[i].term, false);
        fputs("\n.fi\n.RE\n", stream);
    }
}

static void option(FILE *stream, const struct option_row *row) {
    char text[1024];
    options_sentence(row, text, sizeof text);
    fputs(".TP\n.B \\-\\-", stream);
    roff(stream, row->name, false);
    if (row->argument) fprintf(stream, " \\fI%s\\fR", row->argument);
    fputc('\n', stream);
    roff(stream, text, true);
    fputc('\n', stream);
}

static void see_also(FILE *stream) {
    fputs(".SH SEE ALSO\n.BR mpirun (1),\n.BR srun (1),\n.BR gnuplot (1),\n.BR pkg\\-config (1)\n.PP\n", stream);
    roff(stream,
         "Pages, in PREFIX/share/doc/sparsetrain: docs/training.md (models, texts, techniques), docs/exchanges.md "
         "(algorithms), docs/run-jsonl.md (the log), docs/faults.md (when something fails), docs/bench.md (bench, fit, "
         "recordings), docs/nodes.md (several "
         "nodes), docs/clusters.md (installing, Slurm, containers), docs/gpu.md, docs/simulation.md, docs/netlab.md, "
         "docs/reproduce.md.",
         true);
    fputc('\n', stream);
}

void options_man(FILE *stream) {
    fprintf(stream, ".TH SPARSETRAIN 1 %s \"sparsetrain %s\" \"User Commands\"\n.SH NAME\n", page_date,
            version_number());
    fputs("sparsetrain \\- train over MPI with a choice of gradient exchanges\n.SH SYNOPSIS\n"
          ".B mpirun \\-np\n.I P\n.B sparsetrain\n[\\fBtrain\\fR]\n[\\fIoptions\\fR]\n.br\n"
          ".B sparsetrain\n.I verb\n[\\fIoptions\\fR]\n.SH DESCRIPTION\n",
          stream);
    roff(stream,
         "Data-parallel training: every rank of an MPI job computes the gradient of its part of a batch, the ranks "
         "exchange them by the algorithm of --algo, and all take the same step. Without a verb the program trains; "
         "verbs with options of their own show them with --help.",
         true);
    fputs("\n.SH VERBS\n", stream);
    for (size_t i = 0; i < verb_rows; i++) tagged(stream, "sparsetrain ", verb_table[i].words, verb_table[i].summary);
    const char *group = "";
    for (size_t i = 0; i < train_options.rows; i++) {
        if (strcmp(group, train_options.row[i].group) != 0)
            fprintf(stream, ".SH OPTIONS: %s\n", train_options.row[i].group);
        group = train_options.row[i].group;
        option(stream, &train_options.row[i]);
    }
    section(stream, "EXIT STATUS", ROWS(exit_rows));
    section(stream, "ENVIRONMENT", ROWS(environment_rows));
    section(stream, "FILES", ROWS(file_rows));
    examples(stream, ROWS(example_rows));
    see_also(stream);
}
