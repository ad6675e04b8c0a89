/* pairs_cache.h: what a text was packed to, kept in a file, as to pack it anew takes seconds. The file is
 * CACHE/wiki-LENGTH-KEY.bin (place_cache in base/files/place.h); KEY is of all that the result is a function of, which
 * stands in the file, too. A file that is of anything else, damaged, or longer than there is room for, is as good as
 * none, and one that cannot be written is done without. It comes into its place complete. */
#ifndef ST_DATA_PAIRS_CACHE_H
#define ST_DATA_PAIRS_CACHE_H

#include "data/pairs/pairs_layout.h"

/* All that the result of packing is a function of. The program's part of it is PAIRS_CACHE_VERSION: to be raised when
 * anything changes how a text is cut, packed or laid out. */
enum { PAIRS_CACHE_VERSION = 1 };
struct pairs_key {
    uint64_t bytes[TEXT_SPLITS], vocabulary_bytes, seed;
    uint32_t crc[TEXT_SPLITS], vocabulary_crc; /* CRC-32 of the texts, of the vocabulary */
    uint32_t unicode;                          /* CRC-32 of unicode_version() */
    int32_t length;
};

/* Fills memory [room] from the file; false: there is none that is good. */
bool pairs_cache_read(const struct pairs_key *key, void *memory, size_t room);

/* Keeps memory [bytes]. */
void pairs_cache_write(const struct pairs_key *key, const void *memory, size_t bytes);

/* The path of the file, in fresh memory; NULL: nothing says where. */
char *pairs_cache_path(const struct pairs_key *key);

#endif
