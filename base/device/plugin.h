/* plugin.h: what a shared library must export to serve a device: one function, sparsetrain_plugin, that takes what the
 * library calls of ours and returns what it serves with. It is linked against nothing of ours, nor finds it by name: so
 * it serves a program and a library in somebody else's program alike. */
#ifndef ST_BASE_PLUGIN_H
#define ST_BASE_PLUGIN_H

#include "base/device/device.h"

/* Changes with anything that the two sides share: the structures below and those of device.h, store.h, backend.h,
 * optimiser.h, struct err. A plugin of another number, or built from another version, is refused. */
enum { PLUGIN_INTERFACE = 5 };

/* What the loading program provides; see error.h and mem.h for the functions. die_at does not return, though it may
 * jump back to a catch: a plugin holds no lock when it calls it. */
struct plugin_host {
    bool networks; /* does the program run networks? If not, cuDNN is not loaded and the plugin returns no rows for
                      networks */
    void (*die_at)(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
    bool (*err_with)(struct err *e, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
    void *(*alloc)(size_t count, size_t size, const char *what);
    void (*release)(void *block);
    void *(*pinned_alloc)(size_t count, size_t size, const char *what);
    void (*pinned_release)(void *block);
    void (*pin_with)(void *(*alloc)(size_t bytes), void (*release)(void *block));
};

struct plugin {
    uint32_t interface;  /* PLUGIN_INTERFACE */
    const char *version; /* ST_VERSION */
    const struct device_ops *device;
};

/* host: stored, but not read before the caller has checked the returned interface number, since its layout may be
 * another version's. */
typedef const struct plugin *plugin_entry(const struct plugin_host *host);
#define PLUGIN_ENTRY "sparsetrain_plugin"

/* Loads `file` once: $SPARSETRAIN_PLUGIN when that is set, else from beside the program, or from ../lib/sparsetrain of
 * an installed one; where the program is, /proc/self/exe says. In libsparsetrain: from beside the library, from
 * sparsetrain/ there, or from where `make install` puts it. NULL: *why says what is missing and how to get it.
 * driver: the library of a driver without which nothing answers the plugin. Where the system has none, the plugin is
 * not loaded: the libraries under it take many times longer than the start of the program. One that SPARSETRAIN_PLUGIN
 * names is loaded all the same, as is any with driver NULL. */
const struct plugin *plugin_load(const char *file, const char *driver, struct err *why);

#endif
