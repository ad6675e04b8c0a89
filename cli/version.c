/* version.c: see version.h. ST_VERSION, ST_COMMIT and ST_CFLAGS come from the Makefile. */
#include "cli/version.h"

#include <stdio.h>

#include "base/mem.h"
#include "cli/device_option.h"
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

/* What comes from plugins has versions of its own, where it can be used. */
static void print_device(const struct device_ops *device) {
    struct err why = {0};
    if (device_is_host(device) || device->no_arrays || !device->available(&why)) return;
    char *text = device_option_text(device);
    printf("%-9s %s\n", device->name, text);
    mem_free(text);
}

void version_print(void) {
    printf("sparsetrain %s (commit %s)\n", ST_VERSION, ST_COMMIT);
    printf("MPI       %s\n", comm_library());
    printf("networks  %s\n", net_backend_version(device_find("cpu")));
    for (size_t i = 0; devices[i]; i++) print_device(devices[i]);
    printf("selection %s\n", topk_kernels()->name);
    printf("compiler  %s, %s\n", COMPILER, ST_CFLAGS);
}

void version_json(struct json *j, const struct device_ops *device) {
    json_object(j, "versions");
    json_string(j, "sparsetrain", ST_VERSION);
    json_string(j, "commit", ST_COMMIT);
    json_string(j, "mpi", comm_library());
    json_string(j, "backend", net_backend_version(device));
    json_string(j, "simd", topk_kernels()->name);
    json_string(j, "compiler", COMPILER);
    json_string(j, "flags", ST_CFLAGS);
    json_end(j);
}
