/* peers.c: see peers.h. Nothing here knows MPI or data: every function is a pure function of P, rank and
 * round, so that the shape of an exchange is tested for every P without starting a process. */
#include "comm/parts/peers.h"

#include <stdint.h>

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

/* total at / P without overflow for any total */
uint64_t even_cut(uint64_t total, int P, int at) {
    uint64_t parts = (uint64_t)P, j = (uint64_t)at;
    return total / parts * j + total % parts * j / parts;
}

uint64_t even_part(uint64_t total, int P, int at) {
    return even_cut(total, P, at + 1) - even_cut(total, P, at);
}

uint64_t front_part(uint64_t total, int P, int at) {
    return total / (uint64_t)P + ((uint64_t)at < total % (uint64_t)P);
}

int rotate_to(int P, int rank, int step) {
    return (rank + step) % P;
}

int rotate_from(int P, int rank, int step) {
    return (rank - step + P) % P;
}

bool uneven(const uint64_t *first, int P, int times) {
    uint64_t total = first[P], parts = (uint64_t)P, most = 0;
    for (int r = 0; r < P; r++)
        if (first[r + 1] - first[r] > most) most = first[r + 1] - first[r];
    return most * parts > (uint64_t)times * total && most > (total + parts - 1) / parts;
}

struct move even_move(const uint64_t *first, int P, int holder, int target) {
    uint64_t from = even_cut(first[P], P, target), to = even_cut(first[P], P, target + 1);
    if (from < first[holder]) from = first[holder];
    if (to > first[holder + 1]) to = first[holder + 1];
    return (struct move){from, from < to ? to - from : 0};
}

/* Reduce-scatter: before the round a rank has `left` blocks, its own first, and keeps the first `far` of them. It
 * sends the others, which begin `far` blocks after its own, to the rank `far` places after it; the bag that it
 * receives begins with its own block. */
struct bag_round bag_scatter_round(int P, int rank, int round) {
    int rounds = ceil_log2(P), far = 1 << (rounds - 1 - round), left = round == 0 ? P : 2 * far;
    int ahead = (rank + far) % P, behind = (rank + P - far) % P;
    return (struct bag_round){.to = ahead, .from = behind, .send = ahead, .receive = rank, .count = left - far};
}

/* Before the round a rank has `far` blocks, its own first, and gets those that follow; at most P in all. */
struct bag_round bag_gather_round(int P, int rank, int round) {
    int far = 1 << round, count = far < P - far ? far : P - far;
    int ahead = (rank + far) % P, behind = (rank + P - far) % P;
    return (struct bag_round){.to = behind, .from = ahead, .send = rank, .receive = ahead, .count = count};
}

uint64_t bag_gather_sent(const uint64_t *first, int P, int rank) {
    uint64_t sent = 0;
    for (int round = 0; round < ceil_log2(P); round++) {
        int end = rank + bag_gather_round(P, rank, round).count;
        sent += end <= P ? first[end] - first[rank] : first[P] - first[rank] + first[end - P];
    }
    return sent;
}

bool bag_has(int P, int first, int count, int block) {
    return (block - first + P) % P < count;
}
