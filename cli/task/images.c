/* images.c: images and their classes. */
#include "base/mem.h"
#include "cli/task/task.h"
#include "cli/train/run.h"

static size_t count(const struct dataset *d, enum split split) {
    return split == SPLIT_TRAIN ? d->train.count : split == SPLIT_TEST ? d->test.count : 0;
}

static bool can_evaluate(const struct run *r, struct err *e) {
    (void)r, (void)e;
    return true;
}

static void forward(struct run *r, const struct batch *b) {
    if (b->x)
        net_forward(r->model.net, b->x, b->y, NULL);
    else
        net_forward_bytes(r->model.net, &b->bytes, b->y, NULL);
}

static struct eval_sums evaluate(struct run *r) {
    const struct net_setup *s = &r->model.net->setup;
    size_t batch = (size_t)s->batch, image = (size_t)s->channels * (size_t)s->height * (size_t)s->width, from, to;
    float *x = mem_pinned_alloc(batch * image, sizeof *x, "a test batch");
    int32_t *y = mem_pinned_alloc(batch, sizeof *y, "the labels of a test batch");
    struct eval_sums sums = {{0}};
    loader_share(r->data.set.test.count, r->comm->rank, r->comm->size, &from, &to);
    log_evaluation_begin(r, eval_batches(r, r->data.set.test.count));
    for (; from < to; from += batch) {
        int valid = (int)(to - from < batch ? to - from : batch);
        struct net_result result;
        loader_fill_test(&r->data.set, from, valid, s->batch, x, y);
        net_evaluate(r->model.net, x, y, valid, &result);
        eval_add(&sums, &result);
        if (!eval_unit(r)) break;
    }
    mem_pinned_free(x);
    mem_pinned_free(y);
    return sums;
}

static void score(struct run *r, struct scores *scores) {
    struct eval_sums test = evaluate(r);
    eval_reduce(r, &test);
    *scores = scores_none;
    scores->test_loss = eval_loss(&test);
    scores->test_accuracy = eval_accuracy(&test);
}

static const struct score_shown shown[] = {
    {"test loss", TARGET_TEST, TARGET_LOSS, 3, false, true},
    {"test accuracy", TARGET_TEST, TARGET_ACCURACY, 2, true, true},
    {.label = NULL},
};

const struct task_ops task_images = {
    .sample = "image",
    .samples = "images",
    .built_in = "cifar10",
    .judged = {.split = TARGET_TEST, .metric = TARGET_ACCURACY},
    .shown = shown,
    .listed = shown,
    .count = count,
    .can_evaluate = can_evaluate,
    .plan = plan_samples,
    .forward = forward,
    .score = score,
};
