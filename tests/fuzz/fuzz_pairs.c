/* fuzz_pairs.c: an arbitrary file where a packed text is kept; what is taken for one is read sequence by sequence.
 * Input: a byte, then the file, from its magic on; bit 0 of the byte: the key and the checksums are put right first,
 * bit 1: so are the counts, to few sequences and pieces, behind which all is vocabulary. */
#include "base/hash.h"
#include "base/mem.h"
#include "data/pairs/masked.h"
#include "data/pairs/pairs_cache.h"
#include "tests/lib/fuzzing.h"

/* As pairs_cache.c and pairs_layout.c have them. */
struct head {
    char magic[8];
    uint32_t version, crc;
    uint64_t bytes;
    struct pairs_key key;
};
struct inner {
    uint64_t pairs[TEXT_SPLITS], pieces[TEXT_SPLITS], words, bytes;
    struct special_pieces special;
    int32_t length;
    uint32_t checksum;
};

static void repair(uint8_t *file, size_t size, const struct pairs_key *key, bool counts) {
    struct head h;
    struct inner in;
    if (size < sizeof h + PAIRS_LAYOUT_HEADER) return;
    uint8_t *memory = file + sizeof h;
    h = (struct head){.version = PAIRS_CACHE_VERSION, .bytes = size - sizeof h, .key = *key};
    memcpy(h.magic, "STPAIRS", sizeof h.magic);
    memcpy(&in, memory, sizeof in);
    if (counts) { /* the vocabulary takes what the others leave */
        uint64_t used = PAIRS_LAYOUT_HEADER;
        for (int i = 0; i < TEXT_SPLITS; i++) in.pairs[i] %= 4, used += 16 * in.pairs[i];
        for (int i = 0; i < TEXT_SPLITS; i++) in.pieces[i] %= 32, used += 2 * in.pieces[i];
        in.bytes = h.bytes > used ? h.bytes - used : 0;
        in.words = 0;
        for (size_t i = 0; i < in.bytes; i++) in.words += memory[used + i] == '\n';
        in.length = key->length;
    }
    in.checksum = crc32_of(0, memory + PAIRS_LAYOUT_HEADER, (size_t)h.bytes - PAIRS_LAYOUT_HEADER);
    memcpy(memory, &in, sizeof in);
    h.crc = crc32_of(crc32_of(crc32_of(0, &h.bytes, sizeof h.bytes), &h.key, sizeof h.key), memory, (size_t)h.bytes);
    memcpy(file, &h, sizeof h);
}

static void read_set(const struct dataset *d, const struct pair_set *set) {
    enum { MOST = 3 };
    int32_t token[32], type[32], chosen[MOST], y[MOST], lengths, next;
    const struct masked to = {token, type, chosen, y, &lengths, &next};
    const struct masking how = {RNG_MASK, 1, 2, MOST};
    for (uint32_t i = 0; i < set->count; i++) {
        masked_fill(d, set, &how, i, 0, &to);
        MUST(lengths >= 5 && lengths <= d->length && (next == 0 || next == 1) && y[0] >= 0);
        for (int k = 0; k < d->length; k++) MUST(token[k] >= 0 && token[k] < d->classes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const struct pairs_key key = {.length = 32};
    if (size < 1) return 0;
    MUST(setenv("SPARSETRAIN_CACHE", fuzz_folder(), 1) == 0);
    uint8_t *file = fuzz_copy(data + 1, size - 1);
    if (data[0] & 1) repair(file, size - 1, &key, data[0] & 2);
    char *path = pairs_cache_path(&key);
    fuzz_file(strrchr(path, '/') + 1, file, size - 1);
    free(file);
    mem_free(path);
    void *memory = malloc(size); /* more than there is, less than the file */
    MUST(memory != NULL);
    struct dataset d = {0};
    if (pairs_cache_read(&key, memory, size)) {
        pairs_layout_attach(&d, memory);
        MUST(d.length == key.length);
        read_set(&d, &d.train_pairs), read_set(&d, &d.valid_pairs), read_set(&d, &d.test_pairs);
    }
    free(memory);
    return 0;
}
