/* device_cpu.c: the CPU's row: device memory is host memory. */
#include <string.h>

#include "base/device/device.h"
#include "base/mem.h"

static bool available(struct err *why) {
    (void)why;
    return true;
}
static const char *label(void) {
    return "cpu";
}
static const char *describe(void) {
    return "host memory";
}
static void choose(int local_rank, int local_size) {
    (void)local_rank, (void)local_size;
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

static uint32_t copy_at_once(void *to, const void *from, size_t bytes) {
    memcpy(to, from, bytes);
    return 0;
}
static void wait_for_nothing(uint32_t ticket) {
    (void)ticket;
}

const struct device_ops device_cpu = {
    .name = "cpu",
    .summary = "this machine's processor, networks through oneDNN",
    .available = available,
    .label = label,
    .describe = describe,
    .choose = choose,
    .alloc = alloc,
    .release = mem_free,
    .zero = zero,
    .copy = copy,
    .to_device = copy,
    .to_host = copy,
    .sync = sync_nothing,
    .to_host_begin = copy_at_once,
    .to_device_begin = copy_at_once,
    .wait = wait_for_nothing,
};
