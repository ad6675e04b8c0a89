/* version.c: see version.h. ST_VERSION, ST_COMMIT and ST_CFLAGS come from the Makefile. */
#include "cli/version.h"

#include <stdio.h>

#include "base/device/plugin.h"
#include "base/mem.h"
#include "cli/options/device_option.h"
#include "comm/comm.h"
#include "nets/net.h"
#include "topk/cpu/kernels.h"

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

static const struct option_row version_rows[] = {{"json", NULL, OPTION_FLAG, NULL, "one JSON object", .offset = 0}};

const struct option_table version_options = {
    .verb = "version",
    .row = version_rows,
    .rows = 1,
    .call = "sparsetrain version",
    .about = "What this build is: version, commit, compiler and flags, MPI, oneDNN, the CUDA plugin, devices.",
};
void version_print(void) {
    printf("sparsetrain %s (commit %s)\n", ST_VERSION, ST_COMMIT);
    printf("MPI       %s\n", comm_library());
    printf("networks  %s\n", net_backend_version(device_find("cpu")));
    for (size_t i = 0; devices[i]; i++) print_device(devices[i]);
    printf("selection %s\n", topk_kernels()->name);
    printf("compiler  %s, %s\n", COMPILER, ST_CFLAGS);
}

static void json_device(struct json *j, const struct device_ops *device) {
    struct err why = {0};
    bool usable = device->available(&why);
    json_object(j, NULL);
    json_string(j, "name", device->name);
    json_boolean(j, "available", usable);
    if (usable) {
        json_null(j, "reason");
        json_string(j, "label", device->label());
        json_string(j, "about", device->describe());
    } else {
        json_string(j, "reason", why.text);
        json_null(j, "label");
        json_null(j, "about");
    }
    if (usable && !device->no_arrays)
        json_string(j, "backend", net_backend_version(device));
    else
        json_null(j, "backend");
    json_end(j);
}

/* Whether it is there and fits this program; whether there is a GPU for it is the device's. */
static void json_plugin(struct json *j) {
    struct err why = {0};
    const struct plugin *p = plugin_load("libsparsetrain_cuda.so", NULL, &why);
    json_object(j, "cuda_plugin");
    json_boolean(j, "loaded", p != NULL);
    if (p)
        json_null(j, "reason");
    else
        json_string(j, "reason", why.text);
    json_end(j);
}

void version_print_json(void) {
    struct json j;
    json_open(&j);
    json_object(&j, NULL);
    json_string(&j, "version", ST_VERSION);
    json_string(&j, "commit", ST_COMMIT);
    json_string(&j, "compiler", COMPILER);
    json_string(&j, "flags", ST_CFLAGS);
    json_string(&j, "mpi", comm_library());
    json_string(&j, "onednn", net_backend_version(device_find("cpu")));
    json_string(&j, "simd", topk_kernels()->name);
    json_plugin(&j);
    json_array(&j, "devices");
    for (size_t i = 0; devices[i]; i++) json_device(&j, devices[i]);
    json_end(&j);
    json_end(&j);
    puts(json_text(&j));
    json_close(&j);
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
