/* profile_fit.c: from a recording of selected entries to a profile, see profile.h. Everything is a mean over the
 * recorded steps and, where ranks are compared, over all choices of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/gradients/profile.h"
#include "cli/gradients/radix.h"

/* What all ranks selected in one step: each index once, with the number of ranks that have it. */
struct tally {
    uint32_t *idx, *count;
    size_t length;
};

struct measuring {
    struct record_reader *in;
    struct sparse *now, *before; /* [ranks]: of this step and of the one before it */
    struct tally tally, tally_before;
    uint64_t *key, *scratch; /* [ranks * most] */
    size_t steps, entries;   /* looked at so far; entries of all of them */
    uint64_t first, last;    /* numbers of the first and the last of these steps in the run */
    double *by_ranks;        /* [ranks + 1]: indices that so many ranks selected, summed over the steps */
    double pairs, same_sign; /* of ranks that share an index */
    double again;            /* indices of a rank that another one selected a recorded step before, all ordered pairs */
    double *by_slice;        /* [slices]: entries */
    float *tail;             /* [entries so far, room]: ln(|v| / smallest) */
    size_t room;
};

static void open_ranks(struct sparse **s, size_t ranks, size_t most) {
    *s = mem_zalloc(ranks, sizeof **s, "the entries of all ranks");
    for (size_t r = 0; r < ranks; r++) sparse_open(&(*s)[r], most);
}

static void close_ranks(struct sparse *s, size_t ranks) {
    for (size_t r = 0; r < ranks; r++) sparse_close(&s[r]);
    mem_free(s);
}

static void tally_open(struct tally *t, size_t room) {
    t->idx = mem_alloc(room, sizeof *t->idx, "indices of all ranks");
    t->count = mem_alloc(room, sizeof *t->count, "counts of indices");
    t->length = 0;
}

static void tally_close(struct tally *t) {
    mem_free(t->idx);
    mem_free(t->count);
}

static void measuring_open(struct measuring *m, struct record_reader *in) {
    size_t all = in->ranks * in->most;
    *m = (struct measuring){.in = in, .room = 2 * all};
    open_ranks(&m->now, in->ranks, in->most);
    open_ranks(&m->before, in->ranks, in->most);
    tally_open(&m->tally, all);
    tally_open(&m->tally_before, all);
    m->key = mem_alloc(all, sizeof *m->key, "entries of all ranks");
    m->scratch = mem_alloc(all, sizeof *m->scratch, "entries of all ranks");
    m->by_ranks = mem_zalloc(in->ranks + 1, sizeof *m->by_ranks, "indices by ranks");
    m->by_slice = mem_zalloc(in->head.slices + 1, sizeof *m->by_slice, "entries by slices");
    m->tail = mem_alloc(m->room, sizeof *m->tail, "magnitudes of a recording");
}

static void measuring_close(struct measuring *m) {
    close_ranks(m->now, m->in->ranks);
    close_ranks(m->before, m->in->ranks);
    tally_close(&m->tally);
    tally_close(&m->tally_before);
    mem_free(m->key);
    mem_free(m->scratch);
    mem_free(m->by_ranks);
    mem_free(m->by_slice);
    mem_free(m->tail);
}

/* -- one step ------------------------------------------------------------------------------------------------------ */

/* Sorts what all ranks have by index, the sign in the lowest bit; counts ranks and pairs of them with equal signs. */
static void count_ranks(struct measuring *m) {
    size_t length = 0, i = 0;
    for (size_t r = 0; r < m->in->ranks; r++)
        for (size_t e = 0; e < m->now[r].nnz; e++)
            m->key[length++] = (uint64_t)m->now[r].idx[e] << 1 | (m->now[r].val[e] < 0);
    radix_sort(m->key, m->scratch, length, (uint64_t)m->in->n << 1);
    for (m->tally.length = 0; i < length; m->tally.length++) {
        double ranks = 0, negative = 0;
        uint64_t index = m->key[i] >> 1;
        for (; i < length && m->key[i] >> 1 == index; i++) {
            ranks++;
            negative += (double)(m->key[i] & 1);
        }
        double positive = ranks - negative;
        m->tally.idx[m->tally.length] = (uint32_t)index;
        m->tally.count[m->tally.length] = (uint32_t)ranks;
        m->by_ranks[(size_t)ranks]++;
        m->pairs += ranks * (ranks - 1) / 2;
        m->same_sign += (positive * (positive - 1) + negative * (negative - 1)) / 2;
    }
}

