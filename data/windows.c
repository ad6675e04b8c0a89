/* windows.c: how a text is cut into streams and windows, for training and for an evaluation; the text half of loader.h.
 */
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
