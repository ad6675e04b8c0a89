/* evaluate.c: the test set, or validation and test texts, sharded over all ranks. Published code tests rank 0's replica
 * with rank 0's batch-norm statistics; here the statistics are averaged over the ranks first. A running mean is linear
 * in what it has seen, so averaging the running means is the running mean of the averages: putting the average back
 * changes nothing but rounding. Where the replicas drift apart, what is tested is the average of their parameters;
 * training goes on with each rank's own. */
#include <math.h>

#include "base/hash.h"
#include "base/mem.h"
#include "cli/train/run.h"
#include "cli/train/watching.h"
#include "data/masked.h"

/* Do all ranks hold the same bits? */
static bool same_everywhere(struct comm *c, const float *value, size_t n) {
    uint64_t low = hash64(0, value, n * sizeof *value), high = low;
    comm_allreduce_u64(c, &low, 1, COMM_MIN);
    comm_allreduce_u64(c, &high, 1, COMM_MAX);
    return low == high;
}

static float *statistics(const struct run *r) {
    const struct arena *a = &r->model.net->arena;
    return device_copy_to_host(a->device, a->state, a->n_state, "the batch-norm statistics");
}

static void put_statistics(struct run *r, const float *state) {
    const struct arena *a = &r->model.net->arena;
    a->device->to_device(a->state, state, a->n_state * sizeof *state);
}

/* What is an average already stays as it is, to the bit: so a checkpoint that was written after an evaluation gives
 * that evaluation again. */
static void average_state(struct run *r) {
    const size_t n = r->model.net->arena.n_state;
    if (r->comm->size == 1 || n == 0) return;
    float *state = statistics(r);
    if (!same_everywhere(r->comm, state, n)) {
        comm_allreduce_f32(r->comm, state, n, COMM_SUM);
        for (size_t i = 0; i < n; i++) state[i] /= (float)r->comm->size;
        put_statistics(r, state);
    }
    mem_free(state);
}

/* Sums over the rows that this rank evaluates, and then over all ranks: loss, correct, rows. */
struct sums {
    double value[3];
};

static void add(struct sums *s, const struct net_result *result) {
    s->value[0] += result->loss;
    s->value[1] += result->correct;
    s->value[2] += result->count;
}

static struct sums evaluate_images(struct run *r) {
    const struct net_setup *s = &r->model.net->setup;
    size_t batch = (size_t)s->batch, image = (size_t)s->channels * (size_t)s->height * (size_t)s->width, from, to;
    float *x = mem_pinned_alloc(batch * image, sizeof *x, "a test batch");
    int32_t *y = mem_pinned_alloc(batch, sizeof *y, "the labels of a test batch");
    struct sums sums = {{0, 0, 0}};
    loader_share(r->data.set.test.count, r->comm->rank, r->comm->size, &from, &to);
    log_evaluation_begin(r, (to - from + batch - 1) / batch);
    for (; from < to; from += batch) {
        int valid = (int)(to - from < batch ? to - from : batch);
        struct net_result result;
        loader_fill_test(&r->data.set, from, valid, s->batch, x, y);
        net_evaluate(r->model.net, x, y, valid, &result);
        add(&sums, &result);
        log_evaluation_unit(r);
        beat();
    }
    mem_pinned_free(x);
    mem_pinned_free(y);
    return sums;
}

/* What an evaluation takes in of a text, window by window. */
struct reading {
    int32_t *token, *y; /* [rows] */
};

static struct reading reading_open(const struct run *r) {
    const size_t rows = (size_t)net_rows(&r->model.net->setup);
    return (struct reading){mem_pinned_alloc(rows, sizeof(int32_t), "a window of a text"),
                            mem_pinned_alloc(rows, sizeof(int32_t), "a window of a text")};
}

static void reading_close(struct reading *t) {
    mem_pinned_free(t->token);
    mem_pinned_free(t->y);
}

static void read_batch(struct run *r, const struct reading *t, int valid, struct sums *sums) {
    struct net_result result;
    net_evaluate_tokens(r->model.net, t->token, t->y, valid, &result);
    add(sums, &result);
    log_evaluation_unit(r);
    beat();
}

