/* container.c: see container.h. Layout: struct head, `count` struct entry, the CRC-32 of both, the sections' bytes. */
#include "cli/checkpoint/container.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/hash.h"
#include "base/mem.h"

static const char magic[8] = {'S', 'T', 'R', 'A', 'I', 'N', 'C', 'K'};
/* Version 4 added sections, 5 the hashes of the parameters, 6 the tally, 7 the leg of the run; of what version 3 has,
 * nothing changed. */
enum {
    FORMAT_VERSION = 8,
    OLDEST_VERSION = 3,
    VERSIONS = 100, /* more than there will be */
    BYTE_ORDER_MARK = 0x01020304,
    OTHER_ORDER_MARK = 0x04030201,
    SECTIONS_MAX = 64
};

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
    bool good = file_write_all(file, &head, sizeof head) && file_write_all(file, entry, count * sizeof *entry) &&
                file_write_all(file, &crc, sizeof crc);
    for (size_t i = 0; good && i < count; i++) good = file_write_all(file, s[i].data, s[i].bytes);
    return good;
}

/* Nothing that is there is written to, nor does a link in the place of the directory lead elsewhere. */
static int create(const char *path) {
    const char *name = strrchr(path, '/');
    char *folder = name ? mem_printf("%.*s/", (int)(name - path), path) : mem_printf(".");
    if (name) folder[name - path] = name == path ? '/' : '\0';
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), reason = errno;
    mem_free(folder);
    errno = reason;
    if (dir < 0) return -1;
    int file = openat(dir, name ? name + 1 : path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    reason = errno;
    close(dir);
    errno = reason;
    return file;
}

bool container_write(const char *path, const struct section *sections, size_t count, struct err *e) {
    if (count > SECTIONS_MAX) die("%zu sections in a checkpoint", count);
    int file = create(path);
    if (file < 0) return err_with(e, err_of_errno(errno), "cannot write the checkpoint %s: %s", path, strerror(errno));
    bool good = write_sections(file, sections, count) && fsync(file) == 0;
    int reason = errno;
    if (close(file) != 0 && good) {
        good = false;
        reason = errno;
    }
    return good || err_system(e, "cannot write the checkpoint %s: %s", path, strerror(reason));
}

static bool read_all(int file, void *data, size_t bytes) {
    char *p = data;
    while (bytes) {
        errno = 0;
        ssize_t n = read(file, p, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        p += n;
        bytes -= (size_t)n;
    }
    return true;
}

/* Why a file could not be opened or read: does that say nothing against it? Another moment or another user may read it.
 */
static bool is_passing(int reason) {
    return reason == EACCES || reason == EPERM || reason == EMFILE || reason == ENFILE || reason == ENOMEM ||
           reason == ESTALE || reason == ETIMEDOUT || reason == ENOTCONN || reason == ESHUTDOWN || reason == EHOSTDOWN;
}

static bool refused(const struct container *c, int status, int reason, const char *why, struct err *e) {
    err_with(e, status, "cannot read the checkpoint %s: %s", c->path, why);
    e->intact = is_passing(reason);
    return false;
}

/* After read_all, whose errno is 0 where the file ended. */
static bool cannot_read(const struct container *c, struct err *e) {
    if (errno != 0) return refused(c, EXIT_SYSTEM, errno, strerror(errno), e);
    return err_set(e, "cannot read the checkpoint %s: it became shorter while it was read", c->path);
}

/* Opens the file and reads its first bytes: all that a table of contents can take. */
static bool load_table(const char *path, struct container *c, struct err *e) {
    const size_t most = sizeof(struct head) + SECTIONS_MAX * sizeof(struct entry) + sizeof(uint32_t);
    struct stat info;
    const char *why;
    c->file = file_read_descriptor(path, &why);
    if (c->file < 0) return refused(c, err_of_errno(errno), errno, why, e);
    if (fstat(c->file, &info) != 0) return refused(c, EXIT_SYSTEM, errno, strerror(errno), e);
    c->bytes = (size_t)info.st_size;
    size_t wanted = c->bytes < most ? c->bytes : most;
    c->memory = mem_alloc(wanted, 1, "a checkpoint's table of contents");
    return read_all(c->file, c->memory, wanted) || cannot_read(c, e);
}

/* The whole of a file whose table of contents is good: before that, nobody knows that it is as long for a reason. */
static bool load_rest(struct container *c, struct err *e) {
    mem_free(c->memory);
    c->memory = mem_alloc(c->bytes, 1, "a checkpoint file");
    return (lseek(c->file, 0, SEEK_SET) == 0 && read_all(c->file, c->memory, c->bytes)) || cannot_read(c, e);
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
    if (head->byte_order != BYTE_ORDER_MARK) {
        err_set(e, "the checkpoint %s was written on a machine of the other byte order", c->path);
        e->intact = head->byte_order == OTHER_ORDER_MARK;
        return false;
    }
    if (head->version < OLDEST_VERSION || head->version > FORMAT_VERSION) {
        err_set(e, "the checkpoint %s has format version %u; this program reads versions %d to %d", c->path,
                head->version, OLDEST_VERSION, FORMAT_VERSION);
        e->intact = head->version < VERSIONS; /* a flipped bit makes any number of it */
        return false;
    }
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

/* A name is a short text that can be shown, and only one section has it. */
static bool good_name(const struct container *c, const struct entry *s, size_t i) {
    size_t length = strnlen(s->name, sizeof s->name);
    if (length == 0 || length == sizeof s->name) return false;
    for (size_t j = 0; j < length; j++)
        if (s->name[j] < ' ' || s->name[j] > '~') return false;
    for (size_t before = 0; before < i; before++)
        if (strncmp(entry_at(c, before).name, s->name, sizeof s->name) == 0) return false;
    return true;
}

/* The sections follow the table and each other without a gap, up to the end, as they were written. */
static bool check_places(const struct container *c, const struct head *head, size_t table, struct err *e) {
    uint64_t at = table + sizeof(uint32_t);
    for (size_t i = 0; i < head->count; i++) {
        struct entry s = entry_at(c, i);
        if (!good_name(c, &s, i) || s.offset != at || s.bytes > c->bytes - at)
            return err_set(e, "the checkpoint %s is damaged: section %zu of its table of contents cannot be", c->path,
                           i + 1);
        at += s.bytes;
    }
    return at == c->bytes ||
           err_set(e, "the checkpoint %s is damaged: its table of contents leaves bytes out", c->path);
}

static bool check_table(const struct container *c, const struct head *head, struct err *e) {
    size_t table = sizeof *head + head->count * sizeof(struct entry);
    uint32_t crc;
    memcpy(&crc, c->memory + table, sizeof crc);
    if (crc != crc32_of(0, c->memory, table))
        return err_set(e, "the checkpoint %s is damaged: its table of contents has a wrong checksum", c->path);
    return check_places(c, head, table, e);
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
    bool good = load_table(path, c, e) && check_head(c, &head, e) && check_table(c, &head, e) &&
                (!all || (load_rest(c, e) && check_head(c, &head, e) && check_table(c, &head, e) &&
                          check_sections(c, &head, e)));
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
    if (lseek(c->file, (off_t)s.offset, SEEK_SET) < 0 || !read_all(c->file, data, bytes)) return cannot_read(c, e);
    return s.crc == crc32_of(0, data, bytes) || wrong_section(c, &s, e);
}
