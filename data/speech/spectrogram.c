/* spectrogram.c: see spectrogram.h; the one file that knows FFTW. */
#include "data/speech/spectrogram.h"

#include <math.h>

#include "base/mem.h"

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

/* x[b] = log(1 + |F[b]|) of frame t, `stride` floats from one frequency to the next. */
static void one_frame(struct spectrogram *s, const int16_t *sample, size_t samples, size_t t, float *x, size_t stride) {
    const ptrdiff_t first = (ptrdiff_t)(t * SPECTROGRAM_STRIDE) - SPECTROGRAM_WINDOW / 2;
    for (int i = 0; i < SPECTROGRAM_WINDOW; i++)
        s->in[i] = s->window[i] * (float)sample[reflected(first + i, (ptrdiff_t)samples)];
    fftwf_execute(s->plan);
    for (size_t b = 0; b < SPECTROGRAM_BINS; b++)
        x[b * stride] = log1pf(sqrtf(s->out[b][0] * s->out[b][0] + s->out[b][1] * s->out[b][1]));
}

static void normalise(float *x, size_t count) {
    double mean = 0, square = 0;
    for (size_t i = 0; i < count; i++) mean += (double)x[i];
    mean /= (double)count;
    for (size_t i = 0; i < count; i++) square += ((double)x[i] - mean) * ((double)x[i] - mean);
    const double deviation = sqrt(square / (double)(count - 1)), factor = deviation > 0 ? 1 / deviation : 0;
    for (size_t i = 0; i < count; i++) x[i] = (float)(((double)x[i] - mean) * factor);
}

void spectrogram_fill(struct spectrogram *s, const int16_t *sample, size_t samples, float *x) {
    const size_t frames = spectrogram_frames(samples);
    if (samples == 0) die("spectrogram_fill: no samples");
    for (size_t t = 0; t < frames; t++) one_frame(s, sample, samples, t, x + t, frames);
    normalise(x, SPECTROGRAM_BINS * frames);
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

#endif
