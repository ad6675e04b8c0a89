/* spectrogram.c: see spectrogram.h; the one file that knows FFTW. */
#include "data/speech/spectrogram.h"

#include <math.h>

#include "base/mem.h"

size_t spectrogram_frames_at(size_t samples, double tempo) {
    return 1 + (size_t)((double)samples / (SPECTROGRAM_STRIDE * tempo));
}

#ifdef ST_FFTW
#include <fftw3.h>

struct spectrogram {
    fftwf_plan plan;
    float *in;                        /* [SPECTROGRAM_WINDOW] */
    fftwf_complex *out;               /* [SPECTROGRAM_BINS] */
    float window[SPECTROGRAM_WINDOW]; /* over 32767 */
};

bool spectrogram_is_here(struct err *e) {
    (void)e;
    return true;
}

/* FFTW_ESTIMATE measures nothing, so that the plan, and with it every bit, is the same each time. */
struct spectrogram *spectrogram_open(void) {
    const double turn = 2 * acos(-1) / (SPECTROGRAM_WINDOW - 1);
    struct spectrogram *s = mem_zalloc(1, sizeof *s, "spectra");
    s->in = fftwf_alloc_real(SPECTROGRAM_WINDOW);
    s->out = fftwf_alloc_complex(SPECTROGRAM_BINS);
    if (!s->in || !s->out) die("no memory for FFTW");
    s->plan = fftwf_plan_dft_r2c_1d(SPECTROGRAM_WINDOW, s->in, s->out, FFTW_ESTIMATE);
    if (!s->plan) die("FFTW has no plan for %d samples", SPECTROGRAM_WINDOW);
    for (int i = 0; i < SPECTROGRAM_WINDOW; i++) s->window[i] = (float)((0.54 - 0.46 * cos(turn * i)) / 32767);
    return s;
}

void spectrogram_close(struct spectrogram *s) {
    if (!s) return;
    fftwf_destroy_plan(s->plan);
    fftwf_free(s->in);
    fftwf_free(s->out);
    mem_free(s);
}

/* Where y[at] is in 0 .. n-1, reflected at both ends: with a period of 2 (n - 1), half of which goes back. */
static size_t reflected(ptrdiff_t at, ptrdiff_t n) {
    if (at >= 0 && at < n) return (size_t)at;
    if (n == 1) return 0;
    const ptrdiff_t period = 2 * (n - 1);
    at = (at % period + period) % period;
    return (size_t)(at < n ? at : period - at);
}

/* x[b] = log(1 + gain |F[b]|) of the frame around sample `centre`, `stride` floats from one frequency to the next. */
static void one_frame(struct spectrogram *s, const int16_t *sample, size_t samples, size_t centre, float gain, float *x,
                      size_t stride) {
    const ptrdiff_t first = (ptrdiff_t)centre - SPECTROGRAM_WINDOW / 2;
    for (int i = 0; i < SPECTROGRAM_WINDOW; i++)
        s->in[i] = s->window[i] * (float)sample[reflected(first + i, (ptrdiff_t)samples)];
    fftwf_execute(s->plan);
    for (size_t b = 0; b < SPECTROGRAM_BINS; b++)
        x[b * stride] = log1pf(gain * sqrtf(s->out[b][0] * s->out[b][0] + s->out[b][1] * s->out[b][1]));
}

/* x: [SPECTROGRAM_BINS][stride], of which `frames` of each frequency count. */
static void normalise(float *x, size_t frames, size_t stride) {
    const double count = (double)(SPECTROGRAM_BINS * frames);
    double mean = 0, square = 0;
    for (size_t b = 0; b < SPECTROGRAM_BINS; b++)
        for (size_t t = 0; t < frames; t++) mean += (double)x[b * stride + t];
    mean /= count;
    for (size_t b = 0; b < SPECTROGRAM_BINS; b++)
        for (size_t t = 0; t < frames; t++) {
            const double apart = (double)x[b * stride + t] - mean;
            square += apart * apart;
        }
    const double deviation = sqrt(square / (count - 1)), factor = deviation > 0 ? 1 / deviation : 0;
    for (size_t b = 0; b < SPECTROGRAM_BINS; b++)
        for (size_t t = 0; t < frames; t++) x[b * stride + t] = (float)(((double)x[b * stride + t] - mean) * factor);
}

void spectrogram_fill_changed(struct spectrogram *s, const int16_t *sample, size_t samples,
                              const struct spectrogram_change *change, size_t stride, float *x) {
    const size_t frames = spectrogram_frames_at(samples, change->tempo);
    if (samples == 0) die("spectrogram_fill: no samples");
    for (size_t t = 0; t < frames; t++) {
        const size_t centre = (size_t)llrint((double)t * SPECTROGRAM_STRIDE * change->tempo);
        one_frame(s, sample, samples, centre, (float)change->gain, x + t, stride);
    }
    normalise(x, frames, stride);
}

void spectrogram_fill(struct spectrogram *s, const int16_t *sample, size_t samples, float *x) {
    const struct spectrogram_change none = {1, 1};
    spectrogram_fill_changed(s, sample, samples, &none, spectrogram_frames(samples), x);
}

#else

#define NONE die("this build lacks FFTW")

bool spectrogram_is_here(struct err *e) {
    return err_set(e, "this build lacks FFTW, by which speech becomes spectra; install libfftw3-dev and make it anew");
}

struct spectrogram *spectrogram_open(void) {
    NONE;
}

void spectrogram_close(struct spectrogram *s) {
    if (s) NONE;
}

void spectrogram_fill(struct spectrogram *s, const int16_t *sample, size_t samples, float *x) {
    (void)s, (void)sample, (void)samples, (void)x;
    NONE;
}

void spectrogram_fill_changed(struct spectrogram *s, const int16_t *sample, size_t samples,
                              const struct spectrogram_change *change, size_t stride, float *x) {
    (void)s, (void)sample, (void)samples, (void)change, (void)stride, (void)x;
    NONE;
}

#endif
