/* peers.h: who talks to whom: pure arithmetic over ranks, for any P >= 1, tested without MPI. */
#ifndef ST_COMM_PEERS_H
#define ST_COMM_PEERS_H

#include <stdbool.h>

int ceil_log2(int P);          /* smallest m with 2^m >= P; 0 for P = 1 */
int floor_power_of_two(int P); /* largest power of two <= P */

/* What a rank does in one round of gTop-k's reduction tree (gTop-k Algorithm 3, made fit for any P).
 * Round 0 folds ranks Q..P-1, Q = floor_power_of_two(P), into ranks 0..P-Q-1 (skipped when P = Q);
 * then log2 Q rounds of a binomial tree with strides 1, 2, 4, ...; the result is at rank 0. */
enum tree_role { TREE_IDLE, TREE_SEND, TREE_RECEIVE };
struct tree_step {
    enum tree_role role;
    int peer; /* -1 when idle */
};
int tree_rounds(int P); /* = ceil_log2(P) */
struct tree_step tree_reduce_step(int P, int rank, int round);
/* The broadcast is the same tree backwards: round tree_rounds(P)-1 first, roles swapped. */
struct tree_step tree_bcast_step(int P, int rank, int round);

#endif