static void count_slices(struct measuring *m, const struct sparse *s) {
    const struct record_reader *in = m->in;
    size_t slice = 0;
    uint64_t end = in->head.slices ? in->slice[0].size : in->n;
    for (size_t i = 0; i < s->nnz; i++) {
        while (s->idx[i] >= end) end += in->slice[++slice].size;
        m->by_slice[slice]++;
    }
}

/* Appends ln(|v| / the smallest |v| that is not 0); a 0 that was selected counts as the smallest. */
static void note_magnitudes(struct measuring *m, const struct sparse *s) {
    float smallest = INFINITY;
    if (m->entries + s->nnz > m->room) {
        m->room = 2 * (m->entries + s->nnz);
        m->tail = mem_grow(m->tail, m->entries, m->room, sizeof *m->tail, "magnitudes of a recording");
    }
    for (size_t i = 0; i < s->nnz; i++)
        if (s->val[i] != 0 && fabsf(s->val[i]) < smallest) smallest = fabsf(s->val[i]);
    for (size_t i = 0; i < s->nnz; i++)
        m->tail[m->entries++] = s->val[i] != 0 ? logf(fabsf(s->val[i])) - logf(smallest) : 0;
}

/* sum over the indices of both of a * b, where a and b are the numbers of ranks that have it. */
static double shared_by_tallies(const struct tally *a, const struct tally *b) {
    double sum = 0;
    for (size_t i = 0, j = 0; i < a->length && j < b->length;) {
        if (a->idx[i] == b->idx[j]) sum += (double)a->count[i] * b->count[j];
        size_t step = a->idx[i] <= b->idx[j];
        j += b->idx[j] <= a->idx[i];
        i += step;
    }
    return sum;
}

static double shared(const struct sparse *a, const struct sparse *b) {
    double sum = 0;
    for (size_t i = 0, j = 0; i < a->nnz && j < b->nnz;) {
        uint32_t of_a = a->idx[i], of_b = b->idx[j];
        sum += of_a == of_b;
        i += of_a <= of_b;
        j += of_b <= of_a;
    }
    return sum;
}

/* A rank is not compared with itself: what it has just delivered starts again from 0 and is not selected again so
 * soon. */
static void compare_with_before(struct measuring *m) {
    m->again += shared_by_tallies(&m->tally, &m->tally_before);
    for (size_t r = 0; r < m->in->ranks; r++) m->again -= shared(&m->now[r], &m->before[r]);
}

static bool take_step(struct measuring *m, size_t step, struct err *e) {
    for (size_t r = 0; r < m->in->ranks; r++) {
        if (!record_selected_read(m->in, step, r, &m->now[r], e)) return false;
        count_slices(m, &m->now[r]);
        note_magnitudes(m, &m->now[r]);
    }
    count_ranks(m);
    m->last = m->in->row[step * m->in->ranks].step;
    if (m->steps++ == 0)
        m->first = m->last;
    else
        compare_with_before(m);
    struct sparse *now = m->now;
    struct tally tally = m->tally;
    m->now = m->before, m->before = now;
    m->tally = m->tally_before, m->tally_before = tally;
    return true;
}

/* -- what follows from the counts ---------------------------------------------------------------------------------- */

/* U(P), P = 1..R, mean over the choices of P of the R ranks: an index that a ranks have is in the union of all but
 * C(R - a, P) of the C(R, P) choices, which is a part of prod_{i<P} (R - a - i) / (R - i). */
static void find_unions(const struct measuring *m, struct profile *p) {
    size_t R = m->in->ranks;
    p->measured = mem_zalloc(R, sizeof *p->measured, "unions of a profile");
    p->fitted = mem_zalloc(R, sizeof *p->fitted, "unions of a profile");
    for (size_t a = 1; a <= R; a++) {
        double missed = 1;
        for (size_t P = 1; P <= R; P++) {
            missed *= P <= R - a ? (double)(R - a - (P - 1)) / (double)(R - (P - 1)) : 0;
            p->measured[P - 1] += m->by_ranks[a] / (double)m->steps * (1 - missed);
        }
    }
}

