/* layer_missing.c: the row of a backend that lacks a layer, see layers.def. In the plugin, too. */
#include "nets/backend.h"

const struct layer_ops layer_missing = {0};
