/* bench_wire.c: how many bytes an entry takes in each wire format, and how long one core rounds, encodes and decodes.
 * Speed is in bytes of coo32 per second, 8 an entry, so that formats compare by the entries they carry; and what a rank
 * does with a message in entries per second: it packs (rounds and encodes) and unpacks (decodes). All formats run
 * in turn, round after round, on the same entries, so that a machine whose speed wanders slows all alike; what comes
 * back is compared with what went in (columns as in nccl-tests). */
#include "cli/bench/bench_wire.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/rng.h"
#include "cli/bench/median.h"
#include "comm/wire/wire.h"

enum {
    REPEAT_MAX = 1000,
    ENTRIES_TIMED = 1 << 17, /* at least so many between two looks at the clock */
    RUN = 1024,              /* clustered: one run of this length in RUNS holds most entries */
    RUNS = 16
};

enum places { UNIFORM, CLUSTERED, PLACES };
static const char *const place_names[PLACES] = {"uniform", "clustered"};

struct request {
    size_t n, repeat;
    struct option_numbers density;
    bool json;
};

/* One format over the rounds; times of all its entries [s]. */
struct times {
    double round[REPEAT_MAX], encode[REPEAT_MAX], decode[REPEAT_MAX];
    size_t bytes, wrong;
};

struct work {
    size_t n;
    struct sparse original, rounded, error, buffer;
    void *message;
    struct times *times; /* [formats] */
};

static const struct option_row options[] = {
    {"n", "N", OPTION_SIZE, "14728266", "gradient length (the default: VGG-16)", OPTION_AT(struct request, n), .min = 1,
     .max = UINT32_MAX},
    {"density", "LIST", OPTION_NUMBERS, "0.001,0.01,0.1", "shares of entries, with commas between them",
     OPTION_AT(struct request, density), .max = 1, .above_min = true},
    {"repeat", "R", OPTION_SIZE, "15", "rounds, each times all formats in turn; medians are shown",
     OPTION_AT(struct request, repeat), .min = 1, .max = REPEAT_MAX},
    {"json", NULL, OPTION_FLAG, NULL, "one JSON object per row instead of the table", OPTION_AT(struct request, json)},
};

const struct option_table wire_options = {
    .verb = "bench wire",
    .row = options,
    .rows = sizeof options / sizeof *options,
    .call = "sparsetrain bench wire",
    .about = "Size and speed of every wire format (--wire) on one core, entries at random places and in clusters.",
};

/* How many places to skip until the next entry when each is one with probability p. */
static double gap(struct rng *r, double p) {
    return p <= 0 ? INFINITY : floor(log(1 - rng_uniform(r)) / log1p(-p));
}

/* Probability of an entry at index i: the same everywhere, or 12 times as high in one run of RUNS (as far as there is
 * room). */
static double density_at(enum places places, double density, double i) {
    double high = fmin(1, 12 * density), low = (density - high / RUNS) * RUNS / (RUNS - 1);
    if (places == UNIFORM) return density;
    return (uint64_t)i / RUN % RUNS == 3 ? high : low;
}

/* About density * n entries with normal values; at least one. */
static void fill(struct sparse *s, size_t n, double density, enum places places) {
    struct rng r = rng_open(1, RNG_TEST, places);
    double i = 0;
    s->nnz = 0;
    while (i < (double)n && s->nnz < s->cap) {
        double end = places == UNIFORM ? (double)n : RUN * (floor(i / RUN) + 1);
        i += gap(&r, density_at(places, density, i));
        if (i >= end || i >= (double)n) {
            i = end; /* the density may change here, and geometric gaps have no memory */
            continue;
        }
        s->idx[s->nnz] = (uint32_t)i++;
        s->val[s->nnz++] = (float)rng_normal(&r);
    }
    if (s->nnz > 0) return;
    s->idx[0] = (uint32_t)(n / 2);
    s->val[0] = 1;
    s->nnz = 1;
}

