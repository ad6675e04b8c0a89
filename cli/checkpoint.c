/* checkpoint.c: see checkpoint.h. */
#include "cli/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/container.h"
#include "cli/shell_quote.h"

/* Who wrote a file and when: files of different runs or steps are never mixed. */
struct position {
    uint64_t run_id, step;
    uint32_t ranks, rank;
    uint64_t parameters, optimiser_states, net_states, carried;
    uint32_t data_checksum, averaged; /* averaged: all ranks hold the same parameters at this step */
    struct scores start;
};

enum { KEPT = 2, PATH_MAX_ = 1200 };

static const char prefix[] = "checkpoint-";

static struct position position_of(const struct run *r) {
    return (struct position){.run_id = r->id,
                             .step = r->step,
                             .ranks = (uint32_t)r->comm->size,
                             .rank = (uint32_t)r->comm->rank,
                             .parameters = r->n,
                             .optimiser_states = r->optimiser.n_state,
                             .net_states = r->net->arena.n_state,
                             .carried = r->net->arena.n_carry,
                             .data_checksum = r->data_checksum,
                             .averaged = r->averaged_at == r->step,
                             .start = r->log.start};
}

/* -- directories ----------------------------------------------------------------------------------------------- */

static void remove_directory(const char *path) {
    DIR *d = opendir(path);
    if (!d) return;
    for (struct dirent *entry; (entry = readdir(d));) {
        char file[PATH_MAX_ + 300];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        unlink(file);
    }
    closedir(d);
    rmdir(path);
}

static void sync_directory(const char *path) {
    int file = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0) return;
    fsync(file);
    close(file);
}

/* The step in a name "checkpoint-<step>", or -1. */
static long long step_of(const char *name) {
    char *end;
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) return -1;
    long long step = strtoll(name + sizeof prefix - 1, &end, 10);
    return *end || end == name + sizeof prefix - 1 ? -1 : step;
}

/* The newest checkpoint in dir that is older than `before`, or -1. */
static long long newest(const char *dir, long long before) {
    DIR *d = opendir(dir);
    if (!d) return -1;
    long long best = -1;
    for (struct dirent *entry; (entry = readdir(d));) {
        long long step = step_of(entry->d_name);
        if (step > best && step < before) best = step;
    }
    closedir(d);
    return best;
}

/* Older checkpoints go; renamed first, so that a half-removed one is never mistaken for a checkpoint. */
static void prune(const char *dir) {
    long long keep = INT64_MAX;
    for (int i = 0; i < KEPT && keep >= 0; i++) keep = newest(dir, keep);
    for (long long step; keep >= 0 && (step = newest(dir, keep)) >= 0;) {
        char path[PATH_MAX_], gone[PATH_MAX_ + 8];
        snprintf(path, sizeof path, "%s/%s%08lld", dir, prefix, step);
        snprintf(gone, sizeof gone, "%s.old", path);
        if (rename(path, gone) != 0) return;
        remove_directory(gone);
    }
}

/* What a killed process may have left in the middle of a write. */
static void remove_leftovers(const char *dir) {
    DIR *d = opendir(dir);
    if (!d) return;
    for (struct dirent *entry; (entry = readdir(d));) {
        size_t length = strlen(entry->d_name);
        bool ours = strncmp(entry->d_name, prefix, sizeof prefix - 1) == 0 && length > 4;
        if (!ours ||
            (strcmp(entry->d_name + length - 4, ".tmp") != 0 && strcmp(entry->d_name + length - 4, ".old") != 0))
            continue;
        char path[PATH_MAX_];
        snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        remove_directory(path);
    }
    closedir(d);
}

/* -- writing --------------------------------------------------------------------------------------------------- */

/* The state of the exchange and its selectors, end to end. */
static size_t exchange_state_bytes(struct exchange *x) {
    size_t total = 0, bytes;
    void *memory;
    for (size_t i = 0; exchange_saved(x, i, &memory, &bytes); i++) total += bytes;
    return total;
}

static void move_exchange_state(struct exchange *x, unsigned char *state, bool load) {
    size_t bytes;
    void *memory;
    for (size_t i = 0; exchange_saved(x, i, &memory, &bytes); state += bytes, i++)
        if (bytes > 0) memcpy(load ? memory : state, load ? state : memory, bytes);
}

enum { OWN_MAX = 8 };

