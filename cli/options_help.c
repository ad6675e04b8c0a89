/* options_help.c: --help and the man page, both from option_table. */
#include <string.h>

#include "cli/options.h"
#include "cli/verbs.h"

enum { HELP_COLUMN = 28, HELP_WIDTH = 100 };

/* Words of `text` from HELP_COLUMN on, wrapped. */
static void wrap(FILE *stream, const char *text) {
    size_t column = HELP_COLUMN;
    for (bool first = true; *text; first = false) {
        size_t word = strcspn(text, " ");
        if (!first && column + 1 + word > HELP_WIDTH) {
            fprintf(stream, "\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
            first = true;
        }
        fprintf(stream, "%s%.*s", first ? "" : " ", (int)word, text);
        column += word + !first;
        text += word;
        text += strspn(text, " ");
    }
    fputc('\n', stream);
}

/* What is explained, and the sentence in its column: on the next line where it is too long for that. */
static void help_line(FILE *stream, const char *left, const char *text) {
    fprintf(stream, "%-*s", HELP_COLUMN, left);
    if (strlen(left) >= HELP_COLUMN) fprintf(stream, "\n%*s", HELP_COLUMN, "");
    wrap(stream, text);
}

/* The help sentence with the choices and the default added. */
static void sentence(const struct option_row *row, char *text, size_t size) {
    snprintf(text, size, "%s", row->help);
    size_t used = strlen(text);
    for (size_t i = 0; row->choice && row->choice(i); i++) {
        snprintf(text + used, size - used, "%s%s", i ? ", " : ": ", row->choice(i));
        used = strlen(text);
    }
    if (row->standard) snprintf(text + used, size - used, " (default: %s)", row->standard);
}

static void help_row(FILE *stream, const struct option_row *row) {
    char left[64], text[1024];
    snprintf(left, sizeof left, "  --%s %s", row->name, row->argument ? row->argument : "");
    sentence(row, text, sizeof text);
    help_line(stream, left, text);
}

void options_help(FILE *stream) {
    fputs("sparsetrain: data-parallel training over MPI with a choice of gradient exchanges\n\n"
          "  mpirun -np 4 sparsetrain --algo gtopk --out runs/first\n\n",
          stream);
    fputs("Verbs\n", stream);
    for (size_t i = 0; i < verb_rows; i++) {
        char left[64];
        snprintf(left, sizeof left, "  sparsetrain %s", verb_table[i].words);
        help_line(stream, left, verb_table[i].summary);
    }
    const char *group = "";
    for (size_t i = 0; i < option_rows; i++) {
        if (strcmp(group, option_table[i].group) != 0) fprintf(stream, "\n%s\n", option_table[i].group);
        group = option_table[i].group;
        help_row(stream, &option_table[i]);
    }
    fputs("\nAlso: --help, --version. Exit status: 0 done, 1 system error, 2 user's mistake, 3 NaN or infinity in "
          "training,\n"
          "4 stopped by a signal (a checkpoint was written if --out was given).\n",
          stream);
}

/* Text for roff: hyphens of options must stay hyphens, a leading dot must not be a request. */
static void roff(FILE *stream, const char *text) {
    if (*text == '.' || *text == '\'') fputs("\\&", stream);
    for (; *text; text++) {
        if (*text == '-' || *text == '\\') fputc('\\', stream);
        fputc(*text == '\\' ? 'e' : *text, stream);
    }
}

static void man_row(FILE *stream, const struct option_row *row) {
    char text[1024];
    sentence(row, text, sizeof text);
    fputs(".TP\n.B \\-\\-", stream);
    roff(stream, row->name);
    if (row->argument) fprintf(stream, " \\fI%s\\fR", row->argument);
    fputc('\n', stream);
    roff(stream, text);
    fputc('\n', stream);
}

void options_man(FILE *stream) {
    fputs(".TH SPARSETRAIN 1\n.SH NAME\nsparsetrain \\- data\\-parallel training over MPI with a choice of gradient "
          "exchanges\n"
          ".SH SYNOPSIS\n.B mpirun \\-np\n.I P\n.B sparsetrain\n[\\fIoptions\\fR]\n.SH VERBS\n",
          stream);
    for (size_t i = 0; i < verb_rows; i++) {
        fputs(".TP\n.B sparsetrain ", stream);
        roff(stream, verb_table[i].words);
        fputc('\n', stream);
        roff(stream, verb_table[i].summary);
        fputc('\n', stream);
    }
    const char *group = "";
    for (size_t i = 0; i < option_rows; i++) {
        if (strcmp(group, option_table[i].group) != 0) fprintf(stream, ".SH OPTIONS: %s\n", option_table[i].group);
        group = option_table[i].group;
        man_row(stream, &option_table[i]);
    }
    fputs(".SH ENVIRONMENT\n.TP\n.B SPARSETRAIN_DATA\nwhere datasets are looked for (else build/data)\n"
          ".TP\n.B SPARSETRAIN_SIMD\ngeneric, avx2 or avx512: the instruction set of the selection (default: the best "
          "there is)\n"
          ".TP\n.B SPARSETRAIN_PLUGIN\nthe file that serves \\-\\-device cuda (else libsparsetrain_cuda.so, beside the "
          "program or in ../lib/sparsetrain)\n"
          ".TP\n.B SPARSETRAIN_CACHE\nthe folder in which \\-\\-device cuda remembers the convolution algorithms that "
          "it has measured (else $XDG_CACHE_HOME/sparsetrain or ~/.cache/sparsetrain)\n"
          ".TP\n.B SPARSETRAIN_CUDA_GRAPH\n0: \\-\\-device cuda launches every kernel by itself instead of repeating "
          "recorded passes\n"
          ".TP\n.B SPARSETRAIN_CUDA_AWARE\n0 or 1: whether MPI takes pointers of CUDA memory (else as it says itself)\n"
          ".SH EXIT STATUS\n0 done; 1 system error; 2 user's mistake; 3 NaN or infinity in training; 4 stopped by a "
          "signal.\n",
          stream);
}
