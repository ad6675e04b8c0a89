/* sums.c: sums FOLDER N STEPS OPTIONS: the gradients of each step in FOLDER/gradients-RANK, exchanged by gtopk from C:
 * the means are those in FOLDER/means-RANK, to the bit? Prints "fine" on rank 0 (tests/verbs/cli_torch.sh). */
#include <mpi.h>
#include <sparsetrain.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float *read_all(const char *folder, const char *what, int rank, size_t count) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s-%d", folder, what, rank);
    FILE *f = fopen(path, "rb");
    float *all = malloc(count * sizeof *all);
    if (!f || fread(all, sizeof *all, count, f) != count || fgetc(f) != EOF) {
        fprintf(stderr, "%s has not %zu numbers\n", path, count);
        exit(1);
    }
    fclose(f);
    return all;
}

int main(int argc, char **argv) {
    char why[SPARSETRAIN_LINE];
    int rank, wrong = 0, granted;
    sparsetrain *x;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &granted);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 5) return 2;
    const size_t n = strtoul(argv[2], NULL, 10), steps = strtoul(argv[3], NULL, 10);
    float *grad = read_all(argv[1], "gradients", rank, n * steps), *mean = read_all(argv[1], "means", rank, n * steps);
    int status = sparsetrain_open(&x, NULL, "gtopk", n, argv[4], why);
    for (size_t t = 0; t < steps && status == SPARSETRAIN_GOOD; t++) {
        status = sparsetrain_run(x, grad + t * n, why);
        if (memcmp(grad + t * n, mean + t * n, n * sizeof *grad) != 0) wrong++;
    }
    if (status != SPARSETRAIN_GOOD) fprintf(stderr, "rank %d: %s\n", rank, why);
    if (wrong > 0) fprintf(stderr, "rank %d: %d of %zu steps have other bits\n", rank, wrong, steps);
    if (status != SPARSETRAIN_GOOD || wrong > 0) MPI_Abort(MPI_COMM_WORLD, 1);
    sparsetrain_close(x);
    if (rank == 0) puts("fine");
    free(grad);
    free(mean);
    return MPI_Finalize();
}
