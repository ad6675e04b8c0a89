/* rival.c: see rival.h. */
#include "cli/compare/rival.h"

#include <string.h>

bool rival_check(const struct groups *all, const char *against, struct err *e) {
    for (size_t i = 0; i < all->count; i++)
        if (all->against || strcmp(all->at[i].algo, against) == 0) return true;
    return err_set(e,
                   "compare: --against %.300s is none of these runs, and none of them has such an algorithm: give it "
                   "one of the two",
                   against);
}

const struct group *rival_of(const struct groups *all, const struct group *g, const char *algo) {
    const struct group *found = all->against;
    if (found) return found != g && strcmp(found->target, g->target) == 0 ? found : NULL;
    for (size_t i = 0; i < all->count; i++) {
        const struct group *other = &all->at[i];
        if (strcmp(other->algo, algo) != 0 || strcmp(other->target, g->target) != 0) continue;
        if (found) return NULL;
        found = other;
    }
    return found == g ? NULL : found;
}
