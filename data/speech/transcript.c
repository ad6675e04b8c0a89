/* transcript.c: see transcript.h. */
#include "data/speech/transcript.h"

#include <string.h>

#include "base/error.h"

static const char alphabet[] = TRANSCRIPT_ALPHABET;
enum { SPACE = TRANSCRIPT_LABELS - 1 };

static bool is_gap(char c) {
    return c == ' ' || c == '\t';
}

/* TRANSCRIPT_BLANK: none. */
static uint8_t label_of(char c) {
    if (c >= 'a' && c <= 'z') c = (char)(c - 'a' + 'A');
    const char *at = c ? strchr(alphabet, c) : NULL;
    return at ? (uint8_t)(at - alphabet) : TRANSCRIPT_BLANK;
}

bool transcript_encode(const char *text, size_t bytes, uint8_t *label, size_t *labels, unsigned char *stray) {
    bool apart = false; /* from the word before */
    *labels = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (is_gap(text[i])) {
            apart = *labels > 0;
            continue;
        }
        const uint8_t found = label_of(text[i]);
        *stray = (unsigned char)text[i];
        if (found == TRANSCRIPT_BLANK) return false;
        if (apart) label[(*labels)++] = SPACE;
        label[(*labels)++] = found;
        apart = false;
    }
    return true;
}

void transcript_decode(const uint8_t *label, size_t labels, char *text) {
    for (size_t i = 0; i < labels; i++) text[i] = alphabet[label[i]];
    text[labels] = '\0';
}

size_t transcript_steps(const uint8_t *label, size_t labels) {
    size_t steps = labels;
    for (size_t i = 1; i < labels; i++) steps += label[i] == label[i - 1];
    return steps;
}

size_t transcript_of_path(const int32_t *path, size_t steps, char *text) {
    size_t length = 0;
    for (size_t t = 0; t < steps; t++) {
        if (path[t] < 0 || path[t] >= TRANSCRIPT_LABELS) die("transcript_of_path: label %d", path[t]);
        if (path[t] != TRANSCRIPT_BLANK && (t == 0 || path[t] != path[t - 1])) text[length++] = alphabet[path[t]];
    }
    text[length] = '\0';
    return length;
}
