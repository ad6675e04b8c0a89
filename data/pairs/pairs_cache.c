/* pairs_cache.c: see pairs_cache.h. */
#include "data/pairs/pairs_cache.h"

#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "base/files/out_file.h"
#include "base/files/place.h"
#include "base/hash.h"
#include "base/mem.h"

/* What stands before the memory in the file. No byte of it is padding. */
struct head {
    char magic[8];
    uint32_t version;
    uint32_t crc;   /* CRC-32 of key, bytes and the memory */
    uint64_t bytes; /* of the memory */
    struct pairs_key key;
};
_Static_assert(sizeof(struct pairs_key) == 5 * 8 + 6 * 4, "a key has no padding");
_Static_assert(sizeof(struct head) == 24 + sizeof(struct pairs_key), "a head has no padding");

static const char magic[8] = "STPAIRS";

static uint32_t crc_of(const struct head *h, const void *memory) {
    uint32_t crc = crc32_of(0, &h->bytes, sizeof h->bytes);
    return crc32_of(crc32_of(crc, &h->key, sizeof h->key), memory, (size_t)h->bytes);
}

char *pairs_cache_path(const struct pairs_key *key) {
    const uint32_t version = PAIRS_CACHE_VERSION;
    char *folder = place_cache();
    if (!folder) return NULL;
    char *path = mem_printf("%s/wiki-%d-%08x.bin", folder, key->length,
                            (unsigned)crc32_of(crc32_of(0, &version, sizeof version), key, sizeof *key));
    mem_free(folder);
    return path;
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

static bool read_whole(FILE *file, const struct pairs_key *key, void *memory, size_t room) {
    struct head h;
    if (fread(&h, sizeof h, 1, file) != 1) return false;
    if (memcmp(h.magic, magic, sizeof magic) != 0 || h.version != PAIRS_CACHE_VERSION) return false;
    if (memcmp(&h.key, key, sizeof *key) != 0 || h.bytes > room) return false;
    if (fread(memory, 1, (size_t)h.bytes, file) != h.bytes || fgetc(file) != EOF) return false;
    return crc_of(&h, memory) == h.crc && pairs_layout_whole(memory, (size_t)h.bytes) &&
           pairs_layout_length(memory) == key->length;
}

bool pairs_cache_read(const struct pairs_key *key, void *memory, size_t room) {
    const char *why;
    char *path = pairs_cache_path(key);
    FILE *file = path ? file_read(path, &why) : NULL;
    bool good = file && read_whole(file, key, memory, room);
    if (file) fclose(file);
    mem_free(path);
    return good;
}

/* -- writing ------------------------------------------------------------------------------------------------------- */

void pairs_cache_write(const struct pairs_key *key, const void *memory, size_t bytes) {
    struct err e = {0}; /* nobody's */
    struct out_file o;
    struct head h = {.version = PAIRS_CACHE_VERSION, .bytes = bytes, .key = *key};
    char *path = pairs_cache_path(key);
    if (!path) return;
    memcpy(h.magic, magic, sizeof magic);
    h.crc = crc_of(&h, memory);
    place_make_folders(path);
    if (out_file_open(&o, path, NULL, &e)) {
        fwrite(&h, sizeof h, 1, o.file);
        fwrite(memory, 1, bytes, o.file);
        out_file_close(&o, &e);
    }
    mem_free(path);
}
