/* device_cuda.c: the CUDA row: everything behind it is in a plugin, so that one binary starts on any machine. The row
 * is always listed; without the plugin, or where the plugin finds no GPU that it can use, available() says why. */
#include "base/device/device.h"
#include "base/device/plugin.h"

static const struct device_ops *gpu; /* the plugin's; set once available() has said yes */

static bool available(struct err *why) {
    const struct plugin *p = plugin_load("libsparsetrain_cuda.so", "libcuda.so.1", why);
    if (!p || !p->device->available(why)) return false;
    gpu = p->device;
    return true;
}

static const struct device_ops *served(void) {
    struct err why = {0};
    if (!gpu && !available(&why)) die("the GPU was used without asking whether there is one: %s", why.text);
    return gpu;
}

bool device_host_reads(const void *p) {
    return !gpu || gpu->caller()->pointer(p) & POINTER_OF_HOST;
}

static const char *label(void) {
    return served()->label();
}
static const char *describe(void) {
    return served()->describe();
}
static void choose(int local_rank, int local_size) {
    served()->choose(local_rank, local_size);
}
static void *alloc(size_t bytes, const char *what) {
    return served()->alloc(bytes, what);
}
static void release(void *block) {
    if (block) served()->release(block);
}
static void zero(void *block, size_t bytes) {
    served()->zero(block, bytes);
}
static void copy(void *to, const void *from, size_t bytes) {
    served()->copy(to, from, bytes);
}
static void to_device(void *device, const void *host, size_t bytes) {
    served()->to_device(device, host, bytes);
}
static void to_host(void *host, const void *device, size_t bytes) {
    served()->to_host(host, device, bytes);
}
static void sync_all(void) {
    served()->sync();
}
static uint32_t to_host_begin(void *host, const void *device, size_t bytes) {
    return served()->to_host_begin(host, device, bytes);
}
static uint32_t to_device_begin(void *device, const void *host, size_t bytes) {
    return served()->to_device_begin(device, host, bytes);
}
static void wait_for(uint32_t ticket) {
    served()->wait(ticket);
}
static const struct device_timer_ops *timer(void) {
    return served()->timer();
}
static const struct device_caller_ops *caller(void) {
    return served()->caller();
}
static const struct store_ops *store(void) {
    return served()->store();
}
static const struct backend_ops *backend(void) {
    return served()->backend();
}

const struct device_ops device_cuda = {
    .name = "cuda",
    .summary = "an NVIDIA GPU, networks through cuDNN",
    .available = available,
    .label = label,
    .describe = describe,
    .choose = choose,
    .alloc = alloc,
    .release = release,
    .zero = zero,
    .copy = copy,
    .to_device = to_device,
    .to_host = to_host,
    .sync = sync_all,
    .to_host_begin = to_host_begin,
    .to_device_begin = to_device_begin,
    .wait = wait_for,
    .timer = timer,
    .caller = caller,
    .store = store,
    .backend = backend,
};
