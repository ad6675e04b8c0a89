/* run.c: opening and closing a run. Everything that a user can get wrong is found here, before the first step and
 * before anything is written; each stage ends with an agreement of all ranks, so that one line is printed and nobody
 * waits for a rank that has left. */
#include "cli/train/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/files/out_file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/table.h"
#include "cli/checkpoint/checkpoint.h"
#include "cli/checkpoint/checkpoint_model.h"
#include "cli/checkpoint/vocabulary_file.h"
#include "cli/log/side_files.h"
#include "cli/network/auto.h"
#include "cli/observe/observers.h"
#include "cli/observe/watching.h"
#include "cli/options/device_option.h"
#include "cli/train/dry_run.h"
#include "cli/train/outputs.h"
#include "cli/train/report.h"
#include "cli/train/resize.h"
#include "cli/train/rounds.h"
#include "cli/version.h"
#include "data/pairs/masked.h"

bool run_due(const struct run *r, int64_t every) {
    return run_due_after(r->step, every);
}

bool run_due_after(size_t steps, int64_t every) {
    return every > 0 && (int64_t)steps % every == 0;
}

bool run_has_test(const struct run *r) {
    return r->data.task->count(&r->data.set, SPLIT_TEST) > 0;
}

const char *run_sample(const struct run *r) {
    const struct dataset_ops *ops = r->data.set.ops;
    return r->data.task->sample ? r->data.task->sample : ops && ops->unit ? ops->unit : "word";
}

/* The first line in which two lists of options differ. */
static void name_difference(const char *mine, const char *first, int rank, struct err *e) {
    while (*mine && *first) {
        size_t a = strcspn(mine, "\n"), b = strcspn(first, "\n");
        if (a != b || memcmp(mine, first, a) != 0) break;
        mine += a + (mine[a] == '\n');
        first += b + (first[b] == '\n');
    }
    err_set(e,
            "the ranks were started differently: rank 0 has %.*s where rank %d has %.*s; start all of them with the "
            "same program and "
            "options",
            *first ? (int)strcspn(first, "\n") : 7, *first ? first : "nothing", rank,
            *mine ? (int)strcspn(mine, "\n") : 7, *mine ? mine : "nothing");
}

/* Mixed versions, mixed options, a mixed environment: every rank compares itself with rank 0. */
static bool same_everywhere(const struct options *o, struct comm *c, struct err *e) {
    char *kept = options_kept(o), *local = options_text(o, RULE_LOCAL);
    char *mine = mem_printf("version=%s\ncommit=%s\n%s%s", version_number(), version_commit(), kept, local);
    uint64_t bytes = strlen(mine) + 1;
    comm_bcast(c, 0, &bytes, sizeof bytes);
    char *first = mem_zalloc(bytes, 1, "the options of rank 0");
    if (c->rank == 0) memcpy(first, mine, bytes);
    comm_bcast(c, 0, first, bytes);
    if (strcmp(mine, first) != 0) name_difference(mine, first, c->rank, e);
    mem_free(kept);
    mem_free(local);
    mem_free(mine);
    mem_free(first);
    return !comm_agree(c, e);
}

/* What a checkpoint asks for, who wants to do harm may have written: memory that is not there is not touched. */
static bool can_be_had(double bytes, const char *what, const struct checkpoint *from, struct err *e) {
    const double there = (double)mem_available();
    char need[32], free[32];
    if (!from->options || there <= 0 || bytes <= there) return true;
    human_bytes(need, sizeof need, bytes);
    human_bytes(free, sizeof free, there);
    return err_set(e, "the options of the checkpoint %s/model.ckpt ask for %s for %s, and %s can be had", from->path,
                   need, what, free);
}

/* The checksum of what this rank found. That is in memory where the rank that read it found the same place; one that
 * was sent elsewhere, by a variable of its own say, reads what is there for the checksum alone. */
static uint64_t own_checksum(const struct run *r, uint64_t place, uint64_t own_place, struct err *e) {
    struct dataset own = r->data.set;
    if (r->data.memory.filler || place == own_place) return r->data.checksum;
    void *memory = mem_alloc(own.bytes, 1, "the dataset of a rank that found another one than its neighbours");
    if (dataset_load(&own, memory, e)) dataset_attach(&own, memory);
    mem_free(memory);
    return dataset_checksum(&own);
}

