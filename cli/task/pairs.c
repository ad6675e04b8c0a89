/* pairs.c: pairs of parts of a text, masked: two losses, of the words that are masked and of which part comes next. */
#include "base/mem.h"
#include "cli/task/task.h"
#include "cli/train/run.h"
#include "data/pairs/masked.h"

static size_t count(const struct dataset *d, enum split split) {
    const struct pair_set *const set[SPLITS] = {&d->train_pairs, &d->valid_pairs, &d->test_pairs};
    return set[split]->count;
}

static bool can_evaluate(const struct run *r, struct err *e) {
    if (r->data.set.valid_pairs.count > 0) return true;
    return err_set(e, "--data %s has no pair of sentences to validate on; take a longer text", r->options.data);
}

static void forward(struct run *r, const struct batch *b) {
    const struct net_input input = {
        .token = b->token, .numbers = {b->type, b->lengths, b->chosen}, .label = {b->y, b->next}};
    net_forward_input(r->model.net, &input, NULL);
}

/* Both losses of one split over all ranks. */
struct pair_sums {
    struct eval_sums words, next;
};

static bool read_batch(struct run *r, const struct pair_set *set, size_t from, int valid, const struct masked *m,
                       struct pair_sums *sums) {
    const struct net_setup *s = &r->model.net->setup;
    const struct net_input input = {
        .token = m->token, .numbers = {m->type, m->lengths, m->chosen}, .label = {m->y, m->next}};
    struct net_result next, words;
    masked_fill_eval(&r->data.set, set, from, valid, s->batch, s->chosen, m);
    net_evaluate_input(r->model.net, &input, &words);
    net_result_of(r->model.net, 1, &next);
    eval_add(&sums->words, &words);
    eval_add(&sums->next, &next);
    return eval_unit(r);
}

static struct pair_sums evaluate(struct run *r, const struct pair_set *set) {
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
    for (; from < to; from += batch)
        if (!read_batch(r, set, from, (int)(to - from < batch ? to - from : batch), &m, &sums)) break;
    mem_pinned_free(all);
    eval_reduce(r, &sums.words);
    eval_reduce(r, &sums.next);
    return sums;
}

static void score(struct run *r, struct scores *scores) {
    const struct dataset *d = &r->data.set;
    log_evaluation_begin(r, eval_batches(r, d->valid_pairs.count) + eval_batches(r, d->test_pairs.count));
    const struct pair_sums valid = evaluate(r, &d->valid_pairs), test = evaluate(r, &d->test_pairs);
    *scores = scores_none;
    scores->valid_loss = eval_loss(&valid.words);
    scores->next_loss = eval_loss(&valid.next);
    scores->next_accuracy = eval_accuracy(&valid.next);
    if (!run_has_test(r)) return;
    scores->test_loss = eval_loss(&test.words);
    scores->test_accuracy = eval_accuracy(&test.words);
}

static const struct score_shown shown[] = {
    {"valid loss", TARGET_VALID, TARGET_LOSS, 4, false, true},
    {"next sentence", TARGET_VALID, TARGET_NEXT_ACCURACY, 2, true, true},
    {"test loss", TARGET_TEST, TARGET_LOSS, 4, false, false},
    {.label = NULL},
};

const struct task_ops task_pairs = {
    .sample = "pair",
    .samples = "pairs",
    .pairs = true,
    .classes = " pieces of words",
    .judged = {.split = TARGET_VALID, .metric = TARGET_LOSS},
    .shown = shown,
    .listed = shown,
    .count = count,
    .can_evaluate = can_evaluate,
    .plan = plan_samples,
    .forward = forward,
    .score = score,
};
