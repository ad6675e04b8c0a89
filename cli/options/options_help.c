/* options_help.c: --help, from the tables of options. */
#include <string.h>

#include "base/files/place.h"
#include "base/mem.h"
#include "cli/options/options.h"
#include "cli/verbs.h"

enum { HELP_COLUMN = 28, HELP_WIDTH = 100, SCRIPT_COLUMN = 34, CALL_COLUMN = 11, CALL_MAX = 14 };

/* Words of `text` from this column on, where the line is already, wrapped. */
static void wrap(FILE *stream, const char *text, int from) {
    size_t column = (size_t)from;
    for (bool first = true; *text; first = false) {
        size_t word = strcspn(text, " ");
        if (!first && column + 1 + word > HELP_WIDTH) {
            fprintf(stream, "\n%*s", from, "");
            column = (size_t)from;
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
static void help_line(FILE *stream, const char *left, int column, const char *text) {
    const size_t length = strlen(left);
    if (length < (size_t)column)
        fprintf(stream, "%-*s", column, left);
    else /* without the blank at its end */
        fprintf(stream, "%.*s\n%*s", (int)length - (left[length - 1] == ' '), left, column, "");
    wrap(stream, text, column);
}

void options_sentence(const struct option_row *row, char *text, size_t size) {
    char brought[OPTION_TEXT_MAX] = "";
    const char *standard = row->standard;
    snprintf(text, size, "%s", row->help);
    size_t used = strlen(text);
    for (size_t i = 0; option_choice(row, i); i++) {
        snprintf(text + used, size - used, "%s%s", i ? ", " : ": ", option_choice(row, i));
        used = strlen(text);
    }
    if (!standard) {
        options_model_defaults(row, brought, sizeof brought);
        standard = brought;
    }
    if (*standard) snprintf(text + used, size - used, " (default: %s)", standard);
}

/* A value on a line of its own, its meaning beside it. */
static void help_meaning(FILE *stream, int column, const struct option_meaning *m) {
    char left[64];
    snprintf(left, sizeof left, "    %s ", m->value);
    help_line(stream, left, column, m->meaning);
}

/* "  --name ARGUMENT "; returns its length. */
static int name_row(const struct option_row *row, char text[64]) {
    return snprintf(text, 64, "  --%s %s ", row->name, row->argument ? row->argument : "");
}

static void help_row(FILE *stream, int column, const struct option_row *row) {
    char left[64], text[1024];
    name_row(row, left);
    options_sentence(row, text, sizeof text);
    char *placed = place_text(text);
    help_line(stream, left, column, placed);
    mem_free(placed);
    for (const struct option_meaning *m = row->meaning; m && m->value; m++) help_meaning(stream, column, m);
}

/* "usage: sparsetrain fit RECORDING [--out PROFILE]": what must be there comes without brackets. */
static void help_call(FILE *stream, const struct option_table *t) {
    size_t column = strlen("usage: ") + strlen(t->call);
    fprintf(stream, "usage: %s", t->call);
    if (t->rows > CALL_MAX) fputs(" [OPTIONS]", stream);
    for (size_t i = 0; t->rows <= CALL_MAX && i < t->rows; i++) {
        const struct option_row *row = &t->row[i];
        char word[96];
        snprintf(word, sizeof word, row->wanted ? "--%s%s%s" : "[--%s%s%s]", row->name, row->argument ? " " : "",
                 row->argument ? row->argument : "");
        bool fits = column + 1 + strlen(word) <= HELP_WIDTH;
        if (!fits) column = (size_t)fprintf(stream, "\n%*s", CALL_COLUMN, "") - 1;
        column += (size_t)fprintf(stream, "%s%s", fits ? " " : "", word);
    }
    fputc('\n', stream);
}

/* Paragraphs, each of them wrapped. */
static void help_text(FILE *stream, const char *text) {
    char *placed = place_text(text);
    for (char *at = placed, *end; at; at = end) {
        end = strchr(at, '\n');
        if (end) *end++ = '\0';
        wrap(stream, at, 0);
    }
    mem_free(placed);
}

void options_help_of(const struct option_table *t, FILE *stream) {
    if (t->row == train_options.row) {
        fprintf(stream, "usage: %s [OPTIONS]\n", t->call);
        help_text(stream, t->about);
        return;
    }
    help_call(stream, t);
    help_text(stream, t->about);
    int column = 0;
    for (size_t i = 0; i < t->rows; i++) {
        char left[64];
        int wanted = name_row(&t->row[i], left) + 1;
        if (wanted > column && wanted <= HELP_COLUMN) column = wanted;
    }
    for (size_t i = 0; i < t->rows; i++) help_row(stream, column, &t->row[i]);
    if (t->more) help_text(stream, t->more);
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
        help_line(stream, left, HELP_COLUMN, verb_table[i].summary);
    }
    const char *group = "";
    for (size_t i = 0; i < train_options.rows; i++) {
        if (strcmp(group, train_options.row[i].group) != 0) fprintf(stream, "\n%s\n", train_options.row[i].group);
        group = train_options.row[i].group;
        help_row(stream, HELP_COLUMN, &train_options.row[i]);
    }
    fputs("\nAlso: --help, --version. Exit status: 0 done, 1 system error, 2 user's mistake, 3 NaN or infinity in "
          "training,\n"
          "4 stopped by a signal (a checkpoint was written if --out was given).\n",
          stream);
    help_places(stream);
}
