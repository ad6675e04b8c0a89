/* log.c: see log.h; the file's schema is docs/run-jsonl.md. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/mem.h"
#include "cli/log/log_columns.h"
#include "cli/log/side_files.h"
#include "cli/network/auto.h"
#include "cli/signals.h"
#include "cli/train/resize.h"
#include "cli/train/run.h"
#include "cli/version.h"

static const double meeting_seconds = 0.25;

/* -- the file -------------------------------------------------------------------------------------------------- */

/* Rows are kept here until they are in the file, because stdio drops what it cannot write. */
static void write_json(struct run_log *l) {
    const char *row = json_text(&l->json);
    const size_t length = strlen(row);
    if (!l->file) return;
    if (l->pending_bytes + length + 1 > l->pending_room) {
        l->pending_room = 2 * (l->pending_bytes + length + 1);
        l->pending = mem_grow(l->pending, l->pending_bytes, l->pending_room, 1, "rows of the log");
    }
    memcpy(l->pending + l->pending_bytes, row, length);
    l->pending[l->pending_bytes + length] = '\n';
    l->pending_bytes += length + 1;
}

/* Appends all pending rows to the file's whole rows, or none of them: after a failed write the file is cut back if
 * possible. */
static bool append_pending(struct run_log *l) {
    const int file = fileno(l->file);
    if (l->torn && ftruncate(file, (off_t)l->bytes) != 0) return false;
    l->torn = false;
    if (!file_write_all(file, l->pending, l->pending_bytes)) {
        const int reason = errno;
        l->torn = ftruncate(file, (off_t)l->bytes) != 0;
        errno = reason;
        return false;
    }
    l->bytes += (int64_t)l->pending_bytes;
    l->pending_bytes = 0;
    return true;
}

/* Rank 0. Where it fails the rows stay pending, for the next time. */
static bool write_out(struct run_log *l, bool sync, struct err *e) {
    if (!l->file) return true;
    errno = 0;
    if (append_pending(l) && (!sync || fsync(fileno(l->file)) == 0)) return true;
    l->unsynced |= l->pending_bytes == 0; /* it was not the writing */
    return err_system(e, "cannot write %s: %s", l->path, strerror(errno ? errno : EIO));
}

static struct json *begin_row(struct run_log *l, const char *type) {
    json_reset(&l->json);
    json_object(&l->json, NULL);
    json_string(&l->json, "type", type);
    return &l->json;
}

static void end_row(struct run_log *l) {
    json_end(&l->json);
    write_json(l);
}

bool log_flush(struct run *r, struct err *e) {
    if (write_out(&r->log, true, e)) side_files_flush(r, e);
    return !comm_agree(r->comm, e);
}

bool log_is_behind(struct run *r) {
    uint64_t behind = r->log.pending_bytes > 0 || r->log.unsynced;
    comm_bcast(r->comm, 0, &behind, sizeof behind);
    return behind != 0;
}

/* The frequencies of words are counted by the one rank that writes them. */
static void write_kinds(const struct run *r, struct json *j) {
    json_integer(j, "vocabulary", r->data.set.classes);
    if (r->log.file) json_number(j, "unigram_loss", dataset_unigram_loss(&r->data.set));
}

static void write_data(const struct run *r, struct json *j) {
    const struct dataset *d = &r->data.set;
    task_write_counts(r, SPLIT_TRAIN, j);
    if (r->data.task->classes) write_kinds(r, j);
    if (d->entropy > 0) json_number(j, "entropy", d->entropy);
}

/* Where the schedules come to, in epochs, which a run that is short or stopped early may not reach. */
static void write_schedules(const struct run *r, struct json *j) {
    json_number(j, "run_epochs", run_epoch(r, r->steps));
    const struct density_schedule *density = &r->path.density;
    if (r->path.sparse) json_number(j, "density_from", density_settled(density, run_epoch(r, density->warmup_steps)));
    const double ramp = r->model.lr.warmup_steps > 0 ? run_epoch(r, r->model.lr.warmup_steps) : r->model.lr.warmup;
    json_number(j, "lr_from", r->leg.first_ranks > 1 || r->model.lr.warmup_steps > 0 ? ramp : 0);
    json_array(j, "lr_changes");
    for (int i = 0; i < r->model.lr.boundaries; i++) json_number(j, NULL, r->model.lr.boundary[i]);
    json_end(j);
}

