/* fuzzing.c: a fuzz target without a fuzzer, as a test: every input in tests/fuzz/<target>, then changes of them, the
 * same each time. The target's name is the program's, fuzz_<target>. */
#include <dirent.h>

#include "base/rng.h"
#include "tests/lib/fuzzing.h"

enum { INPUT_MAX = 1 << 16, CHANGES = 4000, INPUTS_MAX = 4096 };

static struct input {
    uint8_t *bytes;
    size_t size;
} inputs[INPUTS_MAX];
static size_t count;

static void read_input(const char *path) {
    static uint8_t bytes[INPUT_MAX];
    FILE *f = fopen(path, "rb");
    MUST(f != NULL && count < INPUTS_MAX);
    size_t size = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    inputs[count++] = (struct input){fuzz_copy(bytes, size), size};
}

static void read_corpus(const char *target) {
    char folder[512], path[1024];
    snprintf(folder, sizeof folder, "tests/fuzz/%s", target);
    DIR *d = opendir(folder);
    if (!d) return;
    for (struct dirent *entry; (entry = readdir(d));) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        read_input(path);
    }
    closedir(d);
}

/* Bytes replaced, a stretch cut out or doubled, a tail of another input. */
static size_t change(struct rng *r, const struct input *from, const struct input *other, uint8_t *to) {
    size_t size = from->size;
    memcpy(to, from->bytes, size);
    if (size == 0) return 0;
    uint32_t at = rng_below(r, (uint32_t)size), length = rng_below(r, (uint32_t)(size - at) + 1);
    switch (rng_below(r, 5)) {
    case 0:
        memmove(to + at, to + at + length, size - at - length);
        return size - length;
    case 1:
        if (size + length > INPUT_MAX) return size;
        memmove(to + at + length, to + at, size - at);
        return size + length;
    case 2:
        if (at >= other->size) return at;
        memcpy(to + at, other->bytes + at, other->size - at);
        return other->size;
    default:
        for (uint32_t i = 1 + rng_below(r, 4); i > 0; i--) {
            uint8_t *byte = to + rng_below(r, (uint32_t)size);
            *byte = rng_below(r, 2) ? (uint8_t)rng_below(r, 256) : (uint8_t)(*byte ^ 1u << rng_below(r, 8));
        }
        return size;
    }
}

int main(int argc, char **argv) {
    static uint8_t changed[INPUT_MAX];
    const char *name = strrchr(argv[0], '/');
    name = (name ? name + 1 : argv[0]) + strlen("fuzz_");
    read_corpus(argc > 1 ? argv[1] : name);
    for (size_t i = 0; i < count; i++) LLVMFuzzerTestOneInput(inputs[i].bytes, inputs[i].size);
    bool enough = count >= 5;
    printf("%sok 1 - the corpus of %s: %zu inputs\n", enough ? "" : "not ", name, count);
    struct rng r = rng_open(24, RNG_TEST, 0);
    for (int i = 0; i < CHANGES && count > 0; i++) {
        const struct input *from = &inputs[rng_below(&r, (uint32_t)count)],
                           *other = &inputs[rng_below(&r, (uint32_t)count)];
        size_t size = change(&r, from, other, changed);
        uint8_t *exact = fuzz_copy(changed, size);
        LLVMFuzzerTestOneInput(exact, size);
        free(exact);
    }
    printf("ok 2 - and %d changes of them\n1..2\n", CHANGES);
    for (size_t i = 0; i < count; i++) free(inputs[i].bytes);
    return enough ? 0 : 1;
}
