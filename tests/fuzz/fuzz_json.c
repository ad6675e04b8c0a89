/* fuzz_json.c: arbitrary text as JSON, as lines for the verb `rows` are. What is accepted can be walked through to its
 * end, every value in it is found again by its path, and no text is longer than what it came from. Input: the text. */
#include "base/json_read.h"
#include "tests/lib/fuzzing.h"

static size_t walk(const struct json_value *v, int depth) {
    struct json_member m = {.end = NULL};
    struct json_value again;
    char *plain = fuzz_copy(v->at, v->length), path[32]; /* of exactly so many bytes */
    MUST(json_plain(v, plain) <= v->length);
    free(plain);
    MUST(depth <= JSON_DEPTH_MAX && v->length > 0);
    size_t values = 1;
    for (size_t i = 0; json_next(v, &m); i++) {
        MUST(m.value.at > v->at && m.value.at + m.value.length < v->at + v->length);
        snprintf(path, sizeof path, "%zu", i);
        if (*v->at == '[') MUST(json_at(v, path, &again) && again.at == m.value.at && again.length == m.value.length);
        values += walk(&m.value, depth + 1);
    }
    return values;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct json_value v, found;
    struct json_fault wrong;
    char *text = fuzz_text(data, size);
    bool good = json_read(text, &v, &wrong);
    MUST(good == !wrong.why && wrong.at >= text && wrong.at <= text + strlen(text));
    if (good) {
        MUST(v.at >= text && v.at + v.length <= text + strlen(text));
        MUST(walk(&v, 0) <= strlen(text));
        json_at(&v, "a.b.0.c", &found);
    }
    free(text);
    return 0;
}
