/* log_terminal.c: what a user sees of a run while it goes on: lines, and the bar. See log.h. */
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "cli/run.h"

static const double line_seconds = 5;

/* mpirun gives its processes a pseudo-terminal even when its own output goes to a file; what counts is where the
 * launcher writes. */
static bool on_terminal(void) {
    if (!isatty(STDOUT_FILENO)) return false;
    char link[64], target[256];
    snprintf(link, sizeof link, "/proc/%ld/fd/1", (long)getppid());
    ssize_t length = readlink(link, target, sizeof target - 1);
    if (length < 0) return false;
    target[length] = '\0';
    return strncmp(target, "/dev/pts/", 9) == 0 || strncmp(target, "/dev/tty", 8) == 0;
}

void log_say(struct run *r, const char *format, ...) {
    if (r->comm->rank != 0 || r->options.quiet) return;
    progress_clear(&r->log.bar);
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

void log_progress(struct run *r, double now) {
    struct log *l = &r->log;
    struct totals *t = &l->totals;
    if (l->show == SHOW_NOTHING || t->recent_seconds <= 0) return;
    if (l->show == SHOW_LINES && now - l->last_line < line_seconds) return;
    char note[160], quality[48];
    double loss = t->loss / t->loss_samples;
    if (r->text)
        snprintf(quality, sizeof quality, "perplexity %.1f", exp(loss));
    else
        snprintf(quality, sizeof quality, "accuracy %.1f%%", 100 * t->correct / t->loss_samples);
    snprintf(note, sizeof note, "step %zu/%zu  epoch %.2f  loss %.3f  %s  %.0f %ss/s", r->step, r->stop,
             run_epoch(r, r->step), loss, quality, t->recent_samples / t->recent_seconds, run_sample(r));
    if (l->show == SHOW_BAR) {
        progress_show(&l->bar, (double)(r->step - r->first_step), note);
    } else {
        printf("%s\n", note);
        fflush(stdout);
    }
    /* The rate is that of the last seconds, not of the whole run. */
    if (now - l->last_line >= line_seconds) {
        l->last_line = now;
        t->recent_samples = t->recent_seconds = 0;
    }
}

void log_say_scores(struct run *r, const struct scores *scores, double train_loss) {
    char where[64], train[48] = "";
    snprintf(where, sizeof where, "epoch %.2f  step %zu", run_epoch(r, r->step), r->step);
    if (r->log.totals.loss_samples > 0)
        snprintf(train, sizeof train, r->text ? "  train perplexity %.2f" : "  train loss %.3f",
                 r->text ? exp(train_loss) : train_loss);
    if (r->text)
        log_say(r, "%s%s  valid perplexity %.2f  test perplexity %.2f", where, train, exp(scores->valid_loss),
                exp(scores->test_loss));
    else
        log_say(r, "%s%s  test loss %.3f  test accuracy %.2f%%", where, train, scores->test_loss,
                100 * scores->test_accuracy);
}

void log_terminal_open(struct run *r) {
    struct log *l = &r->log;
    const char *how = r->options.progress;
    if (r->comm->rank == 0 && !r->options.quiet && strcmp(how, "none") != 0)
        l->show = strcmp(how, "bar") == 0 || (strcmp(how, "auto") == 0 && on_terminal()) ? SHOW_BAR : SHOW_LINES;
    progress_open(&l->bar, stdout, (double)(r->stop - r->first_step));
}
