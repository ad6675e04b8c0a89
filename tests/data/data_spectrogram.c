/* Log spectrograms: against sums as the formula has them, in double precision, on made-up sounds of every length at
 * which something changes; against PyTorch's on real recordings. */
#include "tests/lib/data_speech_support.h"

#include <math.h>

#include "tests/golden/spectrogram.h"

enum { BINS = SPECTROGRAM_BINS };

/* y[at], reflected at the ends by going back and forth one step after the other. */
static double reflected(const int16_t *s, long n, long at) {
    while (n > 1 && (at < 0 || at >= n)) at = at < 0 ? -at : 2 * (n - 1) - at;
    return (double)s[n > 1 ? at : 0] / 32767;
}

/* x[b][t] before it is normalised, t being the frame around sample `centre`. */
static double naive_value(const int16_t *s, size_t n, size_t b, long centre, double gain) {
    const double turn = 2 * acos(-1);
    double real = 0, imaginary = 0;
    for (long j = 0; j < 320; j++) {
        const double y = (0.54 - 0.46 * cos(turn * (double)j / 319)) * reflected(s, (long)n, centre - 160 + j);
        const double angle = turn * (double)((size_t)j * b % 320) / 320;
        real += y * cos(angle);
        imaginary -= y * sin(angle);
    }
    return log1p(gain * sqrt(real * real + imaginary * imaginary));
}

static double *naive(const int16_t *s, size_t n, size_t frames, double tempo, double gain) {
    const size_t count = BINS * frames;
    double *x = mem_alloc(count, sizeof *x, "a spectrogram"), mean = 0, square = 0;
    for (size_t b = 0; b < BINS; b++)
        for (size_t t = 0; t < frames; t++)
            mean += x[b * frames + t] = naive_value(s, n, b, lrint(160 * tempo * (double)t), gain);
    mean /= (double)count;
    for (size_t i = 0; i < count; i++) square += (x[i] - mean) * (x[i] - mean);
    const double deviation = sqrt(square / ((double)count - 1));
    for (size_t i = 0; i < count; i++) x[i] = (x[i] - mean) / deviation;
    return x;
}

/* A loud noise that dies away, or a chord. */
static void make_sound(int kind, int16_t *s, size_t n) {
    struct rng r = rng_open(3, RNG_TEST, n);
    for (size_t i = 0; i < n; i++) {
        const double time = (double)i / 16000, fade = exp(-5 * time), u = 2 * rng_uniform(&r) - 1;
        const double chord = 0.4 * sin(2765 * time) + 0.3 * sin(9000 * time) + 0.02 * u;
        s[i] = (int16_t)lrint(32767 * (kind == 0 ? u * fade : chord));
    }
    if (kind == 0 && n > 2) s[1] = INT16_MIN, s[n - 1] = INT16_MAX;
}

static void like_the_formula(void **state) {
    (void)state;
    need_fftw("like_the_formula");
    static const size_t lengths[] = {1, 2, 3, 80, 159, 160, 161, 162, 319, 320, 321, 480, 481, 1601, 4000};
    static int16_t s[4000];
    struct spectrogram *spectrogram = spectrogram_open();
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int kind = 0; kind < 2; kind++) {
            const size_t n = lengths[i], frames = 1 + n / 160;
            assert_int_equal(spectrogram_frames(n), frames);
            make_sound(kind, s, n);
            if (n == 1) s[0] = 12345;
            float *x = mem_alloc(BINS * frames, sizeof *x, "a spectrogram");
            double *wanted = naive(s, n, frames, 1, 1);
            spectrogram_fill(spectrogram, s, n, x);
            for (size_t j = 0; j < BINS * frames; j++)
                if (!(fabs((double)x[j] - wanted[j]) < 6e-5)) /* 1.8e-5 is the most seen */
                    fail_msg("%zu samples, place %zu: %g, %g expected", n, j, (double)x[j], wanted[j]);
            mem_free(wanted);
            mem_free(x);
        }
    spectrogram_close(spectrogram);
}

