/* local_table.c: local work from a table of scripts/measure-costs.sh: see local_costs.h and cost_table.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/table.h"
#include "cli/network/cost_table.h"
#include "cli/network/local_costs.h"

enum { WORDS = 256 };

/* What an algorithm takes, for the ranking; select NAN: the table lacks it. */
static struct local_cost cost_of(const struct cost_table *t, const struct cost_question *q, size_t n) {
    struct cost_answer a;
    struct err lacking = {0};
    if (!cost_table_ask(t, q, &a, &lacking)) return (struct local_cost){.select = NAN};
    if (!a.charged) return (struct local_cost){.sum = isnan(a.sum) ? 0 : a.sum};
    return (struct local_cost){.select = a.select / (double)n, .word = a.word};
}

/* Are there rows of this device, this length, this density? If not, which there are. model: the table's name of a
 * gradient of this length. */
static bool check_rows(const struct cost_table *t, const char *on, size_t n, double density, char model[LOCAL_NAME],
                       struct err *e) {
    char on_devices[WORDS] = "", lengths[WORDS] = "", densities[WORDS] = "", name[2 * LOCAL_NAME];
    bool device = false, length = false, there = false;
    for (size_t i = 0; i < t->rows; i++) {
        const char *const *cell = t->row[i].cell;
        if (strcmp(cell[COST_WHAT], "word") != 0) continue;
        names_add_new(on_devices, WORDS, cell[COST_DEVICE]);
        if (strcmp(cell[COST_DEVICE], on) != 0) continue;
        device = true;
        snprintf(name, sizeof name, "%.31s (%.15s)", cell[COST_MODEL], cell[COST_ENTRIES]);
        names_add_new(lengths, WORDS, name);
        if (!cost_cell_is(cell[COST_ENTRIES], (double)n)) continue;
        if (!length) snprintf(model, LOCAL_NAME, "%.31s", cell[COST_MODEL]);
        length = true;
        names_add_new(densities, WORDS, cell[COST_DENSITY]);
        there |= cost_cell_is(cell[COST_DENSITY], density);
    }
    if (!device) return err_set(e, "%s has no device %.31s; it has: %s", t->path, on, on_devices);
    if (!length)
        return err_set(e, "%s has no gradient of %zu entries on %.31s; it has: %s (--n)", t->path, n, on, lengths);
    return there || err_set(e, "%s has no density %g of %s on %.31s; it has: %s (--density)", t->path, density, model,
                            on, densities);
}

static void note_missing(struct local_missing *missing, const char *algorithm, const char *wire) {
    size_t used = strlen(missing->names);
    snprintf(missing->names + used, sizeof missing->names - used, "%s%s%s%s", missing->count++ ? ", " : "", algorithm,
             wire ? " " : "", wire ? wire : "");
}

bool local_from_table(const char *path, const char *device, size_t n, double density, struct local_costs *costs,
                      char model[LOCAL_NAME], struct local_missing *missing, struct err *e) {
    struct cost_table t;
    *costs = (struct local_costs){0};
    *missing = (struct local_missing){0};
    if (!cost_table_open(&t, path, e)) return false;
    bool good = check_rows(&t, device, n, density, model, e);
    struct cost_question q = {.model = model, .device = device, .density = density, .ranks_per_node = 1};
    q.times = COST_SELECT | COST_WORD | COST_SUM;
    for (size_t i = 0; good && exchanges[i]; i++) {
        bool format = best_takes_format(exchanges[i]);
        q.ops = exchanges[i];
        for (size_t w = 0; wires[w]; w++) {
            if (!exchange_takes(exchanges[i], wires[w])) continue;
            q.wire = wires[w];
            costs->of[i][w] = cost_of(&t, &q, n);
            if (w > 0 && !format) costs->of[i][w].select = NAN; /* dense values in 16 bits: no table has them */
            if (isnan(costs->of[i][w].select))
                note_missing(missing, q.ops->name, format || w > 0 ? wires[w]->name : NULL);
        }
    }
    cost_table_close(&t);
    return good;
}
