/* rival.c: see rival.h. */
#include "cli/compare/rival.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

/* Are these configurations that differ in the format of messages alone? */
static bool differ_in_wire(const char *a, const char *b) {
    const char *x = strstr(a, "\nwire="), *y = strstr(b, "\nwire=");
    return x && y && x - a == y - b && memcmp(a, b, (size_t)(x - a)) == 0 &&
           strcmp(strchr(x + 1, '\n'), strchr(y + 1, '\n')) == 0;
}

/* Is g of that algorithm, with that target? */
static bool fits(const struct group *g, const char *algo, const char *target) {
    return strcmp(g->algo, algo) == 0 && strcmp(g->target, target) == 0;
}

/* Do all others of its algorithm and target differ from g in their format alone, and is its own the one that rounds
 * nothing? So it is where there are no others. */
static bool stands_for_all(const struct groups *all, const struct group *g) {
    bool others = false;
    for (size_t i = 0; i < all->count; i++) {
        const struct group *other = &all->at[i];
        if (other == g || !fits(other, g->algo, g->target)) continue;
        if (!differ_in_wire(g->config, other->config)) return false;
        others = true;
    }
    return !others || strstr(g->config, "\nwire=coo32\n");
}

/* The one that an algorithm's name means. NULL: there is none, or (*several) more than one. */
static const struct group *meant(const struct groups *all, const char *algo, const char *target, bool *several) {
    *several = false;
    for (size_t i = 0; i < all->count; i++) {
        if (!fits(&all->at[i], algo, target)) continue;
        if (stands_for_all(all, &all->at[i])) return &all->at[i];
        *several = true;
    }
    return NULL;
}

/* "runs/a (dense density=0.1), runs/b (dense density=0.01)": a run of each; fresh memory. */
static char *candidates(const struct groups *all, const char *algo, const char *target) {
    char *text = mem_printf("%s", "");
    const struct group *last = NULL;
    for (size_t i = 0; i < all->count; i++)
        for (size_t r = 0; r < all->runs; r++) {
            const struct group *g = &all->at[i];
            if (g == last || all->run[r].group != g || !fits(g, algo, target)) continue;
            char *longer = mem_printf("%s%s%s (%s)", text, last ? ", " : "", all->run[r].name, g->label);
            mem_free(text);
            text = longer;
            last = g;
        }
    return text;
}

/* Is that the first of all groups with its target? */
static bool first_with_target(const struct groups *all, size_t at) {
    for (size_t i = 0; i < at; i++)
        if (strcmp(all->at[i].target, all->at[at].target) == 0) return false;
    return true;
}

/* Where an algorithm's name means none of several configurations: the first target for which it does so, from that of
 * all->at[*at] on, which moves behind it. NULL: there is none. */
static const char *unclear_target(const struct groups *all, const char *algo, size_t *at) {
    for (bool several; !all->against && *at < all->count;) {
        const size_t i = (*at)++;
        const char *target = all->at[i].target;
        if (first_with_target(all, i) && !meant(all, algo, target, &several) && several) return target;
    }
    return NULL;
}

/* Is that one of the runs, or the algorithm of one? */
static bool known(const struct groups *all, const char *against) {
    if (all->against) return true;
    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->at[i].algo, against) == 0) return true;
    return false;
}

bool rival_check(const struct groups *all, const char *against, struct err *e) {
    size_t at = 0;
    if (!known(all, against))
        return err_set(e,
                       "compare: --against %.300s is none of these runs, and none of them has such an algorithm: give "
                       "it one of the two",
                       against);
    const char *target = unclear_target(all, against, &at);
    if (!target) return true;
    char *text = candidates(all, against, target);
    err_set(e, "compare: --against %.100s has several configurations for %.100s; give one of their runs: %.700s",
            against, target, text);
    mem_free(text);
    return false;
}

/* Has what --against says a run with that target? */
static bool has_target(const struct groups *all, const char *against, const char *target) {
    if (all->against) return strcmp(all->against->target, target) == 0;
    for (size_t i = 0; i < all->count; i++)
        if (fits(&all->at[i], against, target)) return true;
    return false;
}

/* The targets that others have, and it, which has another, has not. */
static void note_missing(const struct groups *all, const char *against) {
    for (size_t i = 0; i < all->count && known(all, against); i++) {
        const char *target = all->at[i].target;
        if (first_with_target(all, i) && !has_target(all, against, target))
            fprintf(stderr, "sparsetrain: compare: no t-test against %s for %s: none of its runs has that target\n",
                    against, target);
    }
}

void rival_note(const struct groups *all, const char *against) {
    size_t at = 0;
    note_missing(all, against);
    for (const char *target; (target = unclear_target(all, against, &at));) {
        char *text = candidates(all, against, target);
        fprintf(stderr,
                "sparsetrain: compare: no t-test against %s for %s: it has several configurations; give one of their "
                "runs as --against: %s\n",
                against, target, text);
        mem_free(text);
    }
}

const struct group *rival_of(const struct groups *all, const struct group *g, const char *algo) {
    const struct group *found = all->against;
    bool several;
    if (!found)
        found = meant(all, algo, g->target, &several);
    else if (strcmp(found->target, g->target) != 0)
        return NULL;
    return found == g ? NULL : found;
}
