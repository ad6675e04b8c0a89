/* cli_log_columns.c: the columns of a step: each number of a row is in the table, the ranks' numbers become the job's
 * as it says, what is written is read back as it was added up, and docs/run-jsonl.md has the list. With --print: the
 * list. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/table.h"
#include "cli/log/log_columns.h"
#include "cli/train/run.h"

enum { NUMBERS = sizeof(struct row) / sizeof(double), RANKS = 3, STRIDE = 2 };

static void each_number_has_a_column(void **state) {
    int columns[NUMBERS] = {0};
    (void)state;
    for (const struct log_column *c = log_columns; c->name; c++) {
        for (size_t i = 0; i < log_column_parts(c); i++) columns[c->at / sizeof(double) + i]++;
        if (c->part) assert_non_null(c->part[c->parts - 1]);
    }
    for (size_t i = 0; i < NUMBERS; i++) assert_int_equal(columns[i], 1);
}

/* Rows of all ranks, every number another one. */
static void make_rows(struct row rows[RANKS * STRIDE]) {
    double number[NUMBERS];
    for (size_t i = 0; i < RANKS * STRIDE; i++) {
        for (size_t k = 0; k < NUMBERS; k++) number[k] = (double)((i * 7 + k * 3) % 11) + (double)k + 0.25;
        memcpy(&rows[i], number, sizeof number);
        rows[i].evaluated = (double)(i == 2 ? 5 : 0);
        rows[i].global_evaluated = 3;
        rows[i].samples = 4;
        rows[i].pairs = 5;
    }
}

static double of(const struct job_step *s, int rank, const struct log_column *c, size_t part) {
    return log_column_get(s->rank + rank * STRIDE, c, part);
}

static void ranks_become_one(void **state) {
    static struct row rows[RANKS * STRIDE];
    (void)state;
    make_rows(rows);
    struct job_step s = {.rank = rows + 1, .stride = STRIDE, .ranks = RANKS};
    log_columns_reduce(&s);
    for (const struct log_column *c = log_columns; c->name; c++) {
        for (size_t i = 0; i < log_column_parts(c); i++) {
            const double a = of(&s, 0, c, i), b = of(&s, 1, c, i), d = of(&s, 2, c, i), max = fmax(a, fmax(b, d));
            const double value = log_column_get(&s.value, c, i);
            if (c->over == OVER_ALIKE || c->over == OVER_FIRST) assert_true(value == a);
            if (c->over == OVER_SUM || c->over == OVER_SAMPLES) assert_true(value == a + b + d);
            if (c->over == OVER_MEAN || c->over == OVER_SPREAD) assert_true(value == (a + b + d) / 3);
            if (c->over == OVER_MAX) assert_true(value == max);
            assert_true(log_column_get(&s.max, c, i) == max);
        }
    }
}

/* A run whose rows have all columns. */
static void open_run(struct run *r, struct selector *selector) {
    memset(r, 0, sizeof *r);
    TABLE_FIND(exchanges, "dense-ovlp", r->path.reducer.exchange.ops);
    r->path.reducer.selector = selector;
    r->options.clip_norm = 1;
    r->data.task = &task_pairs;
    options_set(&r->options, "select", "reuse");
    options_set(&r->options, "algo", "oktopk");
    r->model.n = 1000;
}

static char *written(const struct run *r, const struct job_step *s) {
    struct json j;
    json_open(&j);
    json_object(&j, NULL);
    json_string(&j, "type", "step");
    log_columns_write(r, s, &j);
    json_end(&j);
    char *text = mem_printf("%s\n", json_text(&j));
    json_close(&j);
    return text;
}

static void what_is_written_is_read_back(void **state) {
    static struct run r;
    static struct run_log l;
    static struct row rows[RANKS * STRIDE];
    struct selector selector = {0};
    (void)state;
    make_rows(rows);
    open_run(&r, &selector);
    struct job_step s = {.rank = rows, .stride = STRIDE, .ranks = RANKS};
    log_columns_reduce(&s);
    char *text = written(&r, &s);
    memset(&l, 0, sizeof l);
    log_recall(&l, text);
    log_recall(&l, text);
    assert_true(l.totals.steps == 2 && l.totals.first_seconds == s.value.seconds);
    for (const struct log_column *c = log_columns; c->name; c++) {
        char key[64];
        snprintf(key, sizeof key, "\"%s%s\":", c->name, c->over == OVER_SPREAD ? "_max" : "");
        if (!strstr(text, key)) fail_msg("%s is not in %s", key, text);
        for (size_t i = 0; i < log_column_parts(c) && !c->write; i++) {
            const double value = log_column_get(&s.value, c, i), exact = c->whole ? floor(value) : value;
            assert_true(fabs(log_column_get(&l.totals.all, c, i) - 2 * exact) <= 1e-12 * exact);
        }
    }
    assert_non_null(strstr(text, "\"evaluated_local\":{\"due\":1,\"few\":1},\"evaluated_global\":\"due,k\""));
    mem_free(text);
}

static void some_columns_are_not_always_there(void **state) {
    static struct run r;
    struct row row = {.exact_threshold = NAN, .xi = NAN};
    struct job_step s = {.rank = &row, .stride = 1, .ranks = 1};
    (void)state;
    open_run(&r, NULL);
    TABLE_FIND(exchanges, "dense", r.path.reducer.exchange.ops);
    r.options.clip_norm = 0;
    r.data.task = &task_speech;
    log_columns_reduce(&s);
    char *text = written(&r, &s);
    for (const struct log_column *c = log_columns; c->name; c++) {
        char key[64];
        snprintf(key, sizeof key, "\"%s%s\":", c->name, c->over == OVER_SPREAD ? "_max" : "");
        assert_int_equal(strstr(text, key) != NULL, !c->when);
        assert_int_equal(c->when != NULL, c->only != NULL);
    }
    mem_free(text);
}

static char *read_all(const char *path) {
    FILE *f = fopen(path, "rb");
    static char text[1 << 17];
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

static void the_page_has_them(void **state) {
    char *list, key[64];
    size_t bytes;
    FILE *f = open_memstream(&list, &bytes);
    (void)state;
    log_columns_markdown(f);
    fclose(f);
    const char *page = read_all("docs/run-jsonl.md"), *summary = strstr(page, "\n| `summary` |");
    if (!strstr(page, list)) fail_msg("docs/run-jsonl.md has another list than build/tests/cli_log_columns --print");
    assert_non_null(summary);
    for (const struct log_column *c = log_columns; c->name; c++) {
        snprintf(key, sizeof key, "`%s`", c->summary ? c->summary : c->name);
        const char *at = strstr(summary, key);
        if (c->summary && (!at || at > strchr(summary + 1, '\n'))) fail_msg("the page's summary lacks %s", key);
    }
    free(list);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_number_has_a_column),
        cmocka_unit_test(ranks_become_one),
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(some_columns_are_not_always_there),
        cmocka_unit_test(the_page_has_them),
    };
    if (argc == 2 && strcmp(argv[1], "--print") == 0) {
        log_columns_markdown(stdout);
        return 0;
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
