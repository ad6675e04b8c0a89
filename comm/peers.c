/* peers.c: see peers.h. Nothing here knows MPI or data: every function is a pure function of P, rank and
 * round, so that the shape of an exchange is tested for every P without starting a process. */
#include "comm/peers.h"

int ceil_log2(int P) {
    int m = 0;
    while ((1L << m) < P) m++;
    return m;
}

int floor_power_of_two(int P) {
    int Q = 1;
    while (Q <= P / 2) Q *= 2;
    return Q;
}

/* One fold-in round when P is no power of two, and log2 Q rounds of the tree: together ceil(log2 P). */
int tree_rounds(int P) {
    return ceil_log2(P);
}

struct tree_step tree_reduce_step(int P, int rank, int round) {
    const struct tree_step idle = {TREE_IDLE, -1};
    int Q = floor_power_of_two(P), folds = P != Q;
    if (round < 0 || round >= tree_rounds(P)) return idle;
    if (folds && round == 0) {
        if (rank >= Q) return (struct tree_step){TREE_SEND, rank - Q};
        return rank < P - Q ? (struct tree_step){TREE_RECEIVE, rank + Q} : idle;
    }
    int stride = 1 << (round - folds);
    if (rank >= Q || rank % stride != 0) return idle;
    if (rank % (2 * stride) == 0) return (struct tree_step){TREE_RECEIVE, rank + stride};
    return (struct tree_step){TREE_SEND, rank - stride};
}

struct tree_step tree_bcast_step(int P, int rank, int round) {
    struct tree_step step = tree_reduce_step(P, rank, round);
    if (step.role == TREE_SEND)
        step.role = TREE_RECEIVE;
    else if (step.role == TREE_RECEIVE)
        step.role = TREE_SEND;
    return step;
}
