/* speech.c: recorded utterances and what is said in them, letter by letter: connectionist temporal classification. The
 * error rates of an evaluation are of the best path (transcript.h), over all utterances of a split at once. */
#include "base/mem.h"
#include "cli/task/task.h"
#include "cli/train/run.h"
#include "data/error_rate.h"
#include "data/speech_batch.h"
#include "data/transcript.h"

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
struct heard {
    struct eval_sums loss;
    struct error_rate words, characters;
};

static void rate_add(struct error_rate *to, struct error_rate more) {
    to->errors += more.errors;
    to->of += more.of;
}

/* said: [labels + 1], guess: [steps + 1] */
static void listen(const struct batch *b, int i, const int32_t *path, int steps, char *said, char *guess,
                   struct heard *h) {
    const int32_t *label = b->y + (size_t)i * (size_t)b->label_stride;
    const int labels = b->label_count[i];
    int heard = 0;
    for (int j = 0; j < labels; j++) said[j] = TRANSCRIPT_ALPHABET[label[j]];
    said[labels] = '\0';
    while (heard < steps && path[heard] >= 0) heard++;
    transcript_of_path(path, (size_t)heard, guess);
    rate_add(&h->words, error_rate_words(said, guess));
    rate_add(&h->characters, error_rate_characters(said, guess));
}

static void listen_to_batch(struct run *r, const struct batch *b, char *said, char *guess, struct heard *h) {
    const struct net_input input = input_of(b);
    struct net_result result;
    int steps;
    net_evaluate_input(r->model.net, &input, &result);
    const int32_t *path = net_best_path(r->model.net, &steps);
    eval_add(&h->loss, &result);
    for (int i = 0; i < b->count; i++) listen(b, i, path + (size_t)i * (size_t)steps, steps, said, guess, h);
    eval_unit(r);
}

static struct heard evaluate(struct run *r, enum split split) {
    const struct dataset *d = &r->data.set;
    const struct speech_set *set = set_of(d, split);
    const int batch = r->model.net->setup.batch;
    char *said = mem_alloc((size_t)d->label_stride + 1, 1, "a transcript");
    char *guess = mem_alloc((size_t)d->width + 1, 1, "what is heard");
    struct heard h = {.loss = {{0}}};
    struct batch b = {.x = NULL};
    size_t from, to;
    speech_batch_open(&b, d, set, batch);
    loader_share(set->count, r->comm->rank, r->comm->size, &from, &to);
    for (int valid; (valid = speech_batch_eval(d, set, from, to, batch, &b)) > 0; from += (size_t)valid)
        listen_to_batch(r, &b, said, guess, &h);
    speech_batch_close(&b);
    mem_free(guess);
    mem_free(said);
    uint64_t sums[4] = {h.words.errors, h.words.of, h.characters.errors, h.characters.of};
    comm_allreduce_u64(r->comm, sums, 4, COMM_SUM);
    h.words = (struct error_rate){sums[0], sums[1]};
    h.characters = (struct error_rate){sums[2], sums[3]};
    eval_reduce(r, &h.loss);
    return h;
}

static double part(struct error_rate rate) {
    return (double)rate.errors / (double)rate.of;
}

static void score(struct run *r, struct scores *scores) {
    const size_t valid = count(&r->data.set, SPLIT_VALID);
    log_evaluation_begin(r, eval_batches(r, valid) + eval_batches(r, count(&r->data.set, SPLIT_TEST)));
    *scores = scores_none;
    if (valid > 0) {
        const struct heard h = evaluate(r, SPLIT_VALID);
        scores->valid_loss = eval_loss(&h.loss);
        scores->valid_wer = part(h.words);
        scores->valid_cer = part(h.characters);
    }
    const struct heard h = evaluate(r, SPLIT_TEST);
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
