/* export_safetensors.c: the format of Hugging Face's safetensors 0.4 (its README's "Format"):
 *
 *        8 bytes         N, little-endian
 *        N bytes         {"__metadata__": {text: text}, NAME: {"dtype": "F32", "shape": [...], "data_offsets": [from,
 * to]},
 *                        ...}, blanks behind it, so that the data begins at a multiple of 8
 *        the data        row-major, little-endian, end to end; offsets count from its first byte
 */
#include <string.h>

#include "base/json.h"
#include "cli/export/export.h"

enum { ALIGNMENT = 8, CHUNK = 4096 };

static void describe(struct json *j, const struct export_array *x, size_t *offset) {
    json_object(j, x->name);
    json_string(j, "dtype", "F32");
    json_array(j, "shape");
    for (int d = 0; d < x->dims; d++) json_integer(j, NULL, (int64_t)x->dim[d]);
    json_end(j);
    json_array(j, "data_offsets");
    json_integer(j, NULL, (int64_t)*offset);
    json_integer(j, NULL, (int64_t)(*offset += x->size * sizeof(float)));
    json_end(j);
    json_end(j);
}

static void write_header(FILE *file, const struct export_model *m) {
    static const char blanks[ALIGNMENT + 1] = "        ";
    struct json j;
    json_open(&j);
    json_object(&j, NULL);
    export_about(&j, "__metadata__", m);
    for (size_t i = 0, offset = 0; i < m->arrays; i++) describe(&j, &m->array[i], &offset);
    json_end(&j);
    const char *text = json_text(&j);
    size_t length = strlen(text), padding = (ALIGNMENT - length % ALIGNMENT) % ALIGNMENT;
    unsigned char number[8];
    for (int i = 0; i < 8; i++) number[i] = (unsigned char)((uint64_t)(length + padding) >> 8 * i);
    fwrite(number, 1, sizeof number, file);
    fwrite(text, 1, length, file);
    fwrite(blanks, 1, padding, file);
    json_close(&j);
}

static void write_model(FILE *file, const struct export_model *m) {
    unsigned char bytes[CHUNK * sizeof(float)];
    write_header(file, m);
    for (size_t i = 0; i < m->arrays; i++)
        for (size_t at = 0, count; at < m->array[i].size; at += count) {
            count = m->array[i].size - at < CHUNK ? m->array[i].size - at : CHUNK;
            export_floats(bytes, m->array[i].value + at, count);
            fwrite(bytes, sizeof(float), count, file);
        }
}

extern const struct export_ops export_safetensors;
const struct export_ops export_safetensors = {
    .name = "safetensors",
    .summary = "Hugging Face's safetensors: f32, metadata in the header",
    .write = write_model,
};
