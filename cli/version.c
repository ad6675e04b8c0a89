/* version.c: see version.h. ST_VERSION, ST_COMMIT and ST_CFLAGS come from the Makefile. */
#include "cli/version.h"

#include <stdio.h>

#include "comm/comm.h"
#include "nets/net.h"
#include "topk/kernels.h"

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

const char *version_number(void) {
    return ST_VERSION;
}
const char *version_commit(void) {
    return ST_COMMIT;
}

void version_print(void) {
    printf("sparsetrain %s (commit %s)\n", ST_VERSION, ST_COMMIT);
    printf("MPI       %s\n", comm_library());
    printf("networks  %s\n", net_backend_version(device_find("cpu")));
    printf("selection %s\n", topk_kernels()->name);
    printf("compiler  %s, %s\n", COMPILER, ST_CFLAGS);
}

void version_json(struct json *j) {
    json_object(j, "versions");
    json_string(j, "sparsetrain", ST_VERSION);
    json_string(j, "commit", ST_COMMIT);
    json_string(j, "mpi", comm_library());
    json_string(j, "backend", net_backend_version(device_find("cpu")));
    json_string(j, "simd", topk_kernels()->name);
    json_string(j, "compiler", COMPILER);
    json_string(j, "flags", ST_CFLAGS);
    json_end(j);
}