/* No key of it may be "step", by which a resumed run looks for rows that it has to drop. */
static void write_origin(const struct run *r, struct json *j) {
    char id[24];
    if (!r->job.origin.path[0]) return;
    snprintf(id, sizeof id, "%016llx", (unsigned long long)r->job.origin.run_id);
    json_string(j, "init_from", r->job.origin.path);
    json_string(j, "init_run", id);
    json_integer(j, "init_step", (int64_t)r->job.origin.step);
}

static void write_header(struct run *r) {
    struct json *j = begin_row(&r->log, "header");
    char when[32], id[24];
    time_t now = time(NULL);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    snprintf(id, sizeof id, "%016llx", (unsigned long long)r->job.id);
    json_integer(j, "schema", LOG_SCHEMA);
    json_string(j, "run", id);
    json_string(j, "started", when);
    json_integer(j, "ranks", r->comm->size);
    json_integer(j, "nodes", r->comm->nodes);
    json_string(j, "host", comm_host());
    json_integer(j, "cores", sysconf(_SC_NPROCESSORS_ONLN));
    json_string(j, "device", r->model.net->setup.device->label());
    json_string(j, "device_about", r->model.net->setup.device->describe());
    if (net_lacks_winograd(r->model.net)) json_string(j, "computed_in", "f32");
    json_integer(j, "steps", (int64_t)r->steps);
    json_integer(j, "parameters", (int64_t)r->model.n);
    write_schedules(r, j);
    write_data(r, j);
    json_string(j, "data_source", r->data.set.source);
    char crc[16];
    snprintf(crc, sizeof crc, "%08x", r->data.checksum);
    json_string(j, "data_crc32", crc);
    json_boolean(j, "data_shared", r->data.memory.shared);
    if (r->first_step) json_integer(j, "resumed_at", (int64_t)r->first_step);
    if (run_is_prefix(r)) json_integer(j, "stops_at", (int64_t)r->stop);
    write_origin(r, j);
    if (r->job.choice) json_string(j, "algo_asked", "auto");
    char ignored[OPTION_TEXT_MAX];
    options_ignored(&r->options, ignored, sizeof ignored);
    if (ignored[0]) json_string(j, "ignored", ignored);
    options_json(&r->options, j);
    version_json(j, r->model.net->setup.device);
    end_row(&r->log);
}

/* Of a run that goes on otherwise than it was. */
static void write_resize(struct run *r) {
    const struct resize *was = &r->resize;
    const bool reset = was->ranks > 0 && r->options.resume_residuals == RESIDUALS_RESET;
    if (!resize_is(r) && !reset) return;
    struct json *j = begin_row(&r->log, "resize");
    json_integer(j, "step", (int64_t)r->first_step);
    json_number(j, "epoch", run_epoch(r, r->first_step));
    json_integer(j, "ranks_before", was->ranks);
    json_integer(j, "ranks", r->comm->size);
    json_integer(j, "batch_before", was->batch);
    json_integer(j, "batch", r->options.batch);
    json_string(j, "residuals", resize_residuals(r));
    end_row(&r->log);
}

/* Of --algo auto: what was chosen, and why. */
static void write_choice(struct run *r) {
    if (!r->job.choice) return;
    auto_json(r->job.choice, begin_row(&r->log, "auto"));
    end_row(&r->log);
}

/* -- life ------------------------------------------------------------------------------------------------------ */

bool log_prepare(struct run *r, struct err *e) {
    struct run_log *l = &r->log;
    const struct scores start = l->start; /* of a resumed run, */
    const struct spent before = l->before;
    memset(l, 0, sizeof *l);
    l->start = start;
    l->before = before;
    bool first = r->comm->rank == 0;
    l->rows = mem_zalloc(LOG_ROWS, sizeof *l->rows, "log rows");
    l->all = first ? mem_zalloc((size_t)r->comm->size * LOG_ROWS, sizeof *l->all, "log rows") : NULL;
    l->interval = 1;
    l->ranks = r->comm->size;
    l->begin = l->last_line = l->meeting_time = clock_now();
    json_open(&l->json);
    if (first && r->options.out[0]) log_prepare_file(r, e);
    if (comm_agree(r->comm, e)) return false;
    uint64_t known[2] = {l->made, l->evaluated};
    comm_bcast(r->comm, 0, known, sizeof known);
    l->made = known[0] != 0;
    l->evaluated = known[1] != 0;
    log_terminal_open(r);
    write_header(r);
    write_resize(r);
    write_choice(r);
    return log_flush(r, e);
}

bool log_open(struct run *r, struct err *e) {
    if (r->comm->rank == 0 && r->options.out[0]) log_open_file(r, e);
    return !comm_agree(r->comm, e);
}

