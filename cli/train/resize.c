/* resize.c: see resize.h. */
#include "cli/train/resize.h"

#include <stdlib.h>

/* The batch over all ranks that stays, cut for so many. */
static bool share_batch(struct run *r, const struct checkpoint *from, struct err *e) {
    struct options *o = &r->options;
    const int P = r->comm->size;
    const int64_t all = r->resize.batch * r->resize.ranks;
    if (all % P != 0)
        return err_set(e,
                       "cannot resume on %d ranks: %s was made with --batch %lld on %d rank%s, and %lld cannot be "
                       "shared out among %d alike; take a number of ranks that divides it, or give another --batch",
                       P, from->path, (long long)r->resize.batch, r->resize.ranks, r->resize.ranks > 1 ? "s" : "",
                       (long long)all, P);
    if (all / P > BATCH_MAX)
        return err_set(e,
                       "cannot resume on %d rank%s: %s was made with --batch %lld on %d ranks, which would be %lld on "
                       "each, more than %d; take more ranks, or give another --batch",
                       P, P > 1 ? "s" : "", from->path, (long long)r->resize.batch, r->resize.ranks,
                       (long long)(all / P), BATCH_MAX);
    o->batch = all / P;
    return true;
}

bool resize_options(struct run *r, const struct checkpoint *from, struct err *e) {
    struct options *o = &r->options;
    char batch[OPTION_TEXT_MAX];
    options_text_value(from->options, "batch", batch);
    r->leg = from->leg;
    r->resize.step = from->step;
    r->resize.ranks = (int)from->ranks;
    r->resize.batch = strtoll(batch, NULL, 10); /* which options_stored has looked at */
    r->resize.other_ranks = r->resize.ranks != r->comm->size;
    if (r->resize.other_ranks && !options_given(o, "batch") && !share_batch(r, from, e)) return false;
    r->resize.other_batch = r->resize.batch * r->resize.ranks != o->batch * r->comm->size;
    if (resize_is(r)) r->leg.resized++;
    return true;
}

bool resize_is(const struct run *r) {
    return r->resize.other_ranks || r->resize.other_batch;
}

const char *resize_residuals(const struct run *r) {
    if (!r->path.reducer.keeps) return "none";
    if (!r->resize.other_ranks && r->options.resume_residuals != RESIDUALS_RESET) return "kept";
    return options_choice(&r->options, "resume-residuals");
}

/* The streams end, and are cut otherwise, where an epoch does; so are utterances put together otherwise. */
static bool leg_of_epochs(const struct run *r, struct leg *next, struct err *e) {
    const struct options *o = &r->options;
    const size_t streams = (size_t)r->resize.batch * (size_t)r->resize.ranks;
    const uint64_t windows = r->data.task->batches(r, streams),
                   done = (r->resize.step - r->leg.step) * (uint64_t)o->accumulate;
    if (windows == 0 || done % windows != 0)
        return err_set(e,
                       "cannot resume with another batch over all ranks: step %llu is inside an epoch, and its %zu "
                       "%s (--batch %lld on %d rank%s) can be %s otherwise only where one ends; leave "
                       "--batch out, or resume the checkpoint of an epoch's end",
                       (unsigned long long)r->resize.step, streams,
                       r->data.task->streams ? "streams of text" : "utterances a step", (long long)r->resize.batch,
                       r->resize.ranks, r->resize.ranks > 1 ? "s" : "", r->data.task->streams ? "cut" : "put together");
    next->position += done / windows;
    next->before = (double)o->accumulate / (double)windows;
    return true;
}

static void leg_of_samples(const struct run *r, struct leg *next) {
    const struct options *o = &r->options;
    const uint64_t each = (uint64_t)r->resize.batch * (uint64_t)r->resize.ranks * (uint64_t)o->accumulate;
    next->position += (r->resize.step - r->leg.step) * each;
    next->before = r->data.task->windows ? (double)each * options_sequence(o) / (double)run_samples(r)
                                         : (double)each / (double)run_samples(r);
}

bool resize_plan(struct run *r, struct err *e) {
    struct leg next = r->leg;
    if (!r->resize.other_batch) return true;
    if (r->data.task->whole) {
        if (!leg_of_epochs(r, &next, e)) return false;
    } else {
        leg_of_samples(r, &next);
    }
    next.step = r->resize.step;
    r->leg = next;
    return true;
}
