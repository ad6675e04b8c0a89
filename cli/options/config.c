/* config.c: see config.h. */
#include "cli/options/config.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/checkpoint/run_dir.h"
#include "cli/options/options.h"

static void print(const struct options *o, enum option_rule rule) {
    char *text = options_text(o, rule);
    fputs(text, stdout);
    mem_free(text);
}

/* Given, and then dropped by options_resolve: without effect on what was chosen. */
static void print_dropped(const struct options *asked, const struct options *o) {
    for (size_t i = 0; i < train_options.rows; i++)
        if (asked->given[i] && !o->given[i]) printf("%s\n", train_options.row[i].name);
}

int config(int argc, char **argv) {
    static struct options o, asked; /* large */
    struct err e = {0};
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
