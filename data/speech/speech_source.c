/* speech_source.c: see speech_source.h. */
#include "data/speech/speech_source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "data/speech/spectrogram.h"
#include "data/speech/transcript.h"

/* -- which files there are
 * ------------------------------------------------------------------------------------------------ */

static void make_room(struct speech_source *s, size_t labels) {
    if (s->all == s->room) {
        s->room = s->room ? 2 * s->room : 256;
        s->entry = mem_grow(s->entry, s->all, s->room, sizeof *s->entry, "a list of recordings");
    }
    if (s->label_room - s->counts.labels < labels) {
        s->label_room = 2 * (s->counts.labels + labels);
        s->label = mem_grow(s->label, s->counts.labels, s->label_room, 1, "the transcripts of recordings");
    }
}

static bool strange(const char *list, size_t line, unsigned char stray, struct err *e) {
    char shown[16];
    snprintf(shown, sizeof shown, stray > ' ' && stray < 0x7f ? "\"%c\"" : "the byte 0x%02x", stray);
    return err_set(e,
                   "%s: the transcript in line %zu has %s; letters of English, apostrophes and blanks are what there "
                   "can be",
                   list, line, shown);
}

bool speech_source_add(struct speech_source *s, int split, char *file, uint64_t size, const char *list, size_t line,
                       const char *transcript, size_t bytes, struct err *e) {
    unsigned char stray = 0;
    make_room(s, bytes);
    struct speech_entry *entry = &s->entry[s->all++];
    *entry = (struct speech_entry){.file = file, .size = size, .label = s->counts.labels, .line = line, .list = list};
    if (!transcript_encode(transcript, bytes, s->label + entry->label, &entry->labels, &stray))
        return strange(list, line, stray, e);
    if (entry->labels == 0) return err_set(e, "%s: line %zu has no transcript; put there what is said", list, line);
    if (size > SPEECH_BYTES_MAX) return err_set(e, "%s is longer than an hour; cut it", file);
    s->counts.labels += entry->labels;
    s->counts.utterances[split]++;
    if (split == SPEECH_TRAIN) s->counts.samples += (size_t)size / 2;
    s->frames += spectrogram_frames((size_t)size / 2);
    return (s->counts.labels <= UINT32_MAX && s->all <= INT32_MAX) ||
           err_set(e, "%s: by line %zu there are more recordings than can be numbered; take fewer", list, line);
}

size_t speech_source_memory(const struct speech_source *s) {
    return speech_layout_bytes(&s->counts, s->frames);
}

void speech_source_close(struct speech_source *s) {
    for (size_t i = 0; i < s->all; i++) mem_free(s->entry[i].file);
    mem_free(s->entry);
    mem_free(s->label);
    *s = (struct speech_source){0};
}

bool speech_size(const char *file, const char *list, size_t line, uint64_t *size, struct err *e) {
    struct stat s;
    if (stat(file, &s) != 0)
        return err_with(e, err_of_errno(errno), "%s: line %zu names %s, which cannot be read: %s", list, line, file,
                        strerror(errno));
    if (!S_ISREG(s.st_mode)) return err_set(e, "%s: line %zu names %s, which is not a file", list, line, file);
    *size = (uint64_t)s.st_size;
    return true;
}

bool speech_line(const char **at, const char *end, const char **line, size_t *length, size_t *number) {
    while (*at < end) {
        const char *stop = memchr(*at, '\n', (size_t)(end - *at));
        if (!stop) stop = end;
        *line = *at;
        *length = (size_t)(stop - *at);
        *at = stop < end ? stop + 1 : end;
        ++*number;
        while (*length && strchr(" \t\r", (*line)[*length - 1]) && (*line)[*length - 1]) --*length;
        if (*length) return true;
    }
    return false;
}

unsigned char *speech_read(const char *path, uint64_t most, size_t *bytes, struct err *e) {
    const char *why;
    errno = 0;
    FILE *file = file_read(path, &why);
    if (!file) {
        err_with(e, err_of_errno(errno), "cannot read %s: %s", path, why);
        return NULL;
    }
    unsigned char *all = mem_alloc((size_t)most + 1, 1, "a file");
    *bytes = fread(all, 1, (size_t)most + 1, file);
    const bool good = ferror(file)    ? err_system(e, "cannot read %s: %s", path, strerror(errno))
                      : *bytes > most ? err_set(e, "%s grew while it was read; start again", path)
                                      : true;
    fclose(file);
    if (good) return all;
    mem_free(all);
    return NULL;
}

