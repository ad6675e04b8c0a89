/* checkpoint_model.c: see checkpoint_model.h. Of the files only the sections that are wanted are read: a residual,
 * which each rank has, is as large as the model. */
#include "cli/checkpoint/checkpoint_model.h"

#include <string.h>

#include "base/mem.h"
#include "cli/checkpoint/checkpoint_check.h"

/* -- one file -------------------------------------------------------------------------------------------------- */

/* Every version has written options; the layout came later. */
static char *layout_of(const struct container *c, struct err *e) {
    size_t bytes;
    if (container_has(c, "layout", &bytes)) return checkpoint_text(c, "layout", e);
    err_set(e,
            "the checkpoint %s has no section layout: it was written by an older version; resume its run with this one "
            "for a step",
            c->path);
    return NULL;
}

/* Before memory is asked for: the sections are as long as the layout says. No model has more statistics than
 * parameters. */
static bool sizes_fit(const struct checkpoint_model *m, const struct container *c, struct err *e) {
    const struct model_layout *l = &m->layout;
    size_t bytes = 0;
    if (container_has(c, "parameters", &bytes) && bytes == l->n * sizeof(float) && m->position.parameters == l->n &&
        m->position.net_states == l->n_state && l->n_state <= l->n)
        return true;
    return err_set(e, "the checkpoint %s is damaged: its list of slices is not of its parameters", c->path);
}

/* Files of texts had none at first, those of images never have. */
static bool read_vocabulary(struct checkpoint_model *m, const struct container *c, struct err *e) {
    size_t bytes;
    m->numbers_words = container_has(c, "vocabulary", &bytes);
    return !m->numbers_words || checkpoint_get(&m->at, c, "vocabulary", &m->vocabulary, sizeof m->vocabulary, e);
}

static bool read_model(struct checkpoint_model *m, struct err *e) {
    struct container c;
    if (!checkpoint_open(&m->at, "model.ckpt", &c, e)) return false;
    bool good = checkpoint_get(&m->at, &c, "position", &m->position, sizeof m->position, e) &&
                checkpoint_check_position(&m->position, c.path, m->at.path, e) &&
                (m->at.options = checkpoint_options(&c, e)) && (m->layout_text = layout_of(&c, e)) &&
                model_layout_open(&m->layout, m->layout_text, c.path, e) && sizes_fit(m, &c, e) &&
                read_vocabulary(m, &c, e);
    if (good) {
        m->param = mem_alloc(m->layout.n, sizeof *m->param, "the parameters of a checkpoint");
        m->state = mem_alloc(m->layout.n_state, sizeof *m->state, "the running statistics of a checkpoint");
        good = checkpoint_get(&m->at, &c, "parameters", m->param, m->layout.n * sizeof *m->param, e) &&
               checkpoint_check_finite(m->param, m->layout.n, "parameters", c.path, e);
    }
    container_close(&c);
    return good;
}

/* Where replicas drift, each rank keeps its parameters; after an average they are those of model.ckpt. */
static bool has_own(const struct checkpoint_model *m, const struct container *c) {
    size_t bytes;
    return !m->position.averaged && container_has(c, "own parameters", &bytes);
}

static bool get_state(struct checkpoint_model *m, const struct container *c, struct err *e) {
    const struct model_layout *l = &m->layout;
    return checkpoint_get(&m->at, c, "net state", m->state, l->n_state * sizeof *m->state, e) &&
           checkpoint_check_statistics(m->state, l->n_state, l->state_slice, l->state_slices, c->path, e);
}

static bool get_own_parameters(struct checkpoint_model *m, const struct container *c, struct err *e) {
    static const char section[] = "own parameters";
    return checkpoint_get(&m->at, c, section, m->param, m->layout.n * sizeof *m->param, e) &&
           checkpoint_check_finite(m->param, m->layout.n, section, c->path, e);
}

bool checkpoint_model_rank(struct checkpoint_model *m, int rank, struct err *e) {
    struct container c;
    if (!checkpoint_open_rank(&m->at, &m->position, rank, &c, e)) return false;
    bool good = get_state(m, &c, e) && (!has_own(m, &c) || get_own_parameters(m, &c, e));
    m->drifted = false;
    container_close(&c);
    return good;
}

/* -- all of them ----------------------------------------------------------------------------------------------- */

/* Sums over the ranks, in double: the mean of equal numbers is then that number. */
struct sums {
    double *param, *state; /* param NULL: nobody has any of its own */
};

static void add_up(double *sum, const float *value, size_t n) {
    for (size_t i = 0; i < n; i++) sum[i] += (double)value[i];
}

static void divide(float *mean, const double *sum, size_t n, uint32_t by) {
    for (size_t i = 0; i < n; i++) mean[i] = (float)(sum[i] / by);
}

