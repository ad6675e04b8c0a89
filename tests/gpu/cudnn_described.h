/* cudnn_described.h: a GPU that is not there but described, of which the real cuDNN can be asked. */
#ifndef ST_TESTS_GPU_CUDNN_DESCRIBED_H
#define ST_TESTS_GPU_CUDNN_DESCRIBED_H

#include <string.h>

#include "nets/cudnn/backend_cudnn_parts.h"

/* As the library itself would write it of an H200. */
static const char an_h200[] =
    "{\"maxGridSize\": [2147483647, 65535, 65535], \"maxBlockSize\": [1024, 1024, 64], \"regsPerBlock\": 65536, "
    "\"multiProcessorCount\": 132, \"smClockRateKHz\": 1980000, \"memClockRateKHz\": 3201000, "
    "\"l2CacheSize\": 62914560, \"warpSize\": 32, \"maxSharedMemoryPerBlock\": 49152, "
    "\"maxSharedMemoryPerBlockOptin\": 232448, \"reservedSharedMemoryPerBlock\": 1024, \"maxRegistersPerSM\": 65536, "
    "\"pciDeviceId\": 0, \"maxCtasPerSM\": 32, \"maxThreadsPerBlock\": 1024, \"maxThreadsPerSM\": 2048, "
    "\"isTccDriver\": 0, \"supportCoopLaunch\": 1, \"deviceVer\": 900, \"driverVer\": 13000, \"cudaDeviceId\": 0, "
    "\"totalGlobalMem\": 150000000000, \"deviceName\": \"NVIDIA H200\"}";

/* false: the library takes no such description (cuDNN before 9.8, or another form of it). */
static inline bool describe(struct cudnn_plan_gpu *gpu) {
    return cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &gpu->described) == CUDNN_STATUS_SUCCESS &&
           cudnnBackendSetAttribute(gpu->described, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                    (int64_t)strlen(an_h200), an_h200) == CUDNN_STATUS_SUCCESS &&
           cudnnBackendFinalize(gpu->described) == CUDNN_STATUS_SUCCESS;
}

#endif
