/* completion.c: see completion.h: the options of every verb and the values they take. No name of an option or value is
 * written down here that a table has. */
#include "cli/options/completion.h"

#include <string.h>

#include "cli/options/options.h"
#include "comm/cost/cost.h"

static const char *network_name(size_t i) {
    return *networks[i].name ? networks[i].name : NULL;
}

/* Options whose values are names of a table although they are no choices: more than names can stand there (a file,
 * NAME:WHERE). */
static const struct {
    const char *option;
    const char *(*name)(size_t i);
} named[] = {{"data", dataset_name}, {"net", network_name}};

static void copy(char *to, size_t size, const char *from, size_t length) {
    snprintf(to, size, "%.*s", (int)length, from);
}

/* Adds a word, or a sentence, behind a blank. */
static void append(char *to, size_t size, const char *from, size_t length) {
    size_t used = strlen(to);
    snprintf(to + used, size - used, "%s%.*s", used ? " " : "", (int)length, from);
}

static void add_word(struct offer *o, const char *word, size_t length) {
    append(o->words, sizeof o->words, word, length);
}

/* The names that an option takes: its own, those of a table, those of train's option of that name. */
static void add_names(const struct option_row *row, struct offer *o) {
    const struct option_row *of_train = option_find(&train_options, row->name, strlen(row->name));
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        for (size_t j = 0; strcmp(named[i].option, row->name) == 0 && named[i].name(j); j++)
            add_word(o, named[i].name(j), strlen(named[i].name(j)));
    if (!option_choice(row, 0) && row->type == OPTION_WORD && of_train) row = of_train;
    for (size_t i = 0; option_choice(row, i); i++) add_word(o, option_choice(row, i), strlen(option_choice(row, i)));
}

static enum offer_kind kind_of(const struct option_row *row, const struct offer *o) {
    if (!row->argument) return OFFER_FLAG;
    if (*o->words) return row->type == OPTION_NAMES || row->type == OPTION_SET ? OFFER_LIST : OFFER_WORDS;
    if (strncmp(row->argument, "FILE", 4) == 0) return OFFER_FILE;
    return strcmp(row->argument, "DIR") == 0 ? OFFER_FOLDER : OFFER_NONE;
}

/* Of "layers:MODEL" the word up to its colon. */
static void from_row(const struct option_row *row, struct offer *o) {
    copy(o->name, sizeof o->name, row->name, strlen(row->name));
    if (row->argument) copy(o->argument, sizeof o->argument, row->argument, strlen(row->argument));
    append(o->about, sizeof o->about, row->help, strlen(row->help));
    if (row->infinite) add_word(o, row->infinite, strlen(row->infinite));
    if (row->type == OPTION_NAMES) add_word(o, "all", 3);
    if (row->type == OPTION_SET) add_word(o, "none", 4);
    for (const struct option_meaning *m = row->meaning; m && m->value; m++) {
        size_t word = strcspn(m->value, ":");
        add_word(o, m->value, word + (m->value[word] == ':'));
    }
    add_names(row, o);
    o->kind = kind_of(row, o);
}

static bool plain(struct offer *o, const char *name, const char *about) {
    copy(o->name, sizeof o->name, name, strlen(name));
    copy(o->about, sizeof o->about, about, strlen(about));
    return true;
}

bool offers_table(const struct verb_row *verb) {
    return verb->options && verb->options->row == train_options.row;
}

bool offer_at(const struct verb_row *verb, size_t i, struct offer *o) {
    const struct option_table *t = verb->options;
    *o = (struct offer){0};
    if (!t) return false;
    if (i < t->rows) {
        from_row(&t->row[i], o);
        return true;
    }
    if (i == t->rows) return plain(o, "help", "what can be asked for");
    return t == &train_options && i == t->rows + 1 && plain(o, "version", "version, commit, libraries, compiler");
}

bool offer_operand(const struct verb_row *verb, struct offer *o) {
    *o = (struct offer){.kind = OFFER_FILE};
    if (!verb->options || !verb->options->operand) return false;
    copy(o->name, sizeof o->name, verb->options->operand, strlen(verb->options->operand));
    if (strcmp(o->name, "checkpoint") == 0) o->kind = OFFER_FOLDER;
    return true;
}
