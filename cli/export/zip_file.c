/* zip_file.c: see zip_file.h. The format is PKWARE's APPNOTE 6.3: before each entry a local header, at the end the
 * central directory, which says the same of all entries and where they begin, and the record that says where that is.
 * All numbers are little-endian. A number that does not fit into its field of four bytes is 2^32 - 1 there, and stands
 * in an extra field. */
#include "cli/export/zip_file.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define FULL 0xffffffffu

enum {
    LOCAL = 0x04034b50,
    CENTRAL = 0x02014b50,
    END = 0x06054b50,
    END64 = 0x06064b50,
    LOCATOR64 = 0x07064b50,
    EXTRA64 = 1,
    NEEDS = 20,   /* version 2.0 of the format */
    NEEDS64 = 45, /* 4.5 */
    UNIX = 3 << 8,
    DATE = 1 << 5 | 1, /* 1980-01-01: the same model gives the same file */
    ENTRIES_STEP = 64,
    END64_BYTES = 44 /* of that record behind its own length */
};
#define MODE (0100644u << 16)

void zip_open(struct zip_file *z, FILE *file) {
    *z = (struct zip_file){.file = file, .limit = FULL};
}

void zip_write(struct zip_file *z, const void *data, size_t bytes) {
    fwrite(data, 1, bytes, z->file);
    z->offset += bytes;
}

static void put(struct zip_file *z, uint64_t value, int bytes) {
    unsigned char text[8];
    for (int i = 0; i < bytes; i++) text[i] = (unsigned char)(value >> 8 * i);
    zip_write(z, text, (size_t)bytes);
}

/* A field of four bytes. */
static void put_limited(struct zip_file *z, uint64_t value) {
    put(z, value < z->limit ? value : FULL, 4);
}

static bool large(const struct zip_file *z, uint64_t value) {
    return value >= z->limit;
}

/* What a local header and an entry of the central directory have in common, up to the length of the name. */
static void put_about(struct zip_file *z, const struct zip_entry *x, bool extra) {
    put(z, extra ? NEEDS64 : NEEDS, 2);
    put(z, 0, 2); /* flags */
    put(z, 0, 2); /* stored */
    put(z, 0, 2); /* time */
    put(z, DATE, 2);
    put(z, x->crc, 4);
    put_limited(z, x->bytes); /* as stored */
    put_limited(z, x->bytes);
    put(z, strlen(x->name), 2);
}

void zip_entry(struct zip_file *z, const char *name, uint64_t bytes, uint32_t crc) {
    if (z->entries % ENTRIES_STEP == 0) {
        struct zip_entry *longer = mem_alloc(z->entries + ENTRIES_STEP, sizeof *longer, "the entries of a zip file");
        if (z->entries) memcpy(longer, z->entry, z->entries * sizeof *longer);
        mem_free(z->entry);
        z->entry = longer;
    }
    struct zip_entry *x = &z->entry[z->entries++];
    *x = (struct zip_entry){.bytes = bytes, .offset = z->offset, .crc = crc};
    if (strlen(name) >= sizeof x->name) die("the name %s is too long for a zip file", name);
    strcpy(x->name, name);
    const bool extra = large(z, bytes);
    put(z, LOCAL, 4);
    put_about(z, x, extra);
    put(z, extra ? 20 : 0, 2);
    zip_write(z, x->name, strlen(x->name));
    if (!extra) return;
    put(z, EXTRA64, 2);
    put(z, 16, 2);
    put(z, bytes, 8);
    put(z, bytes, 8);
}

static void put_central(struct zip_file *z, const struct zip_entry *x) {
    const unsigned numbers = 2u * large(z, x->bytes) + large(z, x->offset);
    put(z, CENTRAL, 4);
    put(z, UNIX | (numbers ? NEEDS64 : NEEDS), 2);
    put_about(z, x, numbers > 0);
    put(z, numbers ? 4 + 8 * numbers : 0, 2);
    put(z, 0, 2); /* comment */
    put(z, 0, 2); /* disk */
    put(z, 0, 2); /* binary */
    put(z, MODE, 4);
    put_limited(z, x->offset);
    zip_write(z, x->name, strlen(x->name));
    if (numbers == 0) return;
    put(z, EXTRA64, 2);
    put(z, 8 * numbers, 2);
    for (int i = 0; large(z, x->bytes) && i < 2; i++) put(z, x->bytes, 8);
    if (large(z, x->offset)) put(z, x->offset, 8);
}

static void put_end64(struct zip_file *z, uint64_t begin, uint64_t bytes) {
    const uint64_t at = z->offset;
    put(z, END64, 4);
    put(z, END64_BYTES, 8);
    put(z, UNIX | NEEDS64, 2);
    put(z, NEEDS64, 2);
    put(z, 0, 4); /* this disk, and that of the directory */
    put(z, 0, 4);
    put(z, z->entries, 8); /* on this disk, and in all */
    put(z, z->entries, 8);
    put(z, bytes, 8);
    put(z, begin, 8);
    put(z, LOCATOR64, 4);
    put(z, 0, 4);
    put(z, at, 8);
    put(z, 1, 4); /* disks */
}

void zip_close(struct zip_file *z, const char *comment, size_t length) {
    const uint64_t begin = z->offset;
    for (size_t i = 0; i < z->entries; i++) put_central(z, &z->entry[i]);
    const uint64_t bytes = z->offset - begin;
    const bool many = z->entries >= 0xffff || z->entries >= z->limit;
    if (many || large(z, begin) || large(z, bytes)) put_end64(z, begin, bytes);
    put(z, END, 4);
    put(z, 0, 2);
    put(z, 0, 2);
    for (int i = 0; i < 2; i++) put(z, many ? 0xffff : z->entries, 2);
    put_limited(z, bytes);
    put_limited(z, begin);
    put(z, length, 2);
    zip_write(z, comment, length);
    mem_free(z->entry);
    z->entry = NULL;
}
