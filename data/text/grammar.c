/* grammar.c: see grammar.h. */
#include "data/text/grammar.h"

#include <math.h>

#include "base/error.h"
#include "base/mem.h"

int grammar_class(struct grammar *g, int words, const uint32_t *weight) {
    uint64_t sum = 0;
    if (g->classes == GRAMMAR_CLASSES || words < 1 || words > GRAMMAR_WORDS - g->words)
        die("a grammar has no room for class %d of %d words", g->classes, words);
    g->class[g->classes] = (struct word_class){g->words, words};
    for (int i = 0; i < words; i++) {
        sum += weight[i];
        if (weight[i] < 1 || sum > UINT32_MAX) die("the weights of class %d are wrong at word %d", g->classes, i);
        g->upto[g->words] = (uint32_t)sum;
        g->class_of[g->words++] = (uint8_t)g->classes;
    }
    return g->classes++;
}

void grammar_arc(struct grammar *g, int state, int class, int next, uint32_t share) {
    if (state < 0 || next < 0 || state >= GRAMMAR_STATES || next >= GRAMMAR_STATES || class < 0 || class >= g->classes)
        die("no arc can go from state %d to %d with class %d", state, next, class);
    struct grammar_state *s = &g->state[state];
    for (int i = 0; i < s->arcs; i++)
        if (s->arc[i].class == class) die("two arcs of state %d have class %d", state, class);
    if (s->arcs == GRAMMAR_ARCS || share < 1 || share > UINT32_MAX - s->shares)
        die("state %d has no room for another arc of share %u", state, share);
    s->arc[s->arcs++] = (struct arc){class, next, share};
    s->shares += share;
    if (state >= g->states) g->states = state + 1;
    if (next >= g->states) g->states = next + 1;
}

static double probability(const struct grammar_state *s, int arc) {
    return (double)s->arc[arc].share / s->shares;
}

/* Elimination without a subtraction, so that no digits cancel (Grassmann, Taksar and Heyman, "Regenerative analysis
 * and steady state distributions for Markov chains", Operations Research 33, 1985): the last state n is taken out of
 * the chain, and a way through it becomes a direct one,
 *        a(i, j) += a(i, n) a(n, j) / (sum over k < n of a(n, k)),
 * until state 0 is alone; then p(n) = sum over i < n of p(i) a(i, n) / (that sum), from 0 up. */
void grammar_stationary(const struct grammar *g, double *p) {
    size_t states = (size_t)g->states;
    double *a = mem_zalloc(states * states, sizeof *a, "the chain of a grammar"), total = 0; /* [states][states] */
    for (size_t s = 0; s < states; s++)
        for (int i = 0; i < g->state[s].arcs; i++)
            a[s * states + (size_t)g->state[s].arc[i].next] += probability(&g->state[s], i);
    for (size_t n = states; n-- > 1;) {
        double leaves = 0;
        for (size_t k = 0; k < n; k++) leaves += a[n * states + k];
        if (!(leaves > 0)) die("a grammar does not come back to state 0 from state %zu", n);
        for (size_t i = 0; i < n; i++) {
            double through = a[i * states + n] /= leaves;
            for (size_t j = 0; through > 0 && j < n; j++) a[i * states + j] += through * a[n * states + j];
        }
    }
    for (size_t n = 0; n < states; n++) {
        p[n] = n == 0;
        for (size_t i = 0; i < n; i++) p[n] += p[i] * a[i * states + n];
        total += p[n];
    }
    for (size_t n = 0; n < states; n++) p[n] /= total;
    mem_free(a);
}

static uint32_t weight_of(const struct grammar *g, int word) {
    int first = g->class[g->class_of[word]].first;
    return word == first ? g->upto[word] : g->upto[word] - g->upto[word - 1];
}

static uint32_t weights_of(const struct grammar *g, int class) {
    return g->upto[g->class[class].first + g->class[class].words - 1];
}

double grammar_class_entropy(const struct grammar *g, int class) {
    struct word_class c = g->class[class];
    double sum = 0;
    for (int word = c.first; word < c.first + c.words; word++) {
        double q = (double)weight_of(g, word) / weights_of(g, class);
        sum -= q * log(q);
    }
    return sum;
}

double grammar_state_entropy(const struct grammar *g, int state) {
    const struct grammar_state *s = &g->state[state];
    double sum = 0;
    for (int i = 0; i < s->arcs; i++) {
        double q = probability(s, i);
        sum += q * (grammar_class_entropy(g, s->arc[i].class) - log(q));
    }
    return sum;
}

double grammar_entropy(const struct grammar *g) {
    double *p = mem_alloc((size_t)g->states, sizeof *p, "the states of a grammar"), sum = 0;
    grammar_stationary(g, p);
    for (int s = 0; s < g->states; s++) sum += p[s] * grammar_state_entropy(g, s);
    mem_free(p);
    return sum;
}

int32_t grammar_draw(const struct grammar *g, int *state, struct rng *r) {
    const struct grammar_state *s = &g->state[*state];
    const struct arc *arc = s->arc;
    for (uint32_t at = rng_below(r, s->shares); at >= arc->share; arc++) at -= arc->share;
    struct word_class c = g->class[arc->class];
    int low = c.first, high = c.first + c.words - 1; /* the first word whose sum of weights is above `at` */
    uint32_t at = rng_below(r, g->upto[high]);
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (g->upto[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    *state = arc->next;
    return low;
}

double grammar_cost(const struct grammar *g, int *state, int32_t word) {
    const struct grammar_state *s = &g->state[*state];
    if (word < 0 || word >= g->words) return INFINITY;
    for (int i = 0; i < s->arcs; i++) {
        if (s->arc[i].class != g->class_of[word]) continue;
        *state = s->arc[i].next;
        return -log(probability(s, i) * weight_of(g, word) / weights_of(g, s->arc[i].class));
    }
    return INFINITY;
}
