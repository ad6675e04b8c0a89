/* track.c: see track.h. */
#include "topk/track.h"

#include "topk/sparse.h"

/* log2 of the distance between two counted keys: at first 3% in magnitude, at most a factor of 1.5 (half a binade). */
enum { SHIFT_FIRST = 18, SHIFT_MAX = 22 };

const char *const evaluated_names[EVALUATED_REASONS] = {"due", "k", "few", "many", "words"};

/* A threshold that zeros do not reach and every finite magnitude may. */
static uint32_t in_range(int64_t key) {
    return key < 1 ? 1 : key >= (int64_t)KEY_INFINITE ? KEY_INFINITE - 1 : (uint32_t)key;
}

static int64_t within(int64_t value, int64_t most) {
    return value > most ? most : value < -most ? -most : value;
}

/* `actual` is what the threshold should have been: an eighth of the error is added to the trend. Errors are limited
 * to four distances, since a larger one is a jump and says nothing more about the trend. The trend has the same
 * limit, so that it is corrected quickly when the distance has become small. */
static void learn(struct track *t, int64_t actual) {
    const int64_t far = (int64_t)4 << t->shift, fast = (int64_t)1 << SHIFT_MAX;
    t->trend = within(t->trend + within(actual - (int64_t)t->key, far) / 8, far < fast ? far : fast);
}

bool track_possible(const struct track *t) {
    const int64_t fast = (int64_t)1 << SHIFT_MAX;
    return t->key < KEY_INFINITE && t->shift <= SHIFT_MAX && t->trend >= -fast && t->trend <= fast;
}

void track_found(struct track *t, uint32_t key, bool afresh) {
    if (afresh || key == 0 || t->key <= 1) /* 1 or 0: everything passed, which says nothing of the trend */
        *t = (struct track){.key = key, .shift = SHIFT_FIRST};
    else
        learn(t, key);
    if (key > 0) t->key = in_range((int64_t)key + t->trend);
}

uint32_t track_above(const struct track *t, uint32_t key) {
    return in_range((int64_t)key + ((int64_t)1 << t->shift));
}

void track_spacing(struct track *t, size_t count, size_t above) {
    size_t between = count - above;
    if (2 * between > count && t->shift > 0)
        t->shift--;
    else if (8 * between < count && t->shift < SHIFT_MAX)
        t->shift++;
}

/* Linear interpolation between the two counts, limited to four times their distance: further away the slope is not
 * known. */
void track_counted(struct track *t, size_t k, size_t count, size_t above) {
    const int64_t apart = (int64_t)1 << t->shift, between = (int64_t)(count - above);
    const int64_t surplus = (int64_t)count - (int64_t)k;
    const int64_t way = within(surplus * apart / (between + 1), 4 * apart);
    learn(t, (int64_t)t->key + way);
    t->key = in_range((int64_t)t->key + way / 4 + t->trend);
    track_spacing(t, count, above);
}

uint32_t track_rung(const struct track *t, int rung) {
    if (t->key == 0) return 0;
    return in_range((int64_t)t->key + (rung - TRACK_CENTRE) * ((int64_t)1 << t->shift));
}

int track_nearest(const uint64_t *count, size_t k) {
    int best = TRACK_CENTRE;
    uint64_t least = UINT64_MAX;
    for (int j = 0; j < TRACK_RUNGS; j++) {
        int i = TRACK_CENTRE + (j % 2 ? -(j + 1) / 2 : j / 2); /* from the centre outwards */
        uint64_t off = count[i] > k ? count[i] - k : k - count[i];
        if (off < least) least = off, best = i;
    }
    return best;
}

/* Two rungs about the chosen one are to be a factor between 1.4 and 2 apart in entries. */
void track_took(struct track *t, int rung, const uint64_t *count) {
    uint64_t below = count[rung > 0 ? rung - 1 : rung] + 1, above = count[rung < TRACK_RUNGS - 1 ? rung + 1 : rung] + 1;
    uint32_t key = track_rung(t, rung);
    if (t->key == 0) return;
    learn(t, key);
    t->key = in_range((int64_t)key + t->trend);
    if (below > 2 * above && t->shift > 0)
        t->shift--;
    else if (5 * below < 7 * above && t->shift < SHIFT_MAX)
        t->shift++;
}
