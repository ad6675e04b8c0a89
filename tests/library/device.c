/* device.c: another program, which works with a GPU of its own accord and has the installed library exchange what lies
 * there (tests/verbs/cli_library.sh). CUDA is the file that its second argument names, its runtime or the tests'
 * stand-in:
 *
 *        device opens                opens with device=cuda: "fine", or what the library says
 *        device order CUDA           the caller's streams, before and after each call, against the same on the host
 *        device pointers CUDA        memory of the wrong device, streams that do not serve
 *        device second CUDA          the second of two GPUs, while the first is the current one
 *
 * Prints "fine" on rank 0, or says what is wrong. */
#include <dlfcn.h>
#include <mpi.h>
#include <sparsetrain.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1009, STEPS = 4, GROUPS = 3, TO_DEVICE = 1, TO_HOST = 2, NON_BLOCKING = 1 };
static const size_t group[GROUPS] = {0, 300, 700};
static char why[SPARSETRAIN_LINE];
static int rank, size;

/* Of cuda_runtime_api.h, which need not be here. */
static struct {
    int (*Malloc)(void **, size_t), (*Free)(void *), (*HostAlloc)(void **, size_t, unsigned), (*FreeHost)(void *);
    int (*MemcpyAsync)(void *, const void *, size_t, int, void *);
    int (*StreamCreateWithFlags)(void **, unsigned), (*StreamSynchronize)(void *), (*StreamDestroy)(void *);
    int (*StreamBeginCapture)(void *, int), (*StreamEndCapture)(void *, void **), (*GraphDestroy)(void *);
    int (*GetDevice)(int *), (*SetDevice)(int);
} cuda;

static void expect(int condition, const char *what) {
    if (condition) return;
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
}
static void good(int status) {
    expect(status == SPARSETRAIN_GOOD, "an error");
}
static void refused(int status, const char *text) {
    expect(status == SPARSETRAIN_MISTAKE && strstr(why, text) != NULL, text);
}

static void load_cuda(const char *file) {
    const struct {
        const char *name;
        void *at;
    } all[] = {{"cudaMalloc", &cuda.Malloc},
               {"cudaFree", &cuda.Free},
               {"cudaHostAlloc", &cuda.HostAlloc},
               {"cudaFreeHost", &cuda.FreeHost},
               {"cudaMemcpyAsync", &cuda.MemcpyAsync},
               {"cudaStreamCreateWithFlags", &cuda.StreamCreateWithFlags},
               {"cudaStreamSynchronize", &cuda.StreamSynchronize},
               {"cudaStreamDestroy", &cuda.StreamDestroy},
               {"cudaStreamBeginCapture", &cuda.StreamBeginCapture},
               {"cudaStreamEndCapture", &cuda.StreamEndCapture},
               {"cudaGraphDestroy", &cuda.GraphDestroy},
               {"cudaGetDevice", &cuda.GetDevice},
               {"cudaSetDevice", &cuda.SetDevice}};
    void *library = dlopen(file, RTLD_NOW);
    expect(library != NULL, file);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        void *symbol = dlsym(library, all[i].name);
        expect(symbol != NULL, all[i].name);
        memcpy(all[i].at, &symbol, sizeof symbol);
    }
}

static sparsetrain *opened(const char *algorithm, const char *options) {
    sparsetrain *x;
    good(sparsetrain_open_groups(&x, NULL, algorithm, N, options, group, GROUPS, why));
    return x;
}

/* A gradient in three places. */
static float *grad, *locked, expected[N]; /* of the GPU; page-locked; of the host */
static void make_places(void) {
    expect(cuda.Malloc((void **)&grad, N * sizeof *grad) == 0, "cudaMalloc");
    expect(cuda.HostAlloc((void **)&locked, N * sizeof *locked, 0) == 0, "cudaHostAlloc");
}
static void leave_places(void) {
    expect(cuda.Free(grad) == 0 && cuda.FreeHost(locked) == 0, "cudaFree");
}
static void fill(int step, float *to) {
    for (int i = 0; i < N; i++) to[i] = (float)((i * 37 + rank * 101 + step * 17) % N - N / 2) / 7;
}
static void copy(float *to, const float *from, size_t first, size_t end, int way, void *stream) {
    expect(cuda.MemcpyAsync(to + first, from + first, (end - first) * sizeof *to, way, stream) == 0, "a copy");
}

/* Nobody waits for the stream but by what is put on it: neither for the gradient, nor for its mean. */
static void step_on(sparsetrain *x, void *stream, int overlaps) {
    if (overlaps) good(sparsetrain_begin(x, grad, why));
    for (int i = GROUPS; i-- > 0;) {
        copy(grad, locked, group[i], i + 1 < GROUPS ? group[i + 1] : N, TO_DEVICE, stream);
        if (overlaps) good(sparsetrain_ready(x, group[i], why));
    }
    good(sparsetrain_run(x, grad, why));
    copy(locked, grad, 0, N, TO_HOST, stream);
    expect(cuda.StreamSynchronize(stream) == 0, "the stream");
}

