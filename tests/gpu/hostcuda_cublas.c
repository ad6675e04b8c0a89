/* hostcuda_cublas.c: the stand-in of cuBLAS against plain loops in double, its refusals and its complaints. */
#include "tests/hostcuda/libraries_rig.h"

#include <cublas_v2.h>

/* Sums of up to 100 products of numbers near 1: float errs by 100^0.5 * 2^-24 of a typical sum, 6e-7; the tolerance
 * leaves a factor of 20. A result rounded to bf16 errs by 2^-9. */
#define TOLERANCE 1.5e-5
#define TOLERANCE_BF16 (1.0 / 256)

static cublasHandle_t blas;
static cudaStream_t stream;

struct gemm_trial {
    int m, n, k;
    bool a_turned, b_turned, bf16_in, bf16_out;
    float alpha, beta;
};

static void try_gemm(const struct gemm_trial *t, cublasComputeType_t compute, double tolerance, double at_least) {
    int a_rows = t->a_turned ? t->k : t->m, a_columns = t->a_turned ? t->m : t->k;
    int b_rows = t->b_turned ? t->n : t->k, b_columns = t->b_turned ? t->k : t->n;
    int lda = a_rows + 3, ldb = b_rows + 1, ldc = t->m + 2;
    struct numbers a = rig_numbers((size_t)(lda * a_columns), t->bf16_in, 1);
    struct numbers b = rig_numbers((size_t)(ldb * b_columns), t->bf16_in, 1);
    struct numbers c = rig_numbers((size_t)(ldc * t->n), t->bf16_out, 1);
    for (int j = 0; j < t->n; j++)
        for (int i = 0; i < t->m; i++) {
            double sum = 0;
            for (int p = 0; p < t->k; p++)
                sum +=
                    a.host[t->a_turned ? i * lda + p : p * lda + i] * b.host[t->b_turned ? p * ldb + j : j * ldb + p];
            c.host[j * ldc + i] = (double)t->alpha * sum + (double)t->beta * c.host[j * ldc + i];
        }
    assert_int_equal(cublasGemmEx(blas, t->a_turned ? CUBLAS_OP_T : CUBLAS_OP_N,
                                  t->b_turned ? CUBLAS_OP_T : CUBLAS_OP_N, t->m, t->n, t->k, &t->alpha, a.device,
                                  t->bf16_in ? CUDA_R_16BF : CUDA_R_32F, lda, b.device,
                                  t->bf16_in ? CUDA_R_16BF : CUDA_R_32F, ldb, &t->beta, c.device,
                                  t->bf16_out ? CUDA_R_16BF : CUDA_R_32F, ldc, compute, CUBLAS_GEMM_DEFAULT),
                     CUBLAS_STATUS_SUCCESS);
    rig_close(&c, tolerance, "gemm");
    assert_true(rig_error(&c) >= at_least);
    rig_free(&a);
    rig_free(&b);
    rig_free(&c);
}

static void gemm_multiplies(void **state) {
    (void)state;
    const int sizes[][3] = {{1, 1, 1}, {4, 16, 3}, {5, 17, 40}, {33, 6, 100}, {64, 10, 31}, {3, 50, 0}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int kind = 0; kind < 24; kind++) {
            struct gemm_trial t = {sizes[i][0], sizes[i][1], sizes[i][2],         kind & 1,         kind & 2,
                                   kind >= 8,   kind >= 16,  kind & 4 ? 0.5f : 1, kind & 4 ? -2 : 0};
            try_gemm(&t, CUBLAS_COMPUTE_32F, t.bf16_out ? TOLERANCE_BF16 : TOLERANCE, 0);
        }
}

static void gemm_rounds_when_asked(void **state) {
    (void)state;
    struct gemm_trial t = {20, 20, 50, false, false, false, false, 1, 0};
    try_gemm(&t, CUBLAS_COMPUTE_32F_FAST_TF32, 1e-3, 2 * TOLERANCE);
    try_gemm(&t, CUBLAS_COMPUTE_32F_FAST_16BF, 1e-2, 1e-4);
    assert_int_equal(cublasSetMathMode(blas, CUBLAS_TF32_TENSOR_OP_MATH), 0);
    try_gemm(&t, CUBLAS_COMPUTE_32F, 1e-3, 2 * TOLERANCE);
    try_gemm(&t, CUBLAS_COMPUTE_32F_PEDANTIC, TOLERANCE, 0);
    assert_int_equal(cublasSetMathMode(blas, CUBLAS_DEFAULT_MATH), 0);
}

