/* workspace.c: see hostcuda_overwrite_workspace in hostcuda.h. Training lends 32 MiB for every product of matrices,
 * which took nearly half of its time to be overwritten. */
#include <string.h>

#include "tests/hostcuda/internal.h"

enum {
    KNOWN = 16,         /* workspaces that are remembered */
    END = 4096,         /* bytes at each end, */
    STRETCH = 256 << 10 /* ... and between them, that are overwritten each time */
};

static struct workspace {
    char *start;
    size_t bytes, next; /* next: where the next stretch begins */
} known[KNOWN];
static unsigned taken; /* of them, ever */

static struct workspace *find(char *start, size_t bytes) {
    for (struct workspace *w = known; w < known + KNOWN; w++)
        if (w->start == start && w->bytes == bytes) return w;
    return NULL;
}

void hostcuda_overwrite_workspace(void *start, size_t bytes) {
    if (!start || bytes == 0) return;
    struct workspace *w = find(start, bytes);
    if (!w || bytes <= STRETCH) {
        memset(start, HOSTCUDA_POISON, bytes);
        if (!w) known[taken++ % KNOWN] = (struct workspace){start, bytes, 0};
        return;
    }
    size_t left = bytes - w->next, stretch = left < STRETCH ? left : STRETCH;
    memset(w->start + w->next, HOSTCUDA_POISON, stretch);
    memset(w->start, HOSTCUDA_POISON, END);
    memset(w->start + bytes - END, HOSTCUDA_POISON, END);
    w->next = (w->next + stretch) % bytes;
}

void hostcuda_forget_workspaces(const char *start, size_t bytes) {
    for (struct workspace *w = known; w < known + KNOWN; w++)
        if (w->start < start + bytes && start < w->start + w->bytes) *w = (struct workspace){0};
}
