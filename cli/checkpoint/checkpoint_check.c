/* checkpoint_check.c: see checkpoint_check.h. */
#include "cli/checkpoint/checkpoint_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/options/options.h"
#include "topk/selector.h"

/* -- position ------------------------------------------------------------------------------------------------------ */

static bool impossible(const char *path, const char *what, struct err *e) {
    return err_set(e, "the checkpoint %s is damaged: its position has %s", path, what);
}

/* NaN: there was no evaluation. */
static bool score_possible(double score) {
    return isnan(score) || isfinite(score);
}

bool checkpoint_check_position(const struct position *p, const char *path, const char *dir, struct err *e) {
    const struct start *s = &p->start;
    const long long named = checkpoint_step_in(dir);
    if (p->step > STEPS_MAX) return impossible(path, "more steps than any run", e);
    if (p->ranks < 1 || p->ranks > INT32_MAX || p->rank >= p->ranks) return impossible(path, "a rank that is none", e);
    if (p->averaged > 1) return impossible(path, "a flag that is neither 0 nor 1", e);
    if (p->parameters < 1 || p->parameters > UINT32_MAX || p->net_states > UINT32_MAX || p->carried > UINT32_MAX ||
        p->optimiser_states > 4 * p->parameters)
        return impossible(path, "sizes that no model has", e);
    if (!score_possible(s->test_loss) || !score_possible(s->test_accuracy) || !score_possible(s->valid_loss))
        return impossible(path, "scores that are infinite", e);
    if (named >= 0 && p->step != (uint64_t)named)
        return err_set(e, "the checkpoint %s is of step %llu, not of the step in its directory's name", path,
                       (unsigned long long)p->step);
    return true;
}

bool checkpoint_check_leg(const struct leg *l, const struct position *p, const char *path, struct err *e) {
    const bool possible = l->step <= p->step && l->position <= UINT64_MAX / 4 && isfinite(l->before) &&
                          l->before >= 0 && l->first_ranks >= 1 && l->first_ranks <= INT32_MAX;
    return possible || err_set(e, "the checkpoint %s is damaged: its section leg has numbers of no run", path);
}

bool checkpoint_check_beside(const struct position *p, const struct position *model, int rank, const char *path,
                             const char *verb, struct err *e) {
    const bool same_run = p->run_id == model->run_id && p->step == model->step && p->ranks == model->ranks;
    const bool same_sizes = p->parameters == model->parameters && p->optimiser_states == model->optimiser_states &&
                            p->net_states == model->net_states && p->carried == model->carried;
    if (same_run && same_sizes && p->rank == (uint32_t)rank && p->averaged == model->averaged &&
        p->data_checksum == model->data_checksum)
        return true;
    return err_set(e, "cannot %s it: %s belongs to another run or step than model.ckpt beside it", verb, path);
}

bool checkpoint_open_rank(const struct checkpoint *from, const struct position *model, int rank, struct container *c,
                          struct err *e) {
    struct position p;
    char name[32];
    snprintf(name, sizeof name, "rank%04d.ckpt", rank);
    if (!checkpoint_open(from, name, c, e)) return false;
    bool good = checkpoint_get(from, c, "position", &p, sizeof p, e) &&
                checkpoint_check_beside(&p, model, rank, c->path, from->use->verb, e);
    if (!good) container_close(c);
    return good;
}

/* -- numbers ------------------------------------------------------------------------------------------------------- */

bool checkpoint_check_finite(const float *value, size_t n, const char *section, const char *path, struct err *e) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(value[i]))
            return err_set(e, "the checkpoint %s is damaged: number %zu of its section %s is NaN or infinite", path, i,
                           section);
    return true;
}

static bool none_negative(const float *value, size_t from, size_t n, const char *section, const char *path,
                          struct err *e) {
    for (size_t i = from; i < from + n; i++)
        if (value[i] < 0)
            return err_set(e,
                           "the checkpoint %s is damaged: number %zu of its section %s, a mean of squares, is below 0",
                           path, i, section);
    return true;
}

static bool is_variance(const struct slice *s) {
    static const char ends[] = ".running_var";
    size_t length = strlen(s->name);
    return length >= sizeof ends - 1 && strcmp(s->name + length - (sizeof ends - 1), ends) == 0;
}

bool checkpoint_check_statistics(const float *value, size_t n, const struct slice *slice, size_t slices,
                                 const char *path, struct err *e) {
    static const char section[] = "net state";
    bool good = checkpoint_check_finite(value, n, section, path, e);
    for (size_t i = 0; good && i < slices; i++)
        good = !is_variance(&slice[i]) || none_negative(value, slice[i].offset, slice[i].size, section, path, e);
    return good;
}

bool checkpoint_check_moments(const float *value, size_t n, const struct optimiser_ops *ops, const char *section,
                              const char *path, struct err *e) {
    const size_t moments = optimiser_moments(ops);
    if (!checkpoint_check_finite(value, moments * n, section, path, e)) return false;
    for (size_t i = 0; i < moments; i++)
        if (ops->moment[i].is_nonnegative && !none_negative(value, i * n, n, section, path, e)) return false;
    return true;
}

/* -- texts --------------------------------------------------------------------------------------------------------- */

/* All options at their longest are 60 kB, a layout has a line of up to 100 bytes for each slice. */
enum { TEXT_MAX = 1 << 22 };

char *checkpoint_text(const struct container *c, const char *section, struct err *e) {
    size_t bytes = 0;
    if (!container_has(c, section, &bytes)) {
        err_set(e, "the checkpoint %s has no section %s", c->path, section);
        return NULL;
    }
    char *text = bytes >= 1 && bytes <= TEXT_MAX ? mem_alloc(bytes, 1, "a text of a checkpoint") : NULL;
    bool good = text && container_get(c, section, text, bytes, e);
    if (good && memchr(text, '\0', bytes) == text + bytes - 1) return text;
    err_set(e, "the checkpoint %s is damaged: its section %s is no text", c->path, section);
    mem_free(text);
    return NULL;
}

char *checkpoint_options(const struct container *c, struct err *e) {
    struct err why = {0};
    char *text = checkpoint_text(c, "options", e);
    if (!text || options_stored(text, &why)) return text;
    err_set(e, "cannot use the options of the checkpoint %s: %.400s", c->path, why.text);
    mem_free(text);
    return NULL;
}
