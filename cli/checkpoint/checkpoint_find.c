/* checkpoint_find.c: which checkpoint a run goes on from: see checkpoint.h. A file may have been damaged since it was
 * written (a disk, a copy that was cut short, a hand), and which one is only known when all of them have been read. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/checkpoint/checkpoint.h"
#include "cli/checkpoint/checkpoint_check.h"

bool checkpoint_place(struct comm *c, const char *dir, struct checkpoint *found, struct err *e) {
    memset(found, 0, sizeof *found);
    if (c->rank == 0) checkpoint_locate(&checkpoint_resume, dir, found, e);
    if (comm_agree(c, e)) return false;
    found->use = &checkpoint_resume;
    comm_bcast(c, 0, found->path, sizeof found->path);
    comm_bcast(c, 0, found->run_dir, sizeof found->run_dir);
    comm_bcast(c, 0, &found->named, sizeof found->named);
    return true;
}

void checkpoint_close(struct checkpoint *found) {
    mem_free(found->options);
    found->options = NULL;
}

static bool read_file(const struct checkpoint *from, const char *name, struct container *file, struct err *e) {
    char path[CHECKPOINT_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", from->path, name);
    return container_read(path, file, e);
}

/* By its position it has so many, and memory will be asked for by that. */
static bool has_floats(const struct container *file, const char *section, uint64_t n, struct err *e) {
    size_t bytes = 0;
    if (!container_has(file, section, &bytes) && n > 0)
        return err_set(e, "the checkpoint %s has no section %s", file->path, section);
    return bytes == n * sizeof(float) ||
           err_set(e, "the checkpoint %s is damaged: its section %s has not the %llu numbers of its position",
                   file->path, section, (unsigned long long)n);
}

/* The leg of a run; formats before 7 had but one. */
static bool read_leg(struct checkpoint *found, const struct container *file, const struct position *p, struct err *e) {
    size_t bytes;
    found->leg = (struct leg){.first_ranks = p->ranks};
    if (!container_has(file, "leg", &bytes)) return true;
    return container_get(file, "leg", &found->leg, sizeof found->leg, e) &&
           checkpoint_check_leg(&found->leg, p, file->path, e);
}

/* Rank 0: model.ckpt, of which options, position and leg are kept. */
static bool read_model(struct checkpoint *found, struct position *p, struct err *e) {
    struct container file;
    if (!read_file(found, "model.ckpt", &file, e)) return false;
    found->options = checkpoint_options(&file, e);
    bool good = found->options && container_get(&file, "position", p, sizeof *p, e) &&
                checkpoint_check_position(p, file.path, found->path, e) && read_leg(found, &file, p, e) &&
                has_floats(&file, "parameters", p->parameters, e) &&
                has_floats(&file, "optimiser", p->optimiser_states, e);
    container_close(&file);
    return good;
}

/* The file of a rank of the run, and does it belong to that model.ckpt? */
static bool read_rank(const struct checkpoint *found, const struct position *model, int rank, struct err *e) {
    struct container file;
    struct position p;
    char name[32];
    snprintf(name, sizeof name, "rank%04d.ckpt", rank);
    if (!read_file(found, name, &file, e)) return false;
    bool good = container_get(&file, "position", &p, sizeof p, e) &&
                checkpoint_check_beside(&p, model, rank, file.path, found->use->verb, e) &&
                has_floats(&file, "net state", p.net_states, e) && has_floats(&file, "streams", p.carried, e);
    container_close(&file);
    return good;
}

/* Is it whole? Its ranks may be more or fewer than there are now, who share out their files. The same answer on all
 * ranks. */
