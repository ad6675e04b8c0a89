/* device_option.c: see device_option.h. */
#include "cli/options/device_option.h"

#include <string.h>

#include "base/mem.h"
#include "base/table.h"
#include "nets/net.h"

const char *device_option_name(size_t i) {
    return i == 0 ? "auto" : devices[i - 1] ? devices[i - 1]->name : NULL;
}

static bool is_auto(const char *name) {
    return strcmp(name, "auto") == 0;
}

static bool is_gpu(const struct device_ops *device) {
    return !device_is_host(device) && !device->no_arrays;
}

/* auto: the first GPU's row that can be used, else the CPU's; *why is then of the last one that cannot. */
static const struct device_ops *best_here(struct err *why) {
    for (size_t i = 0; devices[i]; i++) {
        struct err own = {0};
        if (!is_gpu(devices[i])) continue;
        if (devices[i]->available(&own)) return devices[i];
        *why = own;
    }
    return device_find("cpu");
}

/* Which row this process would take; false: none, or the one named cannot be used. */
static bool find_here(const char *verb, const char *name, enum device_use use, const struct device_ops **device,
                      struct err *e) {
    struct err why = {0};
    char names[256] = "";
    *device = is_auto(name) ? best_here(&why) : device_find(name);
    for (size_t i = 0; device_option_name(i); i++) names_add(names, sizeof names, device_option_name(i));
    if (!*device) return err_set(e, "%s--device has no \"%.100s\"; there are: %s", verb, name, names);
    if (use == DEVICE_TRAINS && (*device)->no_arrays)
        return err_set(e,
                       "%s--device %s holds gradients for bench and bench select, and trains no network; give another",
                       verb, name);
    if (!(*device)->available(&why)) return err_set(e, "%s--device %s cannot be used: %s", verb, name, why.text);
    return true;
}

bool device_option_alone(const char *verb, const char *name, enum device_use use, const struct device_ops **device,
                         struct err *e) {
    if (!find_here(verb, name, use, device, e)) return false;
    (*device)->choose(0, 1);
    return true;
}

bool device_option_job(const char *verb, const char *name, enum device_use use, struct comm *c,
                       const struct device_ops **device, struct err *e) {
    find_here(verb, name, use, device, e);
    if (comm_agree(c, e)) return false;
    uint64_t gpus = (uint64_t)is_gpu(*device);
    comm_allreduce_u64(c, &gpus, 1, COMM_SUM);
    if (gpus > 0 && device_is_host(*device) && is_auto(name)) {
        struct err why = {0};
        best_here(&why);
        err_set(e,
                "%s--device auto: the ranks on node %s can use no GPU, others can; repair it, leave it out, or give "
                "--device cpu: %s",
                verb, comm_host(), why.text);
    }
    if (comm_agree(c, e)) return false;
    (*device)->choose(c->local_rank, c->local_size);
    return true;
}

char *device_option_text(const struct device_ops *device) {
    if (device->no_arrays) return mem_printf("%s", device->describe());
    return mem_printf("%s; %s", device->describe(), net_backend_version(device));
}
