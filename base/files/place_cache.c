/* place_cache.c: see place.h: where what can be made again is kept. By itself, since the CUDA plugin has it, too. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/place.h"
#include "base/mem.h"

char *place_cache(void) {
    const char *own = getenv("SPARSETRAIN_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (own && *own) return mem_printf("%s", own);
    if (xdg && *xdg) return mem_printf("%s/sparsetrain", xdg);
    if (home && *home) return mem_printf("%s/.cache/sparsetrain", home);
    return NULL;
}

void place_make_folders(const char *path) {
    if (!*path) return;
    char *part = mem_printf("%s", path);
    for (char *at = part + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        (void)mkdir(part, 0777);
        *at = '/';
    }
    mem_free(part);
}
