/* grammar.h: a stochastic regular grammar: a source of words whose entropy is known.
 *
 * The words are divided into classes, each word in one, with integer weights within its class. In state s the source
 * chooses one of the arcs of s, (class c, share, next state), with probability share / (sum of shares of s), then a
 * word of c with probability weight / (sum of weights of c), and goes to the next state. No state has two arcs of one
 * class, so state and word together tell the next state: the source is unifilar. Who knows where a text began knows
 * the state at every word, and then nothing of the future is left uncertain but the draws themselves:
 *
 *        H = sum over s of p(s) H(s),   H(s) = - sum over arcs a of q(a) ln q(a) + sum over arcs a of q(a) H(class of
 * a)
 *
 * p the stationary distribution of the states [nats per word]. No model can have a lower cross-entropy in the long run.
 * Shannon, "A mathematical theory of communication", 1948, section 7 (H = sum of P_i H_i); theorem 5 there says that
 * the entropy of long blocks per symbol comes down to it; Cover and Thomas, "Elements of Information Theory",
 * chapter 4 (entropy rates of Markov chains).
 *
 *        struct grammar *g = mem_zalloc(1, sizeof *g, "a grammar");
 *        int letters = grammar_class(g, 2, (const uint32_t[]){3, 1});       // words 0 and 1
 *        int stop = grammar_class(g, 1, (const uint32_t[]){1});             // word 2
 *        grammar_arc(g, 0, letters, 0, 9), grammar_arc(g, 0, stop, 1, 1);   // state 0: a letter, or once in 10 the end
 *        grammar_arc(g, 1, letters, 0, 1);                                  // state 1: a letter follows
 */
#ifndef ST_DATA_GRAMMAR_H
#define ST_DATA_GRAMMAR_H

#include <stdint.h>

#include "base/rng.h"

enum { GRAMMAR_STATES = 256, GRAMMAR_CLASSES = 64, GRAMMAR_ARCS = 16, GRAMMAR_WORDS = 4096 };

struct word_class {
    int first, words; /* the words first .. first + words - 1 */
};

struct arc {
    int class, next;
    uint32_t share;
};

struct grammar_state {
    int arcs;
    uint32_t shares; /* of all arcs */
    struct arc arc[GRAMMAR_ARCS];
};

/* All zero: the empty grammar. States are those that arcs leave or reach, 0 .. states - 1. */
struct grammar {
    int states, classes, words;
    struct word_class class[GRAMMAR_CLASSES];
    struct grammar_state state[GRAMMAR_STATES];
    uint32_t upto[GRAMMAR_WORDS];    /* the weights of the words of its class up to this one, it included */
    uint8_t class_of[GRAMMAR_WORDS]; /* of a word */
};

/* A new class of the next so many words, weight[words] each at least 1. Returns its number. */
int grammar_class(struct grammar *g, int words, const uint32_t *weight);

/* From `state`, a word of this class leads to `next`. */
void grammar_arc(struct grammar *g, int state, int class, int next, uint32_t share);

/* p[states]: the share of the time that the source spends in each state. State 0 must be one that it comes back to from
 * every state. */
void grammar_stationary(const struct grammar *g, double *p);

/* [nats] of a word drawn from a class; of the next word in a state; of a word of the source (the formula above). */
double grammar_class_entropy(const struct grammar *g, int class);
double grammar_state_entropy(const struct grammar *g, int state);
double grammar_entropy(const struct grammar *g);

/* Draws the next word and moves the state. Integers alone: every machine draws the same. */
int32_t grammar_draw(const struct grammar *g, int *state, struct rng *r);

/* -ln of the probability of this word in this state [nats], and moves the state; infinity, where the word cannot
 * stand, and the state stays. */
double grammar_cost(const struct grammar *g, int *state, int32_t word);

#endif
