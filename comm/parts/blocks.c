/* blocks.c: see blocks.h. */
#include "comm/parts/blocks.h"

#define ABSENT UINT32_MAX /* no place: there are fewer than 2^32 - 1 blocks in a range */

/* -- choosing ------------------------------------------------------------------------------------------ */
/* Numbers >= 0 are ordered as their bits are, of which the first is 0: the other 63 in three digits, each a key. */
enum { DIGIT = 21, DIGITS = 3 };

static uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & ~((uint64_t)1 << 63); /* -0 is 0 */
}

/* How many are larger, of their bits without the last `shift`. */
static size_t count_above(const double *square, size_t count, int shift, uint64_t than) {
    size_t above = 0;
    for (size_t i = 0; i < count; i++) above += bits_of(square[i]) >> shift > than >> shift;
    return above;
}

/* The bits of the chosen-th largest, digit by digit from the top, each among those that share the digits before it;
 * *ties: how many of those that are equal to it are chosen. key_kth_largest leaves nothing to count in the keys. */
static uint64_t find_largest(const double *square, size_t count, size_t chosen, uint32_t *keys, size_t *ties) {
    uint64_t found = 0;
    *ties = chosen;
    for (int shift = DIGIT * (DIGITS - 1); shift >= 0; shift -= DIGIT) {
        size_t alike = 0;
        for (size_t i = 0; i < count; i++) {
            const uint64_t own = bits_of(square[i]);
            if (own >> shift >> DIGIT != found >> shift >> DIGIT) continue;
            keys[alike++] = (uint32_t)(own >> shift & ((1u << DIGIT) - 1));
        }
        found |= (uint64_t)key_kth_largest(keys, alike, *ties) << shift;
        *ties = chosen - count_above(square, count, shift, found);
    }
    return found;
}

void blocks_largest(const double *square, size_t count, size_t chosen, uint32_t *keys, uint32_t *number) {
    size_t left, at = 0;
    const uint64_t last = find_largest(square, count, chosen, keys, &left);
    for (size_t i = 0; i < count && at < chosen; i++) {
        const uint64_t own = bits_of(square[i]);
        const bool tie = own == last && left > 0;
        left -= tie;
        if (tie || own > last) number[at++] = (uint32_t)i;
    }
}

/* -- lists --------------------------------------------------------------------------------------------- */
/* All blocks but the last one of all are whole. */
static size_t entries_of(const struct blocks *b, const uint32_t *number, size_t count) {
    return count == 0 ? 0 : (count - 1) * b->size + blocks_length(b, number[count - 1]);
}

struct block_list blocks_between(const struct blocks *b, const struct block_list *list, size_t from, size_t to) {
    const size_t at = index_lower_bound(list->number, list->count, (uint32_t)from);
    const size_t count = index_lower_bound(list->number, list->count, (uint32_t)to) - at;
    return (struct block_list){list->number + at, list->val + at * b->size, count,
                               entries_of(b, list->number + at, count)};
}

void blocks_indices(const struct blocks *b, const uint32_t *number, size_t count, struct sparse *to) {
    size_t entries = entries_of(b, number, count), at = 0;
    if (entries > to->cap) die("%zu entries of blocks in room for %zu", entries, to->cap);
    for (size_t i = 0; i < count; i++) {
        const size_t from = number[i] * b->size, length = blocks_length(b, number[i]);
        for (size_t j = 0; j < length; j++) to->idx[at++] = (uint32_t)(from + j);
    }
    to->nnz = entries;
}

void blocks_append(const struct blocks *b, const struct block_list *list, struct sparse *u) {
    if (list->count == 0) return;
    struct sparse tail = sparse_tail(u);
    blocks_indices(b, list->number, list->count, &tail);
    memcpy(tail.val, list->val, list->entries * sizeof *tail.val);
    u->nnz += tail.nnz;
}

/* -- messages ------------------------------------------------------------------------------------------ */
size_t blocks_write(const struct block_list *list, void *message) {
    if (list->count == 0) return 0;
    memcpy(message, list->number, list->count * sizeof *list->number);
    memcpy((uint32_t *)message + list->count, list->val, list->entries * sizeof *list->val);
    return (list->count + list->entries) * sizeof *list->val;
}

/* Only the last block of all is shorter than the others. So of w words ceil(w / (size + 1)) are numbers, and these say
 * how many values there must be. */
bool blocks_decode(const struct blocks *b, const void *message, size_t bytes, size_t from, size_t to,
                   struct block_list *view, struct err *e) {
    const uint32_t *number = message;
    const size_t words = bytes / 4, count = words / (b->size + 1) + (words % (b->size + 1) > 0);
    if (bytes % 4 != 0) return err_set(e, "%zu bytes are no whole number of words", bytes);
    for (size_t i = 0; i < count; i++)
        if (number[i] < from || number[i] >= to || (i > 0 && number[i] <= number[i - 1]))
            return err_set(e, "the numbers of its blocks do not increase or are not in %zu to %zu", from, to);
    const size_t entries = entries_of(b, number, count);
    if (words != count + entries) return err_set(e, "%zu words are no whole number of blocks", words);
    *view = (struct block_list){number, (const float *)(const void *)(number + count), count, entries};
    return true;
}

void blocks_read(const struct blocks *b, const void *message, size_t bytes, size_t from, size_t to, int sender,
                 struct block_list *view) {
    struct err e = {0};
    if (!blocks_decode(b, message, bytes, from, to, view, &e))
        die("rank %d sent a message that is not of blocks: %s", sender, e.text);
}

/* -- sums ---------------------------------------------------------------------------------------------- */
/* Which of the blocks [from, to) the lists have, as the message's numbers; place[i]: where block from + i stands among
 * them, with its values still to come, or ABSENT. Returns how many. */
static size_t join(const struct block_list *list, size_t lists, size_t from, size_t to, uint32_t *place,
                   uint32_t *number) {
    size_t count = 0;
    for (size_t i = 0; i < to - from; i++) place[i] = ABSENT;
    for (size_t l = 0; l < lists; l++)
        for (size_t i = 0; i < list[l].count; i++) place[list[l].number[i] - from] = 0;
    for (size_t i = 0; i < to - from; i++) {
        if (place[i] == ABSENT) continue;
        number[count] = (uint32_t)(from + i);
        place[i] = (uint32_t)count++;
    }
    return count;
}

static void add(float *restrict to, const float *restrict from, size_t count) {
    for (size_t i = 0; i < count; i++) to[i] += from[i];
}

size_t blocks_sum(const struct blocks *b, const struct block_list *list, size_t lists, size_t from, size_t to,
                  uint32_t *place, void *message) {
    uint32_t *number = message;
    const size_t count = join(list, lists, from, to, place, number), entries = entries_of(b, number, count);
    float *val = (float *)(void *)(number + count);
    for (size_t i = 0; i < entries; i++) val[i] = -0.0f; /* -0 + x is x, whatever its sign */
    for (size_t l = 0; l < lists; l++)
        for (size_t i = 0; i < list[l].count; i++) {
            const uint32_t own = list[l].number[i];
            add(val + place[own - from] * b->size, list[l].val + i * b->size, blocks_length(b, own));
        }
    return (count + entries) * sizeof *val;
}
