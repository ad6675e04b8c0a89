/* backend_cudnn_cache.c: see backend_cudnn_cache.h. */
#include "nets/cudnn/backend_cudnn_cache.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/place.h"
#include "base/mem.h"
#include "nets/cudnn/backend_cudnn.h"

enum { FILE_MAX_BYTES = 16 << 20 /* a cache longer than this is none */ };

struct cudnn_cache {
    char *path; /* of the file; NULL: there is none */
    struct cudnn_entry *entry;
    size_t entries, room;
};

/* -- the place ---------------------------------------------------------------------------------------------------- */

/* ".../cudnn-NVIDIA-H200-9.19.0.txt" */
static char *path_of_cache(void) {
    char gpu[256];
    size_t version = cudnnGetVersion(), n = 0;
    char *folder = place_cache();
    if (!folder) return NULL;
    for (const char *at = cuda_device_name(); *at && n + 1 < sizeof gpu; at++)
        gpu[n++] = isalnum((unsigned char)*at) ? *at : '-';
    gpu[n] = 0;
    char *path =
        mem_printf("%s/cudnn-%s-%zu.%zu.%zu.txt", folder, gpu, version / 10000, version / 100 % 100, version % 100);
    mem_free(folder);
    return path;
}

/* -- entries ------------------------------------------------------------------------------------------------------ */

const struct cudnn_entry *cudnn_cache_find(const struct cudnn_cache *all, const char *key) {
    for (size_t i = all->entries; i-- > 0;) /* of several lines the last one counts */
        if (strcmp(all->entry[i].key, key) == 0) return &all->entry[i];
    return NULL;
}

static void remember(struct cudnn_cache *all, const struct cudnn_entry *e) {
    if (all->entries == all->room) {
        size_t room = all->room ? 2 * all->room : 64;
        struct cudnn_entry *grown = mem_alloc(room, sizeof *grown, "the algorithms of cuDNN");
        if (all->entries) memcpy(grown, all->entry, all->entries * sizeof *grown);
        mem_free(all->entry);
        all->entry = grown;
        all->room = room;
    }
    all->entry[all->entries++] = *e;
}

/* " ENGINE KNOB:VALUE ..." or " -"; false: it is neither. */
static bool parse_plan(struct cudnn_recipe *plan, const char *at) {
    int used = 0;
    *plan = (struct cudnn_recipe){.engine = -1};
    if (strcmp(at, " -") == 0) return true;
    if (sscanf(at, " %9" SCNd64 "%n", &plan->engine, &used) != 1 || plan->engine < 0) return false;
    for (at += used; *at; at += used, plan->knobs++) {
        const int i = plan->knobs;
        if (i == CUDNN_KNOBS_MAX ||
            sscanf(at, " %9" SCNd64 ":%18" SCNd64 "%n", &plan->knob[i].type, &plan->knob[i].value, &used) != 2)
            return false;
    }
    return true;
}

/* What is no line as backend_cudnn_cache.h has it is passed over. */
static void parse_line(struct cudnn_cache *all, const char *line) {
    struct cudnn_entry e = {.raced = false};
    const char *equals = strstr(line, " = ");
    int end = -1;
    if (!equals || equals == line || (size_t)(equals - line) >= sizeof e.key) return;
    memcpy(e.key, line, (size_t)(equals - line));
    if (sscanf(equals + 3, "%9d %9d%n", &e.algorithm, &e.math, &end) != 2 || end <= 0) return;
    e.raced = equals[3 + end] != 0;
    if (!e.raced || parse_plan(&e.plan, equals + 3 + end)) remember(all, &e);
}

/* A regular file, or -1: a FIFO in its place is not waited for. */
static int open_file(const char *path, int flags) {
    struct stat about;
    int file = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
    if (file < 0 || (fstat(file, &about) == 0 && S_ISREG(about.st_mode))) return file;
    close(file);
    return -1;
}

/* All lines of an open file; what was remembered before is forgotten for it. */
static void read_all(struct cudnn_cache *all, int file) {
    struct stat about;
    if (fstat(file, &about) != 0 || about.st_size <= 0 || about.st_size > FILE_MAX_BYTES) return;
    size_t size = (size_t)about.st_size, have = 0;
    char *text = mem_alloc(size + 1, 1, "the cache of algorithms");
    while (have < size) {
        ssize_t more = pread(file, text + have, size - have, (off_t)have);
        if (more < 0 && errno == EINTR) continue;
        if (more <= 0) break;
        have += (size_t)more;
    }
    text[have] = 0;
    for (char *line = text, *next; (next = strchr(line, '\n')); line = next + 1) { /* a line without end is none */
        *next = 0;
        parse_line(all, line);
    }
    mem_free(text);
}

int cudnn_cache_lock(struct cudnn_cache *all) {
    if (!all->path) return -1;
    place_make_folders(all->path);
    int file = open_file(all->path, O_RDWR | O_CREAT | O_APPEND);
    if (file < 0) return -1;
    while (flock(file, LOCK_EX) != 0 && errno == EINTR) {
    }
    all->entries = 0;
    read_all(all, file);
    return file;
}

void cudnn_cache_unlock(int file) {
    if (file >= 0) close(file);
}

static void print(FILE *out, const struct cudnn_entry *e) {
    fprintf(out, "%s = %d %d", e->key, e->algorithm, e->math);
    if (e->raced && e->plan.engine < 0) fputs(" -", out);
    if (e->raced && e->plan.engine >= 0) {
        fprintf(out, " %" PRId64, e->plan.engine);
        for (int i = 0; i < e->plan.knobs; i++)
            fprintf(out, " %" PRId64 ":%" PRId64, e->plan.knob[i].type, e->plan.knob[i].value);
    }
    fputc('\n', out);
}

/* A new line, in one write; after a broken one it begins with an end of line. What is not written is measured again
 * another time. */
static void append(int file, const struct cudnn_entry *e) {
    char *line = NULL, last = '\n';
    size_t length = 0;
    off_t size = lseek(file, 0, SEEK_END);
    if (size > 0 && pread(file, &last, 1, size - 1) != 1) return;
    FILE *out = open_memstream(&line, &length);
    if (!out) return;
    if (last != '\n') fputc('\n', out);
    print(out, e);
    if (fclose(out) == 0) (void)!write(file, line, length);
    free(line);
}

void cudnn_cache_add(struct cudnn_cache *all, int file, const struct cudnn_entry *e) {
    remember(all, e);
    if (file >= 0) append(file, e);
}

struct cudnn_cache *cudnn_cache_open(void) {
    struct cudnn_cache *all = mem_zalloc(1, sizeof *all, "the algorithms of cuDNN");
    all->path = path_of_cache();
    int file = all->path ? open_file(all->path, O_RDONLY) : -1;
    if (file >= 0) {
        read_all(all, file);
        close(file);
    }
    return all;
}

void cudnn_cache_close(struct cudnn_cache *all) {
    mem_free(all->path);
    mem_free(all->entry);
    mem_free(all);
}
