/* wav.c: see wav.h. A file is "RIFF", the length of what follows, "WAVE", then chunks: four letters, a length, so many
 * bytes, and one more where that is odd. Numbers are little-endian. */
#include "data/speech/wav.h"

#include <stdint.h>
#include <string.h>

#include "data/speech/spectrogram.h"

enum { RIFF_HEAD = 12, CHUNK_HEAD = 8, FORMAT = 16, EXTENSIBLE = 40 };
enum { PCM = 1, ANY_FORMAT = 0xfffe };

static uint32_t u16(const unsigned char *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static uint32_t u32(const unsigned char *at) {
    return u16(at) | u16(at + 2) << 16;
}

/* What the extensible form has in place of the format's number: it, and the rest of its GUID. */
static bool is_pcm_guid(const unsigned char *at) {
    static const unsigned char guid[16] = {1, 0, 0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71};
    return memcmp(at, guid, sizeof guid) == 0;
}

/* The chunk "fmt ", of `length` bytes. */
static bool check_format(const unsigned char *at, size_t length, struct err *why) {
    if (length < FORMAT) return err_set(why, "its format takes %zu bytes, at least %d are usual", length, FORMAT);
    const uint32_t format = u16(at), channels = u16(at + 2), rate = u32(at + 4), block = u16(at + 12),
                   bits = u16(at + 14);
    const bool pcm = format == PCM || (format == ANY_FORMAT && length >= EXTENSIBLE && is_pcm_guid(at + 24));
    if (!pcm) return err_set(why, "its samples are in format %u, not as plain numbers (PCM, 1)", format);
    if (channels != 1) return err_set(why, "it has %u channels, not 1", channels);
    if (rate != SPECTROGRAM_RATE) return err_set(why, "it has %u samples a second, not %d", rate, SPECTROGRAM_RATE);
    if (bits != 16) return err_set(why, "it has samples of %u bits, not 16", bits);
    return block == 2 || err_set(why, "a sample takes %u bytes by its header, not 2", block);
}

bool wav_find(const unsigned char *file, size_t bytes, size_t *at, size_t *length, struct err *why) {
    bool formatted = false;
    if (bytes < RIFF_HEAD || memcmp(file, "RIFF", 4) != 0 || memcmp(file + 8, "WAVE", 4) != 0)
        return err_set(why, "it is not a WAV file");
    const size_t end = (size_t)u32(file + 4) + CHUNK_HEAD;
    if (end < RIFF_HEAD || end > bytes)
        return err_set(why, "its header speaks of %zu bytes and it has %zu (truncated?)", end, bytes);
    for (size_t next = RIFF_HEAD; end - next >= CHUNK_HEAD;) {
        const unsigned char *chunk = file + next;
        const size_t size = u32(chunk + 4), room = end - next - CHUNK_HEAD;
        if (size > room)
            return err_set(why, "a part of it has %zu bytes by its header, and there are %zu (truncated?)", size, room);
        if (memcmp(chunk, "fmt ", 4) == 0) {
            if (!check_format(chunk + CHUNK_HEAD, size, why)) return false;
            formatted = true;
        } else if (memcmp(chunk, "data", 4) == 0) {
            if (!formatted) return err_set(why, "its samples come before their format");
            if (size % 2) return err_set(why, "it has %zu bytes of samples, an odd number, and a sample takes 2", size);
            *at = next + CHUNK_HEAD;
            *length = size;
            return true;
        }
        next += CHUNK_HEAD + size + (size % 2 && size < room);
    }
    return err_set(why, "it has no samples (no chunk \"data\")");
}
