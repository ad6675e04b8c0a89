/* cli_record.c: recorded gradients: what is written is what is read; whatever breaks off or is damaged is refused in
 * one line, an incomplete last step is left out; the pattern real:FILE hands them to other numbers of ranks. The same
 * of recorded selections and selected:FILE. */
/* ranks: 1 3 4 */
#include "tests/lib/mpi_harness.h"

#include <math.h>

#include "base/hash.h"
#include "cli/gradients/pattern.h"

enum { N = 1000, STEPS = 3 };
static char path[64];

static float value_of(size_t step, int rank, size_t i) {
    return (float)(10000 * (int)step + 1000 * rank) + (float)i / 1024;
}

static const struct record_slice slices[] = {{"conv.weight", 900}, {"linear.bias", 100}};
enum { FIRST_ROW = (int)(sizeof(struct record_head) + sizeof slices) + 4 }; /* where it begins in the file */

static void write_file(struct comm *c) {
    struct record r;
    struct err e = {0};
    const struct record_about about = {
        .n = N, .model = "m", .data = "d:e", .batch = 7, .slice = slices, .slices = 2, .device = device_find("cpu")};
    mpi_test_path(c, "record", path);
    assert_true(record_open(&r, c, path, &about, &e));
    float grad[N];
    for (size_t s = 0; s < STEPS; s++) {
        for (size_t i = 0; i < N; i++) grad[i] = value_of(s, c->rank, i);
        assert_true(record_step(&r, 5 * s, grad, &e));
    }
    assert_int_equal(r.steps, STEPS);
    record_close(&r);
    record_close(&r);
    comm_barrier(c);
}

static void remove_file(struct comm *c) {
    comm_barrier(c);
    if (c->rank == 0) remove(path);
}

static void reads_what_was_written(struct comm *c) {
    write_file(c);
    struct record_reader in;
    struct err e = {0};
    float grad[N];
    if (c->rank == 0) {
        assert_true(record_read_open(&in, path, &e));
        assert_int_equal(in.n, N);
        assert_int_equal(in.ranks, c->size);
        assert_int_equal(in.steps, STEPS);
        assert_false(in.incomplete);
        assert_string_equal(in.head.model, "m");
        assert_string_equal(in.head.data, "d:e");
        assert_int_equal(in.head.batch, 7);
        assert_string_equal(in.slice[1].name, "linear.bias");
        assert_int_equal(in.slice[1].size, 100);
        for (size_t s = STEPS; s-- > 0;)
            for (int r = 0; r < c->size; r++) {
                assert_true(record_read(&in, s, (size_t)r, grad, &e));
                for (size_t i = 0; i < N; i++) assert_true(grad[i] == value_of(s, r, i));
            }
        record_read_close(&in);
    }
    remove_file(c);
}

static void does_not_overwrite(struct comm *c) {
    write_file(c);
    struct record r;
    struct err e = {0};
    const struct record_about about = {.n = N, .model = "m", .data = "d", .batch = 1};
    assert_false(record_open(&r, c, path, &about, &e));
    assert_non_null(strstr(e.text, "is there already"));
    remove_file(c);
    e = (struct err){0};
    assert_true(record_open(&r, c, path, &about, &e));
    record_close(&r); /* it holds nothing */
    comm_barrier(c);
    assert_int_not_equal(access(path, F_OK), 0);
    e = (struct err){0};
    assert_false(record_open(&r, c, "/nowhere/file", &about, &e));
    assert_non_null(strstr(e.text, "/nowhere/file"));
}

/* The file's bytes changed at one place, or its length; then opened, and every row read. */
static void change(long at, unsigned char with) {
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    assert_int_equal(fwrite(&with, 1, 1, f), 1);
    fclose(f);
}

static void is_refused(const char *part) {
    struct record_reader in;
    struct err e = {0};
    float grad[N];
    bool good = record_read_open(&in, path, &e);
    for (size_t s = 0; good && s < in.steps; s++)
        for (size_t r = 0; good && r < in.ranks; r++) good = record_read(&in, s, r, grad, &e);
    assert_false(good);
    if (!strstr(e.text, part)) fail_msg("\"%s\" instead of \"%s\"", e.text, part);
    assert_null(strchr(e.text, '\n'));
    record_read_close(&in);
}

