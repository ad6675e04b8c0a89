/* cublas.c: the few functions of cuBLAS that the program uses, on the host. Every call checks what cuBLAS checks and
 * answers with its status; what cuBLAS would not notice (memory that is not the device's, an output that overlaps an
 * input) ends the program with a text. The products themselves run later, in the order of the stream. Matrices are
 * column-major, as always in cuBLAS. Source: the cuBLAS 13 documentation and cublas_api.h. */
#include <cublas_v2.h>

#include <stdlib.h>
#include <string.h>

#include "tests/hostcuda/gemm.h"
#include "tests/hostcuda/hostcuda.h"

enum { WORKSPACE_ALIGNMENT = 256 };

struct cublasContext {
    cudaStream_t stream;
    cublasMath_t math;
    void *workspace; /* of the caller, or NULL */
    size_t workspace_bytes;
};

/* A matrix argument: `at` holds rows x columns numbers as stored, before any transposition. */
struct operand {
    const void *at;
    cudaDataType type;
    int rows, columns, ld;
};

struct product {
    struct operand a, b;
    bool a_turned, b_turned; /* multiplied transposed */
    void *c;
    cudaDataType c_type;
    int m, n, k, ldc;
    float alpha, beta;
    enum rounding rounding;
    void *workspace;
    size_t workspace_bytes;
};

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
    if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
    *handle = calloc(1, sizeof **handle);
    return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

/* As documented, a new stream also gives up the caller's workspace. */
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->stream = stream;
    handle->workspace = NULL;
    handle->workspace_bytes = 0;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    unsigned base = (unsigned)mode & ~(unsigned)CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
    if (base > (unsigned)CUBLAS_TF32_TENSOR_OP_MATH) return CUBLAS_STATUS_INVALID_VALUE;
    handle->math = mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version) {
    (void)handle; /* may be NULL */
    if (!version) return CUBLAS_STATUS_INVALID_VALUE;
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes) {
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!workspace && bytes) return CUBLAS_STATUS_INVALID_VALUE;
    if ((uintptr_t)workspace % WORKSPACE_ALIGNMENT) return CUBLAS_STATUS_INVALID_VALUE;
    if (workspace) hostcuda_need("cublasSetWorkspace", "workspace", workspace, bytes, WORKSPACE_ALIGNMENT);
    handle->workspace = workspace;
    handle->workspace_bytes = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t status) {
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "the cuBLAS library returned success";
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "the library was not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED:
        return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "an invalid numerical value was used as an argument";
    case CUBLAS_STATUS_ARCH_MISMATCH:
        return "an absent device architectural feature is required";
    case CUBLAS_STATUS_MAPPING_ERROR:
        return "an access to GPU memory space failed";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "the GPU program failed to execute";
    case CUBLAS_STATUS_INTERNAL_ERROR:
        return "an internal operation failed";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "the parameter combination is not supported";
    case CUBLAS_STATUS_LICENSE_ERROR:
        return "an error about the license was detected";
    }
    return "unknown error";
}

static size_t width(cudaDataType type) {
    return type == CUDA_R_16BF ? sizeof(uint16_t) : sizeof(float);
}

/* Bytes from the first to the last number of a column-major matrix. */
static size_t extent(int rows, int columns, int ld, cudaDataType type) {
    if (rows == 0 || columns == 0) return 0;
    return ((size_t)(columns - 1) * (size_t)ld + (size_t)rows) * width(type);
}

static void check_input(const char *function, const char *name, const struct operand *x, const void *c,
                        size_t c_bytes) {
    size_t bytes = extent(x->rows, x->columns, x->ld, x->type);
    hostcuda_need(function, name, x->at, bytes, width(x->type));
    hostcuda_apart(function, c, c_bytes, name, x->at, bytes);
}

static bool no_operation(cublasOperation_t op) {
    return op != CUBLAS_OP_N && op != CUBLAS_OP_T && op != CUBLAS_OP_C;
}

/* The operand as floats, rounded, packed to ld = rows; the caller frees. */
static float *floats_of(const struct operand *x, enum rounding rounding) {
    size_t rows = (size_t)x->rows, columns = (size_t)x->columns;
    float *to = hostcuda_scratch(rows * columns * sizeof *to);
    for (size_t j = 0; j < columns; j++)
        hostcuda_widen(to + j * rows, (const char *)x->at + j * (size_t)x->ld * width(x->type), x->type == CUDA_R_16BF,
                       rows, rounding);
    return to;
}

