/* two_bits.c: see two_bits.h. */
#include "comm/parts/two_bits.h"

#include <math.h>
#include <string.h>

#include "base/simd.h"

enum { CODES = 4, EVERY = TWO_BITS_CHUNK / TWO_BITS_KEPT };

static size_t half_of(size_t k) {
    return (k + 1) / 2;
}
static size_t quarter_of(size_t k) {
    return (k + 3) / 4;
}

size_t two_bits_kept(size_t m) {
    return (m + EVERY - 1) / EVERY;
}

size_t two_bits_bytes(size_t k) {
    return (CODES * sizeof(float) + k + half_of(k) + quarter_of(k) + 3) / 4 * 4;
}

size_t two_bits_bytes_of(size_t n) {
    const size_t rest = n % TWO_BITS_CHUNK;
    return n / TWO_BITS_CHUNK * two_bits_bytes(TWO_BITS_KEPT) + (rest ? two_bits_bytes(two_bits_kept(rest)) : 0);
}

size_t two_bits_entries_of(size_t n) {
    return n / TWO_BITS_CHUNK * TWO_BITS_KEPT + two_bits_kept(n % TWO_BITS_CHUNK);
}

/* -- the quantiser ------------------------------------------------------------------------------------------------- */
/* Half a code per standard deviation; sums in the order of the values. */
static void choose_codes(const float *val, size_t k, uint8_t *code) {
    double sum = 0, square = 0;
    for (size_t i = 0; i < k; i++) sum += (double)val[i];
    const double mean = sum / (double)k;
    for (size_t i = 0; i < k; i++) square += ((double)val[i] - mean) * ((double)val[i] - mean);
    const double width = k > 1 ? 1.5 * sqrt(square / (double)(k - 1)) : 0;
    for (size_t i = 0; i < k; i++) {
        const double place = width > 0 ? floor(((double)val[i] - mean) / width + 2.5) : 2;
        code[i] = (uint8_t)(place < 0 ? 0 : place > CODES - 1 ? CODES - 1 : place);
    }
}

static void fill_table(const float *val, const uint8_t *code, size_t k, float table[CODES]) {
    double sum[CODES] = {0};
    unsigned count[CODES] = {0};
    for (size_t i = 0; i < k; i++) {
        sum[code[i]] += (double)val[i];
        count[code[i]]++;
    }
    for (int c = 0; c < CODES; c++) table[c] = count[c] ? (float)(sum[c] / count[c]) : 0;
}

SIMD_CLONES static void look_up(const float *table, const uint8_t *code, float *val) {
    const float zero = table[0], one = table[1], two = table[2], three = table[3];
    for (size_t i = 0; i < TWO_BITS_KEPT; i++)
        val[i] = code[i] & 2 ? (code[i] & 1 ? three : two) : (code[i] & 1 ? one : zero);
}

/* -- bits ---------------------------------------------------------------------------------------------------------- */
/* Arrays of TWO_BITS_KEPT, of which those behind k are zero. */
SIMD_CLONES static void pack(const uint16_t *restrict at, const uint8_t *restrict code, size_t k,
                             unsigned char *restrict to) {
    const size_t half = half_of(k), quarter = quarter_of(k);
    unsigned char *high = to + k, *codes = high + half;
    for (size_t i = 0; i < k; i++) to[i] = (unsigned char)(at[i] & 0xff);
    for (size_t i = 0; i < half; i++) high[i] = (unsigned char)(at[i] >> 8 | at[half + i] >> 8 << 4);
    for (size_t i = 0; i < quarter; i++)
        codes[i] =
            (unsigned char)(code[i] | code[quarter + i] << 2 | code[2 * quarter + i] << 4 | code[3 * quarter + i] << 6);
}

SIMD_CLONES static void unpack(const unsigned char *restrict from, size_t k, uint16_t *restrict at,
                               uint8_t *restrict code) {
    const size_t half = half_of(k), quarter = quarter_of(k);
    const unsigned char *high = from + k, *codes = high + half;
    for (size_t i = 0; i < half; i++) at[i] = (uint16_t)((high[i] & 15) << 8);
    for (size_t i = 0; i < k - half; i++) at[half + i] = (uint16_t)(high[i] >> 4 << 8);
    for (size_t i = 0; i < k; i++) at[i] = (uint16_t)(at[i] | from[i]);
    for (size_t i = 0; i < quarter; i++) {
        code[i] = codes[i] & 3;
        code[quarter + i] = codes[i] >> 2 & 3;
        code[2 * quarter + i] = codes[i] >> 4 & 3;
        code[3 * quarter + i] = codes[i] >> 6;
    }
}

/* Halves and quarters of k entries may reach 3 beyond them. */
enum { ROOM = TWO_BITS_KEPT + 4 };

void two_bits_encode(const uint16_t *at, float *val, size_t k, void *message) {
    uint16_t place[ROOM] = {0};
    uint8_t code[ROOM] = {0};
    float table[CODES], said[TWO_BITS_KEPT];
    memcpy(place, at, k * sizeof *at);
    choose_codes(val, k, code);
    fill_table(val, code, k, table);
    memset(message, 0, two_bits_bytes(k));
    memcpy(message, table, sizeof table);
    pack(place, code, k, (unsigned char *)message + sizeof table);
    look_up(table, code, said);
    memcpy(val, said, k * sizeof *val);
}

bool two_bits_decode(const void *message, size_t m, uint16_t *at, float *val) {
    const size_t k = two_bits_kept(m);
    uint16_t place[ROOM] = {0};
    uint8_t code[ROOM] = {0};
    float table[CODES], said[TWO_BITS_KEPT];
    bool within = true;
    memcpy(table, message, sizeof table);
    unpack((const unsigned char *)message + sizeof table, k, place, code);
    look_up(table, code, said);
    for (size_t i = 0; i < k; i++) within &= place[i] < m;
    memcpy(at, place, k * sizeof *at);
    memcpy(val, said, k * sizeof *val);
    return within;
}
