/* spectrogram.h: an utterance as a network hears it: the log spectrogram of deepspeech.pytorch (Naren et al., after
 * Amodei et al., "Deep Speech 2: End-to-End Speech Recognition in English and Mandarin", ICML 2016), whose AN4 recipe
 * the papers on sparse gradients train. Of samples s[0 .. n-1] of 16 bits at 16 kHz:
 *
 *   y[i] = s[i] / 32767
 *   frame t = 0 .. n/160 (rounded down) is the 320 values of y around sample 160 t: y[160 t - 160 .. 160 t + 159].
 * Beyond either end y is reflected there without repeating its last value (y[-1] = y[1], y[n] = y[n-2]), as often as
 * need be w[j] = 0.54 - 0.46 cos(2 pi j / 319), Hamming's window, the symmetric one F[b][t] = sum over j of w[j] y[160
 * t - 160 + j] exp(-2 pi i j b / 320), b = 0 .. 160: every 50 Hz up to 8 kHz x[b][t] = log(1 + |F[b][t]|), less its
 * mean, over its standard deviation, both over all of x; the deviation is that of a sample, with one less than the
 * number of values below. Silence, whose deviation is 0, is all 0.
 *
 * Changed in tempo by a factor f and in loudness by a factor g, both 1 otherwise, it has frames 0 .. n/(160 f), rounded
 * down, around samples 160 f t, rounded to the nearest, and g y in place of y: said f times as fast at the same pitch,
 * since what is within a frame stays as it is.
 *
 * These are the frames of librosa.stft with center=True and pad_mode="reflect". The transform is FFTW's (Frigo and
 * Johnson, "The design and implementation of FFTW3", 2005), in single precision, which a build may lack; sums are in
 * double. The last bits may differ from one kind of processor to another, as FFTW's code does.
 *
 *        struct spectrogram *s = spectrogram_open();
 *        spectrogram_fill(s, sample, n, x);              // x [SPECTROGRAM_BINS][spectrogram_frames(n)]
 *        spectrogram_close(s);
 */
#ifndef ST_DATA_SPECTROGRAM_H
#define ST_DATA_SPECTROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    SPECTROGRAM_RATE = 16000, /* samples a second */
    SPECTROGRAM_WINDOW = 320, /* samples, 20 ms */
    SPECTROGRAM_STRIDE = 160, /* samples, 10 ms */
    SPECTROGRAM_BINS = SPECTROGRAM_WINDOW / 2 + 1
};

/* Was it built with FFTW? Without, spectrogram_open may not be called. */
bool spectrogram_is_here(struct err *e);

/* Frames of so many samples: 1 + samples / 160, rounded down. */
static inline size_t spectrogram_frames(size_t samples) {
    return 1 + samples / SPECTROGRAM_STRIDE;
}

struct spectrogram *spectrogram_open(void);
void spectrogram_close(struct spectrogram *s); /* NULL is allowed */

/* samples: at least 1; x: [SPECTROGRAM_BINS][spectrogram_frames(samples)], the frames of one frequency side by side. */
void spectrogram_fill(struct spectrogram *s, const int16_t *sample, size_t samples, float *x);

/* The same of a recording that is changed. tempo: above 0; x: [SPECTROGRAM_BINS][stride], of which the first
 * spectrogram_frames_at(samples, tempo) of each frequency are filled. */
struct spectrogram_change {
    double tempo, gain; /* factors; 1: as it is */
};
size_t spectrogram_frames_at(size_t samples, double tempo);
void spectrogram_fill_changed(struct spectrogram *s, const int16_t *sample, size_t samples,
                              const struct spectrogram_change *change, size_t stride, float *x);

#endif
