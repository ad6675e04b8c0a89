/* topka.h: the collective of topka, for the rows that differ from it only in their selector (gaussiank). */
#ifndef ST_COMM_TOPKA_H
#define ST_COMM_TOPKA_H

#include "comm/exchange.h"

void topka_open(struct exchange *x);
bool topka_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum);
void topka_close(struct exchange *x);
double topka_max_words(const struct cost_case *c);
void topka_cost(const struct cost_case *c, struct cost *cost);

#endif