static bool same_data(struct run *r, uint64_t place, uint64_t own_place, struct err *e) {
    uint64_t low = own_checksum(r, place, own_place, e);
    if (comm_agree(r->comm, e)) return false;
    uint64_t high = low;
    comm_allreduce_u64(r->comm, &low, 1, COMM_MIN);
    comm_allreduce_u64(r->comm, &high, 1, COMM_MAX);
    if (low != high)
        err_set(e,
                "the ranks hold different data for --data %s: their checksums differ; give all of them the same copy",
                r->options.data);
    return !comm_agree(r->comm, e);
}

/* The dataset once per node: one rank reads it into memory that the node's ranks share. Behind it stands where. */
static bool open_data(struct run *r, const struct checkpoint *from, struct err *e) {
    const char *where;
    const struct dataset_ops *ops = options_dataset(r->options.data, &where);
    dataset_find(ops, where, (uint64_t)r->options.seed, &r->data.set, e);
    if (comm_agree(r->comm, e)) return false;
    if (ops->kind == DATA_PAIRS) r->data.set.length = options_sequence(&r->options);
    uint64_t bytes = r->data.set.bytes, own_place = dataset_place(&r->data.set), place = own_place;
    comm_allreduce_u64(r->comm, &bytes, 1, COMM_MAX);
    can_be_had((double)bytes, "the dataset", from, e);
    if (comm_agree(r->comm, e)) return false;
    comm_shared_open(r->comm, bytes + sizeof place, &r->data.memory);
    r->data.set.bytes = bytes;
    if (r->data.memory.filler) {
        memcpy((char *)r->data.memory.memory + bytes, &place, sizeof place);
        dataset_load(&r->data.set, r->data.memory.memory, e);
    }
    if (comm_agree(r->comm, e)) return false;
    comm_shared_ready(r->comm, &r->data.memory);
    memcpy(&place, (char *)r->data.memory.memory + bytes, sizeof place);
    dataset_attach(&r->data.set, r->data.memory.memory);
    r->data.task = task_of(ops->kind, options_model(&r->options));
    r->data.checksum = dataset_checksum(&r->data.set);
    return same_data(r, place, own_place, e);
}

/* Every rank drops elements of its own. */
static uint64_t dropout_seed(const struct run *r) {
    const uint64_t words[2] = {(uint64_t)r->options.seed, (uint64_t)r->comm->rank};
    return hash64(0, words, sizeof words);
}

/* Asked before there is memory for the net. */
static bool net_fits(const struct run *r, const struct net_size *s, const struct device_ops *device,
                     const struct checkpoint *from, struct err *e) {
    if (from->options && from->use == &checkpoint_resume &&
        !checkpoint_is_of(from, r->resize.batch, r->options.batch, s, e))
        return false;
    const double floats = 2 * (double)s->n + (double)s->n_state + (double)s->n_carry + (double)s->activations;
    return !device_is_host(device) || can_be_had(floats * sizeof(float), "the network", from, e);
}

static bool open_net(struct run *r, const struct device_ops *device, const struct checkpoint *from, struct err *e) {
    const struct options *o = &r->options;
    const struct net_setup setup = {.batch = (int)o->batch,
                                    .channels = r->data.set.channels,
                                    .height = r->data.set.height,
                                    .width = loader_width(&r->data.set, !o->no_augment),
                                    .classes = r->data.set.classes,
                                    .threads = (int)o->threads,
                                    .seed = (uint64_t)o->seed,
                                    .device = device,
                                    .precision = (enum precision)o->precision,
                                    .sequence = options_sequence(o),
                                    .hidden = o->hidden > 0 ? (int)o->hidden : 0,
                                    .layers = o->layers > 0 ? (int)o->layers : 0,
                                    .heads = o->heads > 0 ? (int)o->heads : 0,
                                    .reference = options_reference(o),
                                    .chosen = r->data.task->pairs ? masked_most(options_sequence(o)) : 0,
                                    .dropout = options_model(o)->dropout ? o->dropout : 0,
                                    .dropout_seed = dropout_seed(r),
                                    .accumulate = (int)o->accumulate};
    struct net_size size;
    if (net_measure(options_model(o), &setup, &size, e)) net_fits(r, &size, device, from, e);
    if (comm_agree(r->comm, e)) return false;
    r->model.net = net_open(options_model(o), &setup, e);
    if (comm_agree(r->comm, e)) return false;
    r->model.n = r->model.net->arena.n;
    return true;
}

