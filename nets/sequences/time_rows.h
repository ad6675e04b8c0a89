/* time_rows.h: images whose columns are steps in time, as a row of numbers for each step of each utterance:
 *
 *      x [batch][c][h][steps]        y [steps][batch][c h],  y [t][n][i h + j] = x [n][i][j][t] */
#ifndef ST_NETS_LAYERS_TIME_ROWS_H
#define ST_NETS_LAYERS_TIME_ROWS_H

#include "nets/net_build.h"

int build_time_rows(struct net *net, const char *name, int x);

#endif
