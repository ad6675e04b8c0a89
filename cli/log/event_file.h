/* event_file.h: scalars for TensorBoard: a file DIR/events.out.tfevents.TIME.HOST.PID, which TensorBoard shows with all
 * others in DIR. Records are framed as in a TFRecord, numbers in little-endian order:
 *
 *        uint64 length; uint32 masked CRC-32C of these 8 bytes; byte data[length]; uint32 masked CRC-32C of data
 *
 * and each is a protocol buffer `Event` of TensorFlow (fields: 1 wall_time, double; 2 step, int64; 3 file_version,
 * text; 5 summary; 7 session_log), the first of which says "brain.Event:2". A summary has values (1) of a tag (1) and a
 * number (2, float).
 *
 *        struct event_file f = {0};
 *        if (!event_file_open(&f, dir, 20, &e)) ...            // goes on behind step 20: later ones of other files do
 * not count event_step(&f, 21); event_scalar(&f, "train/loss", 0.5); event_end(&f); event_file_flush(&f); if
 * (f.failed.text[0]) ... event_file_close(&f);
 *
 * Of one process. Nothing happens where f->file is NULL. */
#ifndef ST_CLI_EVENT_FILE_H
#define ST_CLI_EVENT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum { EVENT_BYTES_MAX = 1 << 14 };

struct event_file {
    FILE *file;
    char path[1400];
    int made; /* so many folders were made for it, DIR and those above it */
    struct {
        unsigned char data[EVENT_BYTES_MAX];
        size_t bytes;
    } summary; /* of the step under way */
    int64_t step;
    struct err failed; /* the first thing that could not be written; then nothing is any more */
};

/* Could a file be made in DIR, which need not be there? Nothing is left of the try. */
bool event_file_check(const char *dir, struct err *e);

/* A new file, with what it begins with. after: the step that a resumed run goes on from, 0 of one that begins. */
bool event_file_open(struct event_file *f, const char *dir, int64_t after, struct err *e);
void event_file_flush(struct event_file *f);
void event_file_close(struct event_file *f);
/* The file goes, and the folders that were made for it. */
void event_file_abandon(struct event_file *f);

/* What is to be shown of a step; a number that is NaN or infinite is left out. */
void event_step(struct event_file *f, int64_t step);
void event_scalar(struct event_file *f, const char *tag, double value);
void event_end(struct event_file *f);

/* CRC-32C (Castagnoli; RFC 3720, B.4) of these bytes, and as the frames have it. */
uint32_t event_crc32c(const void *data, size_t bytes);
uint32_t event_masked(uint32_t crc);

#endif
