/* text.c: texts, word by word or character by character: in streams, for a model that carries its states through them,
 * or in windows from random places, for one that carries nothing. */
#include "base/mem.h"
#include "cli/task/task.h"
#include "cli/train/run.h"

static size_t count(const struct dataset *d, enum split split) {
    const struct text_set *const set[SPLITS] = {&d->train_text, &d->valid_text, &d->test_text};
    return set[split]->count;
}

/* -- is there enough? ---------------------------------------------------------------------------------------------- */

/* The texts of an evaluation must be long enough for one prediction; there may be none to test on. */
static bool can_evaluate(const struct run *r, struct err *e) {
    const size_t valid = r->data.set.valid_text.count, test = r->data.set.test_text.count;
    if (valid >= 2 && test != 1) return true;
    return err_set(e,
                   "--data %s has one word to %s: an evaluation predicts each word from those before it and needs 2 "
                   "at least, ends of lines among them; take a longer text",
                   r->options.data, valid < 2 ? "validate on" : "test on");
}

/* Windows from random places must find one, in the text to train on and in that to validate on. */
static bool plan_windows(struct run *r, struct err *e) {
    const struct options *o = &r->options;
    const size_t train = r->data.set.train_text.count, valid = r->data.set.valid_text.count;
    const int T = options_sequence(o);
    if (text_places(train, T) == 0)
        return err_set(e, "--data %s has %zu %ss to train on; --context %d needs %d at least; use a smaller one",
                       o->data, train, run_sample(r), T, T + 1);
    if (o->eval_samples == 0 || text_places(valid, T) > 0) return true;
    return err_set(e,
                   "--data %s has %zu %ss to validate on, too few for a window of --context %d; use a smaller one, or "
                   "--eval-samples 0",
                   o->data, valid, run_sample(r), T);
}

bool text_is_sampled(const struct run *r) {
    return r->data.task->windows && r->options.eval_samples > 0 &&
           text_places(r->data.set.valid_text.count, options_sequence(&r->options)) > 0;
}

static size_t batches_of_streams(const struct run *r, size_t streams) {
    return text_windows(r->data.set.train_text.count, streams, (int)r->options.bptt);
}

/* A text must also be long enough for one window of every stream. */
static bool plan_streams(struct run *r, struct err *e) {
    const struct options *o = &r->options;
    const size_t streams = (size_t)o->batch * (size_t)r->comm->size, words = r->data.set.train_text.count;
    r->data.streams = streams;
    r->data.first_stream = (size_t)o->batch * (size_t)r->comm->rank;
    r->data.windows = batches_of_streams(r, streams);
    if (r->data.windows > 0 && r->data.windows < (size_t)o->accumulate)
        return err_set(
            e,
            "--accumulate %lld is more than the %zu windows that --batch %lld streams on %d rank%s with --bptt "
            "%lld read in an epoch; use a smaller one",
            (long long)o->accumulate, r->data.windows, (long long)o->batch, r->comm->size, r->comm->size > 1 ? "s" : "",
            (long long)o->bptt);
    if (r->data.windows > 0) return true;
    return err_set(
        e,
        "--data %s has %zu %ss to train on; --batch %lld streams on %d rank%s with --bptt %lld need at least "
        "%zu; use a smaller --batch or --bptt",
        o->data, words, run_sample(r), (long long)o->batch, r->comm->size, r->comm->size > 1 ? "s" : "",
        (long long)o->bptt, text_least(streams, (int)o->bptt));
}

static void forward(struct run *r, const struct batch *b) {
    if (b->begins) net_carry_reset(r->model.net);
    net_forward_tokens(r->model.net, b->token, b->y, NULL);
}

/* -- an evaluation --------------------------------------------------------------------------------------------- */

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

static bool read_batch(struct run *r, const struct reading *t, int valid, struct eval_sums *sums) {
    struct net_result result;
    net_evaluate_tokens(r->model.net, t->token, t->y, valid, &result);
    eval_add(sums, &result);
    return eval_unit(r);
}

static size_t units_of(const struct run *r, const struct text_set *text) {
    const int sequence = r->model.net->setup.sequence;
    if (r->data.task->windows) return eval_batches(r, text_sequential_windows(text->count, sequence));
    return text_eval_windows(text->count, r->data.streams, sequence);
}

/* Every word but the first, once; the states go on from window to window within a stream. */
static void read_streams(struct run *r, const struct text_set *text, const struct reading *t, struct eval_sums *sums) {
    const struct net_setup *s = &r->model.net->setup;
    const size_t windows = units_of(r, text);
    net_carry_reset(r->model.net);
    for (size_t window = 0; window < windows; window++) {
        int valid =
            text_eval_fill(text, r->data.first_stream, r->data.streams, s->batch, s->sequence, window, t->token, t->y);
        if (valid == 0 || !read_batch(r, t, valid, sums)) break;
    }
}

