/* windows.c: how a text is cut into streams and windows, for training and for an evaluation; the text half of loader.h.
 */
#include <string.h>

#include "base/rng.h"
#include "data/loader.h"

/* floor((tokens - 1) / (streams T)) = floor(floor((tokens - 1) / streams) / T), whose terms cannot overflow. */
size_t text_windows(size_t tokens, size_t streams, int sequence) {
    if (streams < 1 || sequence < 1) die("text_windows: %zu streams, windows of %d words", streams, sequence);
    return tokens ? (tokens - 1) / streams / (size_t)sequence : 0;
}

/* streams T labels, and the one token more that the first of them follows. More than any text has where that overflows.
 */
size_t text_least(size_t streams, int sequence) {
    size_t length = (size_t)sequence;
    return streams > (SIZE_MAX - 1) / length ? SIZE_MAX : streams * length + 1;
}

/* The longest stream is the first: ceil(M / S) predictions. */
size_t text_eval_windows(size_t tokens, size_t streams, int sequence) {
    size_t predictions = tokens ? tokens - 1 : 0, length = (size_t)sequence;
    size_t longest = predictions / streams + (predictions % streams ? 1 : 0);
    return longest / length + (longest % length ? 1 : 0);
}

/* Stream g = first + b covers the predictions [from(g), from(g + 1)), as by loader_share:
 *
 *        from(g) = g floor(M / S) + min(g, M mod S),   so n(g) = from(g + 1) - from(g) is floor(M / S) or one more.
 *
 * Row t * batch + b counts where i = window T + t < n(g). These rows are the first ones: let (t, b) count, i < n(b).
 * Those before it in the same step of time, b' < b, count as well, as n never grows with b. Those of an earlier step,
 * i' <= i - 1, count for every b', as n(b') >= n(b) - 1 > i - 1. */
int text_eval_fill(const struct text_set *t, size_t first, size_t streams, int batch, int sequence, size_t window,
                   int32_t *token, int32_t *y) {
    size_t predictions = t->count ? t->count - 1 : 0, begin = window * (size_t)sequence;
    size_t each = predictions / streams, longer = predictions % streams;
    int rows = 0;
    if (first < streams && streams - first < (size_t)batch)
        die("text_eval_fill: %d streams from the %zuth on, of %zu", batch, first, streams);
    for (size_t i = begin; i < begin + (size_t)sequence; i++)
        for (int b = 0; b < batch; b++, token++, y++) {
            size_t g = first + (size_t)b;
            size_t from = g * each + (g < longer ? g : longer);
            bool counts = g < streams && i < each + (g < longer ? 1 : 0);
            *token = counts ? t->token[from + i] : 0;
            *y = counts ? t->token[from + i + 1] : 0;
            rows += counts;
        }
    return rows;
}

/* -- windows that do not follow each other ------------------------------------------------------------------------- */

/* A window that begins at p has labels up to the token p + sequence. */
size_t text_places(size_t tokens, int sequence) {
    if (sequence < 1) die("text_places: windows of %d words", sequence);
    return tokens > (size_t)sequence ? tokens - (size_t)sequence : 0;
}

/* Uniform over 0 .. n-1 for any n, as rng_below, which takes 32 bits. */
static uint64_t below(struct rng *r, uint64_t n) {
    if (n <= UINT32_MAX) return rng_below(r, (uint32_t)n);
    const uint64_t unfair = -n % n; /* 2^64 mod n */
    uint64_t word;
    do {
        word = (uint64_t)rng_u32(r) << 32;
        word |= rng_u32(r);
    } while (word < unfair);
    return word % n;
}

static size_t place_of(size_t tokens, int sequence, uint64_t seed, enum rng_stream stream, uint64_t number) {
    const size_t places = text_places(tokens, sequence);
    struct rng r = rng_open(seed, stream, number);
    if (places == 0)
        die("windows of %d words in a text of %zu; text_places says whether there are any", sequence, tokens);
    return (size_t)below(&r, places);
}

size_t text_random_place(size_t tokens, int sequence, uint64_t seed, uint64_t number) {
    return place_of(tokens, sequence, seed, RNG_WINDOW, number);
}

size_t text_sampled_place(size_t tokens, int sequence, uint64_t seed, uint64_t number) {
    return place_of(tokens, sequence, seed, RNG_SAMPLE, number);
}

void text_window_at(const struct text_set *t, size_t place, int sequence, int32_t *token, int32_t *y) {
    const size_t length = (size_t)sequence;
    if (place >= text_places(t->count, sequence)) die("text_window_at: %zu of %zu words", place, t->count);
    memcpy(token, t->token + place, length * sizeof *token);
    memcpy(y, t->token + place + 1, length * sizeof *y);
}

size_t text_sequential_windows(size_t tokens, int sequence) {
    return text_eval_windows(tokens, 1, sequence);
}

int text_sequential_fill(const struct text_set *t, size_t from, size_t to, int batch, int sequence, int32_t *token,
                         int32_t *y) {
    const size_t windows = text_sequential_windows(t->count, sequence), length = (size_t)sequence;
    const size_t rows = (size_t)batch * length, predictions = t->count ? t->count - 1 : 0;
    if (to > windows) to = windows;
    if (from > to) from = to;
    if (to - from > (size_t)batch) to = from + (size_t)batch;
    const size_t begin = from * length, end = to == windows ? predictions : to * length;
    const size_t count = from < to ? end - begin : 0;
    if (count > 0) memcpy(token, t->token + begin, count * sizeof *token);
    if (count > 0) memcpy(y, t->token + begin + 1, count * sizeof *y);
    memset(token + count, 0, (rows - count) * sizeof *token);
    memset(y + count, 0, (rows - count) * sizeof *y);
    return (int)count;
}