/* Two streams in turn, and the default one. */
static void order(void) {
    void *stream[3] = {NULL};
    for (int i = 1; i < 3; i++) expect(cuda.StreamCreateWithFlags(&stream[i], NON_BLOCKING) == 0, "a stream");
    make_places();
    for (size_t row = 0; sparsetrain_algorithm(row); row++)
        for (int overlaps = 0; overlaps < 2; overlaps++) {
            sparsetrain *here = opened(sparsetrain_algorithm(row), "density=0.1,tau=2,tau-prime=1");
            sparsetrain *there = opened(sparsetrain_algorithm(row), "density=0.1,tau=2,tau-prime=1,device=cuda");
            for (int step = 0; step < STEPS; step++) {
                fill(step, expected);
                good(sparsetrain_run(here, expected, why));
                fill(step, locked);
                if (step > 0) good(sparsetrain_set_stream(there, stream[step % 3], why));
                step_on(there, stream[step % 3], overlaps);
                expect(memcmp(locked, expected, sizeof expected) == 0, sparsetrain_algorithm(row));
            }
            sparsetrain_close(here);
            sparsetrain_close(there);
        }
    for (int i = 1; i < 3; i++) expect(cuda.StreamDestroy(stream[i]) == 0, "a stream");
    leave_places();
}

static void pointers(void) {
    void *stream, *graph;
    sparsetrain *here = opened("gtopk", NULL), *there = opened("gtopk", "device=cuda");
    make_places();
    expect(cuda.StreamCreateWithFlags(&stream, NON_BLOCKING) == 0, "a stream");
    refused(sparsetrain_run(here, grad, why),
            "the gradient is in the memory of a GPU: open the exchange with device=cuda");
    refused(sparsetrain_begin(here, grad, why), "in the memory of a GPU");
    refused(sparsetrain_run(there, expected, why),
            "the gradient is in the memory of the host, the exchange is on the GPU");
    refused(sparsetrain_begin(there, locked, why), "in the memory of the host");
    refused(sparsetrain_set_stream(here, stream, why), "an exchange on host memory has no stream");
    good(sparsetrain_set_stream(there, stream, why));
    expect(cuda.StreamBeginCapture(stream, 0) == 0, "a capture");
    refused(sparsetrain_set_stream(there, stream, why), "the stream is being captured");
    refused(sparsetrain_run(there, grad, why), "the stream is being captured");
    expect(cuda.StreamEndCapture(stream, &graph) == 0 && cuda.GraphDestroy(graph) == 0, "a capture");
    fill(0, locked); /* all of them as good as before */
    copy(grad, locked, 0, N, TO_DEVICE, stream);
    good(sparsetrain_run(there, grad, why));
    fill(0, expected);
    good(sparsetrain_run(here, expected, why));
    sparsetrain_close(here);
    sparsetrain_close(there);
    expect(cuda.StreamDestroy(stream) == 0, "a stream");
    leave_places();
}

static void second(void) {
    sparsetrain *x, *other;
    float *first;
    int current = -1;
    expect(cuda.Malloc((void **)&first, N * sizeof *first) == 0, "cudaMalloc");
    expect(cuda.SetDevice(1) == 0, "the second GPU");
    x = opened("topka", "density=0.1,device=cuda");
    make_places();
    fill(0, locked);
    copy(grad, locked, 0, N, TO_DEVICE, NULL);
    expect(cuda.StreamSynchronize(NULL) == 0, "the stream");
    expect(cuda.SetDevice(0) == 0, "the first GPU");
    refused(sparsetrain_run(x, first, why), "the gradient is in the memory of another GPU");
    good(sparsetrain_run(x, grad, why));
    expect(cuda.GetDevice(&current) == 0 && current == 0, "another GPU is the current one after run");
    refused(sparsetrain_open(&other, NULL, "topka", N, "device=cuda", why),
            "GPU 0 is the current one, and this process has exchanges on GPU 1");
    sparsetrain_close(x);
    expect(cuda.GetDevice(&current) == 0 && current == 0, "another GPU is the current one after close");
    expect(cuda.Free(first) == 0, "cudaFree");
    leave_places();
}

/* What is wrong is printed, for the script to look at. */
static int opens(void) {
    sparsetrain *x;
    int status = sparsetrain_open(&x, NULL, "oktopk", N, "device=cuda", why);
    sparsetrain_close(x);
    if (rank == 0) puts(status == SPARSETRAIN_GOOD ? "fine" : why);
    MPI_Finalize();
    return status;
}

int main(int argc, char **argv) {
    const char *part = argc > 1 ? argv[1] : "";
    int granted;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &granted);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 2) load_cuda(argv[2]);
    if (strcmp(part, "opens") == 0) return opens();
    if (strcmp(part, "order") == 0) order();
    if (strcmp(part, "pointers") == 0) pointers();
    if (strcmp(part, "second") == 0) second();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) puts("fine");
    return MPI_Finalize();
}
