/* transcript.h: what is said in an utterance, in letters, as numbers and as text: the labels of connectionist temporal
 * classification (Graves et al., "Connectionist temporal classification: labelling unsegmented sequence data with
 * recurrent neural networks", ICML 2006), which has one label more than there are characters, the blank: nothing new is
 * said here. */
#ifndef ST_DATA_TRANSCRIPT_H
#define ST_DATA_TRANSCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Label i is character i, in the order of deepspeech.pytorch's labels.json; the first one, '_', is the blank, which no
 * transcript has, and the last one lies between words. */
#define TRANSCRIPT_ALPHABET "_'ABCDEFGHIJKLMNOPQRSTUVWXYZ "
enum { TRANSCRIPT_LABELS = sizeof TRANSCRIPT_ALPHABET - 1, TRANSCRIPT_BLANK = 0 };

/* Words between blanks and tabs, in letters of either case, to labels: upper case, one space between words, none around
 * them. label: room for `bytes` of them; *labels: how many there are. False: *stray is the first byte that is of no
 * label, and there are *labels before it. */
bool transcript_encode(const char *text, size_t bytes, uint8_t *label, size_t *labels, unsigned char *stray);

/* The other way round. text: [labels + 1]. */
void transcript_decode(const uint8_t *label, size_t labels, char *text);

/* Steps that an output needs at the least to say these labels: one for each, and a blank between two equal ones. */
size_t transcript_steps(const uint8_t *label, size_t labels);

/* The text that a path says, one label in 0 .. TRANSCRIPT_LABELS - 1 for each step of an output (the likeliest one of
 * each: best path decoding): runs of one label are one, then blanks are left out. text: [steps + 1]. Returns its
 * length. */
size_t transcript_of_path(const int32_t *path, size_t steps, char *text);

#endif
