/* data_support.h: what the tests of data need: a temporary directory, CIFAR-10 files of any size, a tar and gzip
 * writer. */
#ifndef ST_TESTS_DATA_SUPPORT_H
#define ST_TESTS_DATA_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/mem.h"
#include "data/dataset.h"
#include "tests/lib/folders.h"

extern const struct dataset_ops dataset_cifar10, dataset_ptb, dataset_synthetic;

enum { RECORD = 3073, IMAGE = 3072, FILES = 6 };
static const char *const file_names[FILES] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                              "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
static const size_t small_counts[FILES] = {3, 5, 2, 7, 4, 6};

/* A fresh directory; remove_tree takes it away. */
static inline char *make_directory(void) {
    const char *base = getenv("TMPDIR");
    char *path = mem_printf("%s/sparsetrain-test.XXXXXX", base && *base ? base : "/tmp");
    assert_non_null(mkdtemp(path));
    return path;
}

static inline void remove_tree(char *path) {
    (void)remove_folder(path);
    mem_free(path);
}

static inline size_t entries_in(const char *path) {
    size_t count = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) count++;
    closedir(dir);
    return count;
}

static inline void write_bytes(const char *dir, const char *name, const void *bytes, size_t size) {
    char *path = mem_printf("%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
    mem_free(path);
}

/* [count][RECORD] that differ from file to file and from record to record. */
static inline uint8_t *make_records(int file, size_t count) {
    uint8_t *records = mem_alloc(count ? count : 1, RECORD, "records");
    uint32_t state = 12345u + (uint32_t)file;
    for (size_t i = 0; i < count * RECORD; i++) {
        state = state * 1664525u + 1013904223u;
        records[i] = i % RECORD ? (uint8_t)(state >> 24) : (uint8_t)((i / RECORD * 7 + (size_t)file) % 10);
    }
    return records;
}

static inline void write_records(const char *dir, int file, size_t count) {
    uint8_t *records = make_records(file, count);
    write_bytes(dir, file_names[file], records, count * RECORD);
    mem_free(records);
}

static inline void write_all_records(const char *dir) {
    for (int i = 0; i < FILES; i++) write_records(dir, i, small_counts[i]);
}

/* -- tar and gzip -------------------------------------------------------------------------------------------------- */

struct tar {
    uint8_t *bytes;
    size_t size, capacity;
};

static inline void tar_append(struct tar *t, const void *bytes, size_t size) {
    if (t->size + size > t->capacity) {
        t->capacity = 2 * (t->size + size);
        uint8_t *grown = mem_zalloc(t->capacity, 1, "a tar");
        if (t->size) memcpy(grown, t->bytes, t->size);
        mem_free(t->bytes);
        t->bytes = grown;
    }
    if (size) memcpy(t->bytes + t->size, bytes, size);
    t->size += size;
}

static inline void tar_pad(struct tar *t, size_t block) {
    static const uint8_t zero[512];
    while (t->size % block) tar_append(t, zero, t->size % 512 ? 512 - t->size % 512 : 512);
}

/* One member: header, contents, padding. */
static inline void tar_add(struct tar *t, const char *name, char type, const void *bytes, size_t size) {
    char header[512] = {0};
    unsigned sum = 0;
    memcpy(header, name, strlen(name) < 100 ? strlen(name) : 100);
    memcpy(header + 100, "0000644", 8);
    snprintf(header + 124, 12, "%011lo", (unsigned long)size);
    header[156] = type;
    memcpy(header + 257, "ustar\00000", 8);
    memset(header + 148, ' ', 8);
    for (size_t i = 0; i < sizeof header; i++) sum += (unsigned char)header[i];
    snprintf(header + 148, 8, "%06o", sum);
    tar_append(t, header, sizeof header);
    tar_append(t, bytes, size);
    tar_pad(t, 512);
}

static inline void tar_finish(struct tar *t) {
    static const uint8_t zero[1024];
    tar_append(t, zero, sizeof zero);
    tar_pad(t, 10240);
}

static inline char *gzip_to(const char *dir, const char *name, const void *bytes, size_t size) {
    char *path = mem_printf("%s/%s", dir, name);
    gzFile f = gzopen(path, "wb1");
    assert_non_null(f);
    if (size) assert_int_equal(gzwrite(f, bytes, (unsigned)size), size);
    assert_int_equal(gzclose(f), Z_OK);
    return path;
}

static inline uint8_t *read_whole(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    uint8_t *bytes = mem_alloc(*size, 1, "a file");
    assert_int_equal(fread(bytes, 1, *size, f), *size);
    fclose(f);
    return bytes;
}

/* -- datasets ------------------------------------------------------------------------------------------------------ */

/* Finds, loads and attaches; the memory to free, or NULL with the error. */
static inline void *load_set(const struct dataset_ops *ops, const char *where, uint64_t seed, struct dataset *d,
                             struct err *e) {
    if (!dataset_find(ops, where, seed, d, e)) return NULL;
    void *memory = mem_alloc(d->bytes, 1, "a dataset");
    if (!dataset_load(d, memory, e)) {
        mem_free(memory);
        return NULL;
    }
    dataset_attach(d, memory);
    return memory;
}

/* The error is one line that contains this. */
static inline void assert_says(const struct err *e, const char *part) {
    assert_null(strchr(e->text, '\n'));
    if (!strstr(e->text, part)) fail_msg("\"%s\" does not say \"%s\"", e->text, part);
}

#endif
