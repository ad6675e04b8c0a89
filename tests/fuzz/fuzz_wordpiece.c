/* fuzz_wordpiece.c: arbitrary bytes as a list of pieces, and as a text that is cut into them. Input: a byte that says
 * where the text begins, and whether the special pieces stand before the list; then the list, then the text. */
#include "data/pairs/wordpiece.h"
#include "tests/lib/fuzzing.h"

static void cut(const struct wordpiece *w, const uint8_t *data, size_t size) {
    char *text = fuzz_copy(data, size);
    struct pieces p = {0};
    if (wordpiece_add(w, text, size, &p)) {
        MUST(p.count <= size);
        for (size_t i = 0; i < p.count; i++) MUST(p.id[i] >= 0 && (size_t)p.id[i] < wordpiece_count(w));
    }
    pieces_close(&p);
    free(text);
}

static void check_special(const struct wordpiece *w) {
    struct special_pieces s = wordpiece_special(w);
    const int32_t id[] = {s.pad, s.unk, s.cls, s.sep, s.mask};
    for (size_t i = 0; i < sizeof id / sizeof *id; i++) {
        MUST(id[i] >= 0 && (size_t)id[i] < wordpiece_count(w));
        for (size_t k = 0; k < i; k++) MUST(id[i] != id[k]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char five[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    if (size < 1) return 0;
    size_t list = (size - 1) * (data[0] >> 1) / 127, before = data[0] & 1 ? sizeof five - 1 : 0;
    uint8_t *file = malloc(sizeof five - 1 + list);
    MUST(file != NULL);
    memcpy(file, five, before);
    memcpy(file + before, data + 1, list);
    struct err e = {0};
    struct wordpiece *w = wordpiece_open(fuzz_file("vocab.txt", file, before + list), &e);
    free(file);
    if (!fuzz_answer(w != NULL, &e)) return 0;
    check_special(w);
    cut(w, data + 1 + list, size - 1 - list);
    wordpiece_close(w);
    return 0;
}
