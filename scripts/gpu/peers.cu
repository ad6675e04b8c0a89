/* peers.cu: what `sparsetrain bench select --device cuda` is held against, on the same GPU in the same minutes. One
 * program, which needs nothing of the project: nvcc -O3 -std=c++17 -arch=native scripts/gpu/peers.cu -o peers
 *
 *     peers [--n LIST] [--repeat N]        one JSON object for each n: medians of N repeats [s], by events
 *
 *   launch_s       an empty kernel                   round_trip_s   it and the wait for it, by the host's clock
 *   read_s         a sum over n floats: the floor of whatever looks at each once (4 n bytes)
 *   accumulate_s   acc += grad: the floor of accumulation with selection (12 n bytes)
 *   copy_s         cudaMemcpyAsync on the device (8 n bytes)
 *   sort_s         cub::DeviceRadixSort of n keys, magnitudes, largest first
 *
 * The five run in turn, repeat after repeat, so that clocks that change slow all alike, on the same arrays each time:
 * what fits into the L2 cache may lie there, as it may for what is held against them. `wrong` counts entries of the
 * results that are not as they should be. */
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include <cub/device/device_radix_sort.cuh>

#define CHECK(call) check(call, #call, __LINE__)
static void check(cudaError_t error, const char *call, int line) {
    if (error == cudaSuccess) return;
    fprintf(stderr, "gpu_peers: line %d: %s: %s\n", line, call, cudaGetErrorString(error));
    exit(3);
}

constexpr int BLOCK = 256;
constexpr int WARM_UP = 3;

/* -- kernels; n is a multiple of 4 in all of them ------------------------------------------------------------------ */

__global__ void empty() {}

/* x[i]: normal numbers whose scale wanders from layer to layer, as in bench select (Box and Muller on a hash). */
__global__ void fill(float *x, size_t n, uint32_t seed) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        uint64_t h = (i + 1) * 0x9e3779b97f4a7c15ull + seed;
        h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;
        h = (h ^ (h >> 27)) * 0x94d049bb133111ebull;
        h ^= h >> 31;
        float u = ((uint32_t)h + 1.0f) * 2.3283064e-10f, v = (uint32_t)(h >> 32) * 2.3283064e-10f;
        float layer = expf(2.0f * (float)(i >> 14 & 63) / 64.0f);
        x[i] = 1e-3f * layer * sqrtf(-2.0f * logf(fminf(u, 1.0f))) * cosf(6.2831853f * v);
    }
}

__global__ void magnitudes(uint32_t *key, const float *x, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        key[i] = __float_as_uint(x[i]) & 0x7fffffffu;
}

/* part[b] = the sum of what block b met */
__global__ void sum(float *part, const float4 *x, size_t n4) {
    float s = 0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n4; i += (size_t)gridDim.x * blockDim.x) {
        float4 v = x[i];
        s += (v.x + v.y) + (v.z + v.w);
    }
    __shared__ float warp[BLOCK / 32];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0) warp[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < BLOCK / 32; w++) s += warp[w];
        part[blockIdx.x] = s;
    }
}

__global__ void accumulate(float4 *acc, const float4 *grad, size_t n4) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n4; i += (size_t)gridDim.x * blockDim.x) {
        float4 a = acc[i], g = grad[i];
        acc[i] = make_float4(a.x + g.x, a.y + g.y, a.z + g.z, a.w + g.w);
    }
}

/* *wrong += the entries of sorted that are larger than the one before, and those of copied that are not grad's */
__global__ void compare(unsigned long long *wrong, const uint32_t *sorted, const float *copied, const float *grad,
                        size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        if ((i > 0 && sorted[i - 1] < sorted[i]) || copied[i] != grad[i]) atomicAdd(wrong, 1ull);
}

/* -- host ---------------------------------------------------------------------------------------------------------- */

static double median(std::vector<double> &x) {
    std::sort(x.begin(), x.end());
    size_t m = x.size() / 2;
    return x.size() % 2 ? x[m] : (x[m - 1] + x[m]) / 2;
}

struct timer {
    cudaEvent_t begin, end;
    timer() {
        CHECK(cudaEventCreate(&begin));
        CHECK(cudaEventCreate(&end));
    }
    double seconds(const std::function<void()> &work) {
        CHECK(cudaEventRecord(begin));
        work();
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        CHECK(cudaGetLastError());
        float ms;
        CHECK(cudaEventElapsedTime(&ms, begin, end));
        return ms / 1e3;
    }
};

