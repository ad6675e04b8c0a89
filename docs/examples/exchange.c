/* exchange.c: a program of its own whose gradients are exchanged by sparsetrain:
 *
 *        cc exchange.c $(pkg-config --cflags --libs sparsetrain ompi-c) -o exchange && mpirun -np 4 ./exchange gtopk
 *
 * It finds the vector that is nearest to those of all ranks: gradient descent on the sum of |w - target_r|^2 / 2. */
#include <mpi.h>
#include <sparsetrain.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 100000, STEPS = 300 };
static float w[N], target[N], grad[N];

int main(int argc, char **argv) {
    const char *algorithm = argc > 1 ? argv[1] : "oktopk";
    char why[SPARSETRAIN_LINE];
    double far = 0;
    int rank, granted;
    MPI_Comm ranks = MPI_COMM_WORLD;
    sparsetrain *x;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &granted);
    MPI_Comm_rank(ranks, &rank);
    for (int i = 0; i < N; i++) target[i] = (float)((i * 7 + rank * 13) % 101) / 101;
    int status = sparsetrain_open(&x, &ranks, algorithm, N, "density=0.05", why);
    for (int step = 0; step < STEPS && status == SPARSETRAIN_GOOD; step++) {
        for (int i = 0; i < N; i++) grad[i] = w[i] - target[i];
        status = sparsetrain_run(x, grad, why);
        for (int i = 0; i < N; i++) w[i] -= 0.05f * grad[i];
    }
    if (status != SPARSETRAIN_GOOD) {
        fprintf(stderr, "rank %d: %s\n", rank, why);
        MPI_Abort(ranks, status);
    }
    MPI_Allreduce(MPI_IN_PLACE, target, N, MPI_FLOAT, MPI_SUM, ranks);
    int P;
    MPI_Comm_size(ranks, &P);
    for (int i = 0; i < N; i++) far += (w[i] - target[i] / P) * (w[i] - target[i] / P) / N;
    struct sparsetrain_stats s;
    sparsetrain_get_stats(x, &s);
    if (rank == 0) printf("%s: off by %.2g; %.0f bytes sent a step\n", algorithm, far, (double)s.bytes_sent / STEPS);
    sparsetrain_close(x);
    return MPI_Finalize();
}