/* Batches of this rank's part of so many windows that do not follow each other. */
static size_t batches_of(const struct run *r, size_t windows) {
    size_t from, to, batch = (size_t)r->model.net->setup.batch;
    loader_share(windows, r->comm->rank, r->comm->size, &from, &to);
    return (to - from + batch - 1) / batch;
}

static size_t units_of(const struct run *r, const struct text_set *text) {
    const int sequence = r->model.net->setup.sequence;
    if (r->data.random) return batches_of(r, text_sequential_windows(text->count, sequence));
    return text_eval_windows(text->count, r->data.streams, sequence);
}

/* Every word but the first, once; the states go on from window to window within a stream. */
static void read_streams(struct run *r, const struct text_set *text, const struct reading *t, struct sums *sums) {
    const struct net_setup *s = &r->model.net->setup;
    const size_t windows = units_of(r, text);
    net_carry_reset(r->model.net);
    for (size_t window = 0; window < windows; window++) {
        int valid =
            text_eval_fill(text, r->data.first_stream, r->data.streams, s->batch, s->sequence, window, t->token, t->y);
        if (valid == 0) break;
        read_batch(r, t, valid, sums);
    }
}

/* The same in windows one after the other, each by itself. */
static void read_windows(struct run *r, const struct text_set *text, const struct reading *t, struct sums *sums) {
    const struct net_setup *s = &r->model.net->setup;
    size_t from, to;
    loader_share(text_sequential_windows(text->count, s->sequence), r->comm->rank, r->comm->size, &from, &to);
    for (; from < to; from += (size_t)s->batch)
        read_batch(r, t, text_sequential_fill(text, from, to, s->batch, s->sequence, t->token, t->y), sums);
}

/* --eval-samples windows from random places, the same in every evaluation. */
static void read_samples(struct run *r, const struct text_set *text, const struct reading *t, struct sums *sums) {
    const struct net_setup *s = &r->model.net->setup;
    const size_t batch = (size_t)s->batch, length = (size_t)s->sequence;
    size_t from, to;
    loader_share((size_t)r->options.eval_samples, r->comm->rank, r->comm->size, &from, &to);
    for (; from < to; from += batch) {
        const size_t windows = to - from < batch ? to - from : batch;
        for (size_t i = 0; i < batch; i++) /* those that do not count read the last one again */
            text_window_at(text,
                           text_sampled_place(text->count, s->sequence, (uint64_t)r->options.seed,
                                              from + (i < windows ? i : windows - 1)),
                           s->sequence, t->token + i * length, t->y + i * length);
        read_batch(r, t, (int)(windows * length), sums);
    }
}

typedef void read_text(struct run *r, const struct text_set *text, const struct reading *t, struct sums *sums);

/* Of all ranks. */
static struct sums evaluate_text(struct run *r, const struct text_set *text, read_text *how) {
    struct sums sums = {{0, 0, 0}};
    struct reading t = reading_open(r);
    how(r, text, &t, &sums);
    reading_close(&t);
    comm_allreduce_f64(r->comm, sums.value, 3, COMM_SUM);
    return sums;
}

static void score_images(struct run *r, struct scores *scores) {
    struct sums test = evaluate_images(r);
    comm_allreduce_f64(r->comm, test.value, 3, COMM_SUM);
    *scores =
        (struct scores){.test_loss = test.value[0] / test.value[2], .test_accuracy = test.value[1] / test.value[2]};
}

static void score_splits(struct run *r, struct scores *scores) {
    const struct dataset *d = &r->data.set;
    const bool samples = r->data.random && r->options.eval_samples > 0;
    read_text *how = r->data.random ? read_windows : read_streams;
    log_evaluation_begin(r, units_of(r, &d->valid_text) + units_of(r, &d->test_text) +
                                (samples ? batches_of(r, (size_t)r->options.eval_samples) : 0));
    const struct sums valid = evaluate_text(r, &d->valid_text, how), test = evaluate_text(r, &d->test_text, how);
    *scores = (struct scores){NAN, NAN, valid.value[0] / valid.value[2], NAN, NAN, NAN};
    if (run_has_test(r)) {
        scores->test_loss = test.value[0] / test.value[2];
        scores->test_accuracy = test.value[1] / test.value[2];
    }
    if (!samples) return;
    const struct sums sampled = evaluate_text(r, &d->valid_text, read_samples);
    scores->sampled_loss = sampled.value[0] / sampled.value[2];
}

