/* progress.c: see progress.h. */
#include "base/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/clock.h"

enum { BAR_LEAST = 8, BAR_MOST = 24, COLUMNS_USUAL = 80, COLUMNS_MOST = 400 };

void progress_open(struct progress *p, FILE *stream, int terminal) {
    *p = (struct progress){.stream = stream, .terminal = terminal, .drawn = -1};
}

static int columns_of(int terminal) {
    struct winsize window;
    const char *said = getenv("COLUMNS");
    int columns = 0;
    if (ioctl(terminal, TIOCGWINSZ, &window) == 0) columns = window.ws_col;
    if (columns <= 0 && said) columns = atoi(said);
    if (columns <= 0) columns = COLUMNS_USUAL;
    return columns < COLUMNS_MOST ? columns : COLUMNS_MOST;
}

void progress_time(char *text, size_t size, double seconds) {
    double minutes = floor(seconds / 60 + 0.5), hours = floor(seconds / 3600 + 0.5);
    if (seconds < 90)
        snprintf(text, size, "%.0f s", seconds);
    else if (minutes < 90)
        snprintf(text, size, "%.0f min", minutes);
    else if (minutes < 600)
        snprintf(text, size, "%d h %d min", (int)minutes / 60, (int)minutes % 60);
    else if (hours < 48)
        snprintf(text, size, "%.0f h", hours);
    else
        snprintf(text, size, "%.0f days", floor(seconds / 86400 + 0.5));
}

/* "1:05", "3:20:11" */
static void clock_text(char *text, size_t size, double seconds) {
    if (!isfinite(seconds)) {
        snprintf(text, size, "-:--");
        return;
    }
    long s = (long)(seconds + 0.5);
    if (s >= 3600)
        snprintf(text, size, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(text, size, "%ld:%02ld", s / 60, s % 60);
}

/* How many of the notes fit, from the first on, with two blanks before each; *length: of all that. */
static size_t fitting(const char *const *note, int room, int *length) {
    size_t count = 0;
    *length = 0;
    while (note[count] && *length + 2 + (int)strlen(note[count]) <= room) *length += 2 + (int)strlen(note[count++]);
    return count;
}

void progress_line(char *text, size_t size, int columns, double part, double left, const char *const *note) {
    char time[32], done[64], bar[2 * BAR_MOST + 4] = "";
    part = fmin(fmax(part, 0), 1);
    clock_text(time, sizeof time, left);
    snprintf(done, sizeof done, "%3.0f%%  %s left", floor(100 * part), time);
    int width = columns > 1 ? columns - 1 : 1, room = width - (int)strlen(done), length;
    size_t notes = fitting(note, room - BAR_LEAST - 3, &length);
    if (notes > 0) { /* else what there is to say counts more than a bar */
        int wide = room - 3 - length < BAR_MOST ? room - 3 - length : BAR_MOST;
        snprintf(bar, sizeof bar, "[%.*s%.*s] ", (int)(part * wide), "########################",
                 wide - (int)(part * wide), "........................");
    } else {
        notes = fitting(note, room, &length);
    }
    snprintf(text, size, "%s%s", bar, done);
    for (size_t i = 0; i < notes; i++) snprintf(text + strlen(text), size - strlen(text), "  %s", note[i]);
    if ((size_t)width < size) text[width] = '\0';
}

void progress_show(struct progress *p, double part, double left, const char *const *note) {
    char text[COLUMNS_MOST + 1];
    double now = clock_now();
    if (p->drawn >= 0 && now - p->drawn < 0.1) return;
    p->drawn = now;
    p->live = true;
    progress_line(text, sizeof text, columns_of(p->terminal), part, left, note);
    fprintf(p->stream, "\r\033[K%s", text);
    fflush(p->stream);
}

void progress_clear(struct progress *p) {
    if (!p->live) return;
    p->live = false;
    p->drawn = -1;
    fputs("\r\033[K", p->stream);
    fflush(p->stream);
}
