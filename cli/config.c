/* config.c: see config.h. */
#include "cli/config.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/options.h"
#include "cli/run_dir.h"

static const char help[] =
    "usage: sparsetrain config [OPTIONS]\n"
    "Prints what train would be set to by these options of its own, one name=value a line, and starts nothing: first\n"
    "what the run computes with, then, behind an empty line, how it is watched and where its files go, and behind\n"
    "another one the names of options that were given and have no effect.\n"
    "Options that mean nothing together end it with status 2 and one line, as they would end train, and so does an\n"
    "--out in which a run is under way. What a run would be resumed from (--resume) is not looked at.\n";

static void print(const struct options *o, enum option_rule rule) {
    char *text = options_text(o, rule);
    fputs(text, stdout);
    mem_free(text);
}

/* Given, and then dropped by options_resolve: without effect on what was chosen. */
static void print_dropped(const struct options *asked, const struct options *o) {
    for (size_t i = 0; i < option_rows; i++)
        if (asked->given[i] && !o->given[i]) printf("%s\n", option_table[i].name);
}

int config(int argc, char **argv) {
    static struct options o, asked; /* large */
    struct err e = {0};
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0) return fputs(help, stdout) < 0 ? EXIT_SYSTEM : EXIT_DONE;
    options_default(&o);
    bool good = options_parse(&o, argc, argv, 1, &e);
    asked = o;
    if (!good || !options_resolve(&o, &e) || !run_dir_is_free(o.out, &e)) {
        fprintf(stderr, "sparsetrain: %s\n", e.text);
        return err_status(&e);
    }
    print(&o, RULE_RUN);
    putchar('\n');
    print(&o, RULE_KEPT);
    print(&o, RULE_LOCAL);
    putchar('\n');
    print_dropped(&asked, &o);
    return EXIT_DONE;
}
