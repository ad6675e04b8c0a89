/* fuzz_profiles.c: an arbitrary text as a profile of selections. What is accepted is written and read again: the same
 * text. */
#include <math.h>

#include "base/mem.h"
#include "cli/gradients/profile.h"
#include "tests/lib/fuzzing.h"

static char *written(const struct profile *p, const char *name) {
    struct err e = {0};
    const char *path = fuzz_path(name);
    MUST(profile_write(p, path, &e));
    char *text = profile_load(path, &e);
    MUST(text != NULL);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct profile p, again;
    struct err e = {0};
    char *text = fuzz_text(data, size);
    bool good = fuzz_answer(profile_parse(&p, text, "it", &e), &e);
    free(text);
    if (!good) return 0;
    for (uint64_t P = 1; P <= p.ranks; P *= 2) {
        double all = profile_union(&p, (double)P);
        MUST(isfinite(all) && all >= 0 && all <= (double)p.n * (1 + 1e-6));
    }
    char *once = written(&p, "once"), *kept = fuzz_copy(once, strlen(once) + 1);
    MUST(profile_parse(&again, once, "again", &e));
    char *twice = written(&again, "twice");
    MUST(strcmp(kept, twice) == 0);
    mem_free(once);
    mem_free(twice);
    free(kept);
    profile_close(&p);
    profile_close(&again);
    return 0;
}
