/* cifar10.c: CIFAR-10 (Krizhevsky, "Learning multiple layers of features from tiny images", 2009), binary version:
 * six files of records, a record = one label byte and 3 x 32 x 32 pixel bytes (red, green, blue plane). Read from a
 * directory or straight from the .tar.gz. The official files hold 10,000 records each; any other number is taken. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/file.h"
#include "base/files/place.h"
#include "base/mem.h"
#include "data/archive.h"
#include "data/dataset.h"
#include "data/layout.h"

enum { IMAGE = 3 * 32 * 32, RECORD = 1 + IMAGE, CLASSES = 10, FILES = 6, TRAIN_FILES = 5, CHUNK = 128 };

static const char *const file_name[FILES] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                             "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
static const char *const class_name[CLASSES] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                                "dog",      "frog",       "horse", "ship", "truck"};

#define EXPECTED "30,730,000 (10,000 records of 3,073)"
#define GET_IT place_fetch("cifar10")

/* 1234567 -> "1,234,567". */
static const char *with_commas(uint64_t value, char text[32]) {
    char *at = text + 31;
    *at = '\0';
    for (int digit = 0; digit == 0 || value; digit++, value /= 10) {
        if (digit && digit % 3 == 0) *--at = ',';
        *--at = (char)('0' + value % 10);
    }
    return at;
}

static bool size_agrees(const char *file, uint64_t bytes, struct err *e) {
    char text[32];
    if (bytes == 0 || bytes % RECORD)
        return err_set(e, "%s has %s bytes; expected %s, or another whole number of records: get it with `%s`", file,
                       with_commas(bytes, text), EXPECTED, GET_IT);
    return true;
}

static bool path_join(char path[512], const char *dir, const char *name, struct err *e) {
    int length = snprintf(path, 512, "%s/%s", dir, name);
    return length < 512 || err_set(e, "the path %.80s... is too long: at most 511 bytes; use a shorter one", dir);
}

/* The size of a regular file [bytes], checked. */
static bool file_size(const char *dir, int file, uint64_t *bytes, struct err *e) {
    char path[512];
    struct stat s;
    if (!path_join(path, dir, file_name[file], e)) return false;
    if (stat(path, &s) != 0)
        return err_with(e, err_of_errno(errno), "%s cannot be read (%s); expected a file of %s bytes: get it with `%s`",
                        path, strerror(errno), EXPECTED, GET_IT);
    if (!S_ISREG(s.st_mode))
        return err_set(e, "%s is not a file; expected one of %s bytes: get it with `%s`", path, EXPECTED, GET_IT);
    *bytes = (uint64_t)s.st_size;
    return size_agrees(path, *bytes, e);
}

/* -- find ---------------------------------------------------------------------------------------------------------- */

static bool any_file(const char *dir) {
    struct err ignored = {0};
    char path[512];
    struct stat s;
    for (int i = 0; i < FILES; i++)
        if (path_join(path, dir, file_name[i], &ignored) && stat(path, &s) == 0) return true;
    return false;
}

static bool find_directory(struct dataset *d, struct err *e) {
    uint64_t total = 0, bytes;
    for (int i = 0; i < FILES; i++) {
        if (!file_size(d->source, i, &bytes, e)) return false;
        total += bytes;
    }
    if (total / RECORD > UINT32_MAX) return err_set(e, "%s holds more than 2^32 images", d->source);
    d->bytes = layout_bytes((size_t)(total / RECORD), IMAGE);
    return true;
}

static bool get_again(struct err *e, const struct err *why) {
    if (err_status(why) == EXIT_SYSTEM) return err_system(e, "%s", why->text);
    return err_set(e, "%.800s: get it again with `%s`", why->text, GET_IT);
}

