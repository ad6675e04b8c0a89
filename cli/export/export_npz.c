/* export_npz.c: NumPy's .npz: a zip archive of stored .npy files (format version 1.0 of NumPy's lib/format.py): a magic
 * text, the length of a Python dictionary, the dictionary, the numbers. What is said of the model is the comment of the
 * archive, so that every entry is an array of the model. */
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "cli/export/export.h"
#include "cli/export/zip_file.h"

enum { MAGIC = 10, HEAD_MAX = 256, ALIGNMENT = 64, CHUNK = 4096 };

/* "\x93NUMPY", version 1.0, two bytes of length, "{'descr': '<f4', ...}", blanks and a line's end: a multiple of
 * ALIGNMENT. Returns its length. */
static size_t make_head(const struct export_array *x, char head[HEAD_MAX]) {
    static const char magic[] = "\x93NUMPY\x01";
    size_t used = MAGIC;
    memcpy(head, magic, sizeof magic);
    used += (size_t)snprintf(head + used, HEAD_MAX - used, "{'descr': '<f4', 'fortran_order': False, 'shape': (");
    for (int d = 0; d < x->dims; d++)
        used += (size_t)snprintf(head + used, HEAD_MAX - used, d == 0 ? "%zu," : d == 1 ? " %zu" : ", %zu", x->dim[d]);
    used += (size_t)snprintf(head + used, HEAD_MAX - used, "), }");
    size_t length = (used + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (length > HEAD_MAX) die("the shape of %s is too long", x->name);
    memset(head + used, ' ', length - used);
    head[length - 1] = '\n';
    head[8] = (char)((length - MAGIC) & 0xff);
    head[9] = (char)((length - MAGIC) >> 8);
    return length;
}

/* The CRC-32 of the entry, or (z not NULL) the entry itself. */
static uint32_t pass(struct zip_file *z, const struct export_array *x, const char *head, size_t length) {
    unsigned char bytes[CHUNK * sizeof(float)];
    uint32_t crc = crc32_of(0, head, length);
    if (z) zip_write(z, head, length);
    for (size_t at = 0, count; at < x->size; at += count) {
        count = x->size - at < CHUNK ? x->size - at : CHUNK;
        export_floats(bytes, x->value + at, count);
        if (z)
            zip_write(z, bytes, count * sizeof(float));
        else
            crc = crc32_of(crc, bytes, count * sizeof(float));
    }
    return crc;
}

static void write_model(FILE *file, const struct export_model *m) {
    struct zip_file z;
    struct json j;
    zip_open(&z, file);
    for (size_t i = 0; i < m->arrays; i++) {
        const struct export_array *x = &m->array[i];
        char head[HEAD_MAX], name[ZIP_NAME_MAX];
        size_t length = make_head(x, head);
        snprintf(name, sizeof name, "%.*s.npy", EXPORT_NAME_MAX, x->name);
        zip_entry(&z, name, length + (uint64_t)x->size * sizeof(float), pass(NULL, x, head, length));
        pass(&z, x, head, length);
    }
    json_open(&j);
    export_about(&j, NULL, m);
    zip_close(&z, json_text(&j), strlen(json_text(&j)));
    json_close(&j);
}

extern const struct export_ops export_npz;
const struct export_ops export_npz = {
    .name = "npz",
    .summary = "NumPy's archive of arrays, for numpy.load",
    .write = write_model,
};
