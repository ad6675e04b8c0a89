/* counts.c: what a program asks of the device, so that a test can hold a step to a number of launches and waits where
 * no GPU says how long they take. SPARSETRAIN_HOSTCUDA_COUNTS=FILE: at its end a process adds a line to FILE, with a
 * number for each row below. */
#include "tests/hostcuda/internal.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const names[HOSTCUDA_COUNTERS] = {
    [HOSTCUDA_GIVEN] = "given",
    [HOSTCUDA_WAITS] = "waits",
    [HOSTCUDA_KERNELS] = "kernels",
    [HOSTCUDA_LIBRARY_CALLS] = "library_calls",
    [HOSTCUDA_FILLS] = "fills",
    [HOSTCUDA_COPIES_IN] = "copies_in",
    [HOSTCUDA_COPIES_OUT] = "copies_out",
    [HOSTCUDA_COPIES_INSIDE] = "copies_inside",
    [HOSTCUDA_BYTES_IN] = "bytes_in",
    [HOSTCUDA_BYTES_OUT] = "bytes_out",
    [HOSTCUDA_BYTES_INSIDE] = "bytes_inside",
};
static atomic_ullong counts[HOSTCUDA_COUNTERS];

void hostcuda_count(enum hostcuda_counter which, size_t by) {
    atomic_fetch_add_explicit(&counts[which], by, memory_order_relaxed);
}

void hostcuda_count_copy(const void *to, const void *from, size_t bytes) {
    const bool in = hostcuda_place_of(to) == HOSTCUDA_DEVICE, out = hostcuda_place_of(from) == HOSTCUDA_DEVICE;
    const enum hostcuda_counter copies = in && out ? HOSTCUDA_COPIES_INSIDE
                                         : out     ? HOSTCUDA_COPIES_OUT
                                                   : HOSTCUDA_COPIES_IN;
    const enum hostcuda_counter all = in && out ? HOSTCUDA_BYTES_INSIDE : out ? HOSTCUDA_BYTES_OUT : HOSTCUDA_BYTES_IN;
    hostcuda_count(copies, 1);
    hostcuda_count(all, bytes);
}

/* One write, so that lines of several ranks stay whole. */
static void write_counts(int status, void *unused) {
    const char *path = getenv("SPARSETRAIN_HOSTCUDA_COUNTS");
    char line[1024];
    int used = 0;
    (void)status, (void)unused;
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file) return;
    for (int i = 0; i < HOSTCUDA_COUNTERS; i++)
        used += snprintf(line + used, sizeof line - (size_t)used, "%s%s %llu", i ? " " : "", names[i], counts[i]);
    fprintf(file, "%s\n", line);
    fclose(file);
}

__attribute__((constructor)) static void count_to_the_end(void) {
    on_exit(write_counts, NULL);
}
