/* crafting.c: changes a checkpoint's file as somebody could who wants to do harm: all its checksums are right again.
 *
 *        craft FILE get SECTION                        its bytes to stdout
 *        craft FILE put SECTION                        its bytes from stdin
 *        craft FILE set SECTION AT TYPE VALUE          a number in it, at this byte; TYPE: u32, u64, f32, f64
 *        craft FILE add SECTION                        another section, at the end, of 8 bytes
 *        craft FILE name SECTION NAME                  another name, in all of its 24 bytes
 *        craft FILE place SECTION AT BYTES             in the table alone: where it begins, how long it is
 *
 * The layout is that of cli/checkpoint/container.c. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { NAME = 24, SECTIONS_MAX = 64 };

struct head {
    char magic[8];
    uint32_t version, byte_order;
    uint64_t count, total;
};

struct entry {
    char name[NAME];
    uint64_t offset, bytes;
    uint32_t crc, zero;
};

static struct head head;
static struct entry entry[SECTIONS_MAX];
static unsigned char *content[SECTIONS_MAX];

static _Noreturn void give_up(const char *what) {
    fprintf(stderr, "craft: %s\n", what);
    exit(1);
}

static void *room(size_t bytes) {
    void *memory = calloc(1, bytes + 1);
    if (!memory) give_up("no memory");
    return memory;
}

static unsigned char *read_all(FILE *file, size_t *bytes) {
    size_t capacity = 1 << 16;
    unsigned char *data = room(capacity);
    *bytes = 0;
    for (size_t n; (n = fread(data + *bytes, 1, capacity - *bytes, file)) > 0;) {
        *bytes += n;
        if (*bytes < capacity) continue;
        unsigned char *more = room(capacity *= 2);
        memcpy(more, data, *bytes);
        free(data);
        data = more;
    }
    return data;
}

static void load(const char *path) {
    size_t bytes;
    FILE *file = fopen(path, "rb");
    if (!file) give_up(path);
    unsigned char *all = read_all(file, &bytes);
    fclose(file);
    memcpy(&head, all, sizeof head);
    if (head.count > SECTIONS_MAX || head.total != bytes) give_up("no checkpoint");
    memcpy(entry, all + sizeof head, head.count * sizeof *entry);
    for (size_t i = 0; i < head.count; i++) {
        content[i] = room(entry[i].bytes);
        memcpy(content[i], all + entry[i].offset, entry[i].bytes);
    }
    free(all);
}

/* Offsets and checksums anew. */
static void settle(void) {
    uint64_t at = sizeof head + head.count * sizeof *entry + sizeof(uint32_t);
    for (size_t i = 0; i < head.count; i++) {
        entry[i].offset = at;
        entry[i].crc = crc32_of(0, content[i], entry[i].bytes);
        at += entry[i].bytes;
    }
    head.total = at;
}

/* said: the entries as the file is to have them. */
static void store(const char *path, const struct entry *said) {
    FILE *file = fopen(path, "wb");
    if (!file) give_up(path);
    uint32_t crc = crc32_of(crc32_of(0, &head, sizeof head), said, head.count * sizeof *said);
    fwrite(&head, sizeof head, 1, file);
    fwrite(said, sizeof *said, head.count, file);
    fwrite(&crc, sizeof crc, 1, file);
    for (size_t i = 0; i < head.count; i++) fwrite(content[i], 1, entry[i].bytes, file);
    if (fclose(file) != 0) give_up(path);
}

static size_t find(const char *name) {
    for (size_t i = 0; i < head.count; i++)
        if (strncmp(entry[i].name, name, NAME) == 0) return i;
    give_up("no such section");
}

static void set(size_t i, uint64_t at, const char *type, const char *text) {
    const uint64_t whole = strtoull(text, NULL, 0);
    const uint32_t word = (uint32_t)whole;
    const double number = strtod(text, NULL);
    const float single = (float)number;
    const struct {
        const char *name;
        const void *value;
        size_t bytes;
    } types[] = {{"u32", &word, 4}, {"u64", &whole, 8}, {"f32", &single, 4}, {"f64", &number, 8}};
    for (size_t t = 0; t < 4; t++) {
        if (strcmp(types[t].name, type) != 0) continue;
        if (at > entry[i].bytes || types[t].bytes > entry[i].bytes - at) give_up("beyond the section");
        memcpy(content[i] + at, types[t].value, types[t].bytes);
        return;
    }
    give_up("no such type");
}

static void add(const char *name) {
    if (head.count == SECTIONS_MAX) give_up("no room");
    size_t i = head.count++;
    entry[i] = (struct entry){.bytes = 8};
    memcpy(entry[i].name, name, strlen(name) < NAME ? strlen(name) : NAME);
    content[i] = room(8);
}

int main(int argc, char **argv) {
    if (argc < 4) give_up("FILE COMMAND SECTION ...");
    const char *path = argv[1], *command = argv[2];
    struct entry said[SECTIONS_MAX];
    load(path);
    if (strcmp(command, "add") == 0) add(argv[3]);
    const size_t i = find(argv[3]);
    size_t bytes;
    if (strcmp(command, "get") == 0) return fwrite(content[i], 1, entry[i].bytes, stdout) == entry[i].bytes ? 0 : 1;
    if (strcmp(command, "put") == 0) {
        content[i] = read_all(stdin, &bytes);
        entry[i].bytes = bytes;
    }
    if (strcmp(command, "set") == 0 && argc == 7) set(i, strtoull(argv[4], NULL, 0), argv[5], argv[6]);
    settle();
    if (strcmp(command, "name") == 0 && argc == 5) {
        memset(entry[i].name, 0, NAME);
        memcpy(entry[i].name, argv[4], strlen(argv[4]) < NAME ? strlen(argv[4]) : NAME);
    }
    memcpy(said, entry, sizeof said);
    if (strcmp(command, "place") == 0 && argc == 6) {
        said[i].offset = strtoull(argv[4], NULL, 0);
        said[i].bytes = strtoull(argv[5], NULL, 0);
    }
    store(path, said);
    return 0;
}
