/* program.c: another program with MPI of its own, which uses the installed library (tests/verbs/cli_library.sh):
 *
 *        program halves      two halves of the ranks, each with an exchange, beside messages of their own
 *        program unstarted   before MPI runs: an error, no end
 *        program lent        the library starts and ends MPI
 *        program inter       a communicator between two groups is refused
 *        program ended       close after MPI_Finalize
 *        program language    in the user's language, which writes numbers with a comma
 *        program refusal     MPI has no communicator left: an error, though it ends programs by its handler
 *
 * Prints "fine" on rank 0, or says what is wrong. */
#include <locale.h>
#include <mpi.h>
#include <sparsetrain.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1000, STEPS = 4 };
static char why[SPARSETRAIN_LINE];
static float grad[N];
static int rank, size;

static void expect(int condition, const char *what) {
    if (condition) return;
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, why);
    exit(1);
}

/* Gradients of whole numbers, dense: the mean of r + i over the ranks of the half. */
static void halves(void) {
    MPI_Comm half;
    sparsetrain *x, *sparse;
    int mine, of, sum_of_ranks = 0;
    float out[N], in[N];
    MPI_Request request[2];
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_rank(half, &mine);
    MPI_Comm_size(half, &of);
    MPI_Allreduce(&rank, &sum_of_ranks, 1, MPI_INT, MPI_SUM, half);
    expect(sparsetrain_open(&x, &half, "dense", N, NULL, why) == SPARSETRAIN_GOOD, "open");
    expect(sparsetrain_open(&sparse, &half, rank % 2 ? "gtopk" : "oktopk", N, "density=0.1", why) == SPARSETRAIN_GOOD,
           "open");
    for (int i = 0; i < N; i++) out[i] = (float)(i * 1000 + rank);
    for (int step = 0; step < STEPS; step++) {
        /* With the tags and between the ranks that an exchange might use, too. */
        MPI_Irecv(in, N, MPI_FLOAT, (mine + of - 1) % of, step, half, &request[0]);
        MPI_Isend(out, N, MPI_FLOAT, (mine + 1) % of, step, half, &request[1]);
        for (int i = 0; i < N; i++) grad[i] = (float)(rank + i);
        expect(sparsetrain_run(x, grad, why) == SPARSETRAIN_GOOD, "run");
        for (int i = 0; i < N; i++) expect(grad[i] == (float)sum_of_ranks / (float)of + (float)i, "a mean is wrong");
        expect(sparsetrain_run(sparse, grad, why) == SPARSETRAIN_GOOD, "run of the sparse one");
        MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
        for (int i = 0; i < N; i++) expect((int)in[i] / 1000 == i, "a message of the program's own");
    }
    sparsetrain_close(x);
    sparsetrain_close(sparse);
    MPI_Comm_free(&half);
}

static void inter(void) {
    MPI_Comm half, between, none = MPI_COMM_NULL;
    sparsetrain *x;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &between);
    expect(sparsetrain_open(&x, &between, "dense", N, NULL, why) == SPARSETRAIN_MISTAKE && !x, "between groups");
    expect(strstr(why, "two groups") != NULL, "between groups");
    expect(sparsetrain_open(&x, &none, "dense", N, NULL, why) == SPARSETRAIN_MISTAKE && strstr(why, "MPI_COMM_NULL"),
           "none");
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
}

/* MPI's, but for one call that fails as the communicator wants it. */
static int refuses;
int MPI_Comm_dup(MPI_Comm from, MPI_Comm *to) {
    if (!refuses) return PMPI_Comm_dup(from, to);
    PMPI_Comm_call_errhandler(from, MPI_ERR_OTHER);
    return MPI_ERR_OTHER;
}

static void refusal(void) {
    MPI_Errhandler after;
    sparsetrain *x;
    refuses = 1;
    expect(sparsetrain_open(&x, NULL, "dense", N, NULL, why) == SPARSETRAIN_SYSTEM && !x, "open");
    expect(strstr(why, "MPI_Comm_dup") != NULL, "open");
    refuses = 0;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &after);
    expect(after == MPI_ERRORS_ARE_FATAL, "the program's own handler is gone");
    expect(sparsetrain_open(&x, NULL, "dense", N, NULL, why) == SPARSETRAIN_GOOD, "open again");
    sparsetrain_close(x);
}

