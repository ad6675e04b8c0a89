/* watch.c: the thread of the watchdog and how a job ends by it, see watch.h. It writes its message with write(2),
 * since other threads may hold the locks of stdio. It does not call MPI_Abort: only the thread inside MPI may call
 * it, and it would wait for a rank that is stopped. Instead every rank of the node ends itself, and processes that
 * are left after some seconds are killed. */
#include "comm/transport/watch.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"

static const double period_most = 1, period_least = 0.02; /* between two looks [s] */
static const double patience = 3;                         /* with what is asked to end [s] */
static const double start_least = 30;                     /* MPI may take so long whatever the limit [s] */

/* Global, since a process belongs to one job, and it may end in functions that have no handle. */
static struct {
    pthread_t thread;
    pthread_mutex_t lock; /* of all that follows; held while the thread looks */
    pthread_cond_t wake;
    bool runs, stop;
    double limit;
    int rank;
    const char *advice;
    struct watch_page *page; /* NULL: MPI is starting */
    struct watch_judge judge;
    double elapsed; /* without a page [s] */
} w = {.lock = PTHREAD_MUTEX_INITIALIZER, .advice = ""};

/* -- processes ----------------------------------------------------------------------------------------------------- */
static uint64_t name_space(void) {
    struct stat s;
    return stat("/proc/self/ns/pid", &s) == 0 ? (uint64_t)s.st_ino : 0;
}

/* A process's state letter and when it began [ticks since the machine did]; false: there is none, or no /proc. The name
 * of the program, field 2, may hold anything, parentheses too. */
static bool look_up(int process, char *state, uint64_t *born) {
    char path[64], text[1024];
    unsigned long long ticks;
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    FILE *f = fopen(path, "re");
    if (!f) return false;
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    const char *at = strrchr(text, ')');
    if (!at || sscanf(at + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu", state,
                      &ticks) != 2)
        return false;
    *born = ticks;
    return true;
}

/* The state letter of a rank's process: 'X' when it is gone (a zombie is), '?' when nothing can be said. */
static char state_of(const struct watch_slot *s) {
    char state;
    uint64_t born;
    if (!s->space || s->space != name_space()) return '?';
    if (!look_up(s->process, &state, &born) || born != s->born || state == 'Z') return 'X';
    return state;
}

/* Does a debugger hold it? */
static bool is_traced(const struct watch_slot *s, void *asker) {
    char path[64], line[256];
    int tracer = 0;
    (void)asker;
    if (state_of(s) == '?' || state_of(s) == 'X') return false;
    snprintf(path, sizeof path, "/proc/%d/status", s->process);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "TracerPid: %d", &tracer) == 1) break;
    if (f) fclose(f);
    return tracer > 0;
}

static const char *how(char state) {
    return state == 'X'   ? " (it is gone)"
           : state == 'T' ? " (it is stopped: SIGSTOP)"
           : state == 'D' ? " (it waits for a disk or device)"
                          : "";
}

void watch_fill(struct watch_slot *slot, int rank) {
    char state;
    uint64_t born = 0;
    slot->rank = rank;
    slot->process = (int)getpid();
    slot->space = look_up(slot->process, &state, &born) ? name_space() : 0;
    slot->born = born;
    slot->beat.peer = BEAT_EVERYBODY;
}

/* -- the end ------------------------------------------------------------------------------------------------------- */
static void nap(double seconds) {
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&t, &t) != 0 && errno == EINTR) {
    }
}

static void say(const char *text) {
    char line[1200];
    int length = snprintf(line, sizeof line, "sparsetrain: %s\n", text);
    const char *at = line, *end = line + length;
    while (at < end) {
        ssize_t put = write(STDERR_FILENO, at, (size_t)(end - at));
        if (put < 0 && errno != EINTR) return;
        at += put > 0 ? put : 0;
    }
}

static atomic_bool flushed;

static void *flush_all(void *unused) {
    (void)unused;
    fflush(NULL);
    flushed = true;
    return NULL;
}

/* Flushes the open streams from another thread, as one of them may be locked for ever, and ends the process. */
static _Noreturn void leave(void) {
    pthread_t helper;
    if (pthread_create(&helper, NULL, flush_all, NULL) == 0)
        for (double waited = 0; !flushed && waited < patience; waited += 0.01) nap(0.01);
    _exit(EXIT_SYSTEM);
}

/* Ends all ranks of this node: stopped ones are continued so that they can end by themselves; what is left is killed.
 */
static _Noreturn void end_node(struct watch_page *page) {
    for (int i = 0; i < page->slots; i++)
        if (w.judge.culprit[i] && state_of(&page->slot[i]) == 'T') kill(page->slot[i].process, SIGCONT);
    bool any = true;
    for (double waited = 0; any && waited < patience; waited += 0.05) {
        any = false;
        for (int i = 0; i < page->slots; i++) {
            char state = i == w.judge.mine || page->slot[i].state != WATCH_THERE ? 'X' : state_of(&page->slot[i]);
            any |= state != 'X' && state != '?';
        }
        if (any) nap(0.05);
    }
    for (int i = 0; any && i < page->slots; i++) {
        const struct watch_slot *s = &page->slot[i];
        char state = i == w.judge.mine || s->state != WATCH_THERE ? 'X' : state_of(s);
        if (state != 'X' && state != '?') kill(s->process, SIGKILL);
    }
    leave();
}

