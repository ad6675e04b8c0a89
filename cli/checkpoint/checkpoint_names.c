/* checkpoint_names.c: see checkpoint_names.h. */
#include "cli/checkpoint/checkpoint_names.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char prefix[] = "checkpoint-";

void checkpoint_name(char path[CHECKPOINT_PATH_MAX], const char *dir, long long step) {
    snprintf(path, CHECKPOINT_PATH_MAX, "%s/%s%08lld", dir, prefix, step);
}

/* As checkpoint_name writes it, and no other way: what is found must be there under that name. */
long long checkpoint_step_of(const char *name) {
    char whole[32];
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) return -1;
    long long step = strtoll(name + sizeof prefix - 1, NULL, 10);
    snprintf(whole, sizeof whole, "%s%08lld", prefix, step);
    return step >= 0 && strcmp(name, whole) == 0 ? step : -1;
}

/* The last name of a path, without slashes behind it; "" where it is longer than any of ours. */
enum { NAME_MAX_OF_OURS = 64 };
static void last_name(const char *path, char name[NAME_MAX_OF_OURS]) {
    size_t end = strlen(path), from;
    while (end > 0 && path[end - 1] == '/') end--;
    for (from = end; from > 0 && path[from - 1] != '/';) from--;
    const bool fits = end - from < NAME_MAX_OF_OURS;
    snprintf(name, NAME_MAX_OF_OURS, "%.*s", fits ? (int)(end - from) : 0, path + from);
}

long long checkpoint_step_in(const char *path) {
    char name[NAME_MAX_OF_OURS];
    last_name(path, name);
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) return -1;
    const char *digits = name + sizeof prefix - 1;
    const size_t length = strlen(digits);
    return length >= 1 && length < 19 && strspn(digits, "0123456789") == length ? strtoll(digits, NULL, 10) : -1;
}

/* A list that breaks off is none: what would have come may be newer than what came. */
long long checkpoint_newest(const char *dir, long long before) {
    DIR *d = opendir(dir);
    if (!d) return -1;
    long long best = -1;
    errno = 0;
    for (struct dirent *entry; (entry = readdir(d));) {
        long long step = checkpoint_step_of(entry->d_name);
        if (step > best && step < before) best = step;
    }
    int reason = errno;
    closedir(d);
    errno = reason;
    return reason ? -1 : best;
}

/* The step in "checkpoint-00000012.tmp" with what is behind it, or -1. */
static long long step_before(const char *end, const char *name) {
    char whole[32];
    const char *at = strrchr(name, '.');
    if (!at || strcmp(at, end) != 0 || at - name >= (int)sizeof whole) return -1;
    snprintf(whole, sizeof whole, "%.*s", (int)(at - name), name);
    return checkpoint_step_of(whole);
}

bool checkpoint_is_leftover(const char *name) {
    return step_before(".tmp", name) >= 0 || step_before(".old", name) >= 0;
}

long long checkpoint_damaged_step(const char *name) {
    return step_before(CHECKPOINT_DAMAGED, name);
}

bool checkpoint_is_aside(const char *path) {
    char name[NAME_MAX_OF_OURS];
    last_name(path, name);
    return checkpoint_is_leftover(name) || checkpoint_damaged_step(name) >= 0;
}