static size_t formats(void) {
    size_t count = 0;
    while (wires[count]) count++;
    return count;
}

static void work_open(struct work *w, size_t n, double density, enum places places) {
    double expected = (double)n * density, most = expected + 8 * sqrt(expected) + 64;
    size_t cap = most < (double)n ? (size_t)most : n, capacity = 0;
    *w = (struct work){.n = n};
    sparse_open(&w->original, cap);
    sparse_open(&w->rounded, cap);
    sparse_open(&w->error, cap);
    sparse_open(&w->buffer, cap);
    for (size_t f = 0; f < formats(); f++)
        if (wire_capacity(wires[f], cap) > capacity) capacity = wire_capacity(wires[f], cap);
    w->message = mem_alloc(1, capacity, "the bench's message");
    w->times = mem_zalloc(formats(), sizeof *w->times, "times of the bench");
    fill(&w->original, n, density, places);
    memcpy(w->rounded.idx, w->original.idx, w->original.nnz * sizeof *w->original.idx);
    w->rounded.nnz = w->original.nnz;
}

static void work_close(struct work *w) {
    mem_free(w->times);
    mem_free(w->message);
    sparse_close(&w->buffer);
    sparse_close(&w->error);
    sparse_close(&w->rounded);
    sparse_close(&w->original);
}

static uint32_t bits(float x) {
    uint32_t whole;
    memcpy(&whole, &x, sizeof whole);
    return whole;
}

/* Entries of view that are not those of w->rounded, or whose rounded value and error are not the original. */
static size_t count_wrong(const struct work *w, const struct sparse *view) {
    size_t wrong = 0, at = 0;
    if (view->nnz != w->original.nnz) return w->original.nnz;
    for (size_t i = 0; i < view->nnz; i++) {
        float error = 0;
        if (at < w->error.nnz && w->error.idx[at] == w->original.idx[i]) error = w->error.val[at++];
        wrong += view->idx[i] != w->original.idx[i] || bits(view->val[i]) != bits(w->rounded.val[i]) ||
                 (double)view->val[i] + (double)error != (double)w->original.val[i];
    }
    return wrong;
}

/* Round r of one format: rounds, encodes, decodes; small vectors several times in a row. */
static void one_round(struct work *w, size_t format, size_t r) {
    const struct wire_ops *wire = wires[format];
    struct times *t = &w->times[format];
    struct sparse view;
    struct err e = {0};
    size_t nnz = w->original.nnz, calls = 1 + ENTRIES_TIMED / nnz;
    memcpy(w->rounded.val, w->original.val, nnz * sizeof *w->original.val);
    double begin = clock_now();
    wire_round(wire, &w->rounded, &w->error);
    t->round[r] = clock_now() - begin;
    begin = clock_now();
    for (size_t i = 0; i < calls; i++) t->bytes = wire->encode(&w->rounded, 0, w->n, w->message);
    t->encode[r] = (clock_now() - begin) / (double)calls;
    begin = clock_now();
    for (size_t i = 0; i < calls; i++)
        if (!wire->decode(w->message, t->bytes, 0, w->n, &w->buffer, &view, &e)) die("%s: %s", wire->name, e.text);
    t->decode[r] = (clock_now() - begin) / (double)calls;
    if (r == 0) t->wrong = count_wrong(w, &view);
}

/* Medians of all entries [s]; round: 0 where nothing is rounded. */
struct seconds {
    double round, encode, decode;
};