/* Ranks on several nodes may find the same thing without knowing of each other. Only the lowest should print it:
 * higher ranks wait, and the launcher ends them when the first process has ended. */
static void wait_for_turn(int rank) {
    if (rank > 0) nap(1.5 + 0.3 * (rank < 10 ? rank : 10));
}

static _Noreturn void speak(struct watch_page *page, enum watch_finding finding) {
    char text[1000];
    const char *known = "";
    for (int i = page->slots - 1; finding == WATCH_CULPRITS && i >= 0; i--)
        if (w.judge.culprit[i]) known = how(state_of(&page->slot[i]));
    if (finding == WATCH_ELSEWHERE) wait_for_turn(page->slot[w.judge.mine].rank);
    watch_say(&w.judge, page, finding, known, text, sizeof text);
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s", w.advice);
    say(text);
    page->verdict = 1 + w.judge.mine;
    end_node(page);
}

/* -- the thread ---------------------------------------------------------------------------------------------------- */
static _Noreturn void end_start(void) {
    char text[400];
    wait_for_turn(w.rank);
    snprintf(text, sizeof text,
             "MPI has not started within %.0f s: not all processes that the launcher started have come to it; start "
             "all of them with the same program and verb, and see whether each of their machines answers",
             w.elapsed);
    say(text);
    leave();
}

/* Whoever finds something first speaks, and the others wait until that has been done. */
static void look(double dt) {
    struct watch_page *page = w.page;
    int nobody = 0, speaks = -1 - w.judge.mine;
    w.judge.limit = w.limit;
    enum watch_finding finding = w.limit > 0 ? watch_look(&w.judge, page, dt) : WATCH_FINE;
    if (finding != WATCH_FINE && atomic_compare_exchange_strong(&page->verdict, &nobody, speaks)) speak(page, finding);
    if (page->verdict == 0) return;
    for (double waited = 0; page->verdict < 0 && waited < patience; waited += 0.02) nap(0.02);
    leave();
}

static double period(void) {
    double p = w.limit / 10;
    return w.limit <= 0 || p > period_most ? period_most : p < period_least ? period_least : p;
}

/* Time during which this process itself was stopped counts as one short interval at most. */
static void tick(double dt) {
    if (dt > 2 * period()) dt = 2 * period();
    if (w.page) {
        struct watch_slot *mine = &w.page->slot[w.judge.mine];
        mine->pulse++;
        look(dt);
    } else {
        w.elapsed += dt;
        if (w.limit > 0 && w.elapsed >= w.limit && w.elapsed >= start_least) end_start();
    }
}

static void *run(void *unused) {
    double last = clock_now();
    (void)unused;
    pthread_mutex_lock(&w.lock);
    while (!w.stop) {
        double until = last + period(), whole = (double)(time_t)until;
        struct timespec t = {(time_t)until, (long)((until - whole) * 1e9)};
        int woken = pthread_cond_timedwait(&w.wake, &w.lock, &t);
        double now = clock_now();
        if (woken == 0 && now < until) continue;
        if (!w.stop) tick(now - last);
        last = now;
    }
    pthread_mutex_unlock(&w.lock);
    return NULL;
}

/* Signals are for the rank's own thread. */
static bool start_thread(void) {
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&w.wake, &clock);
    pthread_condattr_destroy(&clock);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 1 << 18);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&w.thread, &attributes, run, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

void watch_begin(double limit, int rank) {
    if (w.runs) return;
    w.limit = limit;
    w.rank = rank;
    w.stop = false;
    w.elapsed = 0;
    w.runs = start_thread();
}

void watch_join(struct watch_page *page, int mine) {
    size_t slots = (size_t)page->slots;
    struct watch_slot *slot = &page->slot[mine];
    pthread_mutex_lock(&w.lock);
    w.judge = (struct watch_judge){.mine = mine, .excused = is_traced};
    w.judge.record = mem_zalloc(slots, sizeof *w.judge.record, "the watchdog");
    w.judge.culprit = mem_zalloc(slots, sizeof *w.judge.culprit, "the watchdog");
    beat_move(&slot->beat);
    slot->state = w.runs ? WATCH_THERE : WATCH_ABSENT;
    w.page = page;
    pthread_mutex_unlock(&w.lock);
}

void watch_set_limit(double limit) {
    pthread_mutex_lock(&w.lock);
    w.limit = limit;
    if (w.runs) pthread_cond_signal(&w.wake);
    pthread_mutex_unlock(&w.lock);
}

void watch_advise(const char *advice) {
    pthread_mutex_lock(&w.lock);
    w.advice = advice;
    pthread_mutex_unlock(&w.lock);
}

void watch_end(void) {
    pthread_mutex_lock(&w.lock);
    bool ran = w.runs;
    w.stop = true;
    w.runs = false;
    if (ran) pthread_cond_signal(&w.wake);
    pthread_mutex_unlock(&w.lock);
    if (ran) pthread_join(w.thread, NULL);
    if (ran) pthread_cond_destroy(&w.wake);
    if (!w.page) return;
    w.page->slot[w.judge.mine].state = WATCH_LEFT;
    beat_move(NULL);
    mem_free(w.judge.record);
    mem_free(w.judge.culprit);
    w.page = NULL;
}
