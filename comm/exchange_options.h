/* exchange_options.h: the options that algorithms and selectors declare in their own files, as tables of verbs, and the
 * library, have them among their own. */
#ifndef ST_COMM_EXCHANGE_OPTIONS_H
#define ST_COMM_EXCHANGE_OPTIONS_H

#include "comm/exchange.h"

/* Memory for their values in a struct of a verb's. */
struct exchange_own {
    _Alignas(8) unsigned char bytes[256];
};

/* Behind to[0..count-1] what selectors and (algorithms) algorithms declare: their values from the offset of `place` on,
 * where a struct exchange_own lies, under its group and rule. Returns how many rows there are then. */
size_t exchange_options_add(struct option_row *to, size_t count, const struct option_row *place, bool algorithms);

/* to: [OPTION_ROWS_MAX]: the rows of a table, with these in the place of the row that has no name. Returns how many
 * there are. */
size_t exchange_options_gather(struct option_row *to, const struct option_row *rows, size_t count, bool algorithms);

/* Does the algorithm, or its selector (NULL: none), read what they declare under this name? */
bool exchange_reads(const struct exchange_ops *ops, const struct selector_ops *select, const char *name);

/* "--select reuse or --algo oktopk": who does. */
void exchange_readers(const char *name, char *text, size_t size);

#endif