/* What each rank has of its own: the state of its net and its exchange, those of the streams it reads, its residual and
 * the velocity before the exchange; where the replicas drift apart also its parameters and optimiser. All in fresh host
 * memory, as sections. */
struct own {
    struct section section[OWN_MAX];
    void *memory[OWN_MAX];
    const struct device_ops *device[OWN_MAX]; /* of a section that is an array of a device, else NULL */
    float *array[OWN_MAX];
    size_t count;
};

static void own_add(struct own *own, const char *name, size_t bytes) {
    void *memory = mem_alloc(bytes, 1, "a copy for the checkpoint");
    own->section[own->count] = (struct section){name, memory, bytes};
    own->memory[own->count++] = memory;
}

static void own_add_array(struct own *own, const char *name, const struct device_ops *device, float *array, size_t n) {
    own->device[own->count] = device;
    own->array[own->count] = array;
    own_add(own, name, n * sizeof *array);
}

/* Room for all that this run has. */
static void own_open(struct run *r, struct own *own) {
    struct arena *a = &r->net->arena;
    struct optimiser *o = &r->optimiser;
    *own = (struct own){0};
    own_add(own, "position", sizeof(struct position));
    own_add_array(own, "net state", a->device, a->state, a->n_state);
    if (a->n_carry > 0) own_add_array(own, "streams", a->device, a->carry, a->n_carry);
    own_add(own, "exchange", exchange_state_bytes(&r->exchange));
    if (r->options.momentum_correction) own_add_array(own, "velocity", a->device, r->correction.velocity.acc, r->n);
    if (r->sparse) own_add(own, "residual", r->n * sizeof(float));
    if (r->drifts) own_add_array(own, "own parameters", a->device, a->param, r->n);
    if (r->drifts) own_add_array(own, "own optimiser", o->device, o->state, o->n_state);
}

static void own_close(struct own *own) {
    for (size_t i = 0; i < own->count; i++) mem_free(own->memory[i]);
}

static void *own_find(const struct own *own, const char *name) {
    for (size_t i = 0; i < own->count; i++)
        if (strcmp(own->section[i].name, name) == 0) return own->memory[i];
    return NULL;
}

/* From the run to the sections, or (load) back; all but the position. */
static void own_move(struct run *r, struct own *own, bool load) {
    void *residual = own_find(own, "residual");
    for (size_t i = 0; i < own->count; i++) {
        size_t bytes = own->section[i].bytes;
        if (own->device[i] && load) own->device[i]->to_device(own->array[i], own->memory[i], bytes);
        if (own->device[i] && !load) own->device[i]->to_host(own->memory[i], own->array[i], bytes);
    }
    move_exchange_state(&r->exchange, own_find(own, "exchange"), load);
    if (residual && load) r->store.ops->write(&r->store, 0, r->n, residual);
    if (residual && !load) r->store.ops->read(&r->store, 0, r->n, residual);
}

static bool write_rank(struct run *r, const char *dir, struct err *e) {
    char path[PATH_MAX_ + 32];
    struct position position = position_of(r);
    struct own own;
    snprintf(path, sizeof path, "%s/rank%04d.ckpt", dir, r->comm->rank);
    own_open(r, &own);
    memcpy(own_find(&own, "position"), &position, sizeof position);
    own_move(r, &own, false);
    bool good = container_write(path, own.section, own.count, e);
    own_close(&own);
    return good;
}

static bool write_model(const struct run *r, const char *dir, struct err *e) {
    char path[PATH_MAX_ + 32];
    snprintf(path, sizeof path, "%s/model.ckpt", dir);
    struct position position = position_of(r);
    const struct arena *a = &r->net->arena;
    float *param = device_copy_to_host(a->device, a->param, a->n, "a copy for the checkpoint");
    float *moments =
        device_copy_to_host(r->optimiser.device, r->optimiser.state, r->optimiser.n_state, "a copy for the checkpoint");
    char *options = options_text(&r->options, RULE_RUN);
    struct section sections[] = {{"position", &position, sizeof position},
                                 {"options", options, strlen(options) + 1},
                                 {"parameters", param, a->n * sizeof *param},
                                 {"optimiser", moments, r->optimiser.n_state * sizeof *moments}};
    bool good = container_write(path, sections, sizeof sections / sizeof *sections, e);
    mem_free(param);
    mem_free(moments);
    mem_free(options);
    return good;
}

