/* pairs.c: see pairs.h. */
#include "data/pairs/pairs.h"

#include "base/mem.h"
#include "base/rng.h"

/* Sentences [from, to) of the text. */
struct sentences {
    size_t from, to;
};

/* Consecutive pieces of the text. */
struct part {
    size_t at, length;
};

struct packer {
    const struct articles *a;
    struct pair_list *to;
    size_t article, most; /* most: pieces of A and B together */
    struct rng r;
};

static struct part part_of(const struct articles *a, struct sentences s) {
    return (struct part){a->sentence[s.from], a->sentence[s.to] - a->sentence[s.from]};
}

/* The sentences of an article from `from` on that have `least` pieces together: one at least, all that there are if
 * need be. */
static struct sentences take(const struct articles *a, size_t article, size_t from, size_t least) {
    struct sentences s = {from, from + 1};
    while (s.to < a->article[article + 1] && part_of(a, s).length < least) s.to++;
    return s;
}

static size_t draw_aim(struct packer *p) {
    if (rng_below(&p->r, 10) > 0) return p->most;
    return 2 + rng_below(&p->r, (uint32_t)p->most - 1);
}

static struct part draw_other(struct packer *p, size_t least) {
    const struct articles *a = p->a;
    size_t other = rng_below(&p->r, (uint32_t)a->count - 1);
    if (other >= p->article) other++;
    size_t first = a->article[other], all = a->article[other + 1] - first;
    return part_of(a, take(a, other, first + rng_below(&p->r, (uint32_t)all), least));
}

static void cut(struct packer *p, struct part *a, struct part *b) {
    while (a->length + b->length > p->most) {
        struct part *longer = a->length > b->length ? a : b;
        longer->at += rng_below(&p->r, 2);
        longer->length--;
    }
}

static void add(struct packer *p, struct part a, struct part b, bool random, bool alone) {
    struct pair_list *l = p->to;
    cut(p, &a, &b);
    if (l->count == l->room) {
        l->room = l->room ? 2 * l->room : 1024;
        l->pair = mem_grow(l->pair, l->count, l->room, sizeof *l->pair, "the sequences of a text");
    }
    l->pair[l->count++] = (struct pair){.a = (uint32_t)a.at,
                                        .b = (uint32_t)b.at,
                                        .a_length = (uint16_t)a.length,
                                        .b_length = (uint16_t)b.length,
                                        .random = random,
                                        .alone = alone};
}

/* The sequence that begins with sentence `from`; returns where the next one begins. */
static size_t pack_one(struct packer *p, size_t from) {
    const size_t aim = draw_aim(p);
    const struct sentences chunk = take(p->a, p->article, from, aim);
    const size_t count = chunk.to - chunk.from;
    const size_t first = count < 3 ? 1 : 1 + rng_below(&p->r, (uint32_t)count - 1);
    const struct part a = part_of(p->a, (struct sentences){from, from + first});
    const bool alone = count == 1;
    if (!alone && rng_below(&p->r, 2) == 0) {
        add(p, a, part_of(p->a, (struct sentences){from + first, chunk.to}), false, false);
        return chunk.to;
    }
    add(p, a, draw_other(p, aim > a.length ? aim - a.length : 0), true, alone);
    return from + first;
}

void pairs_pack(const struct articles *a, int length, uint64_t seed, unsigned split, struct pair_list *to) {
    struct packer p = {.a = a, .to = to, .most = (size_t)length - PAIRS_SPECIAL};
    if (a->count < 2 || length < PAIRS_LENGTH_MIN || length > PAIRS_LENGTH_MAX)
        die("pairs_pack: %zu articles, sequences of %d pieces", a->count, length);
    for (; p.article < a->count; p.article++) {
        p.r = rng_open(seed, RNG_PACK, (uint64_t)split << 32 | p.article);
        for (size_t at = a->article[p.article]; at < a->article[p.article + 1];) at = pack_one(&p, at);
    }
}

void pair_list_close(struct pair_list *l) {
    mem_free(l->pair);
    *l = (struct pair_list){0};
}
