/* log_terminal.c: what a user sees of a run while it goes on: lines, and the bar. See log.h. */
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/launcher.h"
#include "cli/train/run.h"

static const double line_seconds = 5;

static bool has_width(int terminal) {
    struct winsize window;
    return ioctl(terminal, TIOCGWINSZ, &window) == 0 && window.ws_col > 0;
}

/* The terminal that shows what this process prints, opened; -1: there is none. mpirun gives its processes a
 * pseudo-terminal of no width, even when its own output goes to a file: then it counts where the parent writes. */
static int open_terminal(void) {
    if (!isatty(STDOUT_FILENO)) return -1;
    if (has_width(STDOUT_FILENO)) return dup(STDOUT_FILENO);
    char link[64], target[256];
    snprintf(link, sizeof link, "/proc/%ld/fd/1", (long)getppid());
    ssize_t length = readlink(link, target, sizeof target - 1);
    if (length < 0) return -1;
    target[length] = '\0';
    if (strncmp(target, "/dev/pts/", 9) != 0 && strncmp(target, "/dev/tty", 8) != 0) return -1;
    int terminal = open(target, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    return terminal >= 0 ? terminal : dup(STDOUT_FILENO);
}

void log_terminal_open(struct run *r) {
    struct run_log *l = &r->log;
    const int how = r->options.progress;
    const char *patience = getenv("SPARSETRAIN_PATIENCE");
    l->terminal = r->comm->rank == 0 ? open_terminal() : -1;
    l->patience = patience ? atof(patience) : 3;
    if (r->comm->rank == 0 && !r->options.quiet && how != PROGRESS_NONE)
        l->show = how == PROGRESS_BAR || (how == PROGRESS_AUTO && l->terminal >= 0) ? SHOW_BAR : SHOW_LINES;
    progress_open(&l->bar, stdout, l->terminal);
}

void log_terminal_close(struct run *r) {
    progress_clear(&r->log.bar);
    if (r->log.terminal >= 0) close(r->log.terminal);
    r->log.terminal = -1;
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

void log_warn(struct run *r, const char *format, ...) {
    if (r->comm->rank != 0) return;
    progress_clear(&r->log.bar);
    fflush(stdout);
    fputs("sparsetrain: ", stderr);
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

/* Seconds of a step so far, the first aside. NaN before there was a step. */
static double step_seconds(const struct run *r) {
    const struct totals *t = &r->log.totals;
    if (t->steps < 1) return NAN;
    return t->steps > 1 ? (t->all.seconds - t->first_seconds) / (t->steps - 1) : t->all.seconds;
}

/* Seconds until the run stops: its steps take as long as those so far, and each evaluation that is to come as long as
 * the last. NaN before there was a step. */
static double seconds_left(const struct run *r) {
    return step_seconds(r) * (double)(r->stop - r->step) + r->log.eval_seconds * (double)run_evaluations_left(r);
}

/* What ends the run before its time. A checkpoint is written where a step ends: where the launcher kills a second after
 * Ctrl-C, half of that second is left to it. */
static const char *how_to_stop(const struct run *r) {
    const double longest = 0.5;
    if (!r->options.out[0]) return "Ctrl-C ends the run (without --out nothing of it is kept)";
    if (step_seconds(r) > longest && launcher_kills())
        return "kill -USR1 to mpirun stops the run with a checkpoint, from which --resume goes on (after Ctrl-C mpirun "
               "kills it in a second, and a step takes too long for that)";
    return "Ctrl-C stops the run with a checkpoint, from which --resume goes on";
}

/* Once, of a long run, as soon as it is known. */
static void say_left(struct run *r, double left) {
    struct run_log *l = &r->log;
    char about[32];
    if (l->said_left || l->totals.steps < 2 || l->totals.all.seconds < l->patience) return;
    l->said_left = true;
    if (left < 20 * l->patience) return;
    progress_time(about, sizeof about, left);
    log_say(r, "about %s to go; %s", about, how_to_stop(r));
}

/* What there is to say of the steps, the most important first, and as a line. */
enum { NOTES = 5, NOTE = 64 };
struct notes {
    char text[NOTES][NOTE];
    const char *note[NOTES + 1]; /* NULL at the end */
};

static void take_notes(const struct run *r, struct notes *n) {
    const struct row *since = &r->log.totals.since_evaluation, *recent = &r->log.totals.since_line;
    double loss = since->loss / since->samples;
    snprintf(n->text[0], NOTE, "step %zu/%zu", r->step, r->stop);
    snprintf(n->text[1], NOTE, "loss %.3f", loss);
    n->text[2][0] = '\0';
    if (r->data.task->text)
        snprintf(n->text[2], NOTE, "perplexity %.1f", exp(loss));
    else if (!r->data.task->speech)
        snprintf(n->text[2], NOTE, "accuracy %4.1f%%", 100 * since->correct / since->samples);
    snprintf(n->text[3], NOTE, "%.0f %ss/s", run_rate(r, recent), run_sample(r));
    snprintf(n->text[4], NOTE, "epoch %.2f", run_epoch(r, r->step));
    size_t notes = 0;
    for (size_t i = 0; i < NOTES; i++)
        if (n->text[i][0]) n->note[notes++] = n->text[i];
    n->note[notes] = NULL;
}

static void print_notes(const struct notes *n, double left) {
    char about[32];
    progress_time(about, sizeof about, left);
    for (size_t i = 0; i < NOTES; i++) printf("%s%s", i ? "  " : "", n->text[i]);
    printf("  %s left\n", about);
    fflush(stdout);
}

void log_progress(struct run *r, double now) {
    struct run_log *l = &r->log;
    struct totals *t = &l->totals;
    struct notes n;
    if (l->show == SHOW_NOTHING || t->since_line.seconds <= 0) return;
    double left = seconds_left(r), part = (double)(r->step - r->first_step) / (double)(r->stop - r->first_step);
    say_left(r, left);
    if (l->show == SHOW_LINES && now - l->last_line < line_seconds) return;
    take_notes(r, &n);
    if (l->show == SHOW_BAR)
        progress_show(&l->bar, part, left, n.note);
    else
        print_notes(&n, left);
    /* The rate is that of the last seconds, not of the whole run. */
    if (now - l->last_line >= line_seconds) {
        l->last_line = now;
        t->since_line = (struct row){0};
    }
}

void log_evaluation_begin(struct run *r, size_t units) {
    r->log.evaluation.begin = clock_now();
    r->log.evaluation.units = units;
    r->log.evaluation.done = 0;
    r->log.evaluation.said = false;
}

/* Of one that takes long: the bar, or one line. */
void log_evaluation_unit(struct run *r) {
    struct run_log *l = &r->log;
    char what[96], about[32];
    l->evaluation.done++;
    double now = clock_now(), part = (double)l->evaluation.done / (double)l->evaluation.units;
    double spent = now - l->evaluation.begin, left = spent * (1 - part) / part;
    if (l->show == SHOW_NOTHING || spent < l->patience) return;
    task_counts(r, SPLIT_VALID, what, sizeof what);
    if (l->show == SHOW_BAR) progress_show(&l->bar, part, left, (const char *const[]){"evaluating", what, NULL});
    if (l->show == SHOW_BAR || l->evaluation.said) return;
    l->evaluation.said = true;
    progress_time(about, sizeof about, left);
    if (left >= l->patience) log_say(r, "evaluating %s: about %s to go", what, about);
}

/* The loss that steps are compared by: a perplexity where evaluations have one, else as many digits as they have. */
static void train_text(const struct run *r, double loss, char *text, size_t size) {
    const struct score_shown *first = r->data.task->shown;
    text[0] = '\0';
    if (r->log.totals.since_evaluation.samples == 0) return;
    if (first->metric == TARGET_PERPLEXITY)
        snprintf(text, size, "  train perplexity %.2f", exp(loss));
    else
        snprintf(text, size, "  train loss %.*f", first->decimals, loss);
}

void log_say_scores(struct run *r, const struct scores *scores, double train_loss) {
    char line[256], train[48];
    train_text(r, train_loss, train, sizeof train);
    snprintf(line, sizeof line, "epoch %.2f  step %zu%s", run_epoch(r, r->step), r->step, train);
    for (const struct score_shown *s = r->data.task->shown; s->label; s++) {
        const struct score *score = score_find(r, s->split, s->metric);
        const size_t used = strlen(line);
        if (score && s->brief)
            snprintf(line + used, sizeof line - used, "  %s %.*f%s", s->label, s->decimals,
                     (s->percent ? 100 : 1) * score_value(score, scores), s->percent ? "%" : "");
    }
    log_say(r, "%s", line);
}