static void open_optimiser(struct run *r) {
    const struct options *o = &r->options;
    struct optimiser_setup opt = o->method;
    opt.gradient_has_momentum = o->momentum_correction;
    optimiser_open(&r->model.optimiser, optimisers[o->optimiser], &r->model.net->arena, &opt);
}

static bool open_exchange(struct run *r, const struct device_ops *device, struct err *e) {
    const struct options *o = &r->options;
    if (o->ranks_per_node > 0 && r->comm->size % o->ranks_per_node != 0)
        return err_set(e, "--ranks-per-node %lld does not divide the %d rank%s of this job; take a divisor of it",
                       (long long)o->ranks_per_node, r->comm->size, r->comm->size > 1 ? "s" : "");
    if (o->ranks_per_node > 0 && !comm_set_ranks_per_node(r->comm, (int)o->ranks_per_node, e)) return false;
    if (options_auto(o) && !auto_choose(r, device, e)) return false;
    if (!run_open_exchange(r, device, e)) return false;
    observers_open(r);
    return true;
}

/* The initial parameters are a function of the seed, but through libm: rank 0's are everybody's. */
static void share_parameters(struct run *r) {
    const struct arena *a = &r->model.net->arena;
    float *param = device_copy_to_host(a->device, a->param, r->model.n, "the parameters");
    comm_bcast(r->comm, 0, param, r->model.n * sizeof *param);
    a->device->to_device(a->param, param, r->model.n * sizeof *param);
    mem_free(param);
}

/* Parameters and running statistics of another run; share_parameters for a run that begins with them. */
static bool take_parameters(struct run *r, struct err *e) {
    struct checkpoint_model m;
    if (!checkpoint_model_open_all(&m, r->comm, &checkpoint_init, r->options.init_from, e)) return false;
    checkpoint_model_put(&m, r->model.net, &r->data.set, r->options.data, e);
    r->job.origin = (struct origin){.run_id = m.position.run_id, .step = m.position.step};
    memcpy(r->job.origin.path, m.at.path, sizeof r->job.origin.path);
    checkpoint_model_close(&m);
    return !comm_agree(r->comm, e);
}

static void draw_id(struct run *r) {
    double now = clock_now();
    FILE *f = fopen("/dev/urandom", "rb");
    if (!f || fread(&r->job.id, sizeof r->job.id, 1, f) != 1) r->job.id = hash64(0, &now, sizeof now);
    if (f) fclose(f);
    comm_bcast(r->comm, 0, &r->job.id, sizeof r->job.id);
}

static void open_loader(struct run *r) {
    const struct loader_setup setup = {
        .data = &r->data.set,
        .batch = (int)r->options.batch,
        .rank = r->comm->rank,
        .size = r->comm->size,
        .seed = (uint64_t)r->options.seed,
        .first_step = r->step,
        .leg = {r->leg.step, r->leg.position * (r->data.task->speech ? run_samples(r) : 1)},
        .augment = !r->options.no_augment,
        .bytes = net_takes_bytes(r->model.net),
        .sequence = r->model.net->setup.sequence,
        .windows = r->data.task->windows ? TEXT_RANDOM : TEXT_STREAMS,
        .accumulate = (int)r->options.accumulate};
    r->data.loader = loader_open(&setup);
}