static struct matrix view(float *at, const struct operand *x, bool turned) {
    return turned ? (struct matrix){at, x->rows, 1} : (struct matrix){at, 1, x->rows};
}

/* C = alpha A B + beta C */
static void multiply(const struct product *p) {
    size_t m = (size_t)p->m, n = (size_t)p->n;
    bool is_bf16 = p->c_type == CUDA_R_16BF;
    float *sum = hostcuda_scratch(m * n * sizeof *sum);
    memset(sum, 0, m * n * sizeof *sum);
    if (p->k > 0 && p->alpha != 0) {
        float *a = floats_of(&p->a, p->rounding), *b = floats_of(&p->b, p->rounding);
        hostcuda_gemm(m, n, (size_t)p->k, view(a, &p->a, p->a_turned), view(b, &p->b, p->b_turned),
                      (struct matrix){sum, 1, (ptrdiff_t)m});
        free(a);
        free(b);
    }
    for (size_t j = 0; j < n; j++)
        hostcuda_blend((char *)p->c + j * (size_t)p->ldc * width(p->c_type), is_bf16, sum + j * m, m, p->alpha,
                       p->beta);
    free(sum);
}

static void overwrite_workspace(const struct product *p) {
    hostcuda_overwrite_workspace(p->workspace, p->workspace_bytes);
}

static void run_product(const void *argument) {
    overwrite_workspace(argument);
    multiply(argument);
}

static bool wrong_sizes(const struct product *p) {
    return p->m < 0 || p->n < 0 || p->k < 0 || p->a.ld < 1 || p->a.ld < p->a.rows || p->b.ld < 1 ||
           p->b.ld < p->b.rows || p->ldc < 1 || p->ldc < p->m;
}

static bool reads_operands(const struct product *p) {
    return p->k > 0 && p->alpha != 0;
}

/* The memory of one product. */
static void check_matrices(const char *function, const struct product *p) {
    size_t c_bytes = extent(p->m, p->n, p->ldc, p->c_type);
    hostcuda_need(function, "C", p->c, c_bytes, width(p->c_type));
    if (!reads_operands(p)) return;
    check_input(function, "A", &p->a, p->c, c_bytes);
    check_input(function, "B", &p->b, p->c, c_bytes);
}

/* Checked again: it may have been freed since it was set. */
static void take_workspace(cublasHandle_t handle, const char *function, struct product *p) {
    if (!handle->workspace) return;
    hostcuda_need(function, "workspace", handle->workspace, handle->workspace_bytes, WORKSPACE_ALIGNMENT);
    p->workspace = handle->workspace;
    p->workspace_bytes = handle->workspace_bytes;
}

/* The checks of a single product, then the launch. */
static cublasStatus_t launch(cublasHandle_t handle, const char *function, struct product *p) {
    if (wrong_sizes(p)) return CUBLAS_STATUS_INVALID_VALUE;
    if (p->m == 0 || p->n == 0) return CUBLAS_STATUS_SUCCESS;
    if (!p->c || (reads_operands(p) && (!p->a.at || !p->b.at))) return CUBLAS_STATUS_INVALID_VALUE;
    check_matrices(function, p);
    take_workspace(handle, function, p);
    hostcuda_enqueue(handle->stream, run_product, p, sizeof *p);
    return CUBLAS_STATUS_SUCCESS;
}

/* How float operands are rounded under this compute type and math mode; false for a compute type that is not here. */
static bool rounding_of(cublasComputeType_t compute, cublasMath_t math, cudaDataType type, enum rounding *rounding) {
    bool tf32 = ((unsigned)math & 15u) == (unsigned)CUBLAS_TF32_TENSOR_OP_MATH ||
                ((unsigned)math & 15u) == (unsigned)CUBLAS_TENSOR_OP_MATH;
    *rounding = ROUND_NOT;
    switch (compute) {
    case CUBLAS_COMPUTE_32F:
        *rounding = tf32 ? ROUND_TF32 : ROUND_NOT;
        break;
    case CUBLAS_COMPUTE_32F_PEDANTIC:
        break;
    case CUBLAS_COMPUTE_32F_FAST_16F: /* half has the mantissa of TF32 */
    case CUBLAS_COMPUTE_32F_FAST_TF32:
        *rounding = ROUND_TF32;
        break;
    case CUBLAS_COMPUTE_32F_FAST_16BF:
        *rounding = ROUND_BF16;
        break;
    default:
        return false;
    }
    bool fast = compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_PEDANTIC;
    if (type == CUDA_R_16BF) { /* nothing left to round; the fast types are for float alone */
        *rounding = ROUND_NOT;
        return !fast;
    }
    return true;
}

