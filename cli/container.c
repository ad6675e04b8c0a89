/* container.c: see container.h. Layout: struct head, `count` struct entry, the CRC-32 of both, the sections' bytes. */
#include "cli/container.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"

static const char magic[8] = {'S', 'T', 'R', 'A', 'I', 'N', 'C', 'K'};
/* Version 4 added sections; of what version 3 has, nothing changed. */
enum { FORMAT_VERSION = 4, OLDEST_VERSION = 3, BYTE_ORDER_MARK = 0x01020304, SECTIONS_MAX = 64 };

struct head {
    char magic[8];
    uint32_t version, byte_order;
    uint64_t count, total; /* sections; bytes of the whole file */
};

struct entry {
    char name[SECTION_NAME_MAX];
    uint64_t offset, bytes;
    uint32_t crc, zero;
};

static bool write_all(int file, const void *data, size_t bytes) {
    const char *p = data;
    while (bytes) {
        ssize_t n = write(file, p, bytes < 1u << 30 ? bytes : 1u << 30);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        p += n;
        bytes -= (size_t)n;
    }
    return true;
}

static bool write_sections(int file, const struct section *s, size_t count) {
    struct head head = {.version = FORMAT_VERSION, .byte_order = BYTE_ORDER_MARK, .count = count};
    struct entry entry[SECTIONS_MAX];
    memcpy(head.magic, magic, sizeof magic);
    memset(entry, 0, sizeof entry);
    uint64_t offset = sizeof head + count * sizeof *entry + sizeof(uint32_t);
    for (size_t i = 0; i < count; i++) {
        snprintf(entry[i].name, sizeof entry[i].name, "%s", s[i].name);
        entry[i].offset = offset;
        entry[i].bytes = s[i].bytes;
        entry[i].crc = crc32_of(0, s[i].data, s[i].bytes);
        offset += s[i].bytes;
    }
    head.total = offset;
    uint32_t crc = crc32_of(crc32_of(0, &head, sizeof head), entry, count * sizeof *entry);
    bool good = write_all(file, &head, sizeof head) && write_all(file, entry, count * sizeof *entry) &&
                write_all(file, &crc, sizeof crc);
    for (size_t i = 0; good && i < count; i++) good = write_all(file, s[i].data, s[i].bytes);
    return good;
}

bool container_write(const char *path, const struct section *sections, size_t count, struct err *e) {
    if (count > SECTIONS_MAX) die("%zu sections in a checkpoint", count);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) return err_set(e, "cannot write the checkpoint %s: %s", path, strerror(errno));
    bool good = write_sections(file, sections, count) && fsync(file) == 0;
    int reason = errno;
    if (close(file) != 0 && good) {
        good = false;
        reason = errno;
    }
    return good ||
           err_set(e, "cannot write the checkpoint %s: %s; the last complete one is kept", path, strerror(reason));
}

