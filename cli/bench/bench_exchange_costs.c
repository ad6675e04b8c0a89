/* bench_exchange_costs.c: time of local work around and in a step of the bench, see bench_exchange.h.
 *
 * --compute stands for a forward and a backward pass: it only takes time, so that a step is as long as in training.
 * Backward takes twice as long as forward, as it has about twice the products; algorithms that overlap begin with
 * backward and are told at equal intervals how much of the gradient is final.
 *
 * In a simulation local work takes no time of its own. --select-cost and --word-cost give it some, at the ends of the
 * phases in which it is done: of select once a step, and of pack and merge by what has come in since. (A message that
 * comes while the rank waits is charged when it is unpacked.) */
#include "cli/bench/bench_exchange.h"

#include "base/files/place.h"

enum { READY_POINTS = 16 };

bool bench_costs_check(const struct bench_request *r, struct err *e) {
    const char *given = r->select_cost >= 0 ? "--select-cost" : r->word_cost >= 0 ? "--word-cost" : NULL;
    if (!given || comm_simulated()) return true;
    char page[PLACE_MAX];
    return err_set(e, "bench: %s is for simulations, in which local work takes no time of its own (%s); leave it out",
                   given, place_of("docs/simulation.md", page));
}

static uint64_t bytes_received(const struct bench_case *b) {
    return b->comm->counters[TRAFFIC_EXCHANGE].bytes_received;
}

static void spend(void *spender, enum phase left, enum phase next) {
    struct bench_case *b = spender;
    const struct bench_request *r = b->request;
    if (left == PHASE_SELECT && !b->selected) {
        b->selected = true;
        comm_compute(b->comm, r->select_cost);
    }
    if (left == PHASE_PACK || (left == PHASE_MERGE && next != PHASE_PACK)) {
        uint64_t now = bytes_received(b);
        comm_compute(b->comm, r->word_cost * (double)(now - b->charged) / 4);
        b->charged = now;
    }
}

void bench_costs_open(struct bench_case *b) {
    if (!comm_simulated() || (!b->ops->sparse && !b->ops->rounds)) return;
    b->phases.spend = spend;
    b->phases.spender = b;
}

void bench_costs_restart(struct bench_case *b) {
    b->selected = false;
    b->charged = bytes_received(b);
}

void bench_compute(struct bench_case *b) {
    double forward = b->request->compute / 3, backward = b->request->compute - forward;
    if (!(b->request->compute > 0)) return;
    phase_enter(&b->phases, PHASE_COMPUTE);
    comm_compute(b->comm, forward);
    exchange_begin(&b->reducer.exchange, b->grad, b->k);
    size_t points = b->reducer.exchange.begun ? READY_POINTS : 1;
    for (size_t i = 1; i <= points; i++) {
        comm_compute(b->comm, backward / (double)points);
        exchange_ready(&b->reducer.exchange, b->n - b->n * i / points);
    }
    phase_enter(&b->phases, PHASE_OTHER);
}