/* Faster, slower, louder, quieter, in rows that are longer than what is filled. */
static void changed_like_the_formula(void **state) {
    (void)state;
    need_fftw("changed_like_the_formula");
    static const struct spectrogram_change changes[] = {{0.85, 1}, {1.15, 1}, {0.93, 0.5}, {1.07, 2.5}, {1, 2}, {1, 1}};
    static const size_t lengths[] = {1, 100, 161, 1601, 4000};
    enum { MORE = 3 };
    static int16_t s[4000];
    struct spectrogram *spectrogram = spectrogram_open();
    for (size_t c = 0; c < sizeof changes / sizeof *changes; c++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            const size_t n = lengths[i], frames = spectrogram_frames_at(n, changes[c].tempo), stride = frames + MORE;
            /* the last frame is around a sample that is there or just behind it, and there is no room for another */
            const double each = 160 * changes[c].tempo;
            assert_true((double)(frames - 1) * each <= (double)n && (double)frames * each > (double)n);
            make_sound((int)i % 2, s, n);
            if (n == 1) s[0] = 12345;
            float *x = mem_alloc(BINS * stride, sizeof *x, "a spectrogram");
            memset(x, 0xff, BINS * stride * sizeof *x);
            double *wanted = naive(s, n, frames, changes[c].tempo, changes[c].gain);
            spectrogram_fill_changed(spectrogram, s, n, &changes[c], stride, x);
            for (size_t j = 0; j < BINS * stride; j++) {
                const size_t t = j % stride;
                if (t >= frames)
                    assert_true(isnan(x[j]));
                else if (!(fabs((double)x[j] - wanted[j / stride * frames + t]) < 6e-5))
                    fail_msg("%zu samples, change %zu, place %zu: %g, %g expected", n, c, j, (double)x[j],
                             wanted[j / stride * frames + t]);
            }
            mem_free(wanted);
            mem_free(x);
        }
    spectrogram_close(spectrogram);
}

static void silence(void **state) {
    (void)state;
    need_fftw("silence");
    static const int16_t s[1000];
    float x[BINS * 7];
    memset(x, 0xff, sizeof x);
    struct spectrogram *spectrogram = spectrogram_open();
    spectrogram_fill(spectrogram, s, 1000, x);
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) assert_true(x[i] == 0);
    spectrogram_close(spectrogram);
}

static int16_t *read_samples(const char *name, size_t samples) {
    size_t bytes;
    char *path = mem_printf("%s/an4/wav/%s.raw", real_data(), name);
    struct stat s;
    if (stat(path, &s) != 0) {
        mem_free(path);
        return NULL;
    }
    uint8_t *file = read_whole(path, &bytes);
    assert_int_equal(bytes, 2 * samples);
    int16_t *sample = mem_alloc(samples, sizeof *sample, "samples");
    for (size_t i = 0; i < samples; i++) sample[i] = (int16_t)(uint16_t)(file[2 * i] << 8 | file[2 * i + 1]);
    mem_free(file);
    mem_free(path);
    return sample;
}

static void like_pytorch(void **state) {
    (void)state;
    need_fftw("like_pytorch");
    struct spectrogram *spectrogram = spectrogram_open();
    for (size_t i = 0; i < sizeof golden_spectra / sizeof *golden_spectra; i++) {
        const size_t samples = golden_spectra[i].samples, frames = golden_spectra[i].frames;
        int16_t *sample = read_samples(golden_spectra[i].file, samples);
        if (!sample) {
            printf("# SKIP like_pytorch: no an4 in %s\n", real_data());
            spectrogram_close(spectrogram);
            skip();
        }
        assert_int_equal(spectrogram_frames(samples), frames);
        float *x = mem_alloc(BINS * frames, sizeof *x, "a spectrogram");
        spectrogram_fill(spectrogram, sample, samples, x);
        for (size_t j = 0; j < GOLDEN_VALUES; j++) {
            const double is = (double)x[j * 2654435761u % (BINS * frames)], wanted = golden_spectra[i].value[j];
            if (!(fabs(is - wanted) < 1e-5))
                fail_msg("%s, value %zu: %g, %g expected", golden_spectra[i].file, j, is, wanted);
        }
        mem_free(x);
        mem_free(sample);
    }
    spectrogram_close(spectrogram);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(like_the_formula), cmocka_unit_test(changed_like_the_formula),
                                       cmocka_unit_test(silence), cmocka_unit_test(like_pytorch)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
