/* peers.h: who talks to whom: pure arithmetic over ranks, for any P >= 1, tested without MPI. */
#ifndef ST_COMM_PEERS_H
#define ST_COMM_PEERS_H

#include <stdbool.h>
#include <stdint.h>

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

/* Two ways to cut `total` things into P parts whose lengths differ by 1 at most; 10 things in 4 parts:
 *
 *        even_part    2 3 2 3        the longer parts are spread; part `at` begins at floor(total at / P)
 *        front_part   3 3 2 2        the longer parts come first
 *
 * They stay two: with the other one, parts would begin elsewhere, so that results had other bits. In hitopk shares of k
 * must fit into shards of n: for k <= n no front_part of k is longer than that of n, which even_part does not promise.
 */
uint64_t even_cut(uint64_t total, int P, int at); /* where even_part `at` begins; total for at = P */
uint64_t even_part(uint64_t total, int P, int at);
uint64_t front_part(uint64_t total, int P, int at);

/* Rotation: in step 1..P-1 of a direct exchange a rank sends to rotate_to and receives from rotate_from, so that no
 * two ranks send to the same one. */
int rotate_to(int P, int rank, int step);
int rotate_from(int P, int rank, int step);

/* Evening out a list that lies in pieces on the ranks: first[r]..first[r+1]-1 on rank r, first: [P+1], first[0] = 0.
 * Afterwards rank r has even_cut(total, P, r)..., in the same order. */
bool uneven(const uint64_t *first, int P, int times); /* the longest piece > times the mean, and moving helps */
struct move {
    uint64_t from, count; /* positions in the whole list */
};
/* What `holder` has of what `target` is to have; count 0 where there is nothing. */
struct move even_move(const uint64_t *first, int P, int holder, int target);

/* -- blocks in bags: SparDL's reduce-scatter and Bruck's all-gather ------------------------------------ */
/* What a rank does in one round. There are P blocks, block b belongs to rank b; a bag is some of them in a row, counted
 * modulo P. In ceil(log2 P) rounds each rank sends P - 1 blocks and receives as many, for any P. */
struct bag_round {
    int to, from;      /* whom it sends to and receives from, both in this round */
    int send, receive; /* the first block of the bag that goes, and of the one that comes */
    int count;         /* blocks in each of the two, at least 1 */
};
/* Reduce-scatter: who receives a bag adds it to what it has of these blocks. Round t sends as far as 2^(l-1-t), l the
 * number of rounds: after it a rank is left with blocks rank .. rank + 2^(l-1-t) - 1, in the end with its own. */
struct bag_round bag_scatter_round(int P, int rank, int round);
/* All-gather: after round t a rank has blocks rank .. rank + 2^(t+1) - 1, in the end all. */
struct bag_round bag_gather_round(int P, int rank, int round);
/* What the rank sends in all rounds of the all-gather where block b has first[b + 1] - first[b] of something; first:
 * [P+1]. It receives all but its own; equal blocks make the two the same. */
uint64_t bag_gather_sent(const uint64_t *first, int P, int rank);
/* Is `block` among the `count` blocks from `first` on? */
bool bag_has(int P, int first, int count, int block);

#endif
