/* library_saved.h: the state of an exchange as bytes, and back (sparsetrain_save, sparsetrain_restore). */
#ifndef ST_COMM_LIBRARY_SAVED_H
#define ST_COMM_LIBRARY_SAVED_H

#include "comm/library.h"

struct saving {
    sparsetrain *x;
    char *out; /* NULL: only counted */
    const char *in;
    size_t at, count; /* bytes done; there are */
};

/* arguments: a struct saving, of which `at` is then how many bytes there are. False: one line in *e. */
bool library_save(void *arguments, struct err *e);
/* Collective, and refused on all ranks alike. What no run can have left breaks x. */
bool library_restore(void *arguments, struct err *e);

#endif