static void damage_is_found(struct comm *c) {
    static const struct {
        long at;
        unsigned char with;
        const char *part;
    } cases[] = {{0, 'X', "not a file of recorded gradients"},
                 {8, 9, "format version"},
                 {12, 1, "byte order"},
                 {24, 200, "head"}, /* ranks */
                 {49, 'y', "checksum of its head"},
                 {(long)sizeof(struct record_head) + 3, '?', "checksum of its head"},
                 {FIRST_ROW + 5, 1, "checksum of rank 0 in its step 1"},
                 {FIRST_ROW + 30, 1, "checksum of rank 0 in its step 1"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_file(c);
        if (c->rank == 0) {
            change(cases[i].at, cases[i].with);
            is_refused(cases[i].part);
        }
        remove_file(c);
    }
}

/* A run that was killed: every length of the file either gives complete steps or is refused. */
static void any_length_is_understood(struct comm *c) {
    write_file(c);
    if (c->rank == 0) {
        long row = 16 + 4 * N, step = row * c->size;
        long first = FIRST_ROW, length = first + STEPS * step;
        const long lengths[] = {
            length - 1, length - step, length - step - 1, first + step, first + step - 1, first, first - 1, 100, 8, 0};
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            struct record_reader in;
            struct err e = {0};
            assert_int_equal(truncate(path, lengths[i]), 0);
            long complete = lengths[i] < first ? 0 : (lengths[i] - first) / step;
            assert_int_equal(record_read_open(&in, path, &e), complete > 0);
            if (complete == 0)
                assert_true(strstr(e.text, "truncated") || strstr(e.text, "not a file") ||
                            strstr(e.text, "no complete step"));
            if (complete == 0) continue;
            assert_int_equal(in.steps, complete);
            assert_int_equal(in.incomplete, (lengths[i] - first) % step != 0);
            record_read_close(&in);
        }
    }
    remove_file(c);
}

/* The job's first `ranks` ranks record; then all replay: rank r has recorded rank r mod R, r / R steps later. */
static void replays_to_other_numbers_of_ranks(struct comm *c) {
    int recorders = c->size > 1 ? 2 : 1;
    struct comm *group = comm_split(c, c->rank < recorders, c->rank);
    if (c->rank < recorders) write_file(group);
    comm_split_close(group);
    comm_bcast(c, 0, path, sizeof path);
    comm_barrier(c);
    struct pattern p;
    struct err e = {0};
    char text[96];
    float grad[N];
    snprintf(text, sizeof text, "real:%s", path);
    assert_true(pattern_open(&p, c, text, 1, &e));
    assert_int_equal(p.n, N);
    assert_int_equal(p.steps, STEPS);
    for (size_t t = 0; t < 2 * STEPS + 1; t++) {
        assert_true(pattern_gradient(&p, t, N, grad, &e));
        size_t step = (t + (size_t)(c->rank / recorders)) % STEPS;
        for (size_t i = 0; i < N; i++) assert_true(grad[i] == value_of(step, c->rank % recorders, i));
    }
    if (c->rank == 0) change(FIRST_ROW + 30, 1);
    assert_false(pattern_gradient(&p, 0, N, grad, &e));
    assert_non_null(strstr(e.text, "damaged"));
    pattern_close(&p);
    remove_file(c);
}

/* -- selected entries ---------------------------------------------------------------------------------------------- */

/* Rank r selects other numbers of entries in other steps, none at all in some. */
static struct sparse selection_of(size_t step, int rank) {
    static uint32_t idx[N];
    static float val[N];
    struct sparse s = {idx, val, 0, N};
    for (uint32_t i = (uint32_t)rank + 1; (step + (size_t)rank) % 3 != 1 && i < N; i += 40 + (uint32_t)step, s.nnz++) {
        idx[s.nnz] = i;
        val[s.nnz] = value_of(step, rank, i);
    }
    return s;
}

enum { FIRST_SELECTED = FIRST_ROW + (int)sizeof(struct record_selection), ROW = (int)sizeof(struct record_row) };

