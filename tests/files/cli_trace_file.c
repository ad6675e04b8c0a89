/* cli_trace_file.c: the trace is JSON and holds every rank's events at the times of one clock; what did not fit is
 * counted; what cannot be written is refused before the run, and nothing is left behind.
 * ranks: 1 2 5 */
#include <glob.h>

#include "tests/lib/mpi_harness.h"

#include <ctype.h>

#include "cli/log/trace_file.h"

static char path[64], text[1 << 20];

/* -- a JSON reader that only says whether the text is JSON --------------------------------------------------------- */
static const char *value(const char *p);

static const char *space(const char *p) {
    while (p && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')) p++;
    return p;
}

static const char *string(const char *p) {
    if (*p++ != '"') return NULL;
    for (; *p != '"'; p++) {
        if ((unsigned char)*p < 0x20) return NULL;
        if (*p == '\\' && !strchr("\"\\/bfnrtu", *++p)) return NULL;
    }
    return p + 1;
}

static const char *number(const char *p) {
    char *end;
    if (*p != '-' && !isdigit((unsigned char)*p)) return NULL;
    strtod(p, &end);
    return end;
}

/* {..} or [..] */
static const char *container(const char *p, bool object) {
    char close = object ? '}' : ']';
    p = space(p + 1);
    if (*p == close) return p + 1;
    for (;; p++) {
        p = space(p);
        if (object && (!(p = string(p)) || *(p = space(p)) != ':')) return NULL;
        if (object) p++;
        if (!(p = value(p))) return NULL;
        if (*p == close) return p + 1;
        if (*p != ',') return NULL;
    }
}

static const char *value(const char *p) {
    p = space(p);
    if (*p == '{' || *p == '[')
        p = container(p, *p == '{');
    else if (*p == '"')
        p = string(p);
    else
        p = number(p);
    return p ? space(p) : NULL;
}

static bool is_json(const char *p) {
    p = value(p);
    return p && *p == '\0';
}

static void the_reader_reads(struct comm *c) {
    (void)c;
    assert_true(is_json("{\"a\":[1,-2.5e3,\"x\\\"y\"],\"b\":{}}\n"));
    assert_false(is_json("{\"a\":[1,]}"));
    assert_false(is_json("{\"a\":1}}"));
    assert_false(is_json("{\"a\" 1}"));
    assert_false(is_json("{\"a\":nan}"));
}

/* -- the trace ---------------------------------------------------------------------------------------------------- */

static void read_text(void) {
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    assert_true(is_json(text));
}

static int count(const char *part) {
    int times = 0;
    for (const char *p = text; (p = strstr(p, part)); p++) times++;
    return times;
}

/* Is there something beside the file that is not complete? */
static bool unfinished(void) {
    char pattern[80];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s.*", path);
    bool any = glob(pattern, 0, NULL, &found) == 0;
    globfree(&found);
    return any;
}

static void holds_every_rank(struct comm *c) {
    struct trace_file t;
    struct err e = {0}, note = {0};
    mpi_test_path(c, "trace", path);
    assert_true(trace_file_open_sized(&t, c, path, 10, &e));
    comm_barrier(c);
    double begin = clock_now();
    comm_bcast(c, 0, &begin, sizeof begin); /* one machine, one clock */
    double after = begin - t.began;
    comm_bcast(c, 0, &after, sizeof after);
    trace_add(trace_file_thread(&t, 0), PHASE_SELECT, begin, begin + 0.001);
    trace_add(trace_file_thread(&t, 0), PHASE_MERGE, begin + 0.001, begin + 0.003);
    trace_add(trace_file_thread(&t, 0), PHASE_MERGE, begin + 0.003, begin + 0.004); /* makes the last one longer */
    if (c->rank == c->size - 1) trace_add(trace_file_thread(&t, 1), PHASE_COMMUNICATE, begin, begin + 0.002);
    assert_true(trace_file_write(&t, &note, &e));
    assert_string_equal(note.text, "");
    trace_file_close(&t);
    trace_file_close(&t);
    if (c->rank == 0) {
        read_text();
        for (int r = 0; r < c->size; r++) {
            char part[96], *at;
            snprintf(part, sizeof part, "\"pid\":%d,\"tid\":0,\"name\":\"select\",\"ts\":", r);
            assert_int_equal(count(part), 1);
            at = strstr(text, part) + strlen(part);
            /* The clocks are one, so that what remains is what the estimate is off by: less than a round trip. */
            assert_true(atof(at) > after * 1e6 - 100e3 && atof(at) < after * 1e6 + 100e3);
            snprintf(part, sizeof part, "{\"name\":\"rank %d on ", r);
            assert_int_equal(count(part), 1);
        }
        assert_int_equal(count("\"name\":\"merge\""), c->size);
        assert_int_equal(count("\"name\":\"worker\""), 1);
        assert_int_equal(count(",\"dur\":3000.0"), c->size);
        assert_int_equal(count("\"name\":\"communicate\""), 1);
        assert_int_equal(count("events_dropped"), 0);
        assert_int_equal(count("\"ph\":\"X\""), 2 * c->size + 1);
        assert_false(unfinished());
        remove(path);
    }
    comm_barrier(c);
}

static void what_does_not_fit_is_counted(struct comm *c) {
    struct trace_file t;
    struct err e = {0}, note = {0};
    mpi_test_path(c, "trace", path);
    assert_true(trace_file_open_sized(&t, c, path, 4, &e));
    double begin = clock_now();
    for (int i = 0; i < 10; i++)
        trace_add(trace_file_thread(&t, 0), i % 2 ? PHASE_MERGE : PHASE_PACK, begin + i, begin + i + 1);
    assert_true(trace_file_write(&t, &note, &e));
    char wanted[64];
    snprintf(wanted, sizeof wanted, "lacks %d later events", 6 * c->size);
    assert_non_null(strstr(note.text, wanted));
    trace_file_close(&t);
    if (c->rank == 0) {
        read_text();
        assert_int_equal(count("\"ph\":\"X\""), 4 * c->size);
        assert_int_equal(count("\"name\":\"events_dropped\",\"args\":{\"count\":6}"), c->size);
        remove(path);
    }
    comm_barrier(c);
}

static void what_cannot_be_written_is_refused_first(struct comm *c) {
    struct trace_file t;
    struct err e = {0};
    static const char *const paths[] = {"/nowhere/x", "/tmp", "/tmp/", ""};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        e = (struct err){0};
        assert_false(trace_file_open(&t, c, paths[i], &e));
        assert_true(e.text[0] && !strchr(e.text, '\n'));
        assert_null(trace_file_thread(&t, 0));
        trace_file_close(&t);
    }
}