void log_close(struct run *r) {
    struct run_log *l = &r->log;
    log_terminal_close(r);
    if (l->file) fclose(l->file);
    mem_free(l->pending);
    mem_free(l->rows);
    mem_free(l->all);
    json_close(&l->json);
    l->file = NULL;
}

void log_abandon(struct run *r) {
    struct run_log *l = &r->log;
    log_drop_kept(l);
    if (!l->file) return;
    fclose(l->file);
    l->file = NULL;
    if (l->made) unlink(l->path);
}

/* -- steps ----------------------------------------------------------------------------------------------------- */

/* The rows of all ranks for one step: row[0], row[stride], ... */
static void take_step(struct run *r, const struct row *row, size_t stride) {
    struct job_step s = {.rank = row, .stride = stride, .ranks = r->comm->size};
    log_columns_reduce(&s);
    log_columns_write(r, &s, begin_row(&r->log, "step"));
    end_row(&r->log);
    log_columns_add(&r->log.totals, &s.value);
    side_files_step(r, &s);
    r->log.steps.seconds += s.value.seconds;
    r->log.steps.bytes_sent += s.value.bytes_sent;
}

/* What rank 0 tells all others at a meeting. */
struct decision {
    uint64_t interval;
    uint32_t stop, failed;
};

/* All ranks: gathers the rows, learns of signals and of a log that cannot be written, agrees on the next meeting. */
static void meet(struct run *r, bool *stop) {
    struct run_log *l = &r->log;
    uint64_t caught = (uint64_t)(signals_caught() != 0);
    struct decision d = {0};
    comm_gather(r->comm, 0, l->rows, l->count * sizeof *l->rows, l->all);
    comm_allreduce_u64(r->comm, &caught, 1, COMM_MAX);
    if (r->comm->rank == 0) {
        double now = clock_now(), each = (now - l->meeting_time) / (double)l->count;
        for (size_t i = 0; i < l->count; i++) take_step(r, l->all + i, l->count);
        d.failed = !write_out(l, false, &r->trouble) || !side_files_flush(r, &r->trouble);
        log_progress(r, now);
        double fit = meeting_seconds / (each > 1e-9 ? each : 1e-9);
        d.interval = fit < 1 ? 1 : fit > LOG_ROWS ? LOG_ROWS : (uint64_t)fit;
        l->meeting_time = now;
    }
    comm_bcast(r->comm, 0, &d, sizeof d);
    l->interval = (size_t)d.interval;
    l->count = 0;
    if (d.failed) comm_agree(r->comm, &r->trouble);
    *stop = caught != 0 || r->trouble.text[0];
}

/* Prints once that CUDA graphs are not used. Not an error: the run is only slower. */
static void say_plain_passes(struct run *r) {
    const char *why;
    if (r->log.said_plain || net_graphs(r->model.net, &why) != NET_GRAPHS_FAILED) return;
    r->log.said_plain = true;
    log_warn(r, "passes cannot be recorded on this GPU, and run call by call: %s", why);
}

void log_step(struct run *r, bool must_meet, bool *stop) {
    struct run_log *l = &r->log;
    l->rows[l->count++] = r->now.row;
    say_plain_passes(r);
    if (must_meet || l->count >= l->interval) meet(r, stop);
}

/* -- everything but steps -------------------------------------------------------------------------------------- */

double log_loss_of(const struct run *r, const struct scores *scores) {
    return run_has_test(r) ? scores->test_loss : scores->valid_loss;
}

void log_eval(struct run *r, const struct scores *scores, double seconds) {
    struct totals *t = &r->log.totals;
    struct json *j = begin_row(&r->log, "eval");
    r->log.eval_seconds = seconds;
    const struct row *since = &t->since_evaluation;
    double train_loss = r->step > 0 ? NAN : log_loss_of(r, scores);
    if (since->samples > 0) train_loss = since->loss / since->samples;
    json_integer(j, "step", (int64_t)r->step);
    json_number(j, "epoch", run_epoch(r, r->step));
    scores_write(r, scores, j);
    heard_write(&r->heard, j);
    json_number(j, "train_loss", train_loss);
    json_number(j, "train_seconds", t->all.seconds);
    json_number(j, "bytes_sent", log_spent(r).bytes_sent);
    json_number(j, "seconds", seconds);
    if (!r->log.evaluated || r->step > r->first_step) {
        end_row(&r->log);
        side_files_scores(r, scores);
    }
    log_say_scores(r, scores, train_loss);
    t->since_evaluation = (struct row){0};
}

