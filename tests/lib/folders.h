/* folders.h: folders that a test makes and takes away again. */
#ifndef ST_TESTS_FOLDERS_H
#define ST_TESTS_FOLDERS_H

#include <ftw.h>
#include <stdio.h>

static inline int remove_one(const char *path, const struct stat *s, int type, struct FTW *ftw) {
    (void)s;
    (void)type;
    (void)ftw;
    return remove(path);
}

/* The folder and whatever is in it; 0: it is gone. */
static inline int remove_folder(const char *path) {
    return nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
