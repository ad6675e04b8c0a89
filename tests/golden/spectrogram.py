#!/usr/bin/env python3
"""spectrogram.py DATA > spectrogram.h: golden values for tests/data/data_spectrogram.c from PyTorch's short-time Fourier
transform, which shares no code with this project: recordings of AN4, whose samples lie in DATA/wav (build/data/an4), to the
log spectrograms of data/speech/spectrogram.h. Computed in double precision. Per recording: its samples and frames, then values at
places that are spread over all of it. Last run with PyTorch 1.13.0."""

import sys

import numpy
import torch

FILES = ["an4_clstk/fash/an251-fash-b", "an4_clstk/mmsh/cen5-mmsh-b", "an4test_clstk/fcaw/an406-fcaw-b"]
VALUES = 100


def spectrogram(sample):
    y = torch.from_numpy(sample.astype(numpy.float64) / 32767)
    window = torch.hamming_window(320, periodic=False, dtype=torch.float64)
    f = torch.stft(y, 320, hop_length=160, window=window, center=True, pad_mode="reflect", return_complex=True)
    x = torch.log1p(f.abs())
    return (x - x.mean()) / x.std()


print("""/* spectrogram.h: made by tests/golden/spectrogram.py with PyTorch's torch.stft; see there. */
#ifndef ST_TESTS_GOLDEN_SPECTROGRAM_H
#define ST_TESTS_GOLDEN_SPECTROGRAM_H

#include <stddef.h>
""")
print(f"""enum {{ GOLDEN_VALUES = {VALUES} }};
/* Value i is that of place (i * 2654435761) mod (161 * frames) of x [161][frames]. */
static const struct {{
    const char *file;
    size_t samples, frames;
    double value[GOLDEN_VALUES];
}} golden_spectra[] = {{""")
for name in FILES:
    sample = numpy.fromfile(f"{sys.argv[1]}/wav/{name}.raw", dtype=">i2")
    x = spectrogram(sample)
    flat = x.reshape(-1)
    values = ", ".join(f"{flat[i * 2654435761 % len(flat)]:.7g}" for i in range(VALUES))
    print(f'    {{"{name}", {len(sample)}, {x.shape[1]},\n     {{{values}}}}},')
print("};\n\n#endif")
