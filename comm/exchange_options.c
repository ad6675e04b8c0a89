/* exchange_options.c: see exchange_options.h. */
#include "comm/exchange_options.h"

#include <string.h>

bool oktopk_leave_out(const char *option, const char *text, struct oktopk_setup *s, struct err *e) {
    const struct {
        const char *name;
        bool *off;
    } techniques[] = {{"regions", &s->even_regions},
                      {"rotation", &s->same_destination},
                      {"overlap", &s->no_overlap},
                      {"balance", &s->direct_gather}};
    enum { COUNT = sizeof techniques / sizeof *techniques };
    for (int i = 0; i < COUNT; i++) *techniques[i].off = false;
    if (strcmp(text, "none") == 0) return true;
    for (const char *at = text;;) {
        size_t length = strcspn(at, ",");
        int i = 0;
        while (i < COUNT && (strlen(techniques[i].name) != length || strncmp(techniques[i].name, at, length) != 0)) i++;
        if (i == COUNT)
            return err_set(e,
                           "%s has no \"%.*s\"; it takes none, or some of regions, rotation, overlap, balance "
                           "with commas between them",
                           option, (int)(length < 100 ? length : 100), at);
        *techniques[i].off = true;
        if (!at[length]) return true;
        at += length + 1;
    }
}

const char *adjust_name(size_t i) {
    static const char *const names[] = {"on", "off", NULL};
    return names[i];
}

bool gaussian_adjust(const char *option, const char *text, bool *unadjusted, struct err *e) {
    *unadjusted = strcmp(text, "off") == 0;
    return *unadjusted || strcmp(text, "on") == 0 || err_set(e, "%s takes on or off, not \"%.100s\"", option, text);
}

const char *thresholds_name(size_t i) {
    return i <= REUSE_PAPER ? reuse_rule_names[i] : NULL;
}

const char *residual_name(size_t i) {
    static const char *const names[] = {[GTOPK_CONSERVE] = "conserve", [GTOPK_PAPER] = "paper", NULL};
    return names[i];
}
