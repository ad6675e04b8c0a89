/* data_speech_support.h: what the tests of recorded speech need besides data_support.h. */
#ifndef ST_TESTS_DATA_SPEECH_SUPPORT_H
#define ST_TESTS_DATA_SPEECH_SUPPORT_H

#include "tests/lib/data_support.h"

#include <sys/stat.h>

#include "base/rng.h"
#include "data/speech/spectrogram.h"
#include "data/speech/transcript.h"

extern const struct dataset_ops dataset_an4, dataset_speech;

/* Without FFTW there is nothing to test. */
static inline void need_fftw(const char *test) {
    struct err e = {0};
    if (spectrogram_is_here(&e)) return;
    printf("# SKIP %s: this build lacks FFTW\n", test);
    skip();
}

static inline const char *real_data(void) {
    const char *where = getenv("SPARSETRAIN_DATA");
    return where ? where : "build/data";
}

static inline void put_u32(unsigned char *at, size_t value) {
    for (int i = 0; i < 4; i++) at[i] = (unsigned char)(value >> 8 * i);
}

enum { WAV_HEAD = 44 };

/* Only utterances to train on keep their samples. */
static inline void expect_samples(const struct speech_set *set, const struct utterance *u, const int16_t *sample,
                                  size_t samples, bool keeps) {
    assert_int_equal(u->samples, keeps ? samples : 0);
    assert_true((set->sample != NULL) == keeps);
    if (keeps) assert_memory_equal(set->sample + u->sample, sample, samples * sizeof *sample);
}

/* A plain WAV file of these samples, in fresh memory. */
static inline unsigned char *make_wav(const int16_t *sample, size_t samples, size_t *bytes) {
    static const unsigned char format[] = {'f',  'm',  't', ' ', 16, 0,    0, 0, 1, 0, 1,  0,
                                           0x80, 0x3e, 0,   0,   0,  0x7d, 0, 0, 2, 0, 16, 0};
    *bytes = WAV_HEAD + 2 * samples;
    unsigned char *file = mem_alloc(*bytes, 1, "a WAV file");
    memcpy(file, "RIFF", 4);
    put_u32(file + 4, *bytes - 8);
    memcpy(file + 8, "WAVE", 4);
    memcpy(file + 12, format, sizeof format);
    memcpy(file + 36, "data", 4);
    put_u32(file + 40, 2 * samples);
    for (size_t i = 0; i < samples; i++) {
        file[WAV_HEAD + 2 * i] = (unsigned char)((uint16_t)sample[i] & 0xff);
        file[WAV_HEAD + 2 * i + 1] = (unsigned char)((uint16_t)sample[i] >> 8);
    }
    return file;
}

/* Noise that is another one for each number. */
static inline int16_t *make_samples(uint64_t number, size_t samples) {
    struct rng r = rng_open(5, RNG_TEST, number);
    int16_t *sample = mem_alloc(samples + 1, sizeof *sample, "samples");
    for (size_t i = 0; i < samples; i++) sample[i] = (int16_t)(uint16_t)rng_u32(&r);
    return sample;
}

static inline void write_wav(const char *dir, const char *name, uint64_t number, size_t samples) {
    size_t bytes;
    int16_t *sample = make_samples(number, samples);
    unsigned char *file = make_wav(sample, samples, &bytes);
    write_bytes(dir, name, file, bytes);
    mem_free(file);
    mem_free(sample);
}

/* Recordings in a fresh directory, the first `train` to train on, `test` to test on; `of` gives the samples of one and
 * what is said in it. Returns the directory. */
static inline char *write_recordings(int train, int test, size_t (*of)(int number, char text[32])) {
    char *dir = make_directory(), lists[2][1024] = {"", ""};
    for (int i = 0; i < train + test; i++) {
        char name[16], text[32], line[64];
        snprintf(name, sizeof name, "%d.wav", i);
        write_wav(dir, name, (uint64_t)i, of(i, text));
        snprintf(line, sizeof line, "%s %s\n", name, text);
        strcat(lists[i >= train], line);
    }
    write_bytes(dir, "train.txt", lists[0], strlen(lists[0]));
    write_bytes(dir, "test.txt", lists[1], strlen(lists[1]));
    return dir;
}

/* The same as a dataset, of a group of tests: *state, which is NULL without FFTW; *dir: for recordings_close. */
static inline int recordings_open(void **state, int train, int test, size_t (*of)(int number, char text[32]),
                                  char **dir) {
    static struct dataset d;
    struct err e = {0};
    *state = NULL;
    if (!spectrogram_is_here(&e)) return 0;
    *dir = write_recordings(train, test, of);
    *state = load_set(&dataset_speech, *dir, 1, &d, &e) ? &d : NULL;
    return *state ? 0 : -1;
}
static inline int recordings_close(void **state, char *dir) {
    if (*state) remove_tree(dir);
    return 0;
}
static inline const struct dataset *need_recordings(void **state, const char *test) {
    need_fftw(test);
    return *state;
}

#endif
