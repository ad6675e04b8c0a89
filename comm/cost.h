/* cost.h: the alpha-beta model: what a step of each algorithm costs on a network, before anything is run.
 *
 *        seconds = alphas alpha + words beta + node_alphas node_alpha + node_words node_beta
 *
 * alpha: start-up time of a message [s]; beta: time of a 4-byte word [s]; the node_ ones inside a node, where an
 * algorithm tells the two apart (hitopk, torus2d; all others see one flat network). Counted along the longest path,
 * in coo32 words, as the papers do (gTop-k Table I, Ok-Topk Table 1). Selection and merging are not in it.
 */
#ifndef ST_COMM_COST_H
#define ST_COMM_COST_H

#include <stddef.h>

#include "base/error.h"

struct cost {
    double alphas, words;           /* between nodes, or everywhere for a flat algorithm */
    double node_alphas, node_words; /* inside a node */
};

/* What a cost depends on. */
struct cost_case {
    size_t n, k;
    int P, ranks_per_node; /* ranks_per_node divides P */
};

struct network {
    char name[64];
    double alpha, beta;           /* [s], [s/word]; >= 0 */
    double node_alpha, node_beta; /* inside a node */
    char source[128];             /* where the numbers come from */
};

double cost_seconds(const struct cost *c, const struct network *net);

/* The built-in networks, NULL-name-terminated: 1gbe (gTop-k's), 10gbe, 25gbe, 100gbe, aries (Ok-Topk's). */
extern const struct network networks[];

/* The built-in one of this name, or the one in the file of this name (written by network_write; lines "key value",
 * # comments). A user's mistake: false, one line in *e. */
bool network_find(const char *name, struct network *net, struct err *e);
bool network_write(const char *path, const struct network *net, const char *comment, struct err *e);

#endif