static bool verify(struct comm *c, struct checkpoint *found, struct err *e) {
    struct position p = {0};
    if (c->rank == 0) read_model(found, &p, e);
    if (comm_agree(c, e)) return false;
    comm_bcast(c, 0, &p, sizeof p);
    comm_bcast(c, 0, &found->leg, sizeof found->leg);
    found->run_id = p.run_id;
    found->step = p.step;
    found->ranks = p.ranks;
    found->parameters = p.parameters;
    found->net_states = p.net_states;
    found->carried = p.carried;
    bool good = true;
    for (int64_t rank = c->rank; good && rank < p.ranks; rank += c->size) good = read_rank(found, &p, (int)rank, e);
    return !comm_agree(c, e);
}

/* The one before it in the directory; false: there is none. */
static bool step_back(struct comm *c, struct checkpoint *found) {
    long long step = c->rank == 0 ? checkpoint_newest(found->run_dir, checkpoint_step_in(found->path)) : -1;
    comm_bcast(c, 0, &step, sizeof step);
    if (step < 0) return false;
    char path[CHECKPOINT_PATH_MAX];
    checkpoint_name(path, found->run_dir, step);
    snprintf(found->path, sizeof found->path, "%.*s", (int)sizeof found->path - 1, path);
    return true;
}

static void share_options(struct comm *c, struct checkpoint *found) {
    uint64_t bytes = found->options ? strlen(found->options) + 1 : 0;
    comm_bcast(c, 0, &bytes, sizeof bytes);
    if (c->rank != 0) found->options = mem_alloc(bytes, 1, "the options of the checkpoint");
    comm_bcast(c, 0, found->options, bytes);
}

/* Why there is none: the newest one is damaged, and so are all others; or the one that was named. */
static bool refuse(struct comm *c, const struct checkpoint *found, struct err *e) {
    *e = found->first;
    const size_t used = strlen(e->text);
    if (c->rank == 0 && found->named) checkpoint_suggest(found, e);
    if (found->passed > 1)
        snprintf(e->text + used, sizeof e->text - used, "; and so, in one way or another, are all %zu before it",
                 found->passed - 1);
    comm_agree(c, e);
    return false;
}

/* It is damaged: the one before it instead, as far as there is one. What only cannot be read here and now is no reason
 * to go on from an older one, which would take its place. */
static bool pass(struct comm *c, struct checkpoint *found, const struct err *why, struct err *e) {
    checkpoint_close(found);
    if (why->intact) return *e = *why, false;
    if (found->passed++ == 0) found->first = *why;
    return (!found->named && step_back(c, found)) || refuse(c, found, e);
}

bool checkpoint_find(struct comm *c, struct checkpoint *found, struct err *e) {
    struct err why = {0};
    while (!verify(c, found, &why)) {
        if (!pass(c, found, &why, e)) return false;
        why = (struct err){0};
    }
    share_options(c, found);
    return true;
}

/* What the run has opened by then goes by its options, and its plan by its ranks and its leg. */
bool checkpoint_find_older(struct comm *c, struct checkpoint *found, const struct err *why, struct err *e) {
    char *options = found->options;
    const struct leg leg = found->leg;
    const uint32_t ranks = found->ranks;
    found->options = NULL;
    bool good = pass(c, found, why, e) && checkpoint_find(c, found, e);
    const bool same_ranks = good && ranks == found->ranks && leg.step == found->leg.step &&
                            leg.position == found->leg.position && leg.resized == found->leg.resized;
    if (good && (!same_ranks || strcmp(options, found->options) != 0))
        good = err_set(e, "%.500s; the one before it has other %s: --resume %s", found->first.text,
                       same_ranks ? "options" : "ranks", found->path);
    mem_free(options);
    return good;
}

void checkpoint_note(const struct checkpoint *found, struct err *note) {
    const size_t more = found->passed > 0 ? found->passed - 1 : 0;
    if (found->passed == 1) err_set(note, "%s; going on from %s", found->first.text, found->path);
    if (found->passed > 1)
        err_set(note, "%s, and %zu before it %s damaged, too; going on from %s", found->first.text, more,
                more == 1 ? "is" : "are", found->path);
}
