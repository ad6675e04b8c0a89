/* leg.h: a leg of a run: the steps from one on that all take as many samples, over all ranks. A run has one, until it
 * goes on with another batch over all of them (--resume with --batch). What goes by epochs counts samples, legs one
 * after the other: run_epoch. A checkpoint has the leg that it is in. */
#ifndef ST_CLI_LEG_H
#define ST_CLI_LEG_H

#include <stdint.h>

struct leg {
    uint64_t step;        /* steps before it */
    uint64_t position;    /* samples, or windows from random places, before it; of streams of a text epochs */
    double before;        /* epochs in a step of the leg before */
    uint32_t first_ranks; /* ranks that the run began on, by which the warm-up of its rate goes */
    uint32_t resized;     /* times that the run has gone on with other ranks or another batch */
};

#endif
