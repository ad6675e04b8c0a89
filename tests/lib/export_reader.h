/* export_reader.h: reading back what `sparsetrain export` writes, by code that shares nothing with what wrote it:
 * arrays by name, with shape and values. A file that is not as its format says fails the test. */
#ifndef ST_TESTS_EXPORT_READER_H
#define ST_TESTS_EXPORT_READER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { READ_ARRAYS_MAX = 256, READ_DIMS_MAX = 4 };

struct read_array {
    char name[64];
    int dims;
    size_t dim[READ_DIMS_MAX], size;
    float *value; /* [size] */
};

struct read_file {
    unsigned char *bytes;
    size_t length, arrays;
    struct read_array array[READ_ARRAYS_MAX];
    char about[4096]; /* the JSON of what is said of the model */
};

static inline uint64_t read_number(const unsigned char *at, int bytes) {
    uint64_t value = 0;
    for (int i = bytes; i-- > 0;) value = value << 8 | at[i];
    return value;
}

static inline void read_bytes(struct read_file *f, const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s is not there", path);
    memset(f, 0, sizeof *f);
    fseek(file, 0, SEEK_END);
    f->length = (size_t)ftell(file);
    rewind(file);
    f->bytes = malloc(f->length + 1);
    assert_int_equal(fread(f->bytes, 1, f->length, file), f->length);
    f->bytes[f->length] = 0;
    fclose(file);
}

/* "16,3,3]" or "16, 3, 3)" or "16,)" */
static inline void read_shape(struct read_array *x, const char *at) {
    x->size = 1;
    for (x->dims = 0; *at != ']' && *at != ')'; at += strspn(at, ", ")) {
        char *end;
        assert_true(x->dims < READ_DIMS_MAX);
        x->size *= x->dim[x->dims++] = strtoul(at, &end, 10);
        assert_true(end > at);
        at = end;
    }
}

static inline void read_values(struct read_array *x, const unsigned char *at) {
    x->value = malloc(x->size * sizeof *x->value + 1);
    for (size_t i = 0; i < x->size; i++) {
        uint32_t bits = (uint32_t)read_number(at + 4 * i, 4);
        memcpy(&x->value[i], &bits, sizeof bits);
    }
}

/* The arrays fill the file behind the header, in the order in which it names them. */
static inline void read_safetensors(struct read_file *f, const char *path) {
    read_bytes(f, path);
    size_t header = (size_t)read_number(f->bytes, 8), expected = 0;
    assert_int_equal(header % 8, 0);
    assert_true(8 + header <= f->length);
    const char *at = (const char *)f->bytes + 8, *limit = at + header;
    assert_memory_equal(at, "{\"__metadata__\":", 16);
    const char *end = strchr(at + 16, '}') + 1; /* no value has a brace */
    snprintf(f->about, sizeof f->about, "%.*s", (int)(end - at - 16), at + 16);
    for (at = end; *at == ','; at = strchr(at, '}') + 1) {
        struct read_array *x = &f->array[f->arrays++];
        unsigned long from, to;
        assert_true(at < limit && f->arrays < READ_ARRAYS_MAX);
        assert_int_equal(sscanf(at, ",\"%63[^\"]\":{\"dtype\":\"F32\",\"shape\":[", x->name), 1);
        at = strchr(at, '[') + 1;
        read_shape(x, at);
        at = strchr(at, ']') + 1;
        assert_int_equal(sscanf(at, ",\"data_offsets\":[%lu,%lu]}", &from, &to), 2);
        assert_int_equal(from, expected);
        assert_int_equal(to - from, 4 * x->size);
        assert_true(8 + header + to <= f->length);
        read_values(x, f->bytes + 8 + header + from);
        expected = to;
    }
    assert_int_equal(*at, '}');
    for (at++; at < limit; at++) assert_int_equal(*at, ' ');
    assert_int_equal(8 + header + expected, f->length);
}

/* A .npy file of version 1.0. */
static inline void read_npy(struct read_array *x, const unsigned char *at, size_t length) {
    static const char begins[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
    assert_memory_equal(at, "\x93NUMPY\x01\x00", 8);
    size_t head = 10 + (size_t)read_number(at + 8, 2);
    assert_int_equal(head % 64, 0);
    assert_int_equal(at[head - 1], '\n');
    assert_memory_equal(at + 10, begins, sizeof begins - 1);
    read_shape(x, (const char *)at + 10 + sizeof begins - 1);
    assert_int_equal(head + 4 * x->size, length);
    read_values(x, at + head);
}

/* By its central directory; local headers say the same. Without the fields of ZIP64. */
static inline void read_npz(struct read_file *f, const char *path) {
    read_bytes(f, path);
    size_t end = f->length - 22;
    while (read_number(f->bytes + end, 4) != 0x06054b50) end--;
    const unsigned char *record = f->bytes + end;
    size_t comment = (size_t)read_number(record + 20, 2), entries = (size_t)read_number(record + 10, 2);
    assert_int_equal(end + 22 + comment, f->length);
    snprintf(f->about, sizeof f->about, "%.*s", (int)comment, (const char *)record + 22);
    const unsigned char *central = f->bytes + read_number(record + 16, 4);
    for (size_t i = 0; i < entries; i++) {
        struct read_array *x = &f->array[f->arrays++];
        assert_true(f->arrays < READ_ARRAYS_MAX);
        assert_int_equal(read_number(central, 4), 0x02014b50);
        const unsigned char *local = f->bytes + read_number(central + 42, 4);
        size_t name = (size_t)read_number(central + 28, 2), size = (size_t)read_number(central + 24, 4);
        assert_int_equal(read_number(local, 4), 0x04034b50);
        assert_memory_equal(local + 4, central + 6, 24);   /* version needed ... sizes, length of the name */
        assert_int_equal(read_number(central + 10, 2), 0); /* stored */
        assert_int_equal(read_number(central + 20, 4), size);
        assert_memory_equal(local + 30, central + 46, name);
        const unsigned char *data = local + 30 + name + read_number(local + 28, 2);
        assert_int_equal(crc32_of(0, data, size), read_number(central + 16, 4));
        assert_true(name > 4 && name < sizeof x->name + 4);
        assert_memory_equal(central + 46 + name - 4, ".npy", 4);
        snprintf(x->name, sizeof x->name, "%.*s", (int)(name - 4), (const char *)central + 46);
        read_npy(x, data, size);
        central += 46 + name + read_number(central + 30, 2) + read_number(central + 32, 2);
    }
    assert_true(central == record);
}

static inline const struct read_array *read_find(const struct read_file *f, const char *name) {
    for (size_t i = 0; i < f->arrays; i++)
        if (strcmp(f->array[i].name, name) == 0) return &f->array[i];
    fail_msg("there is no array %s", name);
    return NULL;
}

static inline void read_close(struct read_file *f) {
    for (size_t i = 0; i < f->arrays; i++) free(f->array[i].value);
    free(f->bytes);
}

#endif
