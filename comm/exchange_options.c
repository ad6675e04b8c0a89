/* exchange_options.c: see exchange_options.h. */
#include "comm/exchange_options.h"

#include <stdio.h>
#include <string.h>

#include "base/table.h"

size_t exchange_options_add(struct option_row *to, size_t count, const struct option_row *place, bool algorithms) {
    size_t at = place->offset;
    for (size_t i = 0; selectors[i]; i++) count = option_gather(to, count, &selectors[i]->options, place, &at);
    for (size_t i = 0; algorithms && exchanges[i]; i++)
        count = option_gather(to, count, &exchanges[i]->options, place, &at);
    if (at > place->offset + sizeof(struct exchange_own)) die("struct exchange_own is too short for all options");
    return count;
}

size_t exchange_options_gather(struct option_row *to, const struct option_row *rows, size_t count, bool algorithms) {
    size_t all = 0;
    for (size_t i = 0; i < count; i++) {
        if (all == OPTION_ROWS_MAX) die("--%s is an option too many: OPTION_ROWS_MAX", rows[i].name);
        if (rows[i].name)
            to[all++] = rows[i];
        else
            all = exchange_options_add(to, all, &rows[i], algorithms);
    }
    return all;
}

bool exchange_reads(const struct exchange_ops *ops, const struct selector_ops *select, const char *name) {
    return option_declares(&ops->options, name) || (select && option_declares(&select->options, name));
}

static void add(char *text, size_t size, const char *option, const char *name) {
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s %s", used ? " or " : "", option, name);
}

void exchange_readers(const char *name, char *text, size_t size) {
    const struct selector_ops *own = NULL;
    text[0] = '\0';
    for (size_t i = 0; selectors[i]; i++)
        if (option_declares(&selectors[i]->options, name)) add(text, size, "--select", selectors[i]->name);
    for (size_t i = 0; exchanges[i]; i++) {
        if (exchanges[i]->default_select) TABLE_FIND(selectors, exchanges[i]->default_select, own);
        if (exchange_reads(exchanges[i], exchanges[i]->selects ? own : NULL, name))
            add(text, size, "--algo", exchanges[i]->name);
    }
}
