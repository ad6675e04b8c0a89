/* cli_signals.c: signals that ask for the end of a run are found by the loop, and none is handled in the middle of a
 * product: the products of oneDNN 2.6 have the stack pointer in their workspace, where the frame of a handler would
 * overwrite the heap. Each case in a process of its own, for what a signal leaves is the process's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/signals.h"
#include "nets/onednn/backend_onednn.h"

static const int asking[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};
enum { KINDS = sizeof asking / sizeof *asking };

/* The case in a child: 0, or the number of what was wrong with it. */
static void in_child(int (*test)(int number), int number) {
    int status;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(test(number));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void wait_ms(long ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* -- found --------------------------------------------------------------------------------------------------------- */
static int alone(int number) {
    signals_open();
    if (signals_caught() != 0) return 1;
    raise(number);
    return signals_caught() == number ? 0 : 2;
}

static void a_signal_is_found(void **state) {
    (void)state;
    for (int i = 0; i < KINDS; i++) in_child(alone, asking[i]);
}

static void *sleeper(void *nothing) {
    for (;;) pause();
    return nothing;
}

/* As beside the threads that MPI made before. */
static int beside_a_thread(int number) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, sleeper, NULL) != 0) return 1;
    signals_open();
    if (signals_caught() != 0) return 2;
    kill(getpid(), number);
    for (int i = 0; i < 500 && signals_caught() == 0; i++) wait_ms(10);
    return signals_caught() == number ? 0 : 3;
}

static void a_thread_that_was_there_may_be_given_it(void **state) {
    (void)state;
    for (int i = 0; i < KINDS; i++) in_child(beside_a_thread, asking[i]);
}

static int under_nohup(int number) {
    signal(SIGHUP, SIG_IGN);
    signals_open();
    raise(number);
    return signals_caught() == 0 ? 0 : 1;
}

static void under_nohup_a_hangup_is_nothing(void **state) {
    (void)state;
    in_child(under_nohup, SIGHUP);
}

/* -- no product is disturbed --------------------------------------------------------------------------------------- */
enum { M = 350, N = 40, K = 2000, TIMES = 300 }; /* as of an LSTM's last layer: it happens within a few products */

static float *numbers(size_t n, uint32_t seed) {
    float *x = malloc(n * sizeof *x);
    for (size_t i = 0; x && i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) / 16777216.0f - 0.5f;
    }
    return x;
}

/* The signal, every 0.1 ms from now on. */
static bool storm(int number) {
    struct sigevent what = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = number};
    struct itimerspec when = {{0, 100000}, {0, 100000}};
    timer_t timer;
    return timer_create(CLOCK_MONOTONIC, &what, &timer) == 0 && timer_settime(timer, 0, &when, NULL) == 0;
}

static int products(int number) {
    float *A = numbers((size_t)M * K, 1), *B = numbers((size_t)K * N, 2);
    float *C = numbers((size_t)M * N, 3), *calm[4]; /* A and B as they lie, or turned */
    signals_open();
    for (int turned = 0; turned < 4; turned++) {
        calm[turned] = numbers((size_t)M * N, 4);
        if (!A || !B || !C || !calm[turned]) return 1;
        onednn_product(turned & 1, turned & 2, M, N, K, A, B, 0, calm[turned]);
    }
    if (!storm(number)) return 2;
    for (size_t i = 0; i < TIMES || signals_caught() == 0; i++) {
        onednn_product(i & 1, i & 2, M, N, K, A, B, 0, C);
        if (memcmp(C, calm[i % 4], (size_t)M * N * sizeof *C) != 0) return 3;
    }
    return 0;
}

static void no_product_is_disturbed(void **state) {
    (void)state;
    for (int i = 0; i < KINDS; i++) in_child(products, asking[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_is_found),
        cmocka_unit_test(a_thread_that_was_there_may_be_given_it),
        cmocka_unit_test(under_nohup_a_hangup_is_nothing),
        cmocka_unit_test(no_product_is_disturbed),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