static void write_selected(struct comm *c) {
    struct record r;
    struct err e = {0};
    const struct record_about about = {.n = N,
                                       .model = "m",
                                       .data = "d:e",
                                       .batch = 7,
                                       .slice = slices,
                                       .slices = 2,
                                       .selected = true,
                                       .selection = {25, 0.025}};
    mpi_test_path(c, "selected", path);
    assert_true(record_open(&r, c, path, &about, &e));
    for (size_t s = 0; s < STEPS; s++) {
        struct sparse sent = selection_of(s, c->rank);
        assert_true(record_selected_step(&r, 5 * s, 20 + s, &sent, &e));
    }
    assert_int_equal(r.steps, STEPS);
    record_close(&r);
    comm_barrier(c);
}

static void is_selection(const struct sparse *got, size_t step, int rank) {
    struct sparse s = selection_of(step, rank);
    assert_int_equal(got->nnz, s.nnz);
    assert_memory_equal(got->idx, s.idx, s.nnz * sizeof *s.idx);
    assert_memory_equal(got->val, s.val, s.nnz * sizeof *s.val);
}

static void reads_what_was_selected(struct comm *c) {
    write_selected(c);
    if (c->rank == 0) {
        struct record_reader in;
        struct err e = {0};
        struct sparse s;
        assert_true(record_selected_open(&in, path, &e));
        assert_int_equal(in.n, N);
        assert_int_equal(in.ranks, c->size);
        assert_int_equal(in.steps, STEPS);
        assert_false(in.incomplete);
        assert_int_equal(in.selection.k, 25);
        assert_true(in.selection.density == 0.025);
        assert_string_equal(in.slice[1].name, "linear.bias");
        sparse_open(&s, in.most);
        for (size_t t = STEPS; t-- > 0;)
            for (int r = 0; r < c->size; r++) {
                assert_int_equal(in.row[t * in.ranks + (size_t)r].step, 5 * t);
                assert_int_equal(in.row[t * in.ranks + (size_t)r].k, 20 + t);
                assert_true(record_selected_read(&in, t, (size_t)r, &s, &e));
                is_selection(&s, t, r);
            }
        sparse_close(&s);
        record_read_close(&in);
        assert_false(record_read_open(&in, path, &e));
        assert_non_null(strstr(e.text, "holds recorded selections, not recorded gradients"));
    }
    remove_file(c);
    write_file(c);
    if (c->rank == 0) {
        struct record_reader in;
        struct err e = {0};
        assert_false(record_selected_open(&in, path, &e));
        assert_non_null(strstr(e.text, "holds recorded gradients, not recorded selections"));
    }
    remove_file(c);
}

/* Opens the file and reads all of it; the line of whatever is wrong. */
static struct err read_selected(void) {
    struct record_reader in;
    struct err e = {0};
    struct sparse s;
    if (!record_selected_open(&in, path, &e)) return e;
    sparse_open(&s, in.most);
    for (size_t i = 0; i < in.steps * in.ranks && !e.text[0]; i++)
        record_selected_read(&in, i / in.ranks, i % in.ranks, &s, &e);
    sparse_close(&s);
    record_read_close(&in);
    return e;
}

/* Any byte of the file, wherever it lies: one line. */
static void damage_of_selections_is_found(struct comm *c) {
    write_selected(c);
    if (c->rank == 0) {
        FILE *f = fopen(path, "rb");
        assert_non_null(f);
        assert_int_equal(fseek(f, 0, SEEK_END), 0);
        long length = ftell(f);
        for (long at = 0; at < length; at += at < FIRST_SELECTED + 2 * ROW ? 1 : 7) {
            assert_int_equal(fseek(f, at, SEEK_SET), 0);
            int was = fgetc(f);
            change(at, (unsigned char)(was ^ 0x41));
            struct err e = read_selected();
            if (!e.text[0] || strchr(e.text, '\n')) fail_msg("byte %ld: \"%s\"", at, e.text);
            change(at, (unsigned char)was);
        }
        fclose(f);
        assert_int_equal(read_selected().text[0], 0);
    }
    remove_file(c);
}

static void change_bytes(long at, const void *with, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) change(at + (long)i, ((const unsigned char *)with)[i]);
}

