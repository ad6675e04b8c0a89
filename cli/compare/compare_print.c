/* compare_print.c: see compare_print.h. */
#include "cli/compare/compare_print.h"

#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/compare/rival.h"

static struct welch test(const struct group *g, const struct group *rival, int measure) {
    return rival ? welch_below(&g->sample[measure], &rival->sample[measure]) : (struct welch){NAN, NAN, NAN};
}

/* Some logs do not say what was sent, or how long it took. */
static void print_sample(const struct sample *s, size_t reached) {
    if (s->n < reached) printf("of %zu of %zu that reached it%s", s->n, reached, s->n > 0 ? ": " : "");
    if (s->n == 0) return;
    if (s->n < 3)
        printf("olympic mean: of 3 runs and more");
    else
        printf("olympic mean %.6g", s->olympic);
    printf(", mean %.6g, %.6g..%.6g", s->mean, s->least, s->most);
    if (s->n > 1) printf(", deviation %.4g", s->deviation);
}

static void print_text(const struct groups *all, const struct group *g, const char *against) {
    const struct group *rival = rival_of(all, g, against);
    printf("%s: %zu of %zu run%s reached %s", g->label, g->reached, g->runs, g->runs == 1 ? "" : "s", g->target);
    if (g->unfinished) printf("; %zu unfinished, which ended before their length", g->unfinished);
    putchar('\n');
    for (int m = 0; m < MEASURES && g->reached > 0; m++) {
        const struct welch w = test(g, rival, m);
        printf("  %-10s  ", group_measures[m]);
        print_sample(&g->sample[m], g->reached);
        if (!isnan(w.p))
            printf("; below %s: t %.4g, %.4g degrees of freedom, p %.3g", rival->label, w.t, w.freedom, w.p);
        putchar('\n');
    }
}

static void print_json(const struct groups *all, const struct group *g, const char *against) {
    const struct group *rival = rival_of(all, g, against);
    struct json j;
    json_open(&j);
    json_object(&j, NULL);
    json_string(&j, "configuration", g->label);
    json_string(&j, "algo", g->algo);
    json_string(&j, "target", g->target);
    json_integer(&j, "runs", (int64_t)g->runs);
    json_integer(&j, "reached", (int64_t)g->reached);
    json_integer(&j, "unfinished", (int64_t)g->unfinished);
    if (rival)
        json_string(&j, "against", rival->label);
    else
        json_null(&j, "against");
    for (int m = 0; m < MEASURES; m++) {
        const struct sample *s = &g->sample[m];
        const struct welch w = test(g, rival, m);
        json_object(&j, group_measures[m]);
        json_integer(&j, "n", (int64_t)s->n);
        json_number(&j, "olympic_mean", s->olympic);
        json_number(&j, "mean", s->mean);
        json_number(&j, "least", s->least);
        json_number(&j, "most", s->most);
        json_number(&j, "deviation", s->deviation);
        json_number(&j, "t", w.t);
        json_number(&j, "freedom", w.freedom);
        json_number(&j, "p", w.p);
        json_end(&j);
    }
    json_end(&j);
    puts(json_text(&j));
    json_close(&j);
}

/* RFC 4180. */
static void put_quoted(const char *text) {
    putchar('"');
    for (; *text; text++) printf(*text == '"' ? "\"\"" : "%c", *text);
    putchar('"');
}

static void put_number(double x) {
    char text[JSON_NUMBER_MAX];
    json_number_text(x, text);
    printf(",%s", isnan(x) ? "" : text);
}

static void print_csv(const struct groups *all, const struct group *g, const char *against) {
    const struct group *rival = rival_of(all, g, against);
    for (int m = 0; m < MEASURES; m++) {
        const struct sample *s = &g->sample[m];
        const struct welch w = test(g, rival, m);
        const double value[] = {s->olympic, s->mean, s->least, s->most, s->deviation}, tested[] = {w.t, w.freedom, w.p};
        put_quoted(g->label);
        printf(",%s,%zu,%zu,%zu,%s,%zu", g->target, g->runs, g->reached, g->unfinished, group_measures[m], s->n);
        for (size_t i = 0; i < sizeof value / sizeof *value; i++) put_number(value[i]);
        putchar(',');
        if (rival) put_quoted(rival->label);
        for (size_t i = 0; i < sizeof tested / sizeof *tested; i++) put_number(tested[i]);
        fputs("\r\n", stdout);
    }
}

void compare_print(const struct groups *all, const char *against, enum compare_form form) {
    static void (*const print[])(const struct groups *, const struct group *, const char *) = {
        [COMPARE_TEXT] = print_text, [COMPARE_JSON] = print_json, [COMPARE_CSV] = print_csv};
    for (size_t i = 0; i < all->runs; i++)
        if (all->run[i].copy)
            fprintf(stderr, "sparsetrain: compare: %.300s and %.300s are one run, which counts once\n",
                    all->run[i].name, all->run[i].copy);
    rival_note(all, against);
    if (form == COMPARE_CSV)
        fputs("configuration,target,runs,reached,unfinished,measure,n,olympic_mean,mean,least,most,deviation,against,t,"
              "freedom,p\r\n",
              stdout);
    for (size_t i = 0; i < all->count; i++) print[form](all, &all->at[i], against);
}
