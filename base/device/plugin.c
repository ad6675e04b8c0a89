/* plugin.c: see plugin.h. */
#include "base/device/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/place.h"
#include "base/mem.h"

/* Of the library, the Makefile defines where `make install` puts plugins. */
#ifdef ST_PLUGIN_FOLDER
#define WE "library"
#define CPU "device=cpu"
enum { IS_LIBRARY = 1 };
#else
#define ST_PLUGIN_FOLDER ""
#define WE "program"
#define CPU "--device cpu"
enum { IS_LIBRARY = 0 };
#endif

static const struct plugin_host host = {.networks = !IS_LIBRARY,
                                        .die_at = die_at,
                                        .err_with = err_with,
                                        .alloc = mem_alloc,
                                        .release = mem_free,
                                        .pinned_alloc = mem_pinned_alloc,
                                        .pinned_release = mem_pinned_free,
                                        .pin_with = mem_pin_with};

/* What is no regular file is not opened: a FIFO would hang the program. */
static bool is_readable(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, R_OK) == 0;
}

/* $SPARSETRAIN_PLUGIN, with a slash in it: the loader looks for a bare name along LD_LIBRARY_PATH. */
static bool find_given(const char *given, char path[PATH_MAX], struct err *why) {
    int length = snprintf(path, PATH_MAX, "%s%s", strchr(given, '/') ? "" : "./", given);
    if (length < PATH_MAX && is_readable(path)) return true;
    return err_set(why, "SPARSETRAIN_PLUGIN names %s, which cannot be read", given);
}

static bool is_in(const char *folder, const char *below, const char *file, char path[PATH_MAX]) {
    int length = snprintf(path, PATH_MAX, "%s%s%s", folder, below, file);
    return *folder == '/' && length < PATH_MAX && is_readable(path);
}

/* Beside the library, as in a build; in sparsetrain/ there, as installed; or where it was to be installed, which serves
 * a program that has the library in itself. */
static bool find_by_library(const char *file, char path[PATH_MAX], struct err *why) {
    char folder[PATH_MAX];
    place_library(folder);
    if (is_in(folder, "", file, path) || is_in(folder, "sparsetrain/", file, path) ||
        is_in(ST_PLUGIN_FOLDER, "", file, path))
        return true;
    return err_set(why,
                   "there is no plugin %s beside the library, in sparsetrain/ there, or in %s: build and install it "
                   "where nvcc and cuDNN 9 are, name it in SPARSETRAIN_PLUGIN, or use " CPU,
                   file, ST_PLUGIN_FOLDER);
}

static bool find_by_program(const char *file, char path[PATH_MAX], struct err *why) {
    char folder[PATH_MAX];
    place_program(folder);
    if (!*folder)
        return err_set(why,
                       "the system does not say where the program lies (/proc/self/exe): name the plugin %s in "
                       "SPARSETRAIN_PLUGIN, or use " CPU,
                       file);
    if (is_in(folder, "", file, path) || is_in(folder, "../lib/sparsetrain/", file, path)) return true;
    return err_set(why,
                   "there is no plugin %s beside the program: build where nvcc and cuDNN 9 are installed (make says "
                   "which of them it found), or use " CPU,
                   file);
}

/* Where the file is; false: nowhere. Folders are those of the file that this code lies in, whatever links led to it,
 * and no others: whoever can put a file there can replace us, too. */
static bool find(const char *file, char path[PATH_MAX], struct err *why) {
    const char *given = getenv("SPARSETRAIN_PLUGIN");
    if (given && *given) return find_given(given, path, why);
    return (IS_LIBRARY ? find_by_library : find_by_program)(file, path, why);
}

static const struct plugin *open_plugin(const char *path, struct err *why) {
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
        err_set(why,
                "the plugin cannot be loaded: %.400s; install what is missing or put its folder into LD_LIBRARY_PATH",
                dlerror());
        return NULL;
    }
    plugin_entry *entry;
    void *symbol = dlsym(library, PLUGIN_ENTRY);
    memcpy(&entry, &symbol, sizeof entry); /* ISO C has no cast from a data pointer to a function */
    const struct plugin *p = symbol ? entry(&host) : NULL;
    if (p && p->interface == PLUGIN_INTERFACE && strcmp(p->version, ST_VERSION) == 0) return p;
    if (!p)
        err_set(why, "%.300s is no plugin of this " WE ": build and install both together", path);
    else if (strcmp(p->version, ST_VERSION) != 0)
        err_set(why, "the plugin %.300s is of version %s, the " WE " of %s: build and install both together", path,
                p->version, ST_VERSION);
    else
        err_set(why,
                "the plugin %.300s was built from other sources (interface %u, the " WE "'s is %u): build and "
                "install both together",
                path, (unsigned)p->interface, (unsigned)PLUGIN_INTERFACE);
    dlclose(library);
    return NULL;
}

/* It stays loaded: the plugin takes it up. */
static bool has_driver(const char *driver, struct err *why) {
    const char *given = getenv("SPARSETRAIN_PLUGIN");
    return !driver || (given && *given) || dlopen(driver, RTLD_LAZY | RTLD_LOCAL) ||
           err_set(why, "there is no NVIDIA driver (%s is not found); nvidia-smi shows it", driver);
}

const struct plugin *plugin_load(const char *file, const char *driver, struct err *why) {
    static const struct plugin *loaded;
    static struct err refused;
    static char path[PATH_MAX];
    if (!loaded && !refused.text[0] && (path[0] || find(file, path, &refused))) {
        if (!has_driver(driver, why)) return NULL;
        loaded = open_plugin(path, &refused);
    }
    if (!loaded) err_set(why, "%s", refused.text);
    return loaded;
}
