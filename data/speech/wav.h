/* wav.h: the samples of a WAV file (RIFF WAVE, "Multimedia Programming Interface and Data Specifications 1.0", 1991):
 * one channel of 16 bits at 16 kHz, uncompressed, plain or in the extensible form (WAVEFORMATEXTENSIBLE). Nothing of a
 * file is believed before it is checked: chunks lie within the file, in the length that its header says. */
#ifndef ST_DATA_WAV_H
#define ST_DATA_WAV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Where the samples of a file are that is in memory: [at, at + bytes), 16 bits each, the low byte first. There may be
 * none of them. False: *why says what is wrong with it, in words that go behind its name. */
bool wav_find(const unsigned char *file, size_t bytes, size_t *at, size_t *length, struct err *why);

#endif
