/* text_splits.c: see text_splits.h. */
#include "data/text/text_splits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/place.h"

bool text_path(char path[TEXT_PATH], const char *dir, const char *name, const char *ending, struct err *e) {
    int length = snprintf(path, TEXT_PATH, "%s%s%s%s", dir, *name ? "/" : "", name, ending);
    return length < TEXT_PATH || err_set(e, "the path %.80s... is too long: at most 511 bytes; use a shorter one", dir);
}

bool text_is_there(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

/* The path of one split, plain or packed. */
static bool find_split(const char *dir, const char *name, char path[TEXT_PATH], struct err *e) {
    static const char *const ending[2] = {"", ".gz"};
    for (int i = 0; i < 2; i++) {
        if (!text_path(path, dir, name, ending[i], e)) return false;
        if (text_is_there(path)) return true;
    }
    return false;
}

/* The first of the naming schemes for which all three files exist. If none is complete, the first one of which some
 * files exist, so that the message can name the missing ones. */
static bool find_files(const struct text_places *p, const char *dir, struct text_splits *f, struct err *part,
                       struct err *e) {
    for (int naming = 0; naming < p->namings; naming++) {
        const char *const *name = p->naming[naming].name;
        int found = 0, have = 0, lack = 0;
        for (int i = 0; i < TEXT_SPLITS; i++) {
            bool there = find_split(dir, name[i], f->path[i], e);
            if (e->text[0]) return false;
            found += there;
            *(there ? &have : &lack) = i;
        }
        if (found == TEXT_SPLITS) return true;
        if (found)
            err_set(part, "%s has %s, but no %s (nor .gz); put it there, or %s%s`", dir, name[have], name[lack],
                    p->get_it, place_fetch(p->fetch));
    }
    return false;
}

static bool size_up(struct text_splits *f, struct err *e) {
    for (int i = 0; i < TEXT_SPLITS; i++) {
        if (!text_size(f->path[i], &f->bytes[i], e)) return false;
        if (f->bytes[i] > SIZE_MAX / 64) return err_set(e, "%s is too large for the memory; cut it", f->path[i]);
    }
    return true;
}

bool text_splits_find(const struct text_places *p, const char *where, char source[TEXT_PATH], struct text_splits *f,
                      struct err *e) {
    struct err part = {0};
    struct stat s;
    if (!*where) where = ".";
    if (stat(where, &s) == 0 && !S_ISDIR(s.st_mode))
        return err_set(e, "%s is a file; give the directory that holds train, valid and test", where);
    for (int i = 0; i < p->folders; i++) {
        if (!text_path(source, where, p->folder[i], "", e)) return false;
        if (find_files(p, source, f, &part, e)) return size_up(f, e);
        if (e->text[0]) return false;
    }
    return part.text[0] ? err_set(e, "%s", part.text) : false;
}