/* The product is right with a workspace of the caller's, and nothing else of the caller's survives in it. */
static void gemm_overwrites_its_workspace(void **state) {
    (void)state;
    struct gemm_trial t = {20, 20, 50, false, true, false, false, 1, 0};
    struct numbers space = rig_numbers(1024, false, 1);
    assert_int_equal(cublasSetWorkspace_v2(blas, space.device, space.count * sizeof(float)), 0);
    try_gemm(&t, CUBLAS_COMPUTE_32F, TOLERANCE, 0);
    assert_true(isinf(rig_error(&space)));
    rig_send(&space);
    assert_int_equal(cublasSetStream_v2(blas, stream), 0); /* gives the workspace up */
    try_gemm(&t, CUBLAS_COMPUTE_32F, TOLERANCE, 0);
    assert_true(rig_error(&space) == 0);
    rig_free(&space);
}

/* How many numbers of it; both ends are among them. */
static size_t overwritten(const struct numbers *space) {
    size_t count = 0;
    float *now = malloc(space->count * sizeof *now);
    assert_int_equal(cudaMemcpy(now, space->device, space->count * sizeof *now, cudaMemcpyDeviceToHost), 0);
    for (size_t i = 0; i < space->count; i++) count += isnan(now[i]) ? 1 : 0;
    assert_true(isnan(now[0]) && isnan(now[space->count - 1]));
    free(now);
    return count;
}

/* The first product all of a large one, later ones the ends and a part of it, which moves on. */
static void gemm_overwrites_a_large_workspace(void **state) {
    (void)state;
    struct gemm_trial t = {20, 20, 50, false, true, false, false, 1, 0};
    for (int round = 0; round < 2; round++) { /* the second one in memory that was given back */
        struct numbers space = rig_numbers(300032, false, 1);
        assert_int_equal(cublasSetWorkspace_v2(blas, space.device, space.count * sizeof(float)), 0);
        try_gemm(&t, CUBLAS_COMPUTE_32F, TOLERANCE, 0);
        assert_int_equal(overwritten(&space), space.count);
        rig_send(&space);
        try_gemm(&t, CUBLAS_COMPUTE_32F, TOLERANCE, 0);
        assert_in_range(overwritten(&space), 1, space.count - 1);
        for (int more = 0; more < 4; more++) try_gemm(&t, CUBLAS_COMPUTE_32F, TOLERANCE, 0);
        assert_int_equal(overwritten(&space), space.count);
        assert_int_equal(cublasSetStream_v2(blas, stream), 0); /* gives the workspace up */
        rig_free(&space);
    }
}

static void gemv_multiplies(void **state) {
    (void)state;
    for (int turned = 0; turned < 2; turned++) {
        int m = 13, n = 7, lda = 15, rows = turned ? n : m, columns = turned ? m : n;
        float alpha = 0.5f, beta = 3;
        struct numbers a = rig_numbers((size_t)(lda * n), false, 1);
        struct numbers x = rig_numbers((size_t)(2 * columns), false, 1), y = rig_numbers((size_t)(3 * rows), false, 1);
        for (int i = 0; i < rows; i++) {
            double sum = 0;
            for (int j = 0; j < columns; j++) sum += a.host[turned ? i * lda + j : j * lda + i] * x.host[2 * j];
            y.host[3 * i] = (double)alpha * sum + (double)beta * y.host[3 * i];
        }
        assert_int_equal(cublasSgemv_v2(blas, turned ? CUBLAS_OP_T : CUBLAS_OP_N, m, n, &alpha, a.device, lda, x.device,
                                        2, &beta, y.device, 3),
                         0);
        rig_close(&y, TOLERANCE, "gemv");
        rig_free(&a);
        rig_free(&x);
        rig_free(&y);
    }
}

/* -- batches ------------------------------------------------------------------------------------------------------- */

enum { BATCH = 3, B_M = 5, B_N = 7, B_K = 4, B_LD = 24 /* three matrices of A, B and C each side by side */ };