void log_slices(struct run *r, const double *nonzero, const double *sent, const double *global) {
    const struct arena *a = &r->model.net->arena;
    struct json *j = begin_row(&r->log, "slices");
    const double P = r->comm->size;
    json_integer(j, "step", (int64_t)r->step);
    json_array(j, "slices");
    for (size_t i = 0; i < a->slices; i++) {
        json_object(j, NULL);
        json_string(j, "name", a->slice[i].name);
        json_integer(j, "size", (int64_t)a->slice[i].size);
        json_number(j, "nonzero_mean", nonzero[i] / P);
        json_number(j, "sent_mean", sent[i] / P);
        json_number(j, "global", global[i]);
        json_end(j);
    }
    json_end(j);
    end_row(&r->log);
}

void log_checkpoint(struct run *r, const char *path, double seconds) {
    struct json *j = begin_row(&r->log, "checkpoint");
    json_integer(j, "step", (int64_t)r->step);
    json_string(j, "path", path);
    json_number(j, "seconds", seconds);
    end_row(&r->log);
}

struct spent log_spent(const struct run *r) {
    const struct spent *before = &r->log.before, *steps = &r->log.steps;
    return (struct spent){before->seconds + steps->seconds, before->elapsed + clock_now() - r->log.begin,
                          before->bytes_sent + steps->bytes_sent};
}

double log_dense_bytes(const struct run *r) {
    double P = r->log.ranks;
    return 8.0 * (double)r->model.n * (P - 1) / P;
}

/* peak, private: of the largest rank [bytes] */
static void write_memory(const struct run *r, const double memory[2], struct json *j) {
    json_number(j, "memory_peak_max", memory[0]);
    json_number(j, "memory_private_max", memory[1]);
    json_integer(j, "data_bytes", (int64_t)r->data.set.bytes);
    json_boolean(j, "data_shared", r->data.memory.shared);
}

void log_summary(struct run *r, uint64_t parameters_hash) {
    struct totals *t = &r->log.totals;
    const char *why;
    const enum net_graphs graphs = net_graphs(r->model.net, &why);
    double plain = graphs != NET_GRAPHS_USED; /* on some rank */
    comm_allreduce_f64(r->comm, &plain, 1, COMM_MAX);
    double memory[2] = {(double)mem_resident_peak(), (double)(mem_resident() - mem_resident_shared())};
    comm_allreduce_f64(r->comm, memory, 2, COMM_MAX);
    r->log.private_memory = memory[1];
    char hash[24], rate[48];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)parameters_hash);
    struct json *j = begin_row(&r->log, "summary");
    json_integer(j, "step", (int64_t)r->step);
    json_number(j, "epoch", run_epoch(r, r->step));
    json_boolean(j, "completed", r->step == r->steps && !r->stopped);
    json_boolean(j, "prefix", run_is_prefix(r) && r->step == r->stop && !r->stopped);
    json_number(j, "run_epochs", run_epoch(r, r->steps));
    json_integer(j, "ranks", r->log.ranks);
    if (r->leg.resized > 0) json_integer(j, "resized", (int64_t)r->leg.resized);
    scores_write(r, &r->last, j);
    json_number(j, "start_loss", log_loss_of(r, &r->log.start));
    if (run_has_test(r) && !r->data.task->speech) json_number(j, "start_accuracy", r->log.start.test_accuracy);
    json_number(j, "train_seconds", t->all.seconds);
    json_number(j, "wall_seconds", clock_now() - r->log.begin);
    snprintf(rate, sizeof rate, "%s_per_second", r->data.task->samples);
    json_number(j, rate, run_rate(r, &t->all));
    log_columns_summary(r, "seconds", "seconds", j);
    if (graphs != NET_GRAPHS_NONE) json_boolean(j, "graphs", plain == 0);
    json_number(j, "bytes_sent", log_spent(r).bytes_sent);
    log_columns_summary(r, "hidden_seconds", "messages_received", j);
    json_number(j, "dense_bytes_per_step", log_dense_bytes(r));
    log_columns_summary(r, "local_nnz", "mass_lost", j);
    json_string(j, "parameters_hash", hash);
    if (run_replicas_same(r))
        json_boolean(j, "replicas_identical", true); /* run_check_replicas has ended the job otherwise */
    else
        json_null(j, "replicas_identical");
    write_memory(r, memory, j);
    log_columns_summary(r, "phases", "phases", j);
    target_json(r, j);
    end_row(&r->log);
}
