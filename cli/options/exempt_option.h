/* exempt_option.h: --dense-slices: which slices of a model are exchanged whole beside the sparse rest. */
#ifndef ST_CLI_EXEMPT_OPTION_H
#define ST_CLI_EXEMPT_OPTION_H

#include <stdbool.h>

#include "nets/arena.h"

/* text: "none", or words with commas between: the beginning of a part of slices' names (parts are what dots separate:
 * "bias" is in "linear.bias" and "lstm1.bias_ih", "bn" in "stage1.bn2.weight"); "1d", all of one dimension; "small:N",
 * all of fewer than N entries. To *index: the entries of these slices, ascending, fresh memory (NULL where there are
 * none); their number to *count. False: one line in *e: a word that fits no slice, or no slice is left for the sparse
 * exchange. */
bool exempt_parse(const char *text, const struct arena *a, uint32_t **index, size_t *count, struct err *e);

/* Is the slice one of those? index, count: of exempt_parse. */
bool exempt_has(const struct slice *s, const uint32_t *index, size_t count);

#endif
