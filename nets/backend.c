/* backend.c: the table of backends, see backend.h. */
#include "nets/backend.h"

#include <string.h>

#define BACKEND(name) extern const struct backend_ops backend_##name;
#include "nets/backends.def"
#undef BACKEND
#define BACKEND(name) &backend_##name,
const struct backend_ops *const backends[] = {
#include "nets/backends.def"
    NULL};

const struct backend_ops *backend_for(const char *device) {
    for (size_t i = 0; backends[i]; i++)
        if (strcmp(backends[i]->device, device) == 0) return backends[i];
    return NULL;
}

const char *net_backend_version(void) {
    return backends[0]->version();
}
