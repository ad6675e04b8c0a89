/* device_cpu.c: the CPU's row: device memory is host memory. */
#include <string.h>

#include "base/device.h"
#include "base/mem.h"

static bool available(struct err *why) {
    (void)why;
    return true;
}

static void *alloc(size_t bytes, const char *what) {
    return mem_alloc(bytes, 1, what);
}
static void zero(void *block, size_t bytes) {
    memset(block, 0, bytes);
}
static void copy(void *to, const void *from, size_t bytes) {
    memcpy(to, from, bytes);
}
static void sync_nothing(void) {}

const struct device_ops device_cpu = {
    .name = "cpu",
    .summary = "this machine's processor, networks through oneDNN",
    .available = available,
    .alloc = alloc,
    .release = mem_free,
    .zero = zero,
    .to_device = copy,
    .to_host = copy,
    .sync = sync_nothing,
};
