/* mem.c: see mem.h. */
#include "base/mem.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"

enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20, HUGE_FROM = 4 << 20 };

static long fail_countdown;
static atomic_long live; /* blocks */

void mem_fail_at(long nth) {
    fail_countdown = nth;
}

long mem_live(void) {
    return atomic_load(&live);
}

static void *allocate(size_t bytes) {
    if (fail_countdown > 0 && --fail_countdown == 0) return NULL;
    size_t alignment = bytes >= HUGE_FROM ? HUGE_PAGE : ALIGNMENT;
    if (bytes > SIZE_MAX - alignment) return NULL;
    void *block = NULL;
    if (posix_memalign(&block, alignment, bytes ? bytes : 1) != 0) return NULL;
    /* Long vectors are read front to back: with 4 KiB pages the address translation costs as much as the sums. */
    if (bytes >= HUGE_FROM) (void)madvise(block, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    atomic_fetch_add(&live, 1);
    return block;
}

void *mem_alloc(size_t count, size_t size, const char *what) {
    if (size && count > SIZE_MAX / size) die("the size of %s overflows: %zu times %zu bytes", what, count, size);
    void *block = allocate(count * size);
    if (!block) die("no memory for %s: %.1f MiB were asked for", what, (double)count * (double)size / 1048576.0);
    return block;
}

void *mem_zalloc(size_t count, size_t size, const char *what) {
    void *block = mem_alloc(count, size, what);
    memset(block, 0, count * size);
    return block;
}

void *mem_grow(void *block, size_t count, size_t room, size_t size, const char *what) {
    void *more = mem_alloc(room, size, what);
    if (count > 0) memcpy(more, block, count * size);
    mem_free(block);
    return more;
}

void mem_free(void *block) {
    if (block) atomic_fetch_sub(&live, 1);
    free(block);
}

/* -- page-locked memory: a header of one line before the block says who takes it back ----------------------------- */

static void *(*pin)(size_t bytes);
static void (*unpin)(void *block);

union pinned_header {
    void (*release)(void *block); /* of the device; NULL: mem_free */
    char line[ALIGNMENT];
};

void mem_pin_with(void *(*alloc)(size_t bytes), void (*release)(void *block)) {
    pin = alloc;
    unpin = release;
}

void *mem_pinned_alloc(size_t count, size_t size, const char *what) {
    if (size && count > (SIZE_MAX - ALIGNMENT) / size)
        die("the size of %s overflows: %zu times %zu bytes", what, count, size);
    size_t bytes = count * size + ALIGNMENT;
    union pinned_header *header = pin ? pin(bytes) : NULL;
    bool pinned = header != NULL;
    if (pinned) atomic_fetch_add(&live, 1);
    if (!pinned) header = mem_alloc(bytes, 1, what);
    header->release = pinned ? unpin : NULL;
    return header + 1;
}

void mem_pinned_free(void *block) {
    if (!block) return;
    union pinned_header *header = (union pinned_header *)block - 1;
    if (!header->release) {
        mem_free(header);
        return;
    }
    atomic_fetch_sub(&live, 1);
    header->release(header);
}

char *mem_printf(const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0) die("cannot format \"%s\"", format);
    char *text = mem_alloc((size_t)length + 1, 1, "a text");
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

/* A line "Name:   123 kB" of a file of /proc, in bytes; 0: there is none. */
static size_t proc_line(const char *file, const char *name) {
    FILE *f = fopen(file, "r");
    if (!f) return 0;
    char line[256];
    size_t length = strlen(name), bytes = 0;
    while (fgets(line, sizeof line, f))
        if (strncmp(line, name, length) == 0) bytes = (size_t)strtoull(line + length, NULL, 10) * 1024;
    fclose(f);
    return bytes;
}

size_t mem_resident(void) {
    return proc_line("/proc/self/status", "VmRSS:");
}
size_t mem_resident_peak(void) {
    return proc_line("/proc/self/status", "VmHWM:");
}
size_t mem_resident_shared(void) {
    return proc_line("/proc/self/status", "RssShmem:");
}
size_t mem_resident_private(void) {
    return proc_line("/proc/self/status", "RssAnon:");
}
/* A mapping "from-to rw-p offset device inode" without a name, or the heap: neither a file's nor a stack's. */
static bool is_private(const char *line, bool *mapping) {
    char access[8], name[16] = "";
    unsigned long long from, to;
    *mapping = sscanf(line, "%llx-%llx %7s %*s %*s %*s %15s", &from, &to, access, name) >= 3;
    return *mapping && strcmp(access, "rw-p") == 0 && (!name[0] || strcmp(name, "[heap]") == 0);
}

/* The last line of a mapping lists its flags: "nr" (no reserve) marks address space that is never meant to be fully
 * used (sanitizers). */
size_t mem_untouched(void) {
    FILE *f = fopen("/proc/self/smaps", "r");
    if (!f) return 0;
    char line[512];
    size_t untouched = 0, asked = 0, touched = 0;
    for (bool mine = false, mapping; fgets(line, sizeof line, f);) {
        bool private = is_private(line, &mapping);
        if (mapping) mine = private;
        if (mine && strncmp(line, "Size:", 5) == 0) asked = (size_t)strtoull(line + 5, NULL, 10);
        if (mine && strncmp(line, "Rss:", 4) == 0) touched = (size_t)strtoull(line + 4, NULL, 10);
        if (mine && strncmp(line, "VmFlags:", 8) == 0 && !strstr(line, " nr")) untouched += asked - touched;
    }
    fclose(f);
    return untouched * 1024;
}

size_t mem_available(void) {
    const char *pretended = getenv("SPARSETRAIN_MEMORY_FREE");
    return pretended ? strtoul(pretended, NULL, 10) : proc_line("/proc/meminfo", "MemAvailable:");
}
