/* table.h: how a folder turns its .def file into a NULL-terminated table of ops.
 *
 *        // exchanges.def:  EXCHANGE(dense)
 *        #define EXCHANGE(name) extern const struct exchange_ops exchange_##name;
 *        #include "comm/exchanges.def"
 *        #undef EXCHANGE
 *        #define EXCHANGE(name) &exchange_##name,
 *        const struct exchange_ops *const exchanges[] = {
 *        #include "comm/exchanges.def"
 *            NULL};
 *
 * Every ops struct begins with `const char *name`; TABLE_FIND finds a row by it. */
#ifndef ST_BASE_TABLE_H
#define ST_BASE_TABLE_H

#include <string.h>

#define TABLE_FIND(table, wanted, found)                                                                               \
    do {                                                                                                               \
        (found) = NULL;                                                                                                \
        for (size_t row_ = 0; (table)[row_]; row_++)                                                                   \
            if (strcmp((table)[row_]->name, (wanted)) == 0) (found) = (table)[row_];                                   \
    } while (0)

#endif