/* One with groups of ranks of its own, and one with a step that was begun. */
static int after_the_end(void) {
    sparsetrain *x, *begun;
    expect(sparsetrain_open(&x, NULL, "hitopk", N, "density=0.1,ranks-per-node=1", why) == SPARSETRAIN_GOOD, "open");
    expect(sparsetrain_open(&begun, NULL, "dense-ovlp", N, NULL, why) == SPARSETRAIN_GOOD, "open");
    expect(sparsetrain_run(x, grad, why) == SPARSETRAIN_GOOD, "run");
    expect(sparsetrain_begin(begun, grad, why) == SPARSETRAIN_GOOD, "begin");
    MPI_Finalize();
    sparsetrain_close(x);
    sparsetrain_close(begun);
    if (rank == 0) puts("fine");
    return 0;
}

static int has_comma(void) {
    return localeconv()->decimal_point[0] == ',';
}

static void language(void) {
    sparsetrain *x;
    expect(setlocale(LC_ALL, "") != NULL && has_comma(), "the language is not there");
    expect(sparsetrain_open(&x, NULL, "gtopk", N, "density=0.25", why) == SPARSETRAIN_GOOD, "open");
    expect(sparsetrain_run(x, grad, why) == SPARSETRAIN_GOOD && has_comma(), "run");
    expect(sparsetrain_set_density(x, 0.125, why) == SPARSETRAIN_GOOD, "set_density");
    sparsetrain_close(x);
    expect(sparsetrain_open(&x, NULL, "gtopk", N, "density=2.5", why) == SPARSETRAIN_MISTAKE, "open");
    expect(strstr(why, "2.5") != NULL && has_comma(), "open");
}

static int lent(void) {
    sparsetrain *x;
    int ended = 0;
    expect(sparsetrain_mpi_init(&rank, &size, why) == SPARSETRAIN_GOOD, "init");
    expect(sparsetrain_mpi_init(NULL, NULL, NULL) == SPARSETRAIN_GOOD, "init again");
    expect(sparsetrain_open(&x, NULL, "topka", N, "density=1", why) == SPARSETRAIN_GOOD, "open");
    for (int i = 0; i < N; i++) grad[i] = (float)rank;
    expect(sparsetrain_run(x, grad, why) == SPARSETRAIN_GOOD && grad[7] == (float)(size - 1) / 2, "run");
    sparsetrain_close(x);
    sparsetrain_mpi_finalize();
    MPI_Finalized(&ended);
    expect(ended, "MPI still runs");
    expect(sparsetrain_mpi_init(NULL, NULL, why) == SPARSETRAIN_MISTAKE, "init after the end");
    expect(strstr(why, "MPI has been finalised") != NULL, "init after the end");
    if (rank == 0) puts("fine");
    return 0;
}

static int unstarted(void) {
    sparsetrain *x = (sparsetrain *)(void *)grad;
    expect(sparsetrain_open(&x, NULL, "dense", N, NULL, why) == SPARSETRAIN_MISTAKE && !x, "open without MPI");
    expect(strstr(why, "MPI is not running: call MPI_Init_thread before") != NULL, "open without MPI");
    puts("fine");
    return 0;
}

int main(int argc, char **argv) {
    const char *part = argc > 1 ? argv[1] : "";
    int granted;
    if (strcmp(part, "unstarted") == 0) return unstarted();
    if (strcmp(part, "lent") == 0) return lent();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &granted);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(part, "halves") == 0) halves();
    if (strcmp(part, "inter") == 0) inter();
    if (strcmp(part, "refusal") == 0) refusal();
    if (strcmp(part, "language") == 0) language();
    if (strcmp(part, "ended") == 0) return after_the_end();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) puts("fine");
    return MPI_Finalize();
}