static bool add_rank(struct checkpoint_model *m, int rank, struct sums *s, struct err *e) {
    const struct model_layout *l = &m->layout;
    struct container c;
    if (!checkpoint_open_rank(&m->at, &m->position, rank, &c, e)) return false;
    bool good = get_state(m, &c, e);
    if (good && rank == 0 && has_own(m, &c)) s->param = mem_zalloc(l->n, sizeof *s->param, "a mean of parameters");
    if (good && s->param) good = get_own_parameters(m, &c, e);
    container_close(&c);
    if (!good) return false;
    add_up(s->state, m->state, l->n_state);
    if (s->param) add_up(s->param, m->param, l->n);
    return true;
}

static bool average_ranks(struct checkpoint_model *m, struct err *e) {
    const uint32_t ranks = m->position.ranks;
    struct sums s = {.state = mem_zalloc(m->layout.n_state, sizeof *s.state, "a mean of running statistics")};
    bool good = true;
    for (uint32_t rank = 0; rank < ranks && good; rank++) good = add_rank(m, (int)rank, &s, e);
    if (good) divide(m->state, s.state, m->layout.n_state, ranks);
    if (good && s.param) divide(m->param, s.param, m->layout.n, ranks);
    m->drifted = s.param != NULL;
    mem_free(s.param);
    mem_free(s.state);
    return good;
}

bool checkpoint_model_open(struct checkpoint_model *m, const struct checkpoint_use *use, const char *dir,
                           struct err *e) {
    *m = (struct checkpoint_model){0};
    if (checkpoint_locate(use, dir, &m->at, e) && read_model(m, e) && average_ranks(m, e)) return true;
    checkpoint_model_close(m);
    return false;
}

void checkpoint_model_close(struct checkpoint_model *m) {
    model_layout_close(&m->layout);
    mem_free(m->at.options);
    mem_free(m->layout_text);
    mem_free(m->param);
    mem_free(m->state);
    *m = (struct checkpoint_model){0};
}

/* -- ranks that use it ----------------------------------------------------------------------------------------- */

/* Fresh memory on all ranks but 0. */
static char *share_text(struct comm *c, char *text) {
    uint64_t bytes = text ? strlen(text) + 1 : 0;
    comm_bcast(c, 0, &bytes, sizeof bytes);
    if (c->rank != 0) text = mem_alloc(bytes, 1, "a text of a checkpoint");
    comm_bcast(c, 0, text, bytes);
    return text;
}

static float *share_array(struct comm *c, float *array, size_t n) {
    if (c->rank != 0) array = mem_alloc(n, sizeof *array, "the model of a checkpoint");
    comm_bcast(c, 0, array, n * sizeof *array);
    return array;
}

bool checkpoint_model_open_all(struct checkpoint_model *m, struct comm *c, const struct checkpoint_use *use,
                               const char *dir, struct err *e) {
    *m = (struct checkpoint_model){0};
    if (c->rank == 0) checkpoint_model_open(m, use, dir, e);
    if (comm_agree(c, e)) return false;
    m->at.use = use;
    comm_bcast(c, 0, m->at.path, sizeof m->at.path);
    comm_bcast(c, 0, m->at.run_dir, sizeof m->at.run_dir);
    comm_bcast(c, 0, &m->position, sizeof m->position);
    comm_bcast(c, 0, &m->drifted, sizeof m->drifted);
    comm_bcast(c, 0, &m->numbers_words, sizeof m->numbers_words);
    comm_bcast(c, 0, &m->vocabulary, sizeof m->vocabulary);
    m->at.options = share_text(c, m->at.options);
    m->layout_text = share_text(c, m->layout_text);
    if (c->rank != 0 && !model_layout_open(&m->layout, m->layout_text, m->at.path, e)) die("%s", e->text);
    m->param = share_array(c, m->param, m->layout.n);
    m->state = share_array(c, m->state, m->layout.n_state);
    return true;
}

/* A file that says nothing of them (no text, or older) fits. */
static bool words_fit(const struct checkpoint_model *m, const struct dataset *d, const char *data, struct err *e) {
    if (!m->numbers_words || vocabulary_crc(&d->vocabulary) == m->vocabulary) return true;
    return err_set(e,
                   "cannot %s %s with --data %s: its words are numbered otherwise than those of the checkpoint; take "
                   "data with the text to train on, or the vocabulary, that it had",
                   m->at.use->verb, m->at.path, data);
}

bool checkpoint_model_put(const struct checkpoint_model *m, struct net *net, const struct dataset *d, const char *data,
                          struct err *e) {
    const struct arena *a = &net->arena;
    char *what = mem_printf("cannot %s %s as %s", m->at.use->verb, m->at.path, net->model->name);
    bool good = model_layout_fits(&m->layout, a, what, e) && words_fit(m, d, data, e);
    mem_free(what);
    if (!good) return false;
    a->device->to_device(a->param, m->param, a->n * sizeof *m->param);
    a->device->to_device(a->state, m->state, a->n_state * sizeof *m->state);
    return true;
}
