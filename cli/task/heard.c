/* heard.c: see heard.h. */
#include "cli/task/heard.h"

#include <stdio.h>

#include "base/mem.h"
#include "data/loader.h"

void heard_open(struct heard *h, size_t wanted, size_t utterances, size_t length) {
    const size_t count = wanted < utterances ? wanted : utterances;
    if (h->sample || count == 0) return;
    *h = (struct heard){.count = count, .room = length + 1, .sample = mem_alloc(count, sizeof *h->sample, "samples")};
    for (size_t i = 0; i < count; i++)
        h->sample[i] = (struct heard_sample){
            .utterance = (2 * i + 1) * utterances / (2 * count),
            .said = mem_zalloc(h->room, 1, "what is said"),
            .heard = mem_zalloc(h->room, 1, "what is heard"),
        };
}

void heard_close(struct heard *h) {
    for (size_t i = 0; i < h->count; i++) {
        mem_free(h->sample[i].said);
        mem_free(h->sample[i].heard);
    }
    mem_free(h->sample);
    *h = (struct heard){0};
}

void heard_keep(struct heard *h, size_t utterance, const char *said, const char *guess) {
    for (size_t i = 0; i < h->count; i++) {
        const struct heard_sample *s = &h->sample[i];
        if (s->utterance != utterance) continue;
        snprintf(s->said, h->room, "%s", said);
        snprintf(s->heard, h->room, "%s", guess);
    }
}

static int owner_of(size_t utterance, size_t utterances, int size) {
    for (int rank = 0; rank < size; rank++) {
        size_t from, to;
        loader_share(utterances, rank, size, &from, &to);
        if (utterance >= from && utterance < to) return rank;
    }
    return 0;
}

void heard_share(struct heard *h, size_t utterances, struct comm *c) {
    for (size_t i = 0; i < h->count; i++) {
        const struct heard_sample *s = &h->sample[i];
        const int owner = owner_of(s->utterance, utterances, c->size);
        comm_bcast(c, owner, s->said, h->room);
        comm_bcast(c, owner, s->heard, h->room);
    }
}

char *heard_text(const struct heard_sample *s) {
    return mem_printf("  said %-5zu          %s\n  heard               %s", s->utterance, s->said, s->heard);
}

void heard_write(const struct heard *h, struct json *j) {
    if (h->count == 0) return;
    json_array(j, "samples");
    for (size_t i = 0; i < h->count; i++) {
        json_object(j, NULL);
        json_integer(j, "utterance", (int64_t)h->sample[i].utterance);
        json_string(j, "said", h->sample[i].said);
        json_string(j, "heard", h->sample[i].heard);
        json_end(j);
    }
    json_end(j);
}
