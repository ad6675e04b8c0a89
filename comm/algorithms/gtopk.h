/* gtopk.h: which entries return to the residual after gtopk (--gtopk-residual). */
#ifndef ST_COMM_GTOPK_H
#define ST_COMM_GTOPK_H

enum gtopk_residual {
    GTOPK_CONSERVE, /* the merging rank keeps what it drops; a sender's entries count as delivered */
    GTOPK_PAPER /* as published (Algorithm 4): what is in the final set counts as delivered; loses mass for P >= 3 */
};

#endif
