/* report.c: see report.h. Rank 0 prints; nothing here computes anything that is not also in run.jsonl. */
#include "cli/report.h"

#include <string.h>

#include "base/mem.h"
#include "cli/device_option.h"

static void human_bytes(char *text, size_t size, double bytes) {
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t u = 0;
    while (bytes >= 1024 && u < 4) {
        bytes /= 1024;
        u++;
    }
    snprintf(text, size, bytes < 10 && u ? "%.2f %s" : "%.0f %s", bytes, unit[u]);
}

static void say_device(struct run *r, const struct device_ops *device) {
    char *text = device_option_text(device);
    log_say(r, "  device    %s; %s%s", text, r->options.precision,
            r->comm->device_pointers ? "; MPI takes its pointers" : "");
    mem_free(text);
}

void report_begin(struct run *r) {
    const struct options *o = &r->options;
    const struct device_ops *device = r->net->setup.device;
    char exchange[192], memory[32];
    human_bytes(memory, sizeof memory, (double)r->data.bytes);
    size_t used = (size_t)snprintf(exchange, sizeof exchange, "%.40s", o->algo);
    if (r->sparse)
        used += (size_t)snprintf(
            exchange + used, sizeof exchange - used, ", %.40s selection at density %g (k = %zu), %.20s",
            r->selector ? o->select : "its own", o->density, density_to_k(o->density, r->n), o->wire);
    if (r->groups)
        used += (size_t)snprintf(exchange + used, sizeof exchange - used, ", in %zu groups of layers", r->groups);
    if (r->drifts)
        snprintf(exchange + used, sizeof exchange - used, "%s; parameters averaged every %lld steps",
                 o->local_update ? ", local update" : "", (long long)o->average_every);
    log_say(r, "sparsetrain: %s, %zu parameters, on %s; %d rank%s on %d node%s", o->model, r->n, device->label(),
            r->comm->size, r->comm->size > 1 ? "s" : "", r->comm->nodes, r->comm->nodes > 1 ? "s" : "");
    if (!device_is_host(device)) say_device(r, device);
    log_say(r, "  data      %s: %zu training and %zu test images from %s (%s %s)", r->data.ops->name,
            r->data.train.count, r->data.test.count, r->data.source, memory,
            r->data_memory.shared ? "once per node" : "on each rank");
    log_say(r, "  exchange  %s", exchange);
    log_say(r,
            "  training  %zu steps of %d x %lld images = %.2f epochs, learning rate %g, momentum %g, weight decay %g, "
            "seed %lld",
            r->steps, r->comm->size, (long long)o->batch, run_epoch(r, r->steps), o->lr, o->momentum, o->weight_decay,
            (long long)o->seed);
    if (o->out[0]) log_say(r, "  output    %s/run.jsonl and checkpoints", o->out);
    if (r->first_step) log_say(r, "  resumed   after step %zu", r->first_step);
}

static void say_phases(struct run *r) {
    const struct totals *t = &r->log.totals;
    double steps = t->steps > 0 ? t->steps : 1, sum = 0;
    char line[256] = "";
    for (int i = 0; i < PHASE_COUNT; i++) sum += t->phase[i];
    for (int i = 1; i <= PHASE_COUNT; i++) {
        int p = i % PHASE_COUNT; /* "other" last */
        size_t used = strlen(line);
        snprintf(line + used, sizeof line - used, "%s%s %.1f%%", i > 1 ? "  " : "", phase_names[p],
                 sum > 0 ? 100 * t->phase[p] / sum : 0);
    }
    log_say(r, "  time a step         %.1f ms: %s", 1e3 * t->seconds / steps, line);
}

/* Communication that backward hid, beside what the step had to wait for. */
static void say_hidden(struct run *r) {
    const struct totals *t = &r->log.totals;
    if (!r->exchange.ops->begin || t->steps == 0) return;
    log_say(r, "  communication       %.1f ms a step exposed, %.1f ms hidden behind backward",
            1e3 * t->phase[PHASE_COMMUNICATE] / t->steps, 1e3 * t->hidden_seconds / t->steps);
}

static void say_bytes(struct run *r) {
    const struct totals *t = &r->log.totals;
    double steps = t->steps > 0 ? t->steps : 1, dense = log_dense_bytes(r);
    char sent[32], whole[32];
    human_bytes(sent, sizeof sent, t->bytes_sent / steps);
    human_bytes(whole, sizeof whole, dense);
    if (r->comm->size == 1)
        log_say(r, "  sent a step         nothing: there is one rank");
    else if (r->sparse)
        log_say(r, "  sent a step         %s per rank where dense sends %s: %.0f times less", sent, whole,
                t->bytes_sent > 0 ? dense * steps / t->bytes_sent : 0);
    else
        log_say(r, "  sent a step         %s per rank", sent);
    if (t->mass_lost > 0)
        log_say(r, "  gradient lost       %.3g in sum of magnitudes (--gtopk-residual paper)", t->mass_lost);
}

static void say_memory(struct run *r) {
    char own[32], data[32];
    human_bytes(own, sizeof own, r->log.private_memory);
    human_bytes(data, sizeof data, (double)r->data.bytes);
    log_say(r, "  memory              %s on each rank, the dataset's %s %s", own, data,
            r->data_memory.shared ? "once per node" : "included");
}

/* A command, and behind it in a column what it is for. */
static void say_command(struct run *r, const char *command, const char *what) {
    log_say(r, "  %-52s  %s", command, what);
}

static void say_next(struct run *r) {
    const struct options *o = &r->options;
    char command[1400];
    log_say(r, "Next:");
    if (strncmp(o->data, "synthetic", 9) == 0) say_command(r, "sh scripts/fetch-data.sh cifar10", "the real images");
    snprintf(command, sizeof command, "mpirun -np %d %.200s --algo %s ...", r->comm->size, r->program,
             r->sparse ? "dense" : "gtopk");
    say_command(r, command,
                r->sparse ? "the same run with every gradient sent" : "the same run with few gradients sent");
    snprintf(command, sizeof command, "sh scripts/plot.sh %s", o->out);
    if (o->out[0]) say_command(r, command, "loss, accuracy and time split as PNG");
    snprintf(command, sizeof command, "%.200s list; %.200s --help", r->program, r->program);
    say_command(r, command, "everything else");
}

static void say_stopped(struct run *r) {
    if (r->options.out[0])
        log_say(r, "Stopped by a signal after step %zu of %zu. To go on: mpirun -np %d %s --resume %s", r->step,
                r->steps, r->comm->size, r->program, r->options.out);
    else
        log_say(r, "Stopped by a signal after step %zu of %zu. Nothing was saved, since there is no --out.", r->step,
                r->steps);
}

void report_end(struct run *r, int status) {
    const struct totals *t = &r->log.totals;
    if (status == EXIT_STOPPED) {
        say_stopped(r);
        return;
    }
    log_say(r, "%s", "");
    log_say(r, "                      %12s %12s", "start", "end");
    log_say(r, "  test loss           %12.3f %12.3f", r->log.start_loss, r->last_test_loss);
    log_say(r, "  test accuracy       %11.2f%% %11.2f%%", 100 * r->log.start_accuracy, 100 * r->last_test_accuracy);
    log_say(r, "  images a second     %.0f on %d rank%s", t->seconds > 0 ? t->images / t->seconds : 0, r->comm->size,
            r->comm->size > 1 ? "s" : "");
    say_phases(r);
    say_hidden(r);
    say_bytes(r);
    say_memory(r);
    log_say(r, "  replicas            identical, bit for bit");
    log_say(r, "%s", "");
    say_next(r);
}