static void find_slices(const struct measuring *m, struct profile *p) {
    const struct record_reader *in = m->in;
    p->slices = in->head.slices ? in->head.slices : 1;
    p->slice = mem_zalloc(p->slices, sizeof *p->slice, "slices of a profile");
    for (size_t j = 0; j < p->slices; j++) {
        p->slice[j].size = in->head.slices ? in->slice[j].size : in->n;
        p->slice[j].share = m->by_slice[j] / (double)m->entries;
        memcpy(p->slice[j].name, in->head.slices ? in->slice[j].name : "all", in->head.slices ? RECORD_SLICE_MAX : 4);
    }
}

static int ascending(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Between two of these points interpolation is linear, which is exact for a power law: ln |v| is linear in the
 * logarithm of the share of entries above it. */
static void find_tail(struct measuring *m, struct profile *p) {
    qsort(m->tail, m->entries, sizeof *m->tail, ascending);
    for (int i = 0; i < PROFILE_TAIL; i++) {
        size_t at = (size_t)((1 - exp2(-0.5 * i)) * (double)m->entries);
        p->tail[i] = fmin((double)m->tail[at < m->entries ? at : m->entries - 1], 80);
    }
}

/* With a new hot set, two ranks' selections of two steps would have O_0 = sum_j k_j^2 / n_j indices in common, with the
 * same one O_1, which is what they have in one step: O = rho O_1 + (1 - rho) O_0. */
static void find_persistence(const struct measuring *m, struct profile *p) {
    double R = (double)m->in->ranks, of_chance = 0;
    if (m->steps < 2) return;
    for (uint64_t j = 0; j < p->slices; j++) {
        double k = p->slice[j].share * p->k;
        if (k > 0) of_chance += k * k / (double)p->slice[j].size;
    }
    double same = 2 * p->measured[0] - p->measured[1], found = m->again / ((double)(m->steps - 1) * R * (R - 1));
    p->distance = (double)(m->last - m->first) / (double)(m->steps - 1);
    if (same > of_chance) p->persistence = fmin(fmax((found - of_chance) / (same - of_chance), 0), 1);
}

static void conclude(struct measuring *m, struct profile *p) {
    const struct record_reader *in = m->in;
    *p = (struct profile){.n = in->n, .ranks = in->ranks, .steps = m->steps, .h_fixed = in->ranks == 2};
    memcpy(p->model, in->head.model, sizeof p->model);
    memcpy(p->data, in->head.data, sizeof p->data);
    p->k = (double)m->entries / (double)(m->steps * in->ranks);
    p->density = in->selection.density;
    p->sign_agreement = m->pairs > 0 ? m->same_sign / m->pairs : 0.5;
    find_slices(m, p);
    find_unions(m, p);
    find_tail(m, p);
    find_persistence(m, p);
    struct overlap_slice *s = mem_alloc(p->slices, sizeof *s, "slices of a profile");
    for (uint64_t j = 0; j < p->slices; j++) s[j] = profile_overlap_slice(&p->slice[j], p->k);
    p->overlap = overlap_fit(s, p->slices, p->measured, in->ranks);
    for (size_t i = 0; i < in->ranks; i++) p->fitted[i] = profile_union(p, (double)i + 1);
    mem_free(s);
}

bool profile_fit(struct profile *p, struct record_reader *in, size_t *left_out, struct err *e) {
    struct measuring m;
    bool good = true;
    *left_out = 0;
    memset(p, 0, sizeof *p);
    if (in->ranks < 2)
        return err_set(e, "%s is of one rank: an overlap is between two or more; record a run of mpirun -np 4",
                       in->path);
    if (in->ranks > PROFILE_RANKS_MAX)
        return err_set(e, "%s is of %zu ranks; %d are enough", in->path, in->ranks, PROFILE_RANKS_MAX);
    measuring_open(&m, in);
    for (size_t s = 0; good && s < in->steps; s++) {
        bool warming_up = in->row[s * in->ranks].k != in->selection.k;
        *left_out += warming_up;
        if (!warming_up) good = take_step(&m, s, e);
    }
    if (good && m.entries == 0)
        good =
            err_set(e, "%s has no entry in a step of k = %zu, which the head names", in->path, (size_t)in->selection.k);
    if (good) conclude(&m, p);
    measuring_close(&m);
    return good;
}