/* A product of these kinds and sizes, without its matrices. */
static cublasStatus_t describe(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                               int k, const void *alpha, cudaDataType Atype, int lda, cudaDataType Btype, int ldb,
                               const void *beta, cudaDataType Ctype, int ldc, cublasComputeType_t computeType,
                               cublasGemmAlgo_t algo, struct product *p) {
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (no_operation(transa) || no_operation(transb) || !alpha || !beta) return CUBLAS_STATUS_INVALID_VALUE;
    if (algo != CUBLAS_GEMM_DEFAULT && algo != CUBLAS_GEMM_DEFAULT_TENSOR_OP) return CUBLAS_STATUS_NOT_SUPPORTED;
    bool floats = Atype == CUDA_R_32F && Btype == CUDA_R_32F && Ctype == CUDA_R_32F;
    bool words = Atype == CUDA_R_16BF && Btype == CUDA_R_16BF && (Ctype == CUDA_R_16BF || Ctype == CUDA_R_32F);
    *p = (struct product){.c_type = Ctype, .m = m, .n = n, .k = k, .ldc = ldc};
    if (!(floats || words) || !rounding_of(computeType, handle->math, Atype, &p->rounding))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    p->a_turned = transa != CUBLAS_OP_N;
    p->b_turned = transb != CUBLAS_OP_N;
    p->a = (struct operand){NULL, Atype, p->a_turned ? k : m, p->a_turned ? m : k, lda};
    p->b = (struct operand){NULL, Btype, p->b_turned ? n : k, p->b_turned ? k : n, ldb};
    memcpy(&p->alpha, alpha, sizeof p->alpha); /* host pointers: the pointer mode is never changed */
    memcpy(&p->beta, beta, sizeof p->beta);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                            int k, const void *alpha, const void *A, cudaDataType Atype, int lda, const void *B,
                            cudaDataType Btype, int ldb, const void *beta, void *C, cudaDataType Ctype, int ldc,
                            cublasComputeType_t computeType, cublasGemmAlgo_t algo) {
    struct product p;
    cublasStatus_t status = describe(handle, transa, transb, m, n, k, alpha, Atype, lda, Btype, ldb, beta, Ctype, ldc,
                                     computeType, algo, &p);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    p.a.at = A;
    p.b.at = B;
    p.c = C;
    return launch(handle, "cublasGemm", &p);
}

/* Products of one kind; the arrays of pointers are read when they run. */
struct batch {
    struct product each;
    const void *const *a, *const *b;
    void *const *c;
    int count;
};

/* Under fast math, cuBLAS reads floats 16 bytes at once where k is a multiple of 4 and cannot see from the host whether
 * a matrix allows that (its manual, cublas<t>gemmBatched). */
static void check_alignment(const struct product *p, const char *name, const void *at) {
    if (p->a.type == CUDA_R_32F && p->rounding != ROUND_NOT && p->k % 4 == 0 && (uintptr_t)at % 16 != 0)
        hostcuda_complain("cublasGemmBatched: %s is not aligned to 16 bytes, which fast math wants with k = %d", name,
                          p->k);
}

/* Do two outputs have an entry in common? Their columns may lie between each other's. */
static bool meet(const struct product *p, const char *one, const char *other) {
    const size_t w = width(p->c_type), apart = (size_t)(one < other ? other - one : one - other);
    const size_t step = (size_t)p->ldc * w, beside = apart % step, m = (size_t)p->m * w;
    return apart < extent(p->m, p->n, p->ldc, p->c_type) && (beside < m || beside + m > step);
}

static void run_batch(const void *argument) {
    const struct batch *b = argument;
    overwrite_workspace(&b->each);
    for (int i = 0; i < b->count; i++) {
        struct product p = b->each;
        p.a.at = b->a[i];
        p.b.at = b->b[i];
        p.c = b->c[i];
        check_matrices("cublasGemmBatched", &p);
        check_alignment(&p, "A", p.a.at);
        check_alignment(&p, "B", p.b.at);
        check_alignment(&p, "C", p.c);
        for (int j = 0; j < i; j++)
            if (meet(&p, p.c, b->c[j])) hostcuda_complain("cublasGemmBatched: outputs %d and %d overlap", j, i);
        multiply(&p);
    }
}

cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                                   int n, int k, const void *alpha, const void *const Aarray[], cudaDataType Atype,
                                   int lda, const void *const Barray[], cudaDataType Btype, int ldb, const void *beta,
                                   void *const Carray[], cudaDataType Ctype, int ldc, int batchCount,
                                   cublasComputeType_t computeType, cublasGemmAlgo_t algo) {
    struct batch b = {.a = Aarray, .b = Barray, .c = Carray, .count = batchCount};
    cublasStatus_t status = describe(handle, transa, transb, m, n, k, alpha, Atype, lda, Btype, ldb, beta, Ctype, ldc,
                                     computeType, algo, &b.each);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (wrong_sizes(&b.each) || batchCount < 0) return CUBLAS_STATUS_INVALID_VALUE;
    if (m == 0 || n == 0 || batchCount == 0) return CUBLAS_STATUS_SUCCESS;
    if (!Aarray || !Barray || !Carray) return CUBLAS_STATUS_INVALID_VALUE;
    const size_t bytes = (size_t)batchCount * sizeof *Aarray;
    hostcuda_need("cublasGemmBatched", "Aarray", Aarray, bytes, sizeof *Aarray);
    hostcuda_need("cublasGemmBatched", "Barray", Barray, bytes, sizeof *Barray);
    hostcuda_need("cublasGemmBatched", "Carray", Carray, bytes, sizeof *Carray);
    take_workspace(handle, "cublasGemmBatched", &b.each);
    hostcuda_enqueue(handle->stream, run_batch, &b, sizeof b);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                              int k, const float *alpha, const float *A, int lda, const float *B, int ldb,
                              const float *beta, float *C, int ldc) {
    return cublasGemmEx(handle, transa, transb, m, n, k, alpha, A, CUDA_R_32F, lda, B, CUDA_R_32F, ldb, beta, C,
                        CUDA_R_32F, ldc, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

struct matrix_times_vector {
    struct matrix a; /* already turned: rows of y, columns of x */
    size_t rows, columns;
    const float *x;
    float *y;
    ptrdiff_t incx, incy;
    float alpha, beta;
};

/* y = alpha A x + beta y, in float whatever the math mode: gemv has no tensor cores. */
static void multiply_vector(const void *argument) {
    const struct matrix_times_vector *p = argument;
    for (size_t i = 0; i < p->rows; i++) {
        float sum = 0;
        if (p->alpha != 0)
            for (size_t j = 0; j < p->columns; j++)
                sum += p->a.at[(ptrdiff_t)i * p->a.down + (ptrdiff_t)j * p->a.across] * p->x[(ptrdiff_t)j * p->incx];
        float *y = p->y + (ptrdiff_t)i * p->incy;
        *y = p->alpha * sum + (p->beta != 0 ? p->beta * *y : 0);
    }
}

cublasStatus_t cublasSgemv_v2(cublasHandle_t handle, cublasOperation_t trans, int m, int n, const float *alpha,
                              const float *A, int lda, const float *x, int incx, const float *beta, float *y,
                              int incy) {
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (no_operation(trans) || m < 0 || n < 0 || lda < 1 || lda < m || incx == 0 || incy == 0 || !alpha || !beta)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (incx < 0 || incy < 0) return CUBLAS_STATUS_NOT_SUPPORTED; /* legal, but nobody here counts backwards */
    if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
    if (!A || !x || !y) return CUBLAS_STATUS_INVALID_VALUE;
    bool turned = trans != CUBLAS_OP_N;
    struct operand a = {A, CUDA_R_32F, m, n, lda};
    struct matrix_times_vector p = {.rows = (size_t)(turned ? n : m), .columns = (size_t)(turned ? m : n)};
    size_t x_bytes = ((p.columns - 1) * (size_t)incx + 1) * sizeof *x;
    size_t y_bytes = ((p.rows - 1) * (size_t)incy + 1) * sizeof *y;
    hostcuda_need("cublasSgemv", "y", y, y_bytes, sizeof *y);
    hostcuda_need("cublasSgemv", "x", x, x_bytes, sizeof *x);
    check_input("cublasSgemv", "A", &a, y, y_bytes);
    hostcuda_apart("cublasSgemv", y, y_bytes, "x", x, x_bytes);
    p.a.at = (float *)(uintptr_t)A;
    p.a.down = turned ? lda : 1;
    p.a.across = turned ? 1 : lda;
    p.x = x;
    p.y = y;
    p.incx = incx;
    p.incy = incy;
    p.alpha = *alpha;
    p.beta = *beta;
    hostcuda_enqueue(handle->stream, multiply_vector, &p, sizeof p);
    return CUBLAS_STATUS_SUCCESS;
}
