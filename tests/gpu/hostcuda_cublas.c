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
        cmocka_unit_test(gemv_multiplies),
        cmocka_unit_test(blas_refuses),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(cases, open_library, close_library);
}