static double round_trip() {
    auto begin = std::chrono::steady_clock::now();
    empty<<<1, 32>>>();
    CHECK(cudaDeviceSynchronize());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

template <typename T> static T *device_array(size_t n) {
    void *block;
    CHECK(cudaMalloc(&block, n * sizeof(T)));
    return static_cast<T *>(block);
}

static void row(size_t asked, int repeat, const cudaDeviceProp &about) {
    size_t n = asked / 4 * 4, scratch_bytes = 0;
    int grid = about.multiProcessorCount * 8;
    float *grad = device_array<float>(n), *acc = device_array<float>(n), *copied = device_array<float>(n);
    float *part = device_array<float>(grid);
    uint32_t *key = device_array<uint32_t>(n), *sorted = device_array<uint32_t>(n);
    auto *wrong = device_array<unsigned long long>(1);
    CHECK(cub::DeviceRadixSort::SortKeysDescending(nullptr, scratch_bytes, key, sorted, n));
    char *scratch = device_array<char>(scratch_bytes);
    fill<<<grid, BLOCK>>>(grad, n, 1);
    magnitudes<<<grid, BLOCK>>>(key, grad, n);
    CHECK(cudaMemset(acc, 0, n * sizeof *acc));
    CHECK(cudaMemset(wrong, 0, sizeof *wrong));

    timer t;
    auto *grad4 = reinterpret_cast<const float4 *>(grad);
    std::function<void()> work[] = {
        [&] { empty<<<1, 32>>>(); },
        [&] { sum<<<grid, BLOCK>>>(part, grad4, n / 4); },
        [&] { accumulate<<<grid, BLOCK>>>(reinterpret_cast<float4 *>(acc), grad4, n / 4); },
        [&] { CHECK(cudaMemcpyAsync(copied, grad, n * sizeof *grad, cudaMemcpyDeviceToDevice)); },
        [&] { CHECK(cub::DeviceRadixSort::SortKeysDescending(scratch, scratch_bytes, key, sorted, n)); },
    };
    constexpr int WORKS = sizeof work / sizeof *work;
    std::vector<double> seconds[WORKS], trip;
    for (int r = -WARM_UP; r < repeat; r++)
        for (int w = 0; w <= WORKS; w++) {
            double s = w < WORKS ? t.seconds(work[w]) : round_trip();
            if (r >= 0) (w < WORKS ? seconds[w] : trip).push_back(s);
        }

    /* The sums must agree: acc is (repeat + WARM_UP) grad. */
    compare<<<grid, BLOCK>>>(wrong, sorted, copied, grad, n);
    std::vector<float> a(grid), b(grid);
    CHECK(cudaMemcpy(a.data(), part, grid * sizeof(float), cudaMemcpyDeviceToHost));
    sum<<<grid, BLOCK>>>(part, reinterpret_cast<const float4 *>(acc), n / 4);
    CHECK(cudaMemcpy(b.data(), part, grid * sizeof(float), cudaMemcpyDeviceToHost));
    unsigned long long count;
    CHECK(cudaMemcpy(&count, wrong, sizeof count, cudaMemcpyDeviceToHost));
    double times = repeat + WARM_UP;
    for (int i = 0; i < grid; i++)
        count += !(std::fabs(b[i] - times * a[i]) <= 1e-2 * (times + std::fabs(times * a[i])));

    printf("{\"bench\":\"gpu_peers\",\"gpu\":\"%s\",\"n\":%zu,\"repeat\":%d,\"launch_s\":%.4g,\"round_trip_s\":%.4g,"
           "\"read_s\":%.4g,\"accumulate_s\":%.4g,\"copy_s\":%.4g,\"sort_s\":%.4g,\"read_bytes_per_s\":%.4g,"
           "\"accumulate_bytes_per_s\":%.4g,\"copy_bytes_per_s\":%.4g,\"wrong\":%llu}\n",
           about.name, asked, repeat, median(seconds[0]), median(trip), median(seconds[1]), median(seconds[2]),
           median(seconds[3]), median(seconds[4]), 4.0 * n / median(seconds[1]), 12.0 * n / median(seconds[2]),
           8.0 * n / median(seconds[3]), count);
    fflush(stdout);
    for (void *block : {(void *)grad, (void *)acc, (void *)copied, (void *)part, (void *)key, (void *)sorted,
                        (void *)wrong, (void *)scratch})
        CHECK(cudaFree(block));
}

int main(int argc, char **argv) {
    const char *lengths = "14728266,133547324";
    int repeat = 50, device = 0;
    for (int i = 1; i < argc; i += 2) {
        bool known = i + 1 < argc && (strcmp(argv[i], "--n") == 0 || strcmp(argv[i], "--repeat") == 0);
        if (!known) {
            fprintf(stderr, "usage: gpu_peers [--n LIST] [--repeat N]\n");
            return 2;
        }
        if (strcmp(argv[i], "--n") == 0)
            lengths = argv[i + 1];
        else
            repeat = std::max(1, atoi(argv[i + 1]));
    }
    cudaDeviceProp about;
    CHECK(cudaGetDeviceProperties(&about, device));
    for (const char *at = lengths; *at;) {
        char *end;
        size_t n = strtoull(at, &end, 10);
        if (end == at || n < 4) {
            fprintf(stderr, "gpu_peers: --n takes whole numbers from 4 on, with commas between\n");
            return 2;
        }
        row(n, repeat, about);
        at = *end == ',' ? end + 1 : end;
    }
    return 0;
}