/* The same in windows one after the other, each by itself. */
static void read_windows(struct run *r, const struct text_set *text, const struct reading *t, struct eval_sums *sums) {
    const struct net_setup *s = &r->model.net->setup;
    size_t from, to;
    loader_share(text_sequential_windows(text->count, s->sequence), r->comm->rank, r->comm->size, &from, &to);
    for (; from < to; from += (size_t)s->batch)
        if (!read_batch(r, t, text_sequential_fill(text, from, to, s->batch, s->sequence, t->token, t->y), sums)) break;
}

/* --eval-samples windows from random places, the same in every evaluation. */
static void read_samples(struct run *r, const struct text_set *text, const struct reading *t, struct eval_sums *sums) {
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
        if (!read_batch(r, t, (int)(windows * length), sums)) break;
    }
}

typedef void read_text(struct run *r, const struct text_set *text, const struct reading *t, struct eval_sums *sums);

/* Of all ranks. */
static struct eval_sums evaluate(struct run *r, const struct text_set *text, read_text *how) {
    struct eval_sums sums = {{0}};
    struct reading t = reading_open(r);
    how(r, text, &t, &sums);
    reading_close(&t);
    eval_reduce(r, &sums);
    return sums;
}

static void score_splits(struct run *r, struct scores *scores) {
    const struct dataset *d = &r->data.set;
    const bool samples = text_is_sampled(r);
    read_text *how = r->data.task->windows ? read_windows : read_streams;
    log_evaluation_begin(r, units_of(r, &d->valid_text) + units_of(r, &d->test_text) +
                                (samples ? eval_batches(r, (size_t)r->options.eval_samples) : 0));
    const struct eval_sums valid = evaluate(r, &d->valid_text, how), test = evaluate(r, &d->test_text, how);
    *scores = scores_none;
    scores->valid_loss = eval_loss(&valid);
    if (run_has_test(r)) {
        scores->test_loss = eval_loss(&test);
        scores->test_accuracy = eval_accuracy(&test);
    }
    if (!samples) return;
    const struct eval_sums sampled = evaluate(r, &d->valid_text, read_samples);
    scores->sampled_loss = eval_loss(&sampled);
}

/* The streams that are being trained on go on afterwards where they were. */
static void score(struct run *r, struct scores *scores) {
    const struct arena *a = &r->model.net->arena;
    float *carry = device_copy_to_host(a->device, a->carry, a->n_carry, "the states of the streams");
    score_splits(r, scores);
    a->device->to_device(a->carry, carry, a->n_carry * sizeof *carry);
    mem_free(carry);
}

/* -- the rows ---------------------------------------------------------------------------------------------------- */

static const struct score_shown perplexities[] = {
    {"valid perplexity", TARGET_VALID, TARGET_PERPLEXITY, 2, false, true},
    {"test perplexity", TARGET_TEST, TARGET_PERPLEXITY, 2, false, true},
    {.label = NULL},
};
/* Models that carry nothing are compared by their losses, in nats. */
#define LOSSES                                                                                                         \
    {"valid loss", TARGET_VALID, TARGET_LOSS, 4, false, true},                                                         \
        {"test loss", TARGET_TEST, TARGET_LOSS, 4, false, true}, {                                                     \
        "of sampled windows", TARGET_VALID, TARGET_LOSS_SAMPLED, 4, false, true                                        \
    }
static const struct score_shown losses[] = {LOSSES, {.label = NULL}};
static const struct score_shown losses_and_perplexities[] = {
    LOSSES,
    {"valid perplexity", TARGET_VALID, TARGET_PERPLEXITY, 2, false, false},
    {"test perplexity", TARGET_TEST, TARGET_PERPLEXITY, 2, false, false},
    {.label = NULL},
};

const struct task_ops task_streams = {
    .samples = "words",
    .text = true,
    .streams = true,
    .whole = true,
    .classes = "",
    .built_in = "ptb",
    .judged = {.split = TARGET_VALID, .metric = TARGET_LOSS},
    .shown = perplexities,
    .listed = perplexities,
    .count = count,
    .can_evaluate = can_evaluate,
    .batches = batches_of_streams,
    .plan = plan_streams,
    .forward = forward,
    .score = score,
};

const struct task_ops task_windows = {
    .samples = "words",
    .text = true,
    .windows = true,
    .classes = "",
    .built_in = "ptb",
    .judged = {.split = TARGET_VALID, .metric = TARGET_LOSS},
    .shown = losses,
    .listed = losses_and_perplexities,
    .count = count,
    .can_evaluate = can_evaluate,
    .plan = plan_windows,
    .forward = forward,
    .score = score,
};
