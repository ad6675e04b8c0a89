/* trace_file.c: see trace_file.h. The format: "Trace Event Format" (Chromium), complete events ("ph":"X") with ts and
 * dur in microseconds, and metadata events ("ph":"M") that name processes and threads. */
#include "cli/log/trace_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/files/out_file.h"
#include "base/mem.h"

enum { TAG_CLOCK = 901, TAG_EVENTS = 902, ROUNDS = 8 };

/* -- clocks -------------------------------------------------------------------------------------------------------- */

/* Rank 0's half of the ping-pong with one rank, which is told its clock minus ours, from the quickest of a few round
 * trips, where the answer was given about half way between question and receipt: it is off by half a trip at most. */
static void send_offset(struct comm *c, int rank) {
    double best = 0, quickest = -1;
    for (int i = 0; i < ROUNDS; i++) {
        double theirs, asked = clock_now();
        comm_send(c, rank, TAG_CLOCK, &asked, sizeof asked);
        comm_recv(c, rank, TAG_CLOCK, &theirs, sizeof theirs);
        double answered = clock_now(), trip = answered - asked;
        if (quickest >= 0 && trip >= quickest) continue;
        quickest = trip;
        best = theirs - (asked + answered) / 2;
    }
    if (fabs(best) <= quickest / 2) best = 0; /* no more than the trip explains: one clock, as on one node */
    comm_send(c, rank, TAG_CLOCK, &best, sizeof best);
}

static double answer_clock(struct comm *c) {
    double asked, offset;
    for (int i = 0; i < ROUNDS; i++) {
        comm_recv(c, 0, TAG_CLOCK, &asked, sizeof asked);
        double now = clock_now();
        comm_send(c, 0, TAG_CLOCK, &now, sizeof now);
    }
    comm_recv(c, 0, TAG_CLOCK, &offset, sizeof offset);
    return offset;
}

static void measure_offset(struct trace_file *t, int which) {
    struct comm *c = t->comm;
    double offset = 0;
    if (c->rank > 0) offset = answer_clock(c);
    for (int r = 1; c->rank == 0 && r < c->size; r++) send_offset(c, r);
    t->offset_at[which] = offset;
    t->measured_at[which] = clock_now();
}

/* A time of this rank's clock as one of rank 0's: less the offset, which moves on a straight line between its two
 * measurements. */
static double common_time(const struct trace_file *t, double own) {
    double span = t->measured_at[1] - t->measured_at[0];
    double part = span > 0 ? (own - t->measured_at[0]) / span : 0;
    return own - (t->offset_at[0] + part * (t->offset_at[1] - t->offset_at[0]));
}

/* -- opening ------------------------------------------------------------------------------------------------------- */

/* Rank 0: may FILE be written? */
static void try_path(const struct trace_file *t, const char *path, struct err *e) {
    if (strlen(path) >= sizeof t->path) {
        err_set(e, "the name of the trace file is longer than %zu characters", sizeof t->path - 1);
        return;
    }
    out_file_check(path, "--trace", e);
}

bool trace_file_open_sized(struct trace_file *t, struct comm *c, const char *path, size_t events, struct err *e) {
    *t = (struct trace_file){.comm = c};
    enum traffic traffic = c->traffic;
    c->traffic = TRAFFIC_CONTROL;
    snprintf(t->path, sizeof t->path, "%s", path);
    if (c->rank == 0) try_path(t, path, e);
    if (!comm_agree(c, e)) {
        for (int i = 0; i < TRACE_THREADS; i++) trace_open(&t->thread[i], events);
        t->open = true;
        measure_offset(t, 0);
        t->began = t->measured_at[0];
        comm_bcast(c, 0, &t->began, sizeof t->began);
    }
    c->traffic = traffic;
    return t->open;
}

bool trace_file_open(struct trace_file *t, struct comm *c, const char *path, struct err *e) {
    return trace_file_open_sized(t, c, path, TRACE_EVENTS, e);
}

struct trace *trace_file_thread(struct trace_file *t, int thread) {
    return t->open ? &t->thread[thread] : NULL;
}

void trace_file_close(struct trace_file *t) {
    if (!t->open) return;
    for (int i = 0; i < TRACE_THREADS; i++) trace_close(&t->thread[i]);
    t->open = false;
}

/* -- writing ------------------------------------------------------------------------------------------------------- */

/* What one rank sends before its events. */
struct part {
    uint64_t count, dropped;
};

static void write_names(FILE *f, int rank, const char *host) {
    fprintf(f,
            "{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":\"rank %d on %s\"}},\n"
            "{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_sort_index\",\"args\":{\"sort_index\":%d}}",
            rank, rank, host, rank, rank);
}

