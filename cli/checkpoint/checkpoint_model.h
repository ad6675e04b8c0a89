/* checkpoint_model.h: the model that a checkpoint holds, without the run that wrote it: parameters and running
 * statistics as one model of it, for an export, an evaluation, or another run's start.
 *
 *        struct checkpoint_model m;
 *        if (!checkpoint_model_open(&m, &checkpoint_export, "runs/first", &e)) ...      // one process
 *        m.layout.slice[0].name, m.param + m.layout.slice[0].offset ...
 *        checkpoint_model_close(&m);
 *
 * Each rank of the run had running statistics of its own; they are averaged, as an evaluation does first of all. So are
 * the parameters where the replicas had drifted apart (fedavg, --local-update) since their last average. */
#ifndef ST_CLI_CHECKPOINT_MODEL_H
#define ST_CLI_CHECKPOINT_MODEL_H

#include "cli/checkpoint/checkpoint_files.h"
#include "cli/export/model_layout.h"
#include "comm/comm.h"
#include "nets/net.h"

struct checkpoint_model {
    struct checkpoint at;
    struct position position; /* of rank 0 of the run */
    bool drifted;             /* param is an average of what the ranks had */
    char *layout_text;
    struct model_layout layout;
    bool numbers_words;  /* of a text or of pairs, and by a program that kept */
    uint32_t vocabulary; /* the CRC-32 of the vocabulary's lines */
    float *param;        /* [layout.n] */
    float *state;        /* [layout.n_state] */
};

bool checkpoint_model_open(struct checkpoint_model *m, const struct checkpoint_use *use, const char *dir,
                           struct err *e);
void checkpoint_model_close(struct checkpoint_model *m);

/* The same on every rank of c: rank 0 reads. Collective. */
bool checkpoint_model_open_all(struct checkpoint_model *m, struct comm *c, const struct checkpoint_use *use,
                               const char *dir, struct err *e);

/* What one rank of the run had, in place of the averages: into the same arrays. */
bool checkpoint_model_rank(struct checkpoint_model *m, int rank, struct err *e);

/* Into a net that has the same slices, for data (d; --data `data`) whose words have the same numbers: other words, or
 * the same ones in another order, would be other scores without a word. False: they differ, *e says in what. */
bool checkpoint_model_put(const struct checkpoint_model *m, struct net *net, const struct dataset *d, const char *data,
                          struct err *e);

#endif