/* Floats of a, b, c on the device and pointers [3][BATCH] to the matrices of each. */
struct batch {
    struct numbers a, b, c;
    const void *host[3 * BATCH];
    void **device;
    cublasComputeType_t compute;
};

static void batch_point(struct batch *t) {
    assert_int_equal(cudaMemcpy(t->device, t->host, sizeof t->host, cudaMemcpyHostToDevice), 0);
}

static struct batch batch_open(void) {
    struct batch t = {rig_numbers(B_LD * B_K, false, 1),
                      rig_numbers(B_LD * B_K, false, 1),
                      rig_numbers(B_LD * B_N, false, 1),
                      {0},
                      NULL,
                      CUBLAS_COMPUTE_32F};
    assert_int_equal(cudaMalloc((void **)&t.device, sizeof t.host), 0);
    for (int i = 0; i < BATCH; i++) {
        t.host[i] = (float *)t.a.device + 8 * i;
        t.host[BATCH + i] = (float *)t.b.device + 8 * i;
        t.host[2 * BATCH + i] = (float *)t.c.device + 8 * i;
    }
    batch_point(&t);
    return t;
}

static void batch_close(struct batch *t) {
    rig_free(&t->a);
    rig_free(&t->b);
    rig_free(&t->c);
    assert_int_equal(cudaFree(t->device), 0);
}

static cublasStatus_t batch_run(const struct batch *t, void **pointers, int count) {
    const float alpha = 0.5f, beta = -1;
    const void *const *at = (const void *const *)pointers;
    return cublasGemmBatchedEx(blas, CUBLAS_OP_N, CUBLAS_OP_T, B_M, B_N, B_K, &alpha, at, CUDA_R_32F, B_LD, at + BATCH,
                               CUDA_R_32F, B_LD, &beta, pointers + 2 * BATCH, CUDA_R_32F, B_LD, count, t->compute,
                               CUBLAS_GEMM_DEFAULT);
}

