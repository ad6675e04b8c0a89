/* speech.c: recorded utterances and what is said in them, letter by letter: connectionist temporal classification. The
 * error rates of an evaluation are of the best path (transcript.h), over all utterances of a split at once. */
#include "base/mem.h"
#include "cli/task/task.h"
#include "cli/train/run.h"
#include "data/speech/error_rate.h"
#include "data/speech/speech_batch.h"
#include "data/speech/transcript.h"

static const struct speech_set *set_of(const struct dataset *d, enum split split) {
    const struct speech_set *const set[SPLITS] = {&d->train_speech, &d->valid_speech, &d->test_speech};
    return set[split];
}

static size_t count(const struct dataset *d, enum split split) {
    return set_of(d, split)->count;
}

/* A dataset without a test is refused where it is read. */
static bool can_evaluate(const struct run *r, struct err *e) {
    (void)r, (void)e;
    return true;
}

/* Whole steps (speech_batch.h). */
static size_t batches(const struct run *r, size_t each) {
    const size_t parts = (size_t)r->options.accumulate;
    return parts * speech_bins(run_samples(r), parts * each);
}

static bool plan(struct run *r, struct err *e) {
    if (!plan_samples(r, e)) return false;
    r->data.windows = batches(r, (size_t)r->options.batch * (size_t)r->comm->size);
    return true;
}

static struct net_input input_of(const struct batch *b) {
    return (struct net_input){.x = b->x,
                              .frames = b->frames,
                              .numbers = {[NUMBERS_LENGTHS] = b->lengths},
                              .label = {b->y},
                              .label_stride = b->label_stride,
                              .valid = b->count > 0 ? b->count : -1};
}

/* Batches of a step may differ in how many utterances they hold. The mean over the ranks of what each gradient is
 * divided by is the number that all of them hold, so that every utterance counts alike. */
static void forward(struct run *r, const struct batch *b) {
    struct net_input input = input_of(b);
    input.mean_over = (double)b->of / ((double)r->comm->size * (double)r->options.accumulate);
    net_forward_input(r->model.net, &input, NULL);
}

/* -- an evaluation --------------------------------------------------------------------------------------------- */

/* Of one split. */
struct rates {
    struct eval_sums loss;
    struct error_rate words, characters;
};

/* An evaluation of a split on this rank. */
struct listening {
    struct rates rates;
    char *said, *guess;     /* texts: [labels + 1], [steps + 1] */
    size_t at;              /* the utterance that comes next */
    struct heard *examples; /* NULL: none are kept of this split */
};

static void rate_add(struct error_rate *to, struct error_rate more) {
    to->errors += more.errors;
    to->of += more.of;
}

static void listen(const struct batch *b, int i, const int32_t *path, int steps, struct listening *l) {
    const int32_t *label = b->y + (size_t)i * (size_t)b->label_stride;
    const int labels = b->label_count[i];
    int heard = 0;
    for (int j = 0; j < labels; j++) l->said[j] = TRANSCRIPT_ALPHABET[label[j]];
    l->said[labels] = '\0';
    while (heard < steps && path[heard] >= 0) heard++;
    transcript_of_path(path, (size_t)heard, l->guess);
    rate_add(&l->rates.words, error_rate_words(l->said, l->guess));
    rate_add(&l->rates.characters, error_rate_characters(l->said, l->guess));
    if (l->examples) heard_keep(l->examples, l->at, l->said, l->guess);
    l->at++;
}

static bool listen_to_batch(struct run *r, const struct batch *b, struct listening *l) {
    const struct net_input input = input_of(b);
    struct net_result result;
    int steps;
    net_evaluate_input(r->model.net, &input, &result);
    const int32_t *path = net_best_path(r->model.net, &steps);
    eval_add(&l->rates.loss, &result);
    for (int i = 0; i < b->count; i++) listen(b, i, path + (size_t)i * (size_t)steps, steps, l);
    return eval_unit(r);
}

static void rates_reduce(struct run *r, struct rates *rates) {
    uint64_t sums[4] = {rates->words.errors, rates->words.of, rates->characters.errors, rates->characters.of};
    comm_allreduce_u64(r->comm, sums, 4, COMM_SUM);
    rates->words = (struct error_rate){sums[0], sums[1]};
    rates->characters = (struct error_rate){sums[2], sums[3]};
    eval_reduce(r, &rates->loss);
}

static struct rates evaluate(struct run *r, enum split split, struct heard *examples) {
    const struct dataset *d = &r->data.set;
    const struct speech_set *set = set_of(d, split);
    const int batch = r->model.net->setup.batch;
    struct listening l = {
        .said = mem_alloc((size_t)d->label_stride + 1, 1, "a transcript"),
        .guess = mem_alloc((size_t)d->width + 1, 1, "what is heard"),
        .examples = examples,
    };
    struct batch b = {.x = NULL};
    size_t from, to;
    speech_batch_open(&b, d, set->longest, batch);
    loader_share(set->count, r->comm->rank, r->comm->size, &from, &to);
    l.at = from;
    for (int valid; (valid = speech_batch_eval(d, set, from, to, batch, &b)) > 0; from += (size_t)valid)
        if (!listen_to_batch(r, &b, &l)) break;
    speech_batch_close(&b);
    mem_free(l.guess);
    mem_free(l.said);
    rates_reduce(r, &l.rates);
    if (examples) heard_share(examples, set->count, r->comm);
    return l.rates;
}

/* With --samples. */
static struct heard *examples_of(struct run *r) {
    const struct dataset *d = &r->data.set;
    if (r->options.samples <= 0) return NULL;
    heard_open(&r->heard, (size_t)r->options.samples, count(d, SPLIT_TEST), (size_t)d->width);
    return &r->heard;
}

static double part(struct error_rate rate) {
    return (double)rate.errors / (double)rate.of;
}

static void score(struct run *r, struct scores *scores) {
    const size_t valid = count(&r->data.set, SPLIT_VALID);
    log_evaluation_begin(r, eval_batches(r, valid) + eval_batches(r, count(&r->data.set, SPLIT_TEST)));
    *scores = scores_none;
    if (valid > 0) {
        const struct rates h = evaluate(r, SPLIT_VALID, NULL);
        scores->valid_loss = eval_loss(&h.loss);
        scores->valid_wer = part(h.words);
        scores->valid_cer = part(h.characters);
    }
    const struct rates h = evaluate(r, SPLIT_TEST, examples_of(r));
    scores->test_loss = eval_loss(&h.loss);
    scores->test_wer = part(h.words);
    scores->test_cer = part(h.characters);
}

static const struct score_shown shown[] = {
    {"valid loss", TARGET_VALID, TARGET_LOSS, 3, false, false},
    {"valid WER", TARGET_VALID, TARGET_WER, 2, true, true},
    {"valid CER", TARGET_VALID, TARGET_CER, 2, true, false},
    {"test loss", TARGET_TEST, TARGET_LOSS, 3, false, true},
    {"test WER", TARGET_TEST, TARGET_WER, 2, true, true},
    {"test CER", TARGET_TEST, TARGET_CER, 2, true, true},
    {.label = NULL},
};

const struct task_ops task_speech = {
    .sample = "utterance",
    .samples = "utterances",
    .speech = true,
    .whole = true,
    .judged = {.split = TARGET_TEST, .metric = TARGET_WER},
    .shown = shown,
    .listed = shown,
    .count = count,
    .can_evaluate = can_evaluate,
    .batches = batches,
    .plan = plan,
    .forward = forward,
    .score = score,
};
