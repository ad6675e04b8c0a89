/* step_row.c: see step_row.h. */
#include "cli/observe/step_row.h"

#include <math.h>
#include <string.h>

void step_row_begin(struct run *r) {
    struct step *s = &r->now;
    s->traffic_before = r->comm->counters[TRAFFIC_EXCHANGE];
    s->row = (struct row){.density = s->density,
                          .k = (double)s->k,
                          .lr = s->lr,
                          .selected = NAN,
                          .threshold = NAN,
                          .exact_threshold = NAN,
                          .xi = NAN,
                          .xi_denominator = NAN};
}

/* What was selected, and by which threshold. */
static void take_sum(struct run *r) {
    const struct exchange_sum *sum = &r->now.sum;
    struct row *row = &r->now.row;
    row->local_nnz = (double)sum->local_nnz;
    row->exempt_nnz = sum->exempt ? (double)sum->exempt->nnz : 0;
    row->global_nnz = (double)sum->global_nnz;
    row->mass_lost = sum->mass_lost;
    row->hidden_seconds = sum->hidden_seconds;
    row->global_threshold = (double)sum->threshold;
    row->global_evaluated = sum->evaluated;
    if (!r->path.reducer.selector || !r->now.exchange->ops->selects) return;
    const struct selector_stats *stats = &r->path.reducer.selector->stats;
    row->selected = (double)stats->found;
    row->threshold = (double)stats->threshold;
    row->evaluated = stats->evaluated;
}

static void take_traffic(struct run *r) {
    const struct comm_counters *before = &r->now.traffic_before, *after = &r->comm->counters[TRAFFIC_EXCHANGE];
    struct row *row = &r->now.row;
    row->bytes_sent = (double)(after->bytes_sent - before->bytes_sent);
    row->bytes_received = (double)(after->bytes_received - before->bytes_received);
    row->messages_sent = (double)(after->messages_sent - before->messages_sent);
    row->messages_received = (double)(after->messages_received - before->messages_received);
}

void step_row_end(struct run *r) {
    struct row *row = &r->now.row;
    row->step = (double)r->step;
    row->epoch = run_epoch(r, r->step);
    take_sum(r);
    take_traffic(r);
    phase_enter(&r->phases, PHASE_OTHER);
    for (int i = 0; i < PHASE_COUNT; i++) {
        row->phase[i] = r->phases.seconds[i];
        row->seconds += r->phases.seconds[i];
    }
    memset(r->phases.seconds, 0, sizeof r->phases.seconds);
}
