/* tally.c: see tally.h. */
#include "cli/checkpoint/tally.h"

#include <math.h>

#include "cli/train/run.h"

static const char section[] = "tally";

struct tally tally_of(const struct run *r) {
    const bool evaluated = r->last_at == r->step; /* an older one is not known to a run that was resumed since */
    return (struct tally){log_spent(r), evaluated, evaluated ? r->last : scores_none};
}

/* NaN: it was not known when it was written. */
static bool possible(const struct tally *t) {
    const double spent[] = {t->spent.seconds, t->spent.elapsed, t->spent.bytes_sent};
    const struct scores *s = &t->scores;
    const double score[] = {s->test_loss,    s->test_accuracy, s->valid_loss, s->next_loss, s->next_accuracy,
                            s->sampled_loss, s->test_wer,      s->test_cer,   s->valid_wer, s->valid_cer};
    bool good = t->evaluated <= 1;
    for (size_t i = 0; i < sizeof spent / sizeof *spent; i++)
        good = good && (isnan(spent[i]) || (isfinite(spent[i]) && spent[i] >= 0));
    for (size_t i = 0; i < sizeof score / sizeof *score; i++) good = good && !isinf(score[i]);
    return good;
}

bool tally_read(const struct container *c, struct tally *t, struct err *e) {
    size_t bytes;
    *t = (struct tally){.spent = {NAN, NAN, NAN}, .scores = scores_none};
    if (!container_has(c, section, &bytes)) return true;
    const bool older = bytes == offsetof(struct tally, scores.test_wer);
    return container_get(c, section, t, older ? bytes : sizeof *t, e) &&
           (possible(t) ||
            err_set(e, "the checkpoint %s is damaged: its section %s has what no run takes", c->path, section));
}

void tally_put(struct run *r, const struct tally *t) {
    r->log.before = t->spent;
    r->target.known = t->evaluated != 0;
    r->target.scores = t->scores;
}