static bool read_all(int file, void *data, size_t bytes) {
    char *p = data;
    while (bytes) {
        ssize_t n = read(file, p, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        p += n;
        bytes -= (size_t)n;
    }
    return true;
}

static bool shorter(const struct container *c, struct err *e) {
    return err_set(e, "cannot read the checkpoint %s: it became shorter while it was read", c->path);
}

/* Reads the file, or its first bytes: all that a table of contents can take. */
static bool load_file(const char *path, struct container *c, bool all, struct err *e) {
    const size_t most = sizeof(struct head) + SECTIONS_MAX * sizeof(struct entry) + sizeof(uint32_t);
    struct stat info;
    c->file = open(path, O_RDONLY | O_CLOEXEC);
    if (c->file < 0) return err_set(e, "cannot read the checkpoint %s: %s", path, strerror(errno));
    if (fstat(c->file, &info) != 0 || !S_ISREG(info.st_mode))
        return err_set(e, "the checkpoint %s is not a regular file", path);
    c->bytes = (size_t)info.st_size;
    size_t wanted = all || c->bytes < most ? c->bytes : most;
    c->memory = mem_alloc(wanted, 1, "a checkpoint file");
    return read_all(c->file, c->memory, wanted) || shorter(c, e);
}

static struct entry entry_at(const struct container *c, size_t i) {
    struct entry entry;
    memcpy(&entry, c->memory + sizeof(struct head) + i * sizeof entry, sizeof entry);
    return entry;
}

static bool check_head(const struct container *c, struct head *head, struct err *e) {
    if (c->bytes < sizeof *head) return err_set(e, "the checkpoint %s is truncated: %zu bytes", c->path, c->bytes);
    memcpy(head, c->memory, sizeof *head);
    if (memcmp(head->magic, magic, sizeof magic) != 0) return err_set(e, "%s is not a sparsetrain checkpoint", c->path);
    if (head->byte_order != BYTE_ORDER_MARK)
        return err_set(e, "the checkpoint %s was written on a machine of the other byte order", c->path);
    if (head->version < OLDEST_VERSION || head->version > FORMAT_VERSION)
        return err_set(e, "the checkpoint %s has format version %u; this program reads versions %d to %d", c->path,
                       head->version, OLDEST_VERSION, FORMAT_VERSION);
    if (head->total != c->bytes)
        return err_set(e, "the checkpoint %s is %s: %zu bytes instead of %llu", c->path,
                       c->bytes < head->total ? "truncated" : "too long", c->bytes, (unsigned long long)head->total);
    if (head->count > SECTIONS_MAX || sizeof *head + head->count * sizeof(struct entry) + sizeof(uint32_t) > c->bytes)
        return err_set(e, "the checkpoint %s is damaged: its table of contents does not fit", c->path);
    return true;
}

static bool wrong_section(const struct container *c, const struct entry *s, struct err *e) {
    return err_set(e, "the checkpoint %s is damaged: section %.*s has a wrong checksum", c->path, SECTION_NAME_MAX - 1,
                   s->name);
}

static bool check_table(const struct container *c, const struct head *head, struct err *e) {
    size_t table = sizeof *head + head->count * sizeof(struct entry);
    uint32_t crc;
    memcpy(&crc, c->memory + table, sizeof crc);
    if (crc != crc32_of(0, c->memory, table))
        return err_set(e, "the checkpoint %s is damaged: its table of contents has a wrong checksum", c->path);
    for (size_t i = 0; i < head->count; i++) {
        struct entry s = entry_at(c, i);
        if (s.offset > c->bytes || s.bytes > c->bytes - s.offset) return wrong_section(c, &s, e);
    }
    return true;
}

static bool check_sections(const struct container *c, const struct head *head, struct err *e) {
    for (size_t i = 0; i < head->count; i++) {
        struct entry s = entry_at(c, i);
        if (s.crc != crc32_of(0, c->memory + s.offset, (size_t)s.bytes)) return wrong_section(c, &s, e);
    }
    return true;
}

static bool take(const char *path, struct container *c, bool all, struct err *e) {
    struct head head;
    memset(c, 0, sizeof *c);
    snprintf(c->path, sizeof c->path, "%s", path);
    bool good = load_file(path, c, all, e) && check_head(c, &head, e) && check_table(c, &head, e) &&
                (!all || check_sections(c, &head, e));
    if (c->file >= 0 && (all || !good)) {
        close(c->file);
        c->file = -1;
    }
    if (!good) container_close(c);
    return good;
}

bool container_read(const char *path, struct container *c, struct err *e) {
    return take(path, c, true, e);
}

bool container_open(const char *path, struct container *c, struct err *e) {
    return take(path, c, false, e);
}

void container_close(struct container *c) {
    if (c->memory && c->file >= 0) close(c->file);
    mem_free(c->memory);
    c->memory = NULL;
}

static bool find(const struct container *c, const char *name, struct entry *s) {
    struct head head;
    memcpy(&head, c->memory, sizeof head);
    for (size_t i = 0; i < head.count; i++) {
        *s = entry_at(c, i);
        if (strncmp(s->name, name, SECTION_NAME_MAX) == 0) return true;
    }
    return false;
}

const void *container_find(const struct container *c, const char *name, size_t *bytes) {
    struct entry s;
    if (c->file >= 0) die("a section of %s is looked for that was not read", c->path);
    if (!find(c, name, &s)) return NULL;
    *bytes = (size_t)s.bytes;
    return c->memory + s.offset;
}

bool container_has(const struct container *c, const char *name, size_t *bytes) {
    struct entry s;
    if (!find(c, name, &s)) return false;
    *bytes = (size_t)s.bytes;
    return true;
}

bool container_get(const struct container *c, const char *name, void *data, size_t bytes, struct err *e) {
    struct entry s;
    if (!find(c, name, &s)) return err_set(e, "the checkpoint %s has no section %s", c->path, name);
    if (s.bytes != bytes)
        return err_set(e, "the checkpoint %s has %zu bytes of %s where this run needs %zu", c->path, (size_t)s.bytes,
                       name, bytes);
    if (c->file < 0) {
        memcpy(data, c->memory + s.offset, bytes);
        return true;
    }
    if (lseek(c->file, (off_t)s.offset, SEEK_SET) < 0 || !read_all(c->file, data, bytes)) return shorter(c, e);
    return s.crc == crc32_of(0, data, bytes) || wrong_section(c, &s, e);
}
