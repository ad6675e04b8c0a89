/* hostcuda_look_back.c: what a tile learns from the words of tiles before it (topk/cuda/cuda_tile.h), in states that
 * blocks on a GPU leave when they are not equally fast. The emulator runs blocks one after the other, so that a
 * selection there never sees them. */
#include <pthread.h>
#include <time.h>

#include "tests/hostcuda/selftest_support.h"

#include "topk/cuda/cuda_index.h"

/* before[32]: what each lane of a warp gets from tiles_before. */
void launch_look_back(uint64_t *words, uint32_t launch, uint32_t tile, uint32_t own, uint32_t *before);

enum { TILES = 300, LAUNCH_NOW = 7 };

static uint32_t random_state = 1;
static uint32_t random_below(uint32_t most) {
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)random_state * most >> 32);
}

/* Tiles up to one have said how many there are up to them, the others only their own; what lies behind `tile` is of
 * another launch. Every lane gets the sum, `tile` says it, and nothing else is written. */
static void check(uint32_t tile, uint32_t sums, uint32_t most) {
    uint64_t words[TILES + 1], after[TILES + 1];
    uint32_t before = 0, own = random_below(most), found[32];
    for (uint32_t i = 0; i <= TILES; i++) {
        uint32_t count = random_below(most);
        words[i] = tile_word(LAUNCH_NOW - 1, TILE_SUM, count);
        if (i >= tile) continue;
        before += count;
        words[i] = i < sums ? tile_word(LAUNCH_NOW, TILE_SUM, before) : tile_word(LAUNCH_NOW, TILE_OWN, count);
    }
    uint64_t *device = device_of(words, sizeof words);
    uint32_t *answers = device_new(sizeof found);
    launch_look_back(device, LAUNCH_NOW, tile, own, answers);
    OK(cudaGetLastError());
    device_read(found, answers, sizeof found);
    device_read(after, device, sizeof after);
    for (int lane = 0; lane < 32; lane++) assert_int_equal(found[lane], before);
    words[tile] = tile_word(LAUNCH_NOW, TILE_SUM, before + own);
    assert_memory_equal(after, words, sizeof words);
    OK(cudaFree(device)), OK(cudaFree(answers));
}

/* The first tile may have said no more than the others: it has nothing before it. */
static void sums_at_every_distance(void **state) {
    (void)state;
    const uint32_t tiles[] = {0, 1, 2, 31, 32, 33, 63, 64, 65, 96, 97, 127, 128, 129, 160, 255, TILES};
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++)
        for (uint32_t distance = 0; distance <= tiles[i]; distance += 1 + distance / 8)
            check(tiles[i], tiles[i] - distance, distance % 2 ? 4097 : 1 << 23);
}

/* What another block would say later: words [0, tile) in falling order, so that the nearest are there first. */
struct late {
    uint64_t *words, say[TILES + 1];
    uint32_t tile;
};
static void *say_late(void *arg) {
    struct late *l = arg;
    for (uint32_t i = l->tile; i-- > 0;) {
        if (i % 16 == 0) nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        __atomic_store_n(l->words + i, l->say[i], __ATOMIC_RELAXED);
    }
    return NULL;
}

/* Nothing is added twice where a part of a look has to be asked for again. */
static void words_that_come_late(void **state) {
    (void)state;
    const uint32_t tiles[] = {1, 33, 100, 129, 200, TILES};
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
        struct late l = {.tile = tiles[i]};
        uint32_t before = 0, found[32];
        for (uint32_t t = 0; t < l.tile; t++) {
            const uint32_t count = random_below(4097);
            before += count;
            l.say[t] =
                t < l.tile / 2 ? tile_word(LAUNCH_NOW, TILE_SUM, before) : tile_word(LAUNCH_NOW, TILE_OWN, count);
        }
        l.words = (void *)pinned_new(2 * (TILES + 1)); /* the thread may write there */
        memset(l.words, 0, sizeof l.say);
        uint32_t *answers = device_new(sizeof found);
        pthread_t other;
        assert_int_equal(pthread_create(&other, NULL, say_late, &l), 0);
        launch_look_back(l.words, LAUNCH_NOW, l.tile, 5, answers);
        OK(cudaDeviceSynchronize());
        assert_int_equal(pthread_join(other, NULL), 0);
        device_read(found, answers, sizeof found);
        for (int lane = 0; lane < 32; lane++) assert_int_equal(found[lane], before);
        OK(cudaFreeHost(l.words)), OK(cudaFree(answers));
    }
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_at_every_distance),
        cmocka_unit_test(words_that_come_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