static uint32_t crc_of_file(long from, long to) {
    unsigned char data[4096];
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_true(to - from <= (long)sizeof data && fseek(f, from, SEEK_SET) == 0);
    assert_int_equal(fread(data, 1, (size_t)(to - from), f), to - from);
    fclose(f);
    return crc32_of(0, data, (size_t)(to - from));
}

/* So many bytes of the head changed, by somebody who can compute a checksum. */
static void craft_head(bool selected, long at, const void *with, size_t bytes) {
    const long end = (selected ? FIRST_SELECTED : FIRST_ROW) - 4;
    change_bytes(at, with, bytes);
    const uint32_t crc = crc_of_file(0, end);
    change_bytes(end, &crc, sizeof crc);
}

static bool opened(bool selected, struct record_reader *in, struct err *e) {
    *e = (struct err){0};
    return selected ? record_selected_open(in, path, e) : record_read_open(in, path, e);
}

static void heads_that_no_run_writes(struct comm *c) {
    enum { HEAD = sizeof(struct record_head), SIZE = RECORD_SLICE_MAX, SLICE = sizeof(struct record_slice) };
    const uint64_t more = N + 5, rest = (uint64_t)0 - 5, million = 1000000;
    for (int selected = 0; selected < 2; selected++) {
        const long first = HEAD + (selected ? (long)sizeof(struct record_selection) : 0);
        struct record_reader in = {0};
        struct err e;
        selected ? write_selected(c) : write_file(c);
        if (c->rank == 0) {
            craft_head(selected, first + SIZE, &more, sizeof more); /* their sum runs over, to n */
            craft_head(selected, first + SLICE + SIZE, &rest, sizeof rest);
            assert_false(opened(selected, &in, &e));
            assert_non_null(strstr(e.text, "its layers do not add up"));
        }
        remove_file(c);
        selected ? write_selected(c) : write_file(c);
        if (c->rank == 0) {
            craft_head(selected, 24, &million, sizeof million); /* ranks */
            assert_false(opened(selected, &in, &e));
            assert_non_null(strstr(e.text, "no complete step"));
            craft_head(selected, 32, &million, sizeof million); /* layers */
            assert_false(opened(selected, &in, &e));
            assert_non_null(strstr(e.text, "truncated within its head"));
        }
        remove_file(c);
        selected ? write_selected(c) : write_file(c);
        if (c->rank == 0) {
            craft_head(selected, 48, "\033[2J", 5);
            craft_head(selected, first, "\nname", 6);
            assert_true(opened(selected, &in, &e));
            assert_string_equal(in.head.model, "?[2J");
            assert_string_equal(in.slice[0].name, "?name");
            record_read_close(&in);
        }
        remove_file(c);
    }
}

/* Of step and rank: where the row begins. */
static long row_at(size_t step, int rank, int P) {
    long at = FIRST_SELECTED;
    for (size_t s = 0; s <= step; s++)
        for (int r = 0; r < P && (s < step || r < rank); r++) at += ROW + 8 * (long)selection_of(s, r).nnz;
    return at;
}

static void rows_that_no_run_writes(struct comm *c) {
    write_selected(c);
    if (c->rank == 0) {
        const uint64_t step = 5 * (STEPS - 2);
        struct record_row row = {.step = step, .k = 20 + STEPS - 1, .nnz = selection_of(STEPS - 1, 0).nnz};
        const long at = row_at(STEPS - 1, 0, c->size);
        row.crc = crc_of_file(at + ROW, at + ROW + 8 * (long)row.nnz);
        row.row_crc = crc32_of(0, &row, sizeof row);
        change_bytes(at, &row, sizeof row); /* for the second time */
        if (!strstr(read_selected().text, "makes no sense")) fail_msg("%s", read_selected().text);
    }
    remove_file(c);
    write_selected(c);
    if (c->rank == 0) {
        const long nnz = (long)selection_of(0, 0).nnz;
        const float bad = INFINITY;
        struct record_row row = {.step = 0, .k = 20, .nnz = (uint64_t)nnz};
        change_bytes(FIRST_SELECTED + ROW + 4 * nnz, &bad, sizeof bad);
        row.crc = crc_of_file(FIRST_SELECTED + ROW, FIRST_SELECTED + ROW + 8 * nnz);
        row.row_crc = crc32_of(0, &row, sizeof row);
        change_bytes(FIRST_SELECTED, &row, sizeof row);
        if (!strstr(read_selected().text, "a NaN or an infinity")) fail_msg("%s", read_selected().text);
    }
    remove_file(c);
}

