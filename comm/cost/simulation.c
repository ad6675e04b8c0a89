/* simulation.c: see simulation.h. */
#include "comm/cost/simulation.h"

#include <math.h>

const struct exchange_simulation *simulation_of(const struct exchange_ops *ops) {
    static const struct exchange_simulation gathering = EXCHANGE_SIMULATION_GATHERS;
    return ops->simulation.rank > 0 ? &ops->simulation : &gathering;
}

/* A rank's own part of the program, 2 MB; residual and gradient, 8 bytes an entry as arrays, 200 for each of its k as
 * lists; with a plain sum 20 more an entry; and what it holds of the k entries of all ranks. */
double simulation_memory(int P, double n, double density, enum simulation_held held,
                         const struct exchange_ops *const *ops, size_t count, bool checked) {
    double gathered = 0, entry = 0, own = 0;
    for (size_t i = 0; i < count; i++) {
        if (!ops[i]->sparse) continue;
        const struct exchange_simulation *s = simulation_of(ops[i]);
        gathered = fmax(gathered, held == SIMULATION_LISTS ? s->held_lists : s->held_arrays);
        entry = held == SIMULATION_ARRAYS ? 8 : 0;
        own = held == SIMULATION_LISTS ? 200 : 0;
    }
    return P * (2e6 + n * (entry + (checked ? 20 : 0) + density * (own + gathered * P)));
}

/* P (rank + P peer + k (entry + log2(P) entry_round + P entry_peer)) */
double simulation_seconds(const struct exchange_ops *ops, int P, double k) {
    const struct exchange_simulation *s = simulation_of(ops);
    return P * (s->rank + P * s->peer + k * (s->entry + log2(P) * s->entry_round + P * s->entry_peer));
}
