/* text_splits.h: the three files of a text, train, valid and test, plain or packed, under one of the names that a
 * dataset knows and in one of the folders where it usually lies. */
#ifndef ST_DATA_TEXT_SPLITS_H
#define ST_DATA_TEXT_SPLITS_H

#include "data/text/text_file.h"

enum { TEXT_SPLITS = 3, TEXT_PATH = 512 };

struct text_naming {
    const char *name[TEXT_SPLITS]; /* train, valid, test */
};

/* Where a dataset looks, in this order. */
struct text_places {
    const struct text_naming *naming;
    int namings;
    const char *const *folder; /* below the directory that the user names; "" is that itself */
    int folders;
    const char *get_it; /* "get X with `", to which `fetch` ... */
    const char *fetch;  /* ... is put as place_fetch has it */
};

/* The three files, and what they hold at the most [bytes]. */
struct text_splits {
    char path[TEXT_SPLITS][TEXT_PATH];
    uint64_t bytes[TEXT_SPLITS];
};

/* Looks in `where` ("": here) and sizes what it finds; source: the folder. False: *e says what is wrong; it says
 * nothing where there is no such file at all, which is the caller's to say. */
bool text_splits_find(const struct text_places *p, const char *where, char source[TEXT_PATH], struct text_splits *f,
                      struct err *e);

/* A path of at most TEXT_PATH - 1 bytes: dir, a slash, name (nothing where that is ""), ending. */
bool text_path(char path[TEXT_PATH], const char *dir, const char *name, const char *ending, struct err *e);

/* A file whose state cannot be read counts as there: reading it will report the error. */
bool text_is_there(const char *path);

#endif
