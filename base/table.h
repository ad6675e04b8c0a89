/* table.h: how a folder turns its .def file into a NULL-terminated table of ops.
 *
 *        // exchanges.def:  EXCHANGE(dense)
 *        #define EXCHANGE(name) extern const struct exchange_ops exchange_##name;
 *        #include "comm/algorithms/exchanges.def"
 *        #undef EXCHANGE
 *        #define EXCHANGE(name) &exchange_##name,
 *        const struct exchange_ops *const exchanges[] = {
 *        #include "comm/algorithms/exchanges.def"
 *            NULL};
 *
 * Every ops struct begins with `const char *name`; TABLE_FIND finds a row by it, TABLE_AT by its
 * number, TABLE_NAMES lists them for the user: "a, b, c". */
#ifndef ST_BASE_TABLE_H
#define ST_BASE_TABLE_H

#include <stdio.h>
#include <string.h>

#define TABLE_FIND(table, wanted, found)                                                                               \
    do {                                                                                                               \
        (found) = NULL;                                                                                                \
        for (size_t row_ = 0; (table)[row_]; row_++)                                                                   \
            if (strcmp((table)[row_]->name, (wanted)) == 0) (found) = (table)[row_];                                   \
    } while (0)

/* found: the i-th row, NULL past the end */
#define TABLE_AT(table, i, found)                                                                                      \
    do {                                                                                                               \
        size_t row_ = 0;                                                                                               \
        while (row_ < (i) && (table)[row_]) row_++;                                                                    \
        (found) = (table)[row_];                                                                                       \
    } while (0)

/* One more name to text, which is "" before the first; cut where it does not fit. */
static inline void names_add(char *text, size_t size, const char *name) {
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", name);
}

/* The same of a name that the text may have already, and that is no empty one. A name that does not fit is left out. */
static inline void names_add_new(char *text, size_t size, const char *name) {
    size_t length = strlen(name);
    for (const char *at = text; at && length > 0; at = strstr(at, ", ")) {
        at += at > text ? 2 : 0;
        if (strncmp(at, name, length) == 0 && (!at[length] || strncmp(at + length, ", ", 2) == 0)) return;
    }
    if (length > 0 && strlen(text) + length + 3 <= size) names_add(text, size, name);
}

/* text: an array, "" */
#define TABLE_NAMES(table, text)                                                                                       \
    do {                                                                                                               \
        for (size_t row_ = 0; (table)[row_]; row_++) names_add((text), sizeof(text), (table)[row_]->name);             \
    } while (0)

#endif