/* The streams that are being trained on go on afterwards where they were. */
static void score_text(struct run *r, struct scores *scores) {
    const struct arena *a = &r->model.net->arena;
    float *carry = device_copy_to_host(a->device, a->carry, a->n_carry, "the states of the streams");
    score_splits(r, scores);
    a->device->to_device(a->carry, carry, a->n_carry * sizeof *carry);
    mem_free(carry);
}

/* Both losses of one split over all ranks. */
struct pair_sums {
    struct sums words, next;
};

static void read_pairs(struct run *r, const struct pair_set *set, size_t from, int valid, const struct masked *m,
                       struct pair_sums *sums) {
    const struct net_setup *s = &r->model.net->setup;
    const struct net_input input = {
        .token = m->token, .numbers = {m->type, m->lengths, m->chosen}, .label = {m->y, m->next}};
    struct net_result next, words;
    masked_fill_eval(&r->data.set, set, from, valid, s->batch, s->chosen, m);
    net_evaluate_input(r->model.net, &input, &words);
    net_result_of(r->model.net, 1, &next);
    add(&sums->words, &words);
    add(&sums->next, &next);
    log_evaluation_unit(r);
    beat();
}

static struct pair_sums evaluate_pairs(struct run *r, const struct pair_set *set) {
    const struct net_setup *s = &r->model.net->setup;
    const size_t batch = (size_t)s->batch, rows = (size_t)net_rows(s), places = batch * (size_t)s->chosen;
    int32_t *all = mem_pinned_alloc(2 * rows + 2 * places + 2 * batch, sizeof *all, "a batch of pairs");
    const struct masked m = {.token = all,
                             .type = all + rows,
                             .chosen = all + 2 * rows,
                             .y = all + 2 * rows + places,
                             .lengths = all + 2 * rows + 2 * places,
                             .next = all + 2 * rows + 2 * places + batch};
    struct pair_sums sums = {{{0}}, {{0}}};
    size_t from, to;
    loader_share(set->count, r->comm->rank, r->comm->size, &from, &to);
    for (; from < to; from += batch) read_pairs(r, set, from, (int)(to - from < batch ? to - from : batch), &m, &sums);
    mem_pinned_free(all);
    comm_allreduce_f64(r->comm, sums.words.value, 3, COMM_SUM);
    comm_allreduce_f64(r->comm, sums.next.value, 3, COMM_SUM);
    return sums;
}

static void score_pairs(struct run *r, struct scores *scores) {
    const struct dataset *d = &r->data.set;
    log_evaluation_begin(r, batches_of(r, d->valid_pairs.count) + batches_of(r, d->test_pairs.count));
    const struct pair_sums valid = evaluate_pairs(r, &d->valid_pairs), test = evaluate_pairs(r, &d->test_pairs);
    *scores = (struct scores){.test_loss = NAN,
                              .test_accuracy = NAN,
                              .valid_loss = valid.words.value[0] / valid.words.value[2],
                              .next_loss = valid.next.value[0] / valid.next.value[2],
                              .next_accuracy = valid.next.value[1] / valid.next.value[2],
                              .sampled_loss = NAN};
    if (!run_has_test(r)) return;
    scores->test_loss = test.words.value[0] / test.words.value[2];
    scores->test_accuracy = test.words.value[1] / test.words.value[2];
}

void run_evaluate(struct run *r, bool keep, struct scores *scores) {
    watching_enter(r, ACTIVITY_EVALUATION, r->step);
    float *own = run_average_begin(r), *state = keep ? statistics(r) : NULL;
    average_state(r);
    if (r->data.pairs)
        score_pairs(r, scores);
    else if (r->data.text)
        score_text(r, scores);
    else
        score_images(r, scores);
    run_average_end(r, own);
    if (state) put_statistics(r, state);
    mem_free(state);
}