static void print_line(const struct work *w, size_t format, double density, enum places places, struct seconds s) {
    const struct times *t = &w->times[format];
    double nnz = (double)w->original.nnz, coo32 = 8 * nnz, each = (double)t->bytes / nnz;
    printf("%12zu %9g %11zu  %-9s  %-15s %8.3f %7.3f %8.2f %8.2f %8.2f ", w->n, density, w->original.nnz,
           place_names[places], wires[format]->name, each, each / 8, coo32 / s.encode / 1e9, coo32 / s.decode / 1e9,
           coo32 / (s.encode + s.decode) / 1e9);
    if (wires[format]->rounds)
        printf("%8.2f", coo32 / s.round / 1e9);
    else
        printf("%8s", "-");
    printf(" %8.3f %8.3f %6zu\n", nnz / (s.round + s.encode) / 1e9, nnz / s.decode / 1e9, t->wrong);
}

static void print_row(const struct work *w, size_t format, double density, enum places places,
                      const struct request *request) {
    struct times *t = &w->times[format];
    double nnz = (double)w->original.nnz, each = (double)t->bytes / nnz;
    bool rounds = wires[format]->rounds;
    const struct seconds s = {rounds ? median(t->round, request->repeat) : 0, median(t->encode, request->repeat),
                              median(t->decode, request->repeat)};
    if (!request->json) {
        print_line(w, format, density, places, s);
        return;
    }
    struct json j;
    json_open(&j);
    json_object(&j, NULL);
    json_string(&j, "bench", "wire");
    json_integer(&j, "n", (int64_t)w->n);
    json_number(&j, "density", density);
    json_integer(&j, "entries", (int64_t)w->original.nnz);
    json_string(&j, "places", place_names[places]);
    json_string(&j, "wire", wires[format]->name);
    json_integer(&j, "repeat", (int64_t)request->repeat);
    json_integer(&j, "bytes", (int64_t)t->bytes);
    json_number(&j, "bytes_per_entry", each);
    json_number(&j, "ratio_coo32", each / 8);
    json_number(&j, "encode_s", s.encode);
    json_number(&j, "decode_s", s.decode);
    json_number(&j, "round_s", rounds ? s.round : NAN);
    json_number(&j, "coo32_gb_per_s", 8 * nnz / (s.encode + s.decode) / 1e9);
    json_number(&j, "pack_entries_per_s", nnz / (s.round + s.encode));
    json_number(&j, "unpack_entries_per_s", nnz / s.decode);
    json_integer(&j, "wrong", (int64_t)t->wrong);
    json_end(&j);
    puts(json_text(&j));
    json_close(&j);
}

/* Returns how many entries were wrong. */
static size_t measure(const struct request *request, double density, enum places places) {
    struct work w;
    size_t wrong = 0;
    work_open(&w, request->n, density, places);
    for (size_t f = 0; f < formats(); f++) one_round(&w, f, 0); /* warm-up */
    for (size_t r = 0; r < request->repeat; r++)
        for (size_t f = 0; f < formats(); f++) one_round(&w, f, r);
    for (size_t f = 0; f < formats(); f++) {
        print_row(&w, f, density, places, request);
        wrong += w.times[f].wrong;
    }
    fflush(stdout);
    work_close(&w);
    return wrong;
}

int bench_wire(int argc, char **argv) {
    struct request request;
    struct err e = {0};
    size_t wrong = 0;
    option_defaults(&wire_options, &request);
    if (!option_parse(&wire_options, &request, NULL, argc, argv, 1, &e)) {
        fprintf(stderr, "sparsetrain: %s\n", e.text);
        return err_status(&e);
    }
    if (!request.json)
        printf(
            "# wire: one thread, medians of %zu rounds; encode to round: GB/s, bytes of coo32 (8 an entry) per second; "
            "pack (round and encode), unpack: G entries/s\n"
            "#          n   density     entries  places     format          B/entry  /coo32   encode   decode     both "
            "   "
            "round     pack   unpack  wrong\n",
            request.repeat);
    for (size_t d = 0; d < request.density.count; d++)
        for (enum places p = 0; p < PLACES; p++) wrong += measure(&request, request.density.x[d], p);
    return wrong ? EXIT_SYSTEM : EXIT_DONE;
}