static bool find_archive(struct dataset *d, struct err *e) {
    struct err why = {0};
    uint64_t bytes;
    if (!archive_unpacked_size(d->source, &bytes, &why)) return get_again(e, &why);
    if (bytes < FILES * RECORD)
        return err_set(e, "%s holds %llu bytes; expected six files of %s: get it with `%s`", d->source,
                       (unsigned long long)bytes, EXPECTED, GET_IT);
    d->bytes = layout_bytes((size_t)(bytes / RECORD), IMAGE);
    return true;
}

static void describe(struct dataset *d) {
    static const float mean[3] = {.491f, .482f, .447f}, std[3] = {.247f, .243f, .262f};
    d->channels = 3;
    d->height = d->width = 32;
    d->classes = CLASSES;
    d->class_names = class_name;
    memcpy(d->mean, mean, sizeof mean);
    memcpy(d->std, std, sizeof std);
}

static bool is_archive(const struct dataset *d) {
    struct stat s;
    return stat(d->source, &s) == 0 && !S_ISDIR(s.st_mode);
}

static bool find(struct dataset *d, const char *where, struct err *e) {
    static const char *const usual[] = {".", "cifar-10-batches-bin", "cifar-10-binary.tar.gz"};
    struct stat s;
    describe(d);
    if (!*where) where = ".";
    if (strlen(where) >= sizeof d->source)
        return err_set(e, "the path %.80s... is too long: at most 511 bytes; use a shorter one", where);
    snprintf(d->source, sizeof d->source, "%s", where);
    if (is_archive(d)) return find_archive(d, e);
    if (any_file(where)) return find_directory(d, e);
    for (size_t i = 1; i < 3; i++) {
        if (!path_join(d->source, where, usual[i], e)) return false;
        if (stat(d->source, &s) == 0) return i == 1 ? find_directory(d, e) : find_archive(d, e);
    }
    return err_set(e,
                   "%s holds no CIFAR-10: expected data_batch_1..5.bin and test_batch.bin of %s bytes each, "
                   "%s/ with them, or %s: get it with `%s`",
                   where, EXPECTED, usual[1], usual[2], GET_IT);
}

/* -- load ---------------------------------------------------------------------------------------------------------- */

/* The samples that are in memory so far: images and labels of the files in file order, whatever the order in which
 * they came. */
struct filling {
    const struct dataset *d;
    uint8_t *pixels, *chunk;
    int32_t *labels;
    size_t count[FILES]; /* samples */
    size_t capacity;     /* samples */
};

/* Where the records come from: bytes in order. */
typedef bool read_fn(void *from, void *to, size_t bytes, struct err *e);

static bool read_records(struct filling *f, int file, size_t first, size_t count, read_fn *read, void *from,
                         struct err *e) {
    for (size_t done = 0; done < count;) {
        size_t part = count - done < CHUNK ? count - done : CHUNK;
        if (!read(from, f->chunk, part * RECORD, e)) return false;
        for (size_t i = 0; i < part; i++) {
            const uint8_t *record = f->chunk + i * RECORD;
            size_t at = first + done + i;
            if (record[0] >= CLASSES)
                return err_set(e, "%s: %s has label %d in record %zu; expected 0 to 9, in %s bytes: get it with `%s`",
                               f->d->source, file_name[file], record[0], done + i, EXPECTED, GET_IT);
            f->labels[at] = record[0];
            memcpy(f->pixels + at * IMAGE, record + 1, IMAGE);
        }
        done += part;
    }
    return true;
}

/* Takes in one file of `count` records. An archive may hold its files in any order: records of later files that are
 * in memory already are moved up to make room. */
static bool take_file(struct filling *f, int file, size_t count, read_fn *read, void *from, struct err *e) {
    size_t before = 0, after = 0;
    for (int i = 0; i < FILES; i++) *(i < file ? &before : &after) += f->count[i];
    if (count > f->capacity - before - after)
        return err_set(e, "%s holds more than the %zu images that its size promised: get it again with `%s`",
                       f->d->source, f->capacity, GET_IT);
    memmove(f->pixels + (before + count) * IMAGE, f->pixels + before * IMAGE, after * IMAGE);
    memmove(f->labels + before + count, f->labels + before, after * sizeof *f->labels);
    f->count[file] = count;
    return read_records(f, file, before, count, read, from, e);
}

