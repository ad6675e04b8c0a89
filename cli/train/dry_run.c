/* dry_run.c: see dry_run.h. At this point everything that a run computes with is open, so its memory need not be
 * guessed: it has been allocated, and the system says how much of it is not touched yet. A run may need less, since
 * buffers are sized for the largest step. */
#include "cli/train/dry_run.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/table.h"
#include "cli/checkpoint/checkpoint.h"
#include "cli/network/step_cost.h"
#include "cli/train/outputs.h"
#include "cli/train/report.h"

/* -- files ----------------------------------------------------------------------------------------------------- */

/* A file without a name, or, where the file system has no such, a directory that goes at once. 0 or the reason. */
static int try_directory(const char *dir) {
    int file = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (file >= 0) return close(file) == 0 ? 0 : errno;
    char *path = mem_printf("%s/.sparsetrain-XXXXXX", dir);
    int reason = mkdtemp(path) && rmdir(path) == 0 ? 0 : errno;
    mem_free(path);
    return reason;
}

/* The first of dir and its parents that is there; fresh memory. */
static char *nearest(const char *dir) {
    char *path = mem_printf("%s", dir);
    struct stat info;
    while (stat(path, &info) != 0 && strcmp(path, ".") != 0 && strcmp(path, "/") != 0) {
        char *parent = mem_printf("%s", dirname(path)); /* which writes to its argument */
        mem_free(path);
        path = parent;
    }
    return path;
}

static bool check_out(struct run *r, struct err *e) {
    const char *out = r->options.out;
    struct statvfs disk;
    if (!log_check(r, e)) return false;
    char *dir = nearest(out);
    int reason = try_directory(dir);
    if (statvfs(dir, &disk) == 0) r->job.dry.disk = (double)disk.f_bavail * (double)disk.f_frsize;
    mem_free(dir);
    if (reason) return err_with(e, err_of_errno(reason), "cannot write to --out %s: %s", out, strerror(reason));
    if (r->job.dry.disk >= 2 * r->job.dry.checkpoint) return true;
    char need[32], there[32];
    human_bytes(need, sizeof need, r->job.dry.checkpoint);
    human_bytes(there, sizeof there, r->job.dry.disk);
    return err_set(e, "a checkpoint takes %s, and two must fit: where --out %s is there are %s free", need, out, there);
}

/* --record FILE, which must not be there. */
static bool check_record(const char *path, struct err *e) {
    if (!record_check(path, e)) return false;
    char *copy = mem_printf("%s", path);
    int reason = try_directory(dirname(copy));
    mem_free(copy);
    return !reason || err_with(e, err_of_errno(reason), "cannot write the gradients to %s: %s", path, strerror(reason));
}

/* Its memory is counted; where --out is not there yet, the file is no matter. */
static bool open_trace(struct run *r, struct err *e) {
    const char *path = r->options.trace;
    int waits = r->comm->rank == 0 && outputs_wait(&r->options, path);
    comm_bcast(r->comm, 0, &waits, sizeof waits);
    return trace_file_open(&r->trace, r->comm, waits ? "/dev/null" : path, e);
}

static bool check_files(struct run *r, struct err *e) {
    const struct options *o = &r->options;
    double bytes = (double)checkpoint_bytes(r, false);
    comm_allreduce_f64(r->comm, &bytes, 1, COMM_SUM);
    r->job.dry.checkpoint = bytes;
    if (r->comm->rank == 0 && o->out[0]) check_out(r, e);
    if (r->comm->rank == 0 && o->record[0] && !outputs_wait(o, o->record)) check_record(o->record, e);
    return !comm_agree(r->comm, e) && (!o->trace[0] || open_trace(r, e));
}

/* -- memory ---------------------------------------------------------------------------------------------------- */

struct need {
    uint64_t host; /* a hash of its name */
    double bytes;  /* that a rank may still come to touch */
};

/* Of all ranks on this host: nodes may be emulated ones. */
static double need_here(struct run *r, double mine, int *ranks) {
    const char *host = comm_host();
    struct need own = {hash64(0, host, strlen(host)), mine};
    struct need *all = mem_alloc((size_t)r->comm->size, sizeof *all, "what the ranks need");
    double sum = 0;
    comm_allgather(r->comm, &own, sizeof own, all);
    *ranks = 0;
    for (int i = 0; i < r->comm->size; i++) {
        if (all[i].host != own.host) continue;
        sum += all[i].bytes;
        ++*ranks;
    }
    mem_free(all);
    return sum;
}