static void any_length_of_selections_is_understood(struct comm *c) {
    write_selected(c);
    if (c->rank == 0) {
        long ends[STEPS + 1] = {FIRST_SELECTED}, length;
        for (size_t s = 0; s < STEPS; s++) {
            ends[s + 1] = ends[s];
            for (int r = 0; r < c->size; r++) ends[s + 1] += ROW + 8 * (long)selection_of(s, r).nnz;
        }
        for (length = ends[STEPS]; length >= 0; length -= length > FIRST_SELECTED ? 3 : 50) {
            struct record_reader in;
            struct err e = {0};
            size_t complete = 0;
            assert_int_equal(truncate(path, length), 0);
            while (complete < STEPS && ends[complete + 1] <= length) complete++;
            assert_int_equal(record_selected_open(&in, path, &e), complete > 0);
            if (complete == 0)
                assert_true(strstr(e.text, "truncated") || strstr(e.text, "not a file") ||
                            strstr(e.text, "no complete step"));
            if (complete == 0) continue;
            assert_int_equal(in.steps, complete);
            assert_int_equal(in.incomplete, length != ends[complete]);
            record_read_close(&in);
        }
    }
    remove_file(c);
}

/* As lists and as vectors. */
static void replays_selections(struct comm *c) {
    int recorders = c->size > 1 ? 2 : 1;
    struct comm *group = comm_split(c, c->rank < recorders, c->rank);
    if (c->rank < recorders) write_selected(group);
    comm_split_close(group);
    comm_bcast(c, 0, path, sizeof path);
    comm_barrier(c);
    struct pattern p;
    struct err e = {0};
    struct sparse out;
    char text[96];
    float grad[N];
    snprintf(text, sizeof text, "selected:%s", path);
    assert_true(pattern_open(&p, c, text, 1, &e));
    assert_true(pattern_has_entries(&p));
    assert_int_equal(p.n, N);
    assert_int_equal(p.steps, STEPS);
    assert_true(p.density == 0.025);
    pattern_case(&p, N, 25);
    sparse_open(&out, p.room);
    for (size_t t = 0; t < 2 * STEPS + 1; t++) {
        size_t step = (t + (size_t)(c->rank / recorders)) % STEPS;
        assert_true(pattern_entries(&p, t, N, &out, &e));
        is_selection(&out, step, c->rank % recorders);
        assert_true(pattern_gradient(&p, t, N, grad, &e));
        struct sparse s = selection_of(step, c->rank % recorders);
        for (size_t i = 0, next = 0; i < N; i++) {
            bool in = next < s.nnz && s.idx[next] == i;
            assert_true(grad[i] == (in ? s.val[next] : 0));
            next += in;
        }
    }
    pattern_close(&p); /* what it has read of so short a file it would not read again */
    if (c->rank == 0) change(FIRST_SELECTED + ROW + 1, 9);
    assert_true(pattern_open(&p, c, text, 1, &e));
    assert_false(pattern_entries(&p, 0, N, &out, &e));
    assert_non_null(strstr(e.text, "damaged"));
    sparse_close(&out);
    pattern_close(&p);
    remove_file(c);
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {{"reads_what_was_written", reads_what_was_written},
                                     {"does_not_overwrite", does_not_overwrite},
                                     {"damage_is_found", damage_is_found},
                                     {"any_length_is_understood", any_length_is_understood},
                                     {"replays_to_other_numbers_of_ranks", replays_to_other_numbers_of_ranks},
                                     {"reads_what_was_selected", reads_what_was_selected},
                                     {"damage_of_selections_is_found", damage_of_selections_is_found},
                                     {"heads_that_no_run_writes", heads_that_no_run_writes},
                                     {"rows_that_no_run_writes", rows_that_no_run_writes},
                                     {"any_length_of_selections_is_understood", any_length_of_selections_is_understood},
                                     {"replays_selections", replays_selections}};
    return mpi_test_main(argc, argv, "cli_record", cases, sizeof cases / sizeof *cases);
}
