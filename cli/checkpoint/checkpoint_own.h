/* checkpoint_own.h: what each rank of a run has of its own, as the sections of rank<r>.ckpt; and the hashes beside what
 * a file holds. */
#ifndef ST_CLI_CHECKPOINT_OWN_H
#define ST_CLI_CHECKPOINT_OWN_H

#include "cli/checkpoint/checkpoint_files.h"
#include "cli/observe/replicas.h"

enum { OWN_MAX = 10 };

/* The state of its net and its exchange, those of the streams it reads, its residual and
 * the velocity before the exchange; where the replicas drift apart also its parameters and optimiser. All in fresh host
 * memory, as sections. */
struct own {
    struct section section[OWN_MAX];
    void *memory[OWN_MAX];
    const struct device_ops *device[OWN_MAX]; /* of a section that is an array of a device, else NULL */
    float *array[OWN_MAX];
    size_t count;
};

/* Not taken over by a run that goes on otherwise than it was. */
enum own_less {
    OWN_ALL = 0,
    OWN_NO_STREAMS = 1,  /* they are cut anew */
    OWN_NO_RESIDUALS = 2 /* nor velocities, nor what exchange and selectors know of them */
};

/* Room for all that this run has, less some of it. */
void own_open(struct run *r, unsigned less, struct own *own);
void own_close(struct own *own);
/* The memory of a section; NULL: there is none. */
void *own_find(const struct own *own, const char *name);
/* From the run to the sections, or (load) back; all but the position. m: what of it is in host memory already. */
void own_move(struct run *r, struct own *own, const struct replica *m, bool load);
/* All numbers are such as a run leaves; what the exchange has is looked at once it is in its place. */
bool own_check(const struct run *r, const struct own *own, const char *path, struct err *e);

/* The hashes that a file has of what was written to it; the format had none before version 5. */
struct written {
    bool known, knows_round; /* of what the last round left, model.ckpt alone has one, where there are rounds */
    struct replica_hash hash;
    uint64_t round;
};

bool written_find(const struct container *c, const char *section, struct written *w, struct err *e);
/* A file whose own numbers are not those that its hashes are of was made so, or spoilt in the memory that wrote it.
 * param, moments: as in replicas.h. */
bool written_holds(const struct run *r, const struct written *w, const float *param, const float *moments,
                   const char *path, struct err *e);

#endif
