/* fuzz_wav.c: arbitrary bytes for a recording: samples that are found lie within it. The same bytes for a transcript:
 * what has labels is read back from them to the same labels, and has time in as many steps as is said. */
#include "data/speech/transcript.h"
#include "data/speech/wav.h"
#include "tests/lib/fuzzing.h"

static void as_recording(const uint8_t *data, size_t size) {
    struct err e = {0};
    size_t at = 0, length = 0;
    unsigned char *file = fuzz_copy(data, size);
    if (fuzz_answer(wav_find(file, size, &at, &length, &e), &e))
        MUST(at <= size && length <= size - at && length % 2 == 0);
    free(file);
}

static void as_transcript(const uint8_t *data, size_t size) {
    size_t labels = 0, again = 0;
    unsigned char stray = 0;
    char *said = fuzz_copy(data, size), *text = malloc(size + 1);
    uint8_t *label = malloc(size + 1), *other = malloc(size + 1);
    MUST(text && label && other);
    const bool good = transcript_encode(said, size, label, &labels, &stray);
    MUST(labels <= size);
    for (size_t i = 0; i < labels; i++) MUST(label[i] > TRANSCRIPT_BLANK && label[i] < TRANSCRIPT_LABELS);
    if (good) {
        transcript_decode(label, labels, text);
        MUST(transcript_encode(text, labels, other, &again, &stray));
        MUST(again == labels && memcmp(label, other, labels) == 0);
        const size_t steps = transcript_steps(label, labels);
        MUST(steps >= labels && (steps == 0 || steps < 2 * labels));
    }
    free(other);
    free(label);
    free(text);
    free(said);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    as_recording(data, size);
    as_transcript(data, size);
    return 0;
}
