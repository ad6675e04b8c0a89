/* options_help.c: --help, from option_table. */
#include <string.h>

#include "base/mem.h"
#include "base/place.h"
#include "cli/options.h"
#include "cli/verbs.h"

enum { HELP_COLUMN = 28, HELP_WIDTH = 100, SCRIPT_COLUMN = 34 };

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

void options_sentence(const struct option_row *row, char *text, size_t size) {
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
    options_sentence(row, text, sizeof text);
    char *placed = place_text(text);
    help_line(stream, left, placed);
    mem_free(placed);
}

/* What else there is, where this copy has it. */
static void help_places(FILE *stream) {
    static const struct {
        const char *script, *what;
    } scripts[] = {
        {"fetch-data.sh", "brings datasets to where they are looked for"},
        {"plot.sh", "draws runs"},
        {"sweep.sh", "runs every combination of options, and makes a table of the scores"},
        {"slurm/generate.sh", "writes jobs for a cluster"},
    };
    char page[PLACE_MAX];
    fputs("\nScripts (--help has their options)\n", stream);
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        const char *command = place_script(scripts[i].script);
        if (strlen(command) < SCRIPT_COLUMN - 3)
            fprintf(stream, "  %-*s%s\n", SCRIPT_COLUMN - 2, command, scripts[i].what);
        else
            fprintf(stream, "  %s\n%*s%s\n", command, SCRIPT_COLUMN, "", scripts[i].what);
    }
    place_of("docs/training.md", page);
    fprintf(stream, "Pages in %.*s: training.md, exchanges.md, bench.md, nodes.md, clusters.md\n",
            (int)(strrchr(page, '/') - page), page);
    fprintf(stream, "Data in %s, unless SPARSETRAIN_DATA or --data NAME:WHERE says otherwise\n", place_data());
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
    help_places(stream);
}
