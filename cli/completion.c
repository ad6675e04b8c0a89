/* completion.c: see completion.h: the options of every verb and the values they take. No name of an option or value is
 * written down here that a table or a usage text has. */
#include "cli/completion.h"

#include <string.h>

#include "cli/options.h"
#include "comm/cost.h"

static const char *dataset_name(size_t i) {
    return datasets[i] ? datasets[i]->name : NULL;
}
static const char *exchange_name(size_t i) {
    return exchanges[i] ? exchanges[i]->name : NULL;
}
static const char *network_name(size_t i) {
    return *networks[i].name ? networks[i].name : NULL;
}

/* Options whose values are names of a table although they are no choices of option_table: more than names can stand
 * there (a file, NAME:WHERE). */
static const struct {
    const char *option;
    const char *(*name)(size_t i);
} named[] = {{"data", dataset_name}, {"net", network_name}, {"against", exchange_name}};

typedef const char *name_of(size_t i);

/* The table whose names an option takes; NULL: none. An option of another verb takes what train's of that name takes.
 */
static name_of *names_for(const char *option) {
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (strcmp(named[i].option, option) == 0) return named[i].name;
    for (size_t i = 0; i < option_rows; i++)
        if (strcmp(option_table[i].name, option) == 0) return option_table[i].choice;
    return NULL;
}

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

/* "first|all": the words themselves, where all of it is in lower case. */
static void spelt_out(struct offer *o) {
    static const char lower[] = "abcdefghijklmnopqrstuvwxyz0123456789-|";
    if (!strchr(o->argument, '|') || strspn(o->argument, lower) != strlen(o->argument)) return;
    for (const char *at = o->argument; *at; at += *at == '|') {
        size_t length = strcspn(at, "|");
        add_word(o, at, length);
        at += length;
    }
}

/* From name, argument and the words found so far: what to offer. */
static void settle(struct offer *o) {
    bool list = strncmp(o->argument, "LIST", 4) == 0;
    name_of *name = names_for(o->name);
    if (name && list) add_word(o, "all", 3);
    for (size_t i = 0; name && name(i); i++) add_word(o, name(i), strlen(name(i)));
    spelt_out(o);
    if (!*o->argument)
        o->kind = OFFER_FLAG;
    else if (*o->words)
        o->kind = list ? OFFER_LIST : OFFER_WORDS;
    else if (strncmp(o->argument, "FILE", 4) == 0)
        o->kind = OFFER_FILE;
    else if (strcmp(o->argument, "DIR") == 0)
        o->kind = OFFER_FOLDER;
    else
        o->kind = OFFER_NONE;
}

/* -- options of usage texts ---------------------------------------------------------------------------------------- */
static const char *next_line(const char *line) {
    line += strcspn(line, "\n");
    return line + (*line == '\n');
}

/* The line that begins with the i-th option; NULL past the last one. */
static const char *option_line(const char *usage, size_t i) {
    for (const char *line = usage; *line; line = next_line(line))
        if (strncmp(line, "  --", 4) == 0 && i-- == 0) return line;
    return NULL;
}

/* "  --name ARGUMENT  what it does"; lines below go on with the sentence, or, two columns further in, name a value:
 * "layers:MODEL   its meaning". */
static void from_usage(const char *line, struct offer *o) {
    const char *at = line + 4;
    copy(o->name, sizeof o->name, at, strcspn(at, " \n"));
    at += strlen(o->name);
    if (at[0] == ' ' && at[1] != ' ') {
        copy(o->argument, sizeof o->argument, at + 1, strcspn(at + 1, " \n"));
        at += 1 + strlen(o->argument);
    }
    at += strspn(at, " ");
    size_t column = (size_t)(at - line);
    append(o->about, sizeof o->about, at, strcspn(at, "\n"));
    for (line = next_line(line); strspn(line, " ") >= column; line = next_line(line)) {
        size_t indent = strspn(line, " "), word = strcspn(line + indent, ": \n");
        if (indent == column) append(o->about, sizeof o->about, line + indent, strcspn(line + indent, "\n"));
        if (indent == column + 2) add_word(o, line + indent, word + (line[indent + word] == ':'));
    }
}

static void from_table(const struct option_row *row, struct offer *o) {
    copy(o->name, sizeof o->name, row->name, strlen(row->name));
    if (row->argument) copy(o->argument, sizeof o->argument, row->argument, strlen(row->argument));
    append(o->about, sizeof o->about, row->help, strlen(row->help));
    if (row->infinite) add_word(o, row->infinite, strlen(row->infinite));
}

static bool plain(struct offer *o, const char *name, const char *about) {
    copy(o->name, sizeof o->name, name, strlen(name));
    copy(o->about, sizeof o->about, about, strlen(about));
    return true;
}

/* How many options the table or the text names. */
static size_t count(const struct verb_row *verb) {
    size_t i = 0;
    while (verb->usage && option_line(verb->usage, i)) i++;
    return verb->usage ? i : option_rows;
}

bool offers_table(const struct verb_row *verb) {
    return strcmp(verb->words, "train") == 0 || strcmp(verb->words, "config") == 0;
}

bool offer_at(const struct verb_row *verb, size_t i, struct offer *o) {
    bool table = offers_table(verb);
    *o = (struct offer){0};
    if (!table && !verb->usage) return false;
    if (i < count(verb)) {
        if (table)
            from_table(&option_table[i], o);
        else
            from_usage(option_line(verb->usage, i), o);
        settle(o);
        return true;
    }
    if (i == count(verb)) return plain(o, "help", "what can be asked for");
    return strcmp(verb->words, "train") == 0 && i == count(verb) + 1 &&
           plain(o, "version", "version, commit, libraries, compiler");
}

bool offer_operand(const struct verb_row *verb, struct offer *o) {
    char call[64];
    *o = (struct offer){.kind = OFFER_FILE};
    snprintf(call, sizeof call, "sparsetrain %s ", verb->words);
    const char *at = verb->usage ? strstr(verb->usage, call) : NULL;
    size_t length = at ? strspn(at + strlen(call), "ABCDEFGHIJKLMNOPQRSTUVWXYZ") : 0;
    if (length == 0) return false;
    copy(o->name, sizeof o->name, at + strlen(call), length);
    if (strcmp(o->name, "CHECKPOINT") == 0) o->kind = OFFER_FOLDER;
    return true;
}
