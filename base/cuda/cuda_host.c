/* cuda_host.c: see cuda_host.h. */
#include "base/cuda/cuda_host.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* A program may export functions of the same names: those of this file are the plugin's own. */
#pragma GCC visibility push(hidden)

static const struct plugin_host *host;

void cuda_host_set(const struct plugin_host *h) {
    host = h;
}

bool cuda_host_has_networks(void) {
    return host->networks;
}

/* -- error.h ------------------------------------------------------------------------------------------------------ */

/* Of what follows `format`. */
#define FORMATTED(text, format)                                                                                        \
    do {                                                                                                               \
        va_list arguments;                                                                                             \
        va_start(arguments, format);                                                                                   \
        vsnprintf(text, sizeof text, format, arguments);                                                               \
        va_end(arguments);                                                                                             \
    } while (0)

void die_at(const char *file, int line, const char *format, ...) {
    char text[sizeof((struct err *)0)->text];
    FORMATTED(text, format);
    host->die_at(file, line, "%s", text);
    abort(); /* it does not return; the type of a pointer cannot say so */
}

bool err_set(struct err *e, const char *format, ...) {
    char text[sizeof e->text];
    FORMATTED(text, format);
    return host->err_with(e, EXIT_USER, "%s", text);
}

bool err_system(struct err *e, const char *format, ...) {
    char text[sizeof e->text];
    FORMATTED(text, format);
    return host->err_with(e, EXIT_SYSTEM, "%s", text);
}

/* -- mem.h -------------------------------------------------------------------------------------------------------- */

void *mem_alloc(size_t count, size_t size, const char *what) {
    return host->alloc(count, size, what);
}
void *mem_zalloc(size_t count, size_t size, const char *what) {
    return memset(mem_alloc(count, size, what), 0, count * size);
}
void mem_free(void *block) {
    host->release(block);
}
void *mem_pinned_alloc(size_t count, size_t size, const char *what) {
    return host->pinned_alloc(count, size, what);
}
void mem_pinned_free(void *block) {
    host->pinned_release(block);
}
void mem_pin_with(void *(*alloc)(size_t bytes), void (*release)(void *block)) {
    host->pin_with(alloc, release);
}

char *mem_printf(const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) die("cannot format \"%s\"", format);
    char *text = mem_alloc((size_t)length + 1, 1, "a text");
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

#pragma GCC visibility pop