/* A resumed run goes on in its own directory unless another one is named. */
static bool take_over(struct run *r, struct checkpoint *from, struct err *e) {
    struct options *o = &r->options;
    if (!o->resume[0]) return run_dir_fits(r, NULL, e);
    if (options_given(o, "init-from"))
        return err_set(e, "--init-from begins a run and --resume goes on with one; give one of them");
    if (!checkpoint_place(r->comm, o->resume, from, e)) return false;
    if (!o->out[0]) {
        const size_t length = strlen(from->run_dir);
        if (length >= sizeof o->out)
            return err_set(e, "the path of the run to resume has %zu characters, more than %zu; give another --out",
                           length, sizeof o->out - 1);
        strcpy(o->out, from->run_dir);
    }
    if (!run_dir_reserve(r, from, e)) return false;
    /* Once more, now that nobody else writes there: its holder may have gone on, and ended, in between. */
    if (!checkpoint_place(r->comm, o->resume, from, e) || !checkpoint_find(r->comm, from, e) ||
        !run_dir_fits(r, from, e))
        return false;
    o->other_ranks = from->ranks != (uint32_t)r->comm->size;
    if (options_resume(o, from->options, e)) resize_options(r, from, e);
    return !comm_agree(r->comm, e);
}

static bool write_vocabulary(struct run *r, struct err *e) {
    if (r->data.task->text && r->options.out[0] && r->comm->rank == 0)
        vocabulary_write(&r->data.set.vocabulary, r->options.out, &r->job.dir.vocabulary, e);
    return !comm_agree(r->comm, e);
}

/* The files besides the log that a run may leave. */
static bool open_extras(struct run *r, struct err *e) {
    if (!observers_open_file(r, e)) return false;
    if (!side_files_open(r, e)) return false;
    if (r->options.trace[0] && !trace_file_open(&r->trace, r->comm, r->options.trace, e)) return false;
    phases_reset(&r->hidden_phases);
    r->phases.trace = trace_file_thread(&r->trace, 0);
    r->hidden_phases.trace = trace_file_thread(&r->trace, 1);
    return true;
}

bool run_write_trace(struct run *r, struct err *e) {
    struct err note = {0};
    r->phases.trace = r->hidden_phases.trace = NULL;
    if (!r->options.trace[0]) return true;
    if (!trace_file_write(&r->trace, &note, e)) return false;
    if (note.text[0]) log_say(r, "%s", note.text);
    return true;
}

/* Rank 0: could what the user names be written? Asked before the data are read; the files are made later. */
static bool check_outputs(const struct options *o, const struct checkpoint *from, struct err *e) {
    return outputs_apart(o, e) && (!o->record[0] || record_check(o->record, e)) &&
           (!o->trace[0] || outputs_wait(o, o->trace) || out_file_check(o->trace, "--trace", e)) &&
           side_files_check(o, from->options ? from->run_id : 0, e);
}

/* What a run leaves. Last the log, of which a resumed run cuts rows, and the checkpoints to which those led: all that
 * can go wrong is tried before. */
static bool open_files(struct run *r, const struct checkpoint *from, struct err *e) {
    const struct checkpoint *resumed = from->options ? from : NULL;
    return run_dir_enter(r, resumed, e) && open_extras(r, e) && write_vocabulary(r, e) && log_prepare(r, e) &&
           run_dir_turn_back(r, resumed, e) && log_open(r, e);
}

/* Options, data and length of the run, which say whether there is anything to do. */
static bool open_plan(struct run *r, struct checkpoint *from, struct err *e) {
    if (!same_everywhere(&r->options, r->comm, e) || !take_over(r, from, e)) return false;
    if (options_resolve(&r->options, e) && r->comm->rank == 0) check_outputs(&r->options, from, e);
    if (comm_agree(r->comm, e)) return false;
    if (r->options.wire_check) comm_set_wire_check(r->comm, true);
    if (!open_data(r, from, e)) return false;
    run_plan(r, e);
    if (comm_agree(r->comm, e)) return false;
    r->job.complete = from->options && run_dir_is_done(r, from);
    return true;
}

/* What a checkpoint holds is known when it is in its place: where no run leaves that, an older one takes it; but not
 * where the plan of another batch begins at its step (resize.h). */
static bool load(struct run *r, struct checkpoint *from, struct err *e) {
    struct err why = {0};
    bool damaged;
    while (!checkpoint_load(r, from, &damaged, &why)) {
        if (!damaged) *e = why;
        if (!damaged || !checkpoint_find_older(r->comm, from, &why, e)) return false;
        if (r->resize.other_batch)
            return err_set(e, "%.500s; for another --batch the one before it is to be named: --resume %s",
                           from->first.text, from->path);
        why = (struct err){0};
    }
    return true;
}

