/* cost.h: the alpha-beta model: what a step of each algorithm costs on a network, before anything is run.
 *
 *        seconds = alphas alpha + words beta + node_alphas node_alpha + node_words node_beta
 *
 * alpha: start-up time of a message [s]; beta: time of a 4-byte word [s]; the node_ ones inside a node, where an
 * algorithm tells the two apart (hitopk, torus2d; all others see one flat network). Counted along the longest path,
 * in coo32 words, as the papers do (gTop-k Table I, Ok-Topk Table 1). Selecting, packing and merging are not in it;
 * what they take on a machine is charged beside it.
 *
 *        ops->cost(&c, &cost);                             // as the papers have it
 *        double work = cost_local(&cost, wire, n, &local); // what the same step takes on a rank besides
 *        work += cost_sums(&cost, wire, &local, &net);     // and dense additions beyond the transfers that hide them
 *        cost_in_format(&cost, wire, &cost);               // the same step with --wire
 *        double seconds = cost_seconds(&cost, &net) + work;
 */
#ifndef ST_COMM_COST_H
#define ST_COMM_COST_H

#include <stddef.h>

#include "base/error.h"
#include "base/option.h"
#include "comm/wire/wire.h"

/* The sparse vectors among the words of a cost line: so many messages of so many entries, whose indices lie so densely
 * in the range of a message; 2 messages entries words of coo32. Means, so no whole numbers. Of these messages one rank
 * after the other on this path packs so many, and unpacks and merges so many: what goes to all is packed once, what is
 * passed on is not unpacked. */
struct cost_entries {
    double messages, entries, density;
    double packed, unpacked;
};

/* Dense values that travel in 2 bytes each where a format has a form for them, and what is more then: start-ups, and
 * values that a rank packs, and unpacks and adds. */
struct cost_dense {
    double words, alphas, packed, unpacked;
};

struct cost {
    double alphas, words;           /* between nodes, or everywhere for a flat algorithm */
    double node_alphas, node_words; /* inside a node */
    /* What a wire format changes: of words and of node_words; no messages: nothing of it travels in a format. */
    struct cost_entries sparse, node_sparse;
    /* The same of words where indices and values travel apart: messages of indices alone, messages entries words of
     * coo32, and so many values; rounded: by one rank after the other, where the format does. */
    struct cost_entries indices;
    double values, rounded;
    struct cost_dense dense, node_dense;
    double coded; /* values that a rank codes, or decodes, in a way of the row's own */
    /* Of the words those that are added up as they come in, while the next ones travel: the first half of a dense sum.
     * In a format that halves them they are unpacked besides, which is in `dense`. */
    double sums, node_sums;
    /* What is added where the length of a message does not follow from the number of its entries. */
    double size_alphas, size_words;
};

/* Entries [from, from + rows cols) of the gradient are one slice, a layer's weights as a matrix by rows, whatever their
 * dimensions are; a bias has one row. */
struct exchange_slice {
    size_t from, rows, cols;
};

/* What a cost depends on. */
struct cost_case {
    size_t n, k;
    int P, ranks_per_node;              /* ranks_per_node divides P */
    const struct exchange_slice *slice; /* [slices] of these n entries, for rows that go by them; `from` is not read */
    size_t slices;                      /* 0: not known, all of it is taken for one */
    struct option_values options;       /* as in exchange_setup */
};

/* What local work takes on one rank, for one algorithm in one format [s]. Measured parts say what an entry takes, a
 * table of scripts/measure-costs.sh what a word does; what is not said is 0. */
struct local_cost {
    double select;        /* accumulating and selecting, for each entry of the gradient that a rank selects from */
    double pack, unpack;  /* rounding and packing, unpacking and merging, for each entry of a sparse vector */
    double round, decode; /* rounding alone, of pack, and unpacking alone, of unpack */
    double add;           /* for each word that comes in outside of sparse vectors */
    double half;          /* rounding and packing a dense value of 2 bytes, or unpacking and adding it */
    double code;          /* coding or decoding a value in the row's own way */
    double sum;           /* adding a dense value that has come in */
    double word;          /* all but selection, for each word that comes in, in the format */
};

struct network {
    char name[64];
    double alpha, beta;           /* [s], [s/word]; >= 0 */
    double node_alpha, node_beta; /* inside a node */
    char source[128];             /* where the numbers come from */
};

double cost_seconds(const struct cost *c, const struct network *net);

/* *to: what the step of *coo32 (a row's cost line) costs with this format, in words of 4 bytes. to may be coo32. */
void cost_in_format(const struct cost *coo32, const struct wire_ops *wire, struct cost *to);

/* Words that come in on this path and are worked on there: all but those that are passed on. wire NULL: coo32. */
double cost_received(const struct cost *coo32, const struct wire_ops *wire);

/* Seconds of local work on the path of this step, with a rank that selects from n entries; wire NULL: coo32. */
double cost_local(const struct cost *coo32, const struct wire_ops *wire, double n, const struct local_cost *local);

/* Seconds by which the additions of dense sums outlast the transfers beside which they run: a pipelined sum waits for
 * whichever takes longer. net NULL: they are hidden. */
double cost_sums(const struct cost *coo32, const struct wire_ops *wire, const struct local_cost *local,
                 const struct network *net);

/* The built-in networks, NULL-name-terminated: 1gbe (gTop-k's), 10gbe, 25gbe, 100gbe, aries (Ok-Topk's). */
extern const struct network networks[];

/* The built-in one of this name, or the one in the file of this name (written by network_write; lines "key value",
 * # comments). A user's mistake: false, one line in *e. */
bool network_find(const char *name, struct network *net, struct err *e);
bool network_write(const char *path, const struct network *net, const char *comment, struct err *e);

#endif
