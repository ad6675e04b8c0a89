/* bench_select_options.c: the command line of `sparsetrain bench select`. */
#include <string.h>

#include "cli/bench_select.h"
#include "cli/numbers.h"
#include "comm/exchange_options.h"

const char select_usage[] =
    "usage: sparsetrain bench select [--select LIST|all] [--n LIST|MIN:MAX:FACTOR] [--density LIST] [--repeat N]\n"
    "                                [--period N] [--gaussian-adjust on|off] [--device NAME] [--json]\n"
    "Steps of accumulate, select about k = density * n, take out what was selected, one thread, next to a plain\n"
    "acc += grad and a read scan of the same length (on a GPU also: what is selected alone). LIST: values with commas "
    "between them.\n"
    "  --select LIST    selectors (default all; `sparsetrain list` names them)\n"
    "  --n LIST         gradient lengths (default 1000000,14728266; VGG-16 has 14728266, BERT 133547324);\n"
    "                   MIN:MAX:FACTOR: MIN, MIN * FACTOR, ... up to MAX. 18 bytes of memory per entry and more\n"
    "  --density LIST   shares selected (default 0.001,0.02)\n"
    "  --repeat N       timed steps, each with all three passes in turn (default 40)\n"
    "  --period N       steps between exact thresholds of reuse (default 32)\n"
    "  --gaussian-adjust on|off   gaussian: lower its threshold until more than 3k/4 entries pass (default on)\n"
    "  --device NAME    auto, cpu, cuda or sparse (default auto: a GPU where one can be used)\n"
    "  --json           one JSON object per row instead of the table\n";

static const struct selector_ops *selector_called(const char *name, size_t length) {
    for (size_t i = 0; selectors[i]; i++)
        if (strlen(selectors[i]->name) == length && memcmp(selectors[i]->name, name, length) == 0) return selectors[i];
    return NULL;
}

static bool parse_rows(const char *text, struct select_request *r, struct err *e) {
    r->row_count = 0;
    if (strcmp(text, "all") == 0) {
        while (selectors[r->row_count]) r->row[r->row_count] = selectors[r->row_count], r->row_count++;
        return true;
    }
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        const struct selector_ops *found = selector_called(at, length);
        if (!found)
            return err_set(e, "bench select: there is no selector \"%.*s\"; `sparsetrain list` shows those there are",
                           (int)(length < 100 ? length : 100), at);
        if (r->row_count == SELECT_LIST_MAX) return err_set(e, "bench select: --select: too many names");
        r->row[r->row_count++] = found;
        at += length;
        if (!*at) return true;
    }
}

static bool parse_option(const char *option, const char *value, struct select_request *r, struct err *e) {
    const struct number_rule lengths = {"bench select", option, 1, 4294967295.0, true},
                             shares = {"bench select", option, 1e-12, 1, false},
                             steps = {"bench select", option, 1, SELECT_REPEAT_MAX, true},
                             periods = {"bench select", option, 1, 1e9, true};
    double x = 0;
    if (strcmp(option, "--select") == 0) return parse_rows(value, r, e);
    if (strcmp(option, "--device") == 0) {
        r->device_name = value;
        return true;
    }
    if (strcmp(option, "--gaussian-adjust") == 0) return gaussian_adjust("--gaussian-adjust", value, &r->unadjusted, e);
    if (strcmp(option, "--density") == 0)
        return numbers_list(&shares, value, r->density, SELECT_LIST_MAX, &r->density_count, e);
    if (strcmp(option, "--n") == 0) return numbers_sweep(&lengths, value, r->n, SELECT_LIST_MAX, &r->n_count, e);
    if (strcmp(option, "--repeat") == 0) {
        if (!numbers_one(&steps, value, &x, e)) return false;
        r->repeat = (size_t)x;
        return true;
    }
    if (!numbers_one(&periods, value, &x, e)) return false;
    r->period = (int)x;
    return true;
}

bool select_parse(int argc, char **argv, struct select_request *r, struct err *e) {
    const char *const options[] = {"--select", "--n",      "--density",        "--repeat",
                                   "--period", "--device", "--gaussian-adjust"};
    *r = (struct select_request){.n = {1000000, 14728266},
                                 .density = {0.001, 0.02},
                                 .n_count = 2,
                                 .density_count = 2,
                                 .repeat = 40,
                                 .device_name = "auto"};
    parse_rows("all", r, e);
    for (int i = 1; i < argc; i++) {
        bool known = false;
        if (strcmp(argv[i], "--json") == 0) {
            r->json = true;
            continue;
        }
        for (size_t o = 0; o < sizeof options / sizeof options[0]; o++) known |= strcmp(argv[i], options[o]) == 0;
        if (!known) return err_set(e, "bench select: unknown option %.200s; --help shows them all", argv[i]);
        if (!argv[i + 1]) return err_set(e, "bench select: %s needs a value", argv[i]);
        if (!parse_option(argv[i], argv[i + 1], r, e)) return false;
        i++;
    }
    return true;
}
