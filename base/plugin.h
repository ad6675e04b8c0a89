/* plugin.h: what a shared library must export to serve a device: one function, sparsetrain_plugin, that returns this.
 * The library is linked against nothing of the program; it finds die() and mem_alloc() in the program that loads it. */
#ifndef ST_BASE_PLUGIN_H
#define ST_BASE_PLUGIN_H

#include "base/device.h"

/* Changes with anything that program and plugin share: the structures of device.h, store.h, backend.h, optimiser.h. A
 * plugin of another number, or built from another version, is refused. */
enum { PLUGIN_INTERFACE = 3 };

struct plugin {
    uint32_t interface;  /* PLUGIN_INTERFACE */
    const char *version; /* ST_VERSION */
    const struct device_ops *device;
};

typedef const struct plugin *plugin_entry(void);
#define PLUGIN_ENTRY "sparsetrain_plugin"

/* Loads `file` once: $SPARSETRAIN_PLUGIN when that is set, else from beside the program, or from ../lib/sparsetrain of
 * an installed one; where the program is, /proc/self/exe says. NULL: *why says what is missing and how to get it. */
const struct plugin *plugin_load(const char *file, struct err *why);

#endif
