/* planted.c: a library that somebody has put where the program might look for its plugin: it leaves a mark as soon as
 * it is loaded, and then says to be what PLANTED_AS names (tests/gpu/cli_plugin.sh). */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/device/plugin.h"

__attribute__((constructor)) static void leave_a_mark(void) {
    const char *path = getenv("PLANTED_MARK");
    int file = path ? open(path, O_WRONLY | O_CREAT, 0666) : -1;
    if (file >= 0) close(file);
}

static const struct plugin_host *program;
static bool is_planted(struct err *why) {
    return program->err_with(why, EXIT_USER, "the planted device is none");
}

static const struct device_ops device = {.name = "cuda", .summary = "planted", .available = is_planted};
static const struct plugin right = {PLUGIN_INTERFACE, ST_VERSION, &device},
                           older = {PLUGIN_INTERFACE - 1, ST_VERSION, &device},
                           other = {PLUGIN_INTERFACE, ST_VERSION "x", &device};

plugin_entry sparsetrain_plugin;
const struct plugin *sparsetrain_plugin(const struct plugin_host *host) {
    program = host;
    const char *as = getenv("PLANTED_AS");
    if (as && strcmp(as, "right") == 0) return &right;
    if (as && strcmp(as, "older interface") == 0) return &older;
    if (as && strcmp(as, "other version") == 0) return &other;
    return NULL;
}
