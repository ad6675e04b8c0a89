/* sheet_speech.h: `sparsetrain data show` of speech: a sheet (PNG) of spectrograms as the network gets them, with what
 * is said in them. */
#ifndef ST_DATA_SHEET_SPEECH_H
#define ST_DATA_SHEET_SPEECH_H

#include "data/sheets/sheet.h"

/* Writes columns * rows utterances, time from left to right, a frame for 10 ms, and frequency from below, 161 of them
 * up to 8 kHz; dark is quiet. Below each its transcript, its number and how long it is. Those of training come in the
 * order of the epoch for a batch of one on one rank, those of the test from the shortest on, as it is evaluated. False:
 * as sheet_write. */
bool sheet_speech_write(const struct sheet_setup *setup, const char *path, struct err *e);

/* The colour of a value. */
void sheet_speech_colour(float value, uint8_t rgb[3]);

#endif
