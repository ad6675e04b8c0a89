/* driverless.c: what the test cudnn_sdpa has in place of the CUDA driver (its soname is libcuda.so.1). cuDNN compiles
 * kernels only where it finds a driver that takes them, also those for a GPU that is only described. This one takes
 * what it is given and looks at none of it; each call that would reach a GPU fails. */

enum { NO_GPU = 34, VERSION = 13000 };

int cuDriverGetVersion(int *version);
int cuDriverGetVersion(int *version) {
    *version = VERSION;
    return 0;
}

#define TELLS(name)                                                                                                    \
    int name(int error, const char **text);                                                                            \
    int name(int error, const char **text) {                                                                           \
        (void)error;                                                                                                   \
        *text = "no driver";                                                                                           \
        return 0;                                                                                                      \
    }
TELLS(cuGetErrorName)
TELLS(cuGetErrorString)

/* Whatever comes behind the handle says what to load. */
#define LOADS(name)                                                                                                    \
    int name(void **handle);                                                                                           \
    int name(void **handle) {                                                                                          \
        static int loaded;                                                                                             \
        *handle = &loaded;                                                                                             \
        return 0;                                                                                                      \
    }
LOADS(cuLibraryLoadData)
LOADS(cuLibraryGetKernel)

#define FAILS(name)                                                                                                    \
    int name(void);                                                                                                    \
    int name(void) {                                                                                                   \
        return NO_GPU;                                                                                                 \
    }
FAILS(cuCtxGetCurrent)
FAILS(cuCtxGetDevice)
FAILS(cuCtxGetLimit)
FAILS(cuCtxPopCurrent)
FAILS(cuCtxPushCurrent)
FAILS(cuDeviceGet)
FAILS(cuDeviceGetAttribute)
FAILS(cuDeviceGetCount)
FAILS(cuDevicePrimaryCtxRelease)
FAILS(cuDevicePrimaryCtxReset)
FAILS(cuDevicePrimaryCtxRetain)
FAILS(cuFuncGetAttribute)
FAILS(cuFuncSetAttribute)
FAILS(cuInit)
FAILS(cuKernelGetAttribute)
FAILS(cuKernelSetAttribute)
FAILS(cuLaunchCooperativeKernel)
FAILS(cuLaunchKernel)
FAILS(cuLaunchKernelEx)
FAILS(cuLibraryLoadFromFile)
FAILS(cuLibraryUnload)
FAILS(cuLinkAddData)
FAILS(cuLinkAddData_v2)
FAILS(cuLinkAddFile_v2)
FAILS(cuLinkComplete)
FAILS(cuLinkCreate)
FAILS(cuLinkCreate_v2)
FAILS(cuLinkDestroy)
FAILS(cuMemcpyDtoH_v2)
FAILS(cuModuleGetFunction)
FAILS(cuModuleGetGlobal_v2)
FAILS(cuModuleLoadData)
FAILS(cuModuleLoadDataEx)
FAILS(cuModuleLoadFatBinary)
FAILS(cuModuleUnload)
FAILS(cuOccupancyMaxActiveBlocksPerMultiprocessor)
FAILS(cuOccupancyMaxPotentialClusterSize)
FAILS(cuStreamGetCtx)
FAILS(cuStreamSynchronize)
FAILS(cuTensorMapEncodeTiled)