/* A run that ends early leaves an older trace as it was. */
static void an_unfinished_one_leaves_nothing(struct comm *c) {
    struct trace_file t;
    struct err e = {0};
    mpi_test_path(c, "trace", path);
    if (c->rank == 0) {
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs("old", f);
        fclose(f);
    }
    assert_true(trace_file_open(&t, c, path, &e));
    trace_file_close(&t);
    if (c->rank == 0) {
        assert_false(unfinished());
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        assert_non_null(fgets(text, sizeof text, f));
        assert_string_equal(text, "old");
        fclose(f);
        remove(path);
    }
    comm_barrier(c);
}

/* The disk is full by the end (a directory has taken the file's place). */
static void a_late_failure_is_told(struct comm *c) {
    struct trace_file t;
    struct err e = {0}, note = {0};
    mpi_test_path(c, "trace", path);
    assert_true(trace_file_open(&t, c, path, &e));
    char command[96];
    snprintf(command, sizeof command, "mkdir %s", path);
    if (c->rank == 0) assert_int_equal(system(command), 0);
    comm_barrier(c);
    assert_false(trace_file_write(&t, &note, &e));
    assert_non_null(strstr(e.text, "it is a directory"));
    trace_file_close(&t);
    if (c->rank == 0) {
        assert_false(unfinished());
        rmdir(path);
    }
    comm_barrier(c);
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"the_reader_reads", the_reader_reads},
        {"holds_every_rank", holds_every_rank},
        {"what_does_not_fit_is_counted", what_does_not_fit_is_counted},
        {"what_cannot_be_written_is_refused_first", what_cannot_be_written_is_refused_first},
        {"an_unfinished_one_leaves_nothing", an_unfinished_one_leaves_nothing},
        {"a_late_failure_is_told", a_late_failure_is_told}};
    return mpi_test_main(argc, argv, "cli_trace_file", cases, sizeof cases / sizeof *cases);
}