bool checkpoint_write(struct run *r, struct err *e) {
    const char *out = r->options.out;
    char path[PATH_MAX_], temporary[PATH_MAX_ + 8];
    bool first = r->comm->rank == 0;
    snprintf(path, sizeof path, "%s/%s%08zu", out, prefix, r->step);
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    double begin = clock_now();
    if (first) {
        remove_leftovers(out);
        if (mkdir(temporary, 0777) != 0) err_set(e, "cannot make the directory %s: %s", temporary, strerror(errno));
    }
    if (comm_agree(r->comm, e)) return false;
    if (first) write_model(r, temporary, e);
    write_rank(r, temporary, e);
    bool failed = comm_agree(r->comm, e);
    if (first && failed) remove_directory(temporary);
    if (failed) return false;
    if (first) {
        sync_directory(temporary);
        if (rename(temporary, path) != 0) err_set(e, "cannot rename %s: %s", temporary, strerror(errno));
        sync_directory(out);
        if (!e->text[0]) prune(out);
    }
    if (comm_agree(r->comm, e)) return false;
    r->checkpoint_last = r->step;
    log_checkpoint(r, path, clock_now() - begin);
    return log_flush(r, e);
}

/* -- reading --------------------------------------------------------------------------------------------------- */

static bool is_file(const char *dir, const char *name) {
    char path[PATH_MAX_];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* Rank 0: which directory holds the checkpoint, which the run. */
static bool locate(const char *dir, struct checkpoint *found, struct err *e) {
    struct stat info;
    if (strlen(dir) > 900) return err_set(e, "--resume: the name of the directory is too long");
    if (stat(dir, &info) != 0) return err_set(e, "cannot resume from %s: %s", dir, strerror(errno));
    if (is_file(dir, "model.ckpt")) {
        snprintf(found->path, sizeof found->path, "%s", dir);
        snprintf(found->run_dir, sizeof found->run_dir, "%s/..", dir);
        char *resolved = realpath(found->run_dir, NULL);
        if (resolved && strlen(resolved) < sizeof found->run_dir) strcpy(found->run_dir, resolved);
        free(resolved);
        return true;
    }
    long long step = newest(dir, INT64_MAX);
    if (step < 0)
        return err_set(e,
                       "cannot resume from %s: there is no checkpoint in it; start the run again without "
                       "--resume, with another --out",
                       dir);
    snprintf(found->path, sizeof found->path, "%s/%s%08lld", dir, prefix, step);
    snprintf(found->run_dir, sizeof found->run_dir, "%s", dir);
    return true;
}

/* A damaged checkpoint: say which older one there is. */
static void suggest_older(const struct checkpoint *found, struct err *e) {
    const char *name = strrchr(found->path, '/');
    long long step = name ? step_of(name + 1) : -1, older = step > 0 ? newest(found->run_dir, step) : -1;
    size_t used = strlen(e->text);
    if (older < 0) return;
    char *path = mem_printf("%s/%s%08lld", found->run_dir, prefix, older), *quoted = shell_quote(path);
    snprintf(e->text + used, sizeof e->text - used, "; the one before it: --resume %s", quoted);
    mem_free(path);
    mem_free(quoted);
}

static bool read_model(const struct checkpoint *found, struct container *c, struct err *e) {
    char path[PATH_MAX_];
    snprintf(path, sizeof path, "%s/model.ckpt", found->path);
    if (container_read(path, c, e)) return true;
    suggest_older(found, e);
    return false;
}

bool checkpoint_find(struct comm *c, const char *dir, struct checkpoint *found, struct err *e) {
    struct container file;
    uint64_t bytes = 0;
    memset(found, 0, sizeof *found);
    if (c->rank == 0 && locate(dir, found, e) && read_model(found, &file, e)) {
        size_t size;
        const char *text = container_find(&file, "options", &size);
        if (text && size && text[size - 1] == '\0') {
            found->options = mem_printf("%s", text);
            bytes = size;
        } else {
            err_set(e, "the checkpoint %s has no options", file.path);
        }
        container_close(&file);
    }
    if (comm_agree(c, e)) return false;
    comm_bcast(c, 0, &bytes, sizeof bytes);
    comm_bcast(c, 0, found->path, sizeof found->path);
    comm_bcast(c, 0, found->run_dir, sizeof found->run_dir);
    if (c->rank != 0) found->options = mem_alloc(bytes, 1, "the options of the checkpoint");
    comm_bcast(c, 0, found->options, bytes);
    return true;
}

void checkpoint_close(struct checkpoint *found) {
    mem_free(found->options);
    found->options = NULL;
}

static bool fits(const struct run *r, const struct position *p, const struct container *c, struct err *e) {
    if (p->ranks != (uint32_t)r->comm->size)
        return err_set(e,
                       "cannot resume: the checkpoint %s is of %u rank%s, this run has %d; start it with mpirun -np %u",
                       c->path, p->ranks, p->ranks > 1 ? "s" : "", r->comm->size, p->ranks);
    if (p->carried != r->net->arena.n_carry)
        return err_set(e, "cannot resume: the checkpoint %s holds states of other streams than this run reads",
                       c->path);
    if (p->parameters != r->n || p->optimiser_states != r->optimiser.n_state || p->net_states != r->net->arena.n_state)
        return err_set(e, "cannot resume: the checkpoint %s has %llu parameters, this model %zu", c->path,
                       (unsigned long long)p->parameters, r->n);
    if (p->data_checksum != r->data_checksum)
        return err_set(e, "cannot resume: the dataset differs from the one of the checkpoint (checksum %08x, now %08x)",
                       p->data_checksum, r->data_checksum);
    return true;
}

/* Rank 0: parameters, optimiser, position; they reach the others by broadcast, so all start from the same bits. */
static bool load_model(struct run *r, const struct checkpoint *from, float *param, float *moments, struct position *p,
                       struct err *e) {
    struct container c;
    if (!read_model(from, &c, e)) return false;
    bool good = container_get(&c, "position", p, sizeof *p, e) && fits(r, p, &c, e) &&
                container_get(&c, "parameters", param, r->n * sizeof *param, e) &&
                container_get(&c, "optimiser", moments, r->optimiser.n_state * sizeof *moments, e);
    container_close(&c);
    return good;
}

static bool load_rank(struct run *r, const struct checkpoint *from, const struct position *model, struct err *e) {
    char path[PATH_MAX_];
    struct container c;
    struct own own;
    snprintf(path, sizeof path, "%s/rank%04d.ckpt", from->path, r->comm->rank);
    if (!container_read(path, &c, e)) {
        suggest_older(from, e);
        return false;
    }
    own_open(r, &own);
    bool good = true;
    for (size_t i = 0; i < own.count && good; i++)
        good = container_get(&c, own.section[i].name, own.memory[i], own.section[i].bytes, e);
    const struct position *p = own_find(&own, "position");
    if (good && (p->run_id != model->run_id || p->step != model->step || p->rank != (uint32_t)r->comm->rank))
        good = err_set(e, "cannot resume: %s belongs to another run or step than model.ckpt beside it", path);
    if (good) own_move(r, &own, true);
    own_close(&own);
    container_close(&c);
    return good;
}

bool checkpoint_load(struct run *r, const struct checkpoint *from, struct err *e) {
    struct position p = {0};
    const struct arena *a = &r->net->arena;
    float *param = mem_alloc(r->n, sizeof *param, "the parameters");
    float *moments = mem_alloc(r->optimiser.n_state, sizeof *moments, "the optimiser's state");
    if (r->comm->rank == 0) load_model(r, from, param, moments, &p, e);
    bool failed = comm_agree(r->comm, e);
    if (!failed) {
        comm_bcast(r->comm, 0, &p, sizeof p);
        comm_bcast(r->comm, 0, param, r->n * sizeof *param);
        comm_bcast(r->comm, 0, moments, r->optimiser.n_state * sizeof *moments);
        a->device->to_device(a->param, param, r->n * sizeof *param);
        r->optimiser.device->to_device(r->optimiser.state, moments, r->optimiser.n_state * sizeof *moments);
        load_rank(r, from, &p, e);
        failed = comm_agree(r->comm, e);
    }
    mem_free(param);
    mem_free(moments);
    r->id = p.run_id;
    r->step = r->first_step = r->checkpoint_last = (size_t)p.step;
    r->averaged_at = p.averaged ? r->step : SIZE_MAX;
    r->log.start = p.start;
    optimiser_set_steps(&r->optimiser, p.step);
    return !failed;
}