/* -- filling
 * -------------------------------------------------------------------------------------------------------------- */

bool speech_filling_open(struct speech_filling *f, const struct speech_source *s, void *memory, size_t bytes,
                         struct err *e) {
    *f = (struct speech_filling){.source = s};
    const size_t before = speech_layout_bytes(&s->counts, 0);
    if (before > bytes || speech_source_memory(s) > bytes)
        return err_set(e, "the recordings of %s grew while they were read; start again", s->entry[0].list);
    f->to = speech_layout_room(&s->counts, memory);
    f->room = (bytes - before) / sizeof *f->to.feature;
    f->filled = mem_zalloc(s->all, sizeof *f->filled, "which recordings were read");
    f->spectrogram = spectrogram_open();
    memcpy(f->to.label, s->label, s->counts.labels);
    return true;
}

static void take_samples(struct speech_filling *f, const unsigned char *bytes, size_t samples,
                         enum speech_order order) {
    const size_t low = order == SPEECH_HIGH_FIRST, high = !low;
    if (samples > f->samples) {
        mem_free(f->sample);
        f->samples = samples;
        f->sample = mem_alloc(samples, sizeof *f->sample, "the samples of a recording");
    }
    for (size_t i = 0; i < samples; i++)
        f->sample[i] = (int16_t)(uint16_t)(bytes[2 * i + low] | bytes[2 * i + high] << 8);
}

/* Is there time to say it? */
static bool long_enough(const struct speech_entry *entry, const uint8_t *label, size_t samples, struct err *e) {
    const size_t frames = spectrogram_frames(samples), have = speech_steps(frames),
                 need = transcript_steps(label, entry->labels);
    if (have >= need) return true;
    return err_set(
        e,
        "%s is too short for its transcript, in line %zu of %s: its %zu frames of 10 ms become %zu steps of a "
        "network, and the %zu characters take %zu; take it out of the list",
        entry->file, entry->line, entry->list, frames, have, entry->labels, need);
}

bool speech_fill(struct speech_filling *f, size_t number, const unsigned char *bytes, size_t count,
                 enum speech_order order, struct err *e) {
    const struct speech_entry *entry = &f->source->entry[number];
    const size_t samples = count / 2, frames = spectrogram_frames(samples), floats = SPECTROGRAM_BINS * frames;
    const uint8_t *label = f->source->label + entry->label;
    const bool keep = number < f->source->counts.utterances[SPEECH_TRAIN];
    if (count % 2)
        return err_set(e, "%s has %zu bytes of samples, an odd number, and a sample takes 2; get it anew", entry->file,
                       count);
    if (samples == 0)
        return err_set(e, "%s has no samples; get it anew, or take it out of %s", entry->file, entry->list);
    if (!long_enough(entry, label, samples, e)) return false;
    if (floats > f->room - f->features || (keep && samples > f->source->counts.samples - f->kept))
        return err_set(e, "%s is longer than its size promised when memory was asked for; get it anew", entry->file);
    take_samples(f, bytes, samples, order);
    spectrogram_fill(f->spectrogram, f->sample, samples, f->to.feature + f->features);
    if (keep) memcpy(f->to.sample + f->kept, f->sample, samples * sizeof *f->sample);
    f->to.utterance[number] = (struct utterance){.feature = f->features,
                                                 .sample = keep ? f->kept : 0,
                                                 .samples = keep ? (uint32_t)samples : 0,
                                                 .frames = (uint32_t)frames,
                                                 .label = (uint32_t)entry->label,
                                                 .labels = (uint32_t)entry->labels,
                                                 .crc = crc32_of(0, f->sample, samples * sizeof *f->sample)};
    f->features += floats;
    if (keep) f->kept += samples;
    f->filled[number] = true;
    return true;
}

void speech_filling_close(struct speech_filling *f, void *memory) {
    if (memory) speech_layout_seal(&f->source->counts, memory);
    spectrogram_close(f->spectrogram);
    mem_free(f->filled);
    mem_free(f->sample);
}
