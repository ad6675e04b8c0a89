/* place.c: see place.h. */
#include "base/files/place.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

/* Folders above that of the program in which a clone may begin: build/tests/ and build/san-address/tests/ are below. */
enum { LEVELS = 4 };

void place_program(char folder[PLACE_MAX]) {
    ssize_t length = readlink("/proc/self/exe", folder, PLACE_MAX - 1);
    folder[length > 0 ? length : 0] = 0;
    char *slash = strrchr(folder, '/');
    if (slash) slash[1] = 0;
}

/* As the kernel has it: whatever links led to the file, and wherever the process has gone since it was loaded. */
void place_library(char folder[PLACE_MAX]) {
    char line[PLACE_MAX + 128];
    const uintptr_t here = (uintptr_t)place_library;
    FILE *maps = fopen("/proc/self/maps", "r");
    folder[0] = 0;
    while (maps && !*folder && fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        const char *path = strchr(line, '/');
        if (path && sscanf(line, "%lx-%lx", &from, &to) == 2 && from <= here && here < to)
            snprintf(folder, PLACE_MAX, "%.*s", (int)(strrchr(path, '/') + 1 - path), path);
    }
    if (maps) fclose(maps);
}

/* From "/a/b/" to "/a/"; false where nothing is above. */
static bool go_up(char *folder) {
    size_t length = strlen(folder);
    if (length < 2) return false;
    folder[length - 1] = 0;
    char *slash = strrchr(folder, '/');
    if (slash) slash[1] = 0;
    return slash != NULL;
}

static bool join(char path[PLACE_MAX], const char *folder, const char *between, const char *name) {
    int length = snprintf(path, PLACE_MAX, "%s%s%s", folder, between, name);
    return length >= 0 && length < PLACE_MAX;
}

static bool is_there(const char *path) {
    return access(path, F_OK) == 0;
}

static bool is_folder(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* PREFIX/ of an installed copy. */
static bool installed_root(char root[PLACE_MAX]) {
    char scripts[PLACE_MAX];
    place_program(root);
    return go_up(root) && join(scripts, root, "share/sparsetrain/", "scripts") && is_folder(scripts);
}

/* The top of the clone in which the program was built, with a slash at its end. */
static bool clone_root(char root[PLACE_MAX]) {
    char script[PLACE_MAX];
    place_program(root);
    for (int level = 0; level < LEVELS && *root; level++) {
        if (join(script, root, "scripts/", "fetch-data.sh") && is_there(script)) return true;
        if (!go_up(root)) return false;
    }
    return false;
}

static bool same_file(const char *a, const char *b) {
    struct stat s, t;
    return stat(a, &s) == 0 && stat(b, &t) == 0 && s.st_dev == t.st_dev && s.st_ino == t.st_ino;
}

const char *place_of(const char *name, char path[PLACE_MAX]) {
    char root[PLACE_MAX];
    bool page = strncmp(name, "docs/", 5) == 0, found;
    if (installed_root(root))
        found = join(path, root, page ? "share/doc/sparsetrain/" : "share/sparsetrain/", name) && is_there(path);
    else
        found = clone_root(root) && join(path, root, "", name) && !same_file(path, name) && is_there(path);
    if (!found) join(path, "", "", name);
    return path;
}

/* -- commands ------------------------------------------------------------------------------------------------------ */

/* A word as a shell reads it back. */
static void quote(char *to, size_t size, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+@%:,=-";
    size_t used = 0;
    if (strspn(word, plain) == strlen(word)) {
        snprintf(to, size, "%s", word);
        return;
    }
    to[used++] = '\'';
    for (; *word && used + 6 < size; word++) {
        if (*word == '\'') {
            memcpy(to + used, "'\\''", 4);
            used += 4;
        } else {
            to[used++] = *word;
        }
    }
    snprintf(to + used, size - used, "'");
}

const char *place_script(const char *script) {
    static _Thread_local char text[PLACE_MAX + 64];
    char name[64], path[PLACE_MAX];
    snprintf(name, sizeof name, "scripts/%.40s", script);
    snprintf(text, sizeof text, "sh ");
    quote(text + 3, sizeof text - 3, place_of(name, path));
    return text;
}

const char *place_fetch(const char *dataset) {
    static _Thread_local char text[PLACE_MAX + 128];
    snprintf(text, sizeof text, "%s %.40s", place_script("fetch-data.sh"), dataset);
    return text;
}

/* -- texts --------------------------------------------------------------------------------------------------------- */

/* The length of a "scripts/NAME.sh" or "docs/NAME.md" that `text` begins with; else 0. */
static size_t name_at(const char *text) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.-";
    bool page = strncmp(text, "docs/", 5) == 0;
    if (!page && strncmp(text, "scripts/", 8) != 0) return 0;
    size_t length = strspn(text, letters);
    const char *ending = page ? ".md" : ".sh";
    while (length > 3 && strncmp(text + length - 3, ending, 3) != 0) length--; /* a full stop behind it */
    return length > 3 ? length : 0;
}

char *place_text(const char *text) {
    char name[128], path[PLACE_MAX];
    size_t names = 0, used = 0;
    for (const char *at = text; *at; at++) names += name_at(at) > 0;
    size_t size = strlen(text) + names * PLACE_MAX + 1;
    char *to = mem_zalloc(size, 1, "a text with paths in it");
    for (size_t length; *text; text += length) {
        length = name_at(text);
        bool named = length > 0 && length < sizeof name;
        if (!named) length = 1;
        snprintf(name, sizeof name, "%.*s", (int)length, text);
        used += (size_t)snprintf(to + used, size - used, "%s", named ? place_of(name, path) : name);
    }
    return to;
}

/* -- data ---------------------------------------------------------------------------------------------------------- */

const char *place_data(void) {
    static char path[PLACE_MAX];
    static const char here[] = "build/data";
    char root[PLACE_MAX];
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (installed_root(root)) {
        bool good = data && *data == '/'   ? join(path, data, "/", "sparsetrain")
                    : home && *home == '/' ? join(path, home, "/.local/share/", "sparsetrain")
                                           : join(path, root, "share/sparsetrain/", "data");
        return good ? path : here;
    }
    if (!is_folder(here) && clone_root(root) && join(path, root, "", here) && is_folder(path)) return path;
    return here;
}
