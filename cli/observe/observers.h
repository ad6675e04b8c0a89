/* observers.h: what looks on while a run trains and changes nothing of it: recordings, counts and measures that the
 * user asks for. Each is a row of a table in observers.c. A step goes past them at five moments:
 *
 *        observers_begin(r);               // MOMENT_BEGIN: which of them are due is asked here
 *        ... backward, with which communication may run where observers_leave_gradient(r)
 *        observe(r, MOMENT_GRADIENT);
 *        ... clipping and momentum
 *        observe(r, MOMENT_BEFORE);
 *        exchange_run(...)
 *        observe(r, MOMENT_AFTER);
 *        ... the update
 *        observe(r, MOMENT_END);
 *
 * What an observer finds it puts into r->now.row, where the log has a column for it, or into a file or row of its own.
 */
#ifndef ST_CLI_OBSERVERS_H
#define ST_CLI_OBSERVERS_H

#include <stdbool.h>

#include "base/error.h"

struct run;

enum moment {
    MOMENT_BEGIN,    /* nothing has happened; r->now says which exchange and k it will be */
    MOMENT_GRADIENT, /* the gradient is there as backward has left it */
    MOMENT_BEFORE,   /* and as it goes into the exchange */
    MOMENT_AFTER,    /* r->now.sum is there */
    MOMENT_END,      /* the step is done, and r->step counts it */
    MOMENTS
};

struct observer {
    bool (*due)(const struct run *r);   /* in the step that begins; the same on all ranks */
    bool whole;                         /* wants the gradient before any of it is exchanged */
    void (*at[MOMENTS])(struct run *r); /* of a step that is due; collective; NULL: nothing */
};

/* Memory for what was asked for, once there is an exchange. */
void observers_open(struct run *r);
/* --record FILE. Collective; false: it cannot be made. */
bool observers_open_file(struct run *r, struct err *e);
/* Of a file that holds no step nothing stays. */
void observers_close(struct run *r);

void observers_begin(struct run *r);
void observe(struct run *r, enum moment moment);
/* May the gradient of this step be exchanged, layer by layer, while backward still runs? */
bool observers_leave_gradient(const struct run *r);

/* --mllog (mllog.c). */
extern const struct observer mllog_observer;

/* --log-slices (slices.c). */
extern const struct observer slices_observer;
void slices_open(struct run *r);
void slices_close(struct run *r);

#endif
