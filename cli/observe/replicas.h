/* replicas.h: what ranks hold alike, looked at: the parameters, and the optimiser's state that steps them. Where the
 * replicas drift apart (fedavg, --local-update) that is the parameters right after an average of them, or, where only
 * nodes drift, both among the ranks of a node. Where they train in rounds (rounds.h), what the last round left is alike
 * at every step, and the parameters after the next follow from it.
 *
 *        struct replica m;
 *        replica_open(&m, r);
 *        replicas_compare(r, &m, "");   // m.hash: what a checkpoint keeps, and --resume holds against what it has read
 *        replica_close(&m);
 */
#ifndef ST_CLI_REPLICAS_H
#define ST_CLI_REPLICAS_H

#include "cli/train/run.h"

/* Of this rank, in host memory: where they lie, or copies; and their hashes. */
struct replica {
    const float *param, *moments; /* [r->model.n], [r->model.optimiser.n_state] */
    float *copies[2];
    struct replica_hash hash;
    uint64_t round; /* hash of what the last round left; 0: there are none */
};

/* param: [n], moments: [n_state], host memory. */
struct replica_hash replica_hash_of(const float *param, size_t n, const float *moments, size_t n_state);

void replica_open(struct replica *m, struct run *r);
void replica_close(struct replica *m);

/* Collective, once a step at most. Where ranks differ that must not the job ends (EXIT_SYSTEM), naming step and ranks;
 * `then` is added to that line. */
void replicas_compare(struct run *r, const struct replica *m, const char *then);

/* Collective, of a run that goes on. Where nodes drift, do the ranks that share one now hold alike what they must? If
 * they did not share it when the checkpoint `from` was written they do not: false on all ranks. */
bool replicas_fit_nodes(struct run *r, const char *from, struct err *e);

/* Of what rounds_saved gives. */
uint64_t replica_round_hash(struct run *r);

/* What was read from a checkpoint, on this rank, must be what was written. from: the checkpoint's name. */
bool replica_is(struct run *r, const struct replica_hash *written, const char *from, struct err *e);
bool replica_round_is(struct run *r, uint64_t written, const char *from, struct err *e);

#endif