/* The pointers are read when the work is done, not when it is given. */
static void batches_multiply(void **state) {
    (void)state;
    struct batch t = batch_open();
    for (int i = 0; i < BATCH; i++)
        for (int column = 0; column < B_N; column++)
            for (int row = 0; row < B_M; row++) {
                double sum = 0, *c = &t.c.host[8 * i + column * B_LD + row];
                for (int k = 0; k < B_K; k++)
                    sum += t.a.host[8 * i + k * B_LD + row] * t.b.host[8 * i + k * B_LD + column];
                *c = 0.5 * sum - *c;
            }
    assert_int_equal(cudaMemsetAsync(t.device, 0, sizeof t.host, stream), 0);
    assert_int_equal(cudaMemcpyAsync(t.device, t.host, sizeof t.host, cudaMemcpyHostToDevice, stream), 0);
    assert_int_equal(batch_run(&t, t.device, BATCH), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(batch_run(&t, t.device, 0), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(cudaStreamSynchronize(stream), 0);
    rig_close(&t.c, TOLERANCE, "batches");
    assert_int_equal(batch_run(&t, t.device, -1), CUBLAS_STATUS_INVALID_VALUE);
    t.compute = CUBLAS_COMPUTE_64F;
    assert_int_equal(batch_run(&t, t.device, BATCH), CUBLAS_STATUS_NOT_SUPPORTED);
    batch_close(&t);
}

static void batch_and_wait(void *at) {
    (void)batch_run(at, ((struct batch *)at)->device, BATCH);
    (void)cudaStreamSynchronize(stream);
}
static void batch_of_host_pointers(void *at) {
    struct batch *t = at;
    (void)batch_run(t, (void **)t->host, BATCH);
}

static void batches_are_looked_at(void **state) {
    (void)state;
    struct batch t = batch_open();
    rig_complains(batch_of_host_pointers, &t, "pointers on the host");
    t.host[1] = (float *)t.a.device + 1; /* the alignment matters to fast math alone */
    batch_point(&t);
    batch_and_wait(&t);
    t.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
    rig_complains(batch_and_wait, &t, "A that fast math cannot read");
    t.host[1] = (float *)t.a.device + 8;
    batch_point(&t);
    batch_and_wait(&t);
    t.host[2 * BATCH + 1] = (float *)t.c.device + 4;
    batch_point(&t);
    rig_complains(batch_and_wait, &t, "two outputs that overlap");
    t.host[2 * BATCH + 1] = (float *)t.c.device + 20;
    batch_point(&t);
    rig_complains(batch_and_wait, &t, "an output beyond its block");
    t.host[2 * BATCH + 1] = t.host[0];
    batch_point(&t);
    rig_complains(batch_and_wait, &t, "C on A");
    batch_close(&t);
}

/* -- mistakes ------------------------------------------------------------------------------------------------------ */

static void gemm_overlapping(void *at) {
    float one = 1, zero = 0;
    (void)cublasSgemm_v2(blas, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, at, 2, (float *)at + 8, 2, &zero, at, 2);
}

static void gemm_beyond(void *at) {
    float one = 1, zero = 0;
    (void)cublasSgemm_v2(blas, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, at, 2, (float *)at + 8, 2, &zero,
                         (float *)at + 29, 2);
}

static void blas_refuses(void **state) {
    (void)state;
    float one = 1, zero = 0;
    int version = 0;
    struct numbers x = rig_numbers(32, false, 1);
    float *at = x.device;
#define GEMM(handle, op, m, lda, beta, c)                                                                              \
    cublasSgemm_v2(handle, op, CUBLAS_OP_N, m, 2, 2, &one, at, lda, at + 8, 2, beta, c, 2)
    assert_int_equal(GEMM(NULL, CUBLAS_OP_N, 2, 2, &zero, at + 16), CUBLAS_STATUS_NOT_INITIALIZED);
    assert_int_equal(GEMM(blas, CUBLAS_OP_N, -1, 2, &zero, at + 16), CUBLAS_STATUS_INVALID_VALUE);
    assert_int_equal(GEMM(blas, CUBLAS_OP_N, 2, 1, &zero, at + 16), CUBLAS_STATUS_INVALID_VALUE);
    assert_int_equal(GEMM(blas, CUBLAS_OP_N, 2, 2, NULL, at + 16), CUBLAS_STATUS_INVALID_VALUE);
    assert_int_equal(GEMM(blas, CUBLAS_OP_N, 2, 2, &zero, NULL), CUBLAS_STATUS_INVALID_VALUE);
    assert_int_equal(GEMM(blas, (cublasOperation_t)7, 2, 2, &zero, at + 16), CUBLAS_STATUS_INVALID_VALUE);
    assert_int_equal(GEMM(blas, CUBLAS_OP_N, 0, 2, &zero, NULL), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(cublasSetWorkspace_v2(blas, (char *)x.device + 16, 64), CUBLAS_STATUS_INVALID_VALUE);
    assert_int_equal(cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, at, CUDA_R_32F, 2, at + 8, CUDA_R_16BF,
                                  2, &zero, at + 16, CUDA_R_32F, 2, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                     CUBLAS_STATUS_NOT_SUPPORTED);
    assert_int_equal(cublasGetVersion_v2(blas, &version), 0);
    assert_int_equal(version, CUBLAS_VERSION);
    assert_string_equal(cublasGetStatusString(CUBLAS_STATUS_SUCCESS), "the cuBLAS library returned success");
    rig_complains(gemm_overlapping, x.device, "C on A");
    rig_complains(gemm_beyond, x.device, "C beyond its block");
    rig_free(&x);
}

static int open_library(void **state) {
    (void)state;
    return cudaStreamCreate(&stream) || cublasCreate_v2(&blas) || cublasSetStream_v2(blas, stream);
}

static int close_library(void **state) {
    (void)state;
    return cublasDestroy_v2(blas) || cudaStreamDestroy(stream);
}

int main(void) {
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(gemm_multiplies),
        cmocka_unit_test(gemm_rounds_when_asked),
        cmocka_unit_test(gemm_overwrites_its_workspace),
        cmocka_unit_test(gemm_overwrites_a_large_workspace),
        cmocka_unit_test(gemv_multiplies),
        cmocka_unit_test(batches_multiply),
        cmocka_unit_test(batches_are_looked_at),
        cmocka_unit_test(blas_refuses),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(cases, open_library, close_library);
}