static void write_thread(FILE *f, int rank, int thread, const struct part *part, const struct trace_event *event) {
    static const char *const names[TRACE_THREADS] = {"main", "worker"};
    if (part->count == 0 && part->dropped == 0) return;
    fprintf(f, ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}}", rank,
            thread, names[thread]);
    if (part->dropped)
        fprintf(f, ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"events_dropped\",\"args\":{\"count\":%llu}}",
                rank, thread, (unsigned long long)part->dropped);
    for (uint64_t i = 0; i < part->count; i++)
        fprintf(f, ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"name\":\"%s\",\"ts\":%.3f,\"dur\":%.3f}", rank, thread,
                phase_names[event[i].phase], event[i].begin * 1e6, (event[i].end - event[i].begin) * 1e6);
}

/* Host names are ASCII letters, digits, dots and dashes; anything else would have to be quoted. */
static void plain_host(char host[64]) {
    snprintf(host, 64, "%.63s", comm_host());
    for (char *p = host; *p; p++)
        if (*p < ' ' || *p > '~' || *p == '"' || *p == '\\') *p = '?';
}

/* This rank's events in microseconds of rank 0's clock since the beginning; they are not needed otherwise any more. */
static void to_common_time(struct trace_file *t) {
    for (int i = 0; i < TRACE_THREADS; i++)
        for (size_t j = 0; j < t->thread[i].count; j++) {
            struct trace_event *event = &t->thread[i].event[j];
            event->begin = common_time(t, event->begin) - t->began;
            event->end = common_time(t, event->end) - t->began;
        }
}

static void send_all(struct trace_file *t) {
    char host[64] = "";
    plain_host(host);
    comm_send(t->comm, 0, TAG_EVENTS, host, sizeof host);
    for (int i = 0; i < TRACE_THREADS; i++) {
        const struct trace *thread = &t->thread[i];
        struct part part = {thread->count, thread->dropped};
        comm_send(t->comm, 0, TAG_EVENTS, &part, sizeof part);
        comm_send(t->comm, 0, TAG_EVENTS, thread->event, thread->count * sizeof *thread->event);
    }
}

/* Rank 0: its own events and then, rank by rank, those of the others, whose capacity is the same. */
static uint64_t write_all(struct trace_file *t, FILE *f) {
    size_t bytes = t->thread[0].cap * sizeof(struct trace_event);
    struct trace_event *theirs = mem_alloc(bytes, 1, "the trace of another rank");
    uint64_t dropped = 0;
    char host[64];
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", f);
    for (int r = 0; r < t->comm->size; r++) {
        if (r == 0)
            plain_host(host);
        else
            comm_recv(t->comm, r, TAG_EVENTS, host, sizeof host);
        if (r > 0) fputs(",\n", f);
        write_names(f, r, host);
        for (int i = 0; i < TRACE_THREADS; i++) {
            struct part part = {t->thread[i].count, t->thread[i].dropped};
            if (r > 0) comm_recv(t->comm, r, TAG_EVENTS, &part, sizeof part);
            if (r > 0) comm_recv(t->comm, r, TAG_EVENTS, theirs, bytes);
            write_thread(f, r, i, &part, r > 0 ? theirs : t->thread[i].event);
            dropped += part.dropped;
        }
    }
    fputs("\n]}\n", f);
    mem_free(theirs);
    return dropped;
}

bool trace_file_write(struct trace_file *t, struct err *note, struct err *e) {
    struct comm *c = t->comm;
    enum traffic traffic = c->traffic;
    uint64_t dropped = 0;
    c->traffic = TRAFFIC_CONTROL;
    measure_offset(t, 1);
    to_common_time(t);
    if (c->rank > 0) {
        send_all(t);
    } else {
        struct out_file out;
        bool opened = out_file_open(&out, t->path, "--trace", e);
        FILE *sink = opened ? out.file : fopen("/dev/null", "w"); /* the others send all the same */
        if (!sink) die("neither %s nor /dev/null can be opened: %s", t->path, strerror(errno));
        dropped = write_all(t, sink);
        if (opened)
            out_file_close(&out, e);
        else
            fclose(sink);
    }
    comm_bcast(c, 0, &dropped, sizeof dropped);
    if (dropped)
        err_set(note, "the trace %s lacks %llu later events: there was room for %zu of a thread of a rank", t->path,
                (unsigned long long)dropped, t->thread[0].cap);
    bool good = !comm_agree(c, e);
    c->traffic = traffic;
    return good;
}
