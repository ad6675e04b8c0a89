/* cuda_host.h: the plugin's side of struct plugin_host (plugin.h): die(), err_set(), mem_alloc() and the like, by the
 * names that they have in error.h and mem.h, come from whoever has loaded the plugin. */
#ifndef ST_BASE_CUDA_HOST_H
#define ST_BASE_CUDA_HOST_H

#include "base/device/plugin.h"

void cuda_host_set(const struct plugin_host *host);
/* Has the host networks to run? */
bool cuda_host_has_networks(void);

#endif