struct stream {
    FILE *file;
    const char *path;
};

static bool read_stream(void *from, void *to, size_t bytes, struct err *e) {
    struct stream *s = from;
    errno = 0;
    if (fread(to, 1, bytes, s->file) == bytes) return true;
    if (ferror(s->file)) return err_with(e, err_of_errno(errno), "cannot read %s: %s", s->path, strerror(errno));
    return err_set(e, "%s became shorter while it was read; expected %s bytes: start again", s->path, EXPECTED);
}

static bool load_file(struct filling *f, int file, struct err *e) {
    char path[512];
    uint64_t bytes;
    if (!file_size(f->d->source, file, &bytes, e) || !path_join(path, f->d->source, file_name[file], e)) return false;
    const char *why;
    struct stream s = {file_read(path, &why), path};
    if (!s.file) return err_with(e, err_of_errno(errno), "cannot read %s: %s", path, why);
    bool good = take_file(f, file, (size_t)(bytes / RECORD), read_stream, &s, e);
    fclose(s.file);
    return good;
}

static bool read_archive(void *from, void *to, size_t bytes, struct err *e) {
    struct err why = {0};
    return archive_read(from, to, bytes, &why) || get_again(e, &why);
}

/* Which of the six this member of an archive is; FILES: none. */
static int file_of(const char *member) {
    const char *slash = strrchr(member, '/');
    const char *base = slash ? slash + 1 : member;
    int i = 0;
    while (i < FILES && strcmp(base, file_name[i]) != 0) i++;
    return i;
}

static bool load_member(struct filling *f, struct archive *a, const struct archive_member *m, struct err *e) {
    char label[700];
    int file = file_of(m->name);
    if (file == FILES) return true;
    snprintf(label, sizeof label, "%.511s: %.180s", f->d->source, m->name);
    if (f->count[file]) return err_set(e, "%s occurs twice: get it again with `%s`", label, GET_IT);
    if (!size_agrees(label, m->size, e)) return false;
    return take_file(f, file, (size_t)(m->size / RECORD), read_archive, a, e);
}

static bool load_archive(struct filling *f, struct err *e) {
    struct archive_member m;
    struct err why = {0};
    struct archive *a = archive_open(f->d->source, &why);
    while (a && !e->text[0] && archive_next(a, &m, &why)) load_member(f, a, &m, e);
    archive_close(a);
    if (why.text[0]) get_again(e, &why);
    for (int i = 0; i < FILES; i++)
        if (!f->count[i])
            err_set(e, "%s holds no %s; expected one of %s bytes: get it with `%s`", f->d->source, file_name[i],
                    EXPECTED, GET_IT);
    return !e->text[0];
}

static bool load(struct dataset *d, void *memory, struct err *e) {
    struct filling f = {
        .d = d, .pixels = layout_pixels(d, memory), .labels = layout_labels(d, memory), .capacity = layout_capacity(d)};
    f.chunk = mem_alloc(CHUNK, RECORD, "reading CIFAR-10");
    bool good = true;
    if (is_archive(d))
        good = load_archive(&f, e);
    else
        for (int i = 0; i < FILES && good; i++) good = load_file(&f, i, e);
    mem_free(f.chunk);
    size_t train = 0;
    for (int i = 0; i < TRAIN_FILES; i++) train += f.count[i];
    if (good) layout_seal(d, memory, train, f.count[TRAIN_FILES]);
    return good;
}

const struct dataset_ops dataset_cifar10 = {
    .name = "cifar10",
    .summary = "photographs of 10 kinds of things, 3 x 32 x 32, 50,000 to train on and 10,000 to test",
    .paper = "Krizhevsky 2009",
    .find = find,
    .load = load,
    .attach = layout_attach,
};