static bool check_memory(struct run *r, struct err *e) {
    int ranks;
    double copy = r->options.out[0] ? (double)checkpoint_bytes(r, true) : 0;
    double more = (double)mem_untouched() + copy;
    if (comm_simulated() && r->comm->rank > 0) more = 0; /* all ranks are one process */
    double total = (double)(mem_resident() - mem_resident_shared()) + more;
    comm_allreduce_f64(r->comm, &total, 1, COMM_MAX);
    r->job.dry.memory = total;
    r->job.dry.free = (double)mem_available();
    double here = need_here(r, more, &ranks);
    if (r->job.dry.free > 0 && here > r->job.dry.free) {
        char need[32], there[32];
        human_bytes(need, sizeof need, here);
        human_bytes(there, sizeof there, r->job.dry.free);
        err_set(e,
                "the %d rank%s on %s may need %s more memory, and %s can be had there; take a smaller --batch or fewer "
                "ranks on a node",
                ranks, ranks > 1 ? "s" : "", comm_host(), need, there);
    }
    return !comm_agree(r->comm, e);
}

bool dry_run_check(struct run *r, struct err *e) {
    return check_files(r, e) && check_memory(r, e);
}

/* -- what is said ---------------------------------------------------------------------------------------------- */

/* "3.15 KiB in 4 messages" */
static void cost_text(const struct cost *c, char text[96]) {
    char bytes[32];
    double messages = c->alphas + c->node_alphas;
    human_bytes(bytes, sizeof bytes, 4 * (c->words + c->node_words));
    snprintf(text, 96, "%s in %.4g message%s", bytes, messages, messages > 1 ? "s" : "");
}

/* An allreduce of so many words. */
static struct cost allreduce_cost(const struct run *r, size_t n) {
    struct cost cost;
    exchange_dense.cost(&(struct cost_case){.n = n, .k = n, .P = r->comm->size, .ranks_per_node = 1}, &cost);
    return cost;
}

/* Of a step at this density, entries of dense slices included. */
static void step_text(const struct run *r, double density, char text[96]) {
    struct cost cost = step_cost(r, options_exchange(&r->options), wires[r->options.wire],
                                 density_to_k(density, r->model.n - r->path.exempts));
    const struct cost beside = allreduce_cost(r, r->path.exempts);
    if (r->path.exempts) cost.words += beside.words, cost.alphas += beside.alphas;
    cost_text(&cost, text);
}

static void say_traffic(struct run *r) {
    const struct exchange_ops *ops = options_exchange(&r->options);
    const struct cost all = allreduce_cost(r, r->model.n);
    double first = density_largest(&r->path.density);
    char step[96], whole[96], warmup[160] = "";
    cost_text(&all, whole);
    if (r->comm->size == 1) log_say(r, "  traffic   none: there is one rank");
    if (r->comm->size == 1) return;
    if (exchange_of_gradients(ops)) {
        step_text(r, r->options.density, step);
        if (r->path.sparse && first > r->options.density) {
            char text[96];
            step_text(r, first, text);
            snprintf(warmup, sizeof warmup, " (%s at density %g, in the warm-up)", text, first);
        }
        log_say(r, "  traffic   %s a step along the longest path%s%s%s; by the cost model", step, warmup,
                r->path.sparse ? "; dense: " : "", r->path.sparse ? whole : "");
    }
    if (r->rounds.param) {
        step_text(r, r->options.density, step);
        log_say(r, "  traffic   %s a round of %lld steps; by the cost model", step,
                (long long)r->options.average_every);
    } else if (r->replicas.drifts)
        log_say(r, "  traffic   %s every %lld steps, to average the parameters; by the cost model", whole,
                (long long)r->options.average_every);
}

void dry_run_report(struct run *r) {
    char memory[32], data[32], there[32], device[96] = "", checkpoint[32], disk[32];
    human_bytes(memory, sizeof memory, r->job.dry.memory);
    human_bytes(data, sizeof data, (double)r->data.set.bytes);
    human_bytes(there, sizeof there, r->job.dry.free);
    say_traffic(r);
    if (!device_is_host(r->model.net->arena.device)) {
        char bytes[32];
        size_t floats = r->model.optimiser.n_state + (r->path.reducer.keeps ? r->model.n : 0) +
                        (r->options.momentum_correction ? r->model.n : 0);
        human_bytes(bytes, sizeof bytes, (double)(net_device_bytes(r->model.net) + floats * sizeof(float)));
        snprintf(device, sizeof device, "; on the device %s besides what its libraries take", bytes);
    }
    log_say(r, "  memory    up to %s on each rank, the dataset's %s %s%s; %s can be had", memory, data,
            r->data.memory.shared ? "once per node" : "included", device,
            r->job.dry.free > 0 ? there : "an unknown amount");
    if (r->options.out[0]) {
        human_bytes(checkpoint, sizeof checkpoint, r->job.dry.checkpoint);
        human_bytes(disk, sizeof disk, r->job.dry.disk);
        log_say(r, "  disk      %s for each checkpoint, of which the newest %lld are kept; %s are free", checkpoint,
                (long long)r->options.keep, disk);
    }
    log_say(r, "A dry run: nothing was trained, nothing was written. The run itself: the same without --dry-run");
}