static bool open_all(struct run *r, struct checkpoint *from, struct err *e) {
    const struct device_ops *device;
    if (!open_plan(r, from, e)) return false;
    if (r->job.complete) return true;
    if (!device_option_job("", options_choice(&r->options, "device"), DEVICE_TRAINS, r->comm, &device, e)) return false;
    if (!open_net(r, device, from, e)) return false;
    open_optimiser(r);
    open_exchange(r, device, e);
    if (comm_agree(r->comm, e)) return false;
    rounds_open(r);
    draw_id(r);
    share_parameters(r);
    r->saved.last = SIZE_MAX;
    if (from->options && !load(r, from, e)) return false;
    target_recall(r);
    run_dir_close_source(r);
    if (!from->options && r->options.init_from[0] && !take_parameters(r, e)) return false;
    if (!from->options) rounds_begin(r);
    net_set_step(r->model.net, r->step * (size_t)r->options.accumulate);
    if (r->step > r->steps)
        err_set(e, "the run has done %zu steps already, more than the %zu asked for; give a larger --epochs or --steps",
                r->step, r->steps);
    else if (r->step > r->stop)
        err_set(e, "the run has done %zu steps already, more than the %zu of --stop-at %g; give a later one, or none",
                r->step, r->stop, r->options.stop_at);
    if (comm_agree(r->comm, e)) return false;
    if (r->options.dry_run) {
        open_loader(r);
        return dry_run_check(r, e);
    }
    if (!open_files(r, from, e)) return false;
    if (from->options) checkpoint_tidy_start(r);
    open_loader(r);
    watching_begin(r);
    return true;
}

bool run_open_evaluation(struct run *r, const struct checkpoint *of, struct err *e) {
    const struct device_ops *device;
    r->log.terminal = -1; /* nothing is shown while it goes on */
    if (!open_data(r, of, e)) return false;
    r->data.task->can_evaluate(r, e);
    return !comm_agree(r->comm, e) &&
           device_option_job("evaluate: ", options_choice(&r->options, "device"), DEVICE_TRAINS, r->comm, &device, e) &&
           open_net(r, device, of, e);
}

bool run_open(struct run *r, const struct options *o, const char *program, struct comm *c, struct err *e) {
    struct checkpoint from = {.options = NULL};
    memset(r, 0, sizeof *r);
    r->options = *o;
    r->job.program = program;
    r->comm = c;
    r->leg.first_ranks = (uint32_t)c->size;
    r->last = r->log.start = scores_none;
    r->last_at = SIZE_MAX;
    r->watch.mllog.opened_ms = mllog_now();
    c->traffic = TRAFFIC_CONTROL;
    phases_reset(&r->phases);
    struct err note = {0};
    bool good = open_all(r, &from, e);
    checkpoint_note(&from, &note);
    checkpoint_close(&from);
    if (good && note.text[0] && c->rank == 0) fprintf(stderr, "sparsetrain: %s\n", note.text);
    if (good && (r->job.complete || r->options.dry_run)) run_dir_leave(r, true);
    if (!good) { /* no half-written file may stay, nor a thread that reads the dataset, nor that, which MPI shares */
        loader_close(r->data.loader);
        r->data.loader = NULL;
        observers_close(r);
        trace_file_close(&r->trace);
        side_files_close(r, true);
        log_abandon(r);
        run_dir_leave(r, true);
        comm_shared_close(c, &r->data.memory);
    }
    return good;
}

void run_close(struct run *r) {
    heard_close(&r->heard);
    loader_close(r->data.loader);
    observers_close(r);
    trace_file_close(&r->trace);
    side_files_close(r, false);
    log_close(r);
    run_dir_leave(r, false);
    rounds_close(r);
    run_close_exchange(r);
    auto_close(r->job.choice);
    optimiser_close(&r->model.optimiser);
    net_close(r->model.net);
    comm_shared_close(r->comm, &r->data.memory);
}

bool run_evaluates(const struct run *r) {
    return !isinf(r->options.eval_every);
}

bool run_is_prefix(const struct run *r) {
    return r->stop < r->steps && !r->target.reached;
}
