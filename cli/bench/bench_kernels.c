/* bench_kernels.c: see bench_kernels.h. */
#include "cli/bench/bench_kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "cli/bench/median.h"

/* The calls of a step, and of each its times. */
struct timed {
    struct device_launch *launch; /* [count], seconds: the median */
    double *seconds;              /* [count][repeat] */
    size_t count;
    double none, all; /* what a call would take that does nothing; sum of the medians */
};

/* All calls of one name. */
struct kind {
    const char *call;
    double seconds;
    int count;
};

static bool same_call(const struct device_launch *a, const struct device_launch *b) {
    return strcmp(a->place, b->place) == 0 && strcmp(a->pass, b->pass) == 0 && strcmp(a->call, b->call) == 0;
}

static void time_steps(const struct bench_kernels *b, struct timed *t) {
    const struct device_timer_ops *timer = b->device->timer();
    double *none = mem_alloc((size_t)b->repeat, sizeof *none, "times of calls");
    for (int round = 0; round < b->repeat; round++) {
        const struct device_launch *launch;
        timer->begin();
        b->step(b->context);
        const size_t count = timer->end(&launch, &none[round]);
        b->settle(b->context);
        if (round == 0) {
            t->count = count;
            t->launch = mem_alloc(count, sizeof *t->launch, "times of calls");
            t->seconds = mem_alloc(count * (size_t)b->repeat, sizeof *t->seconds, "times of calls");
            memcpy(t->launch, launch, count * sizeof *launch);
        }
        if (count != t->count) die("a step of %zu calls after one of %zu", count, t->count);
        for (size_t i = 0; i < count; i++) {
            if (!same_call(&launch[i], &t->launch[i]))
                die("call %zu is %s, and was %s before", i, launch[i].call, t->launch[i].call);
            t->seconds[i * (size_t)b->repeat + (size_t)round] = launch[i].seconds;
        }
    }
    t->none = median(none, (size_t)b->repeat);
    for (size_t i = 0; i < t->count; i++) {
        t->launch[i].seconds = median(t->seconds + i * (size_t)b->repeat, (size_t)b->repeat);
        t->all += t->launch[i].seconds;
    }
    mem_free(none);
}

static double share_of(const struct timed *t, double seconds) {
    return t->all > 0 ? 100 * seconds / t->all : 0;
}

static void print_lines(const struct bench_kernels *b, const struct timed *t) {
    for (size_t i = 0; i < t->count; i++) {
        struct json j;
        json_open(&j);
        json_object(&j, NULL);
        json_string(&j, "bench", "net_kernels");
        b->about(b->context, &j);
        json_integer(&j, "number", (int64_t)i + 1);
        json_string(&j, "layer", t->launch[i].place);
        json_string(&j, "pass", t->launch[i].pass);
        json_string(&j, "call", t->launch[i].call);
        json_number(&j, "seconds", t->launch[i].seconds);
        json_number(&j, "share", share_of(t, t->launch[i].seconds) / 100);
        json_number(&j, "none_s", t->none);
        json_integer(&j, "repeat", b->repeat);
        json_end(&j);
        puts(json_text(&j));
        json_close(&j);
    }
}

static int longest_first(const void *p, const void *q) {
    const struct kind *a = p, *b = q;
    return (a->seconds < b->seconds) - (a->seconds > b->seconds);
}

static void print_kinds(const struct timed *t) {
    struct kind *kind = mem_zalloc(t->count, sizeof *kind, "names of calls");
    size_t kinds = 0;
    for (size_t i = 0; i < t->count; i++) {
        size_t k = 0;
        while (k < kinds && strcmp(kind[k].call, t->launch[i].call) != 0) k++;
        if (k == kinds) kind[kinds++].call = t->launch[i].call;
        kind[k].seconds += t->launch[i].seconds;
        kind[k].count++;
    }
    qsort(kind, kinds, sizeof *kind, longest_first);
    printf("# %-34s %6s %12s %7s\n", "call", "calls", "us", "share");
    for (size_t k = 0; k < kinds; k++)
        printf("  %-34s %6d %12.1f %6.1f%%\n", kind[k].call, kind[k].count, 1e6 * kind[k].seconds,
               share_of(t, kind[k].seconds));
    printf("  %-34s %6zu %12.1f\n", "all", t->count, 1e6 * t->all);
    mem_free(kind);
}

static void print_launches(const struct timed *t) {
    printf("# %-24s %-9s %-34s %10s %7s\n", "layer", "pass", "call", "us", "share");
    for (size_t i = 0; i < t->count; i++)
        printf("  %-24s %-9s %-34s %10.1f %6.1f%%\n", t->launch[i].place, t->launch[i].pass, t->launch[i].call,
               1e6 * t->launch[i].seconds, share_of(t, t->launch[i].seconds));
}

void bench_kernels(const struct bench_kernels *b) {
    struct timed t = {0};
    time_steps(b, &t);
    if (b->json) {
        print_lines(b, &t);
    } else {
        print_kinds(&t);
        print_launches(&t);
        printf("# medians of %d steps, given call by call; a call that does nothing: %.1f us\n", b->repeat,
               1e6 * t.none);
    }
    mem_free(t.launch);
    mem_free(t.seconds);
}
