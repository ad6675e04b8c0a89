/* comm_library_mistakes.c: what the library says of a caller's mistakes, and how it ends where memory, a number or a
 * row of its own fails. */
/* ranks: 1 2 3 4 5 7 8 */
/* faults: 3 */
/* devices: cuda ranks 1 3 */
#include "comm/parts/peers.h"
#include "tests/lib/library_rig.h"

/* -- mistakes ----------------------------------------------------------------------------------------------------- */
static void mistakes_are_told_in_a_line(struct comm *c) {
    static const size_t late[] = {1, 5}, falling[] = {0, 7, 7}, far[] = {0, N};
    static const struct {
        const char *algorithm, *options, *text;
        size_t n;
        const size_t *group;
        size_t groups;
    } cases[] = {
        {"gtop", "", "the algorithm has no \"gtop\"; there are: dense, ", N, NULL, 0},
        {NULL, "", "the algorithm has no \"\"", N, NULL, 0},
        {"fedavg", "", "the algorithm has no \"fedavg\"", N, NULL, 0},
        {"diloco", "", "the algorithm has no \"diloco\"", N, NULL, 0},
        {"sparseloco", "", "the algorithm has no \"sparseloco\"", N, NULL, 0},
        {"topka", "", "a gradient of 0 entries", 0, NULL, 0},
        {"topka", "", "a gradient of 4294967296 entries", (size_t)1 << 32, NULL, 0},
        {"topka", "density", "\"density\" is no option", N, NULL, 0},
        {"topka", "=1", "\"=1\" is no option", N, NULL, 0},
        {"topka", "density=0.1,,seed=1", "\"\" is no option", N, NULL, 0},
        {"topka", "densities=1", "there is no option \"densities\"; there are: density, ", N, NULL, 0},
        {"topka", "density=0", "density 0 is out of range: it must be above 0 and at most 1", N, NULL, 0},
        {"topka", "density=1.5", "density 1.5 is out of range", N, NULL, 0},
        {"topka", "density=nan", "not \"nan\"", N, NULL, 0},
        {"topka", "density=0.1x", "not \"0.1x\"", N, NULL, 0},
        {"oktopk", "tau=0", "tau 0 is out of range: it must be at least 1", N, NULL, 0},
        {"oktopk", "tau_prime=-1", "tau-prime -1 is out of range", N, NULL, 0},
        {"oktopk", "oktopk-off=regions+wings", "oktopk-off has no \"wings\"", N, NULL, 0},
        {"oktopk", "oktopk-thresholds=old", "oktopk-thresholds has no \"old\"; there are: guarded, paper", N, NULL, 0},
        {"topka", "select=best", "select has no \"best\"; there are: exact, ", N, NULL, 0},
        {"topka", "device=gpu", "device has no \"gpu\"; there are: cpu, cuda", N, NULL, 0},
        {"topka", "device=sparse", "device has no \"sparse\"", N, NULL, 0},
        {"topka", "wire=morse", "wire has no \"morse\"; there are: coo32, ", N, NULL, 0},
        {"gaussiank", "gaussian-adjust=maybe", "gaussian-adjust has no \"maybe\"; there are: on, off", N, NULL, 0},
        {"gtopk", "gtopk-residual=none", "gtopk-residual has no \"none\"; there are: conserve, paper", N, NULL, 0},
        {"topka", "", "group 0 of 2 begins at entry 1", N, late, 2},
        {"topka", "", "group 2 of 3 begins at entry 7", N, falling, 3},
        {"topka", "", "group 1 of 2 begins at entry 1009", N, far, 2}};
    (void)c;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sparsetrain *x = (sparsetrain *)(void *)&cases;
        int status = sparsetrain_open_groups(&x, NULL, cases[i].algorithm, cases[i].n, cases[i].options, cases[i].group,
                                             cases[i].groups, why);
        if (status != SPARSETRAIN_MISTAKE || x || !strstr(why, cases[i].text))
            fail_msg("case %zu: status %d, no \"%s\" in: %s", i, status, cases[i].text, why);
    }
}

static void mistake(int status, const char *text) {
    if (status != SPARSETRAIN_MISTAKE || !strstr(why, text)) fail_msg("status %d, no \"%s\" in: %s", status, text, why);
}

static void null_is_told_so(struct comm *c) {
    sparsetrain *x;
    struct sparsetrain_stats s = {.steps = 7};
    mistake(sparsetrain_run(NULL, at, why), "the exchange is NULL");
    mistake(sparsetrain_begin(NULL, at, why), "the exchange is NULL");
    mistake(sparsetrain_ready(NULL, 0, why), "the exchange is NULL");
    mistake(sparsetrain_set_density(NULL, 0.1, why), "the exchange is NULL");
    mistake(sparsetrain_set_stream(NULL, NULL, why), "the exchange is NULL");
    mistake(sparsetrain_residual(NULL, 0, 1, grad, why), "the exchange is NULL");
    mistake(sparsetrain_set_residual(NULL, 0, 1, grad, why), "the exchange is NULL");
    mistake(sparsetrain_restore(NULL, grad, 1, why), "the exchange is NULL");
    assert_int_equal(sparsetrain_save(NULL, NULL, 0), 0);
    sparsetrain_get_stats(NULL, &s);
    assert_int_equal(s.steps, 0);
    mistake(sparsetrain_open(NULL, NULL, "dense", N, NULL, why), "x is NULL");
    mistake(sparsetrain_open_groups(&x, NULL, "dense", N, NULL, NULL, 2, why), "2 groups are to be at NULL");
    mistake(sparsetrain_open_slices(&x, NULL, "dense", N, NULL, NULL, 0, NULL, 2, why), "2 slices are to be at NULL");
    x = opened("topka", 0);
    mistake(sparsetrain_run(x, NULL, why), "the gradient is NULL");
    mistake(sparsetrain_begin(x, NULL, why), "the gradient is NULL");
    mistake(sparsetrain_residual(x, 0, 10, NULL, why), "10 entries are to be at NULL");
    mistake(sparsetrain_set_residual(x, 0, 10, NULL, why), "10 entries are to be at NULL");
    mistake(sparsetrain_restore(x, NULL, 1000, why), "1000 saved bytes are to be at NULL");
    mistake(sparsetrain_restore(x, NULL, 0, why), "0 bytes are no saved exchange");
    sparsetrain_get_stats(x, NULL);
    hash_of_steps(x, c, 0, 1, false);
    sparsetrain_close(x);
}

/* Options of other algorithms may stay. */
static void a_loop_over_algorithms_gives_all_the_same_options(struct comm *c) {
    static const char all[] =
        "density=0.1,density-max=0.2,select=exact,wire=packed,tau=3,tau-prime=4,oktopk_bucket=2,oktopk-off="
        "regions+rotation,oktopk-thresholds=paper,gtopk-residual=paper,gaussian-adjust=off,bucket-bytes="
        "400,seed=9,ranks-per-node=1";
    for (size_t i = 0; sparsetrain_algorithm(i); i++) {
        sparsetrain *x;
        good(sparsetrain_open(&x, NULL, sparsetrain_algorithm(i), N, of_device(all), why));
        hash_of_steps(x, c, 0, 2, true);
        sparsetrain_close(x);
    }
    assert_null(sparsetrain_algorithm(100));
    assert_null(sparsetrain_selector(100));
    assert_null(sparsetrain_wire(100));
    assert_string_equal(sparsetrain_selector(0), "exact");
    assert_string_equal(sparsetrain_wire(0), "coo32");
}

static void ranks_that_differ_are_told_so(struct comm *c) {
    const bool last = c->size > 1 && c->rank == c->size - 1;
    sparsetrain *x;
    if (c->size == 1) return;
    assert_int_equal(sparsetrain_open(&x, NULL, last ? "gtopk" : "topka", N, NULL, why), SPARSETRAIN_MISTAKE);
    assert_non_null(strstr(why, "opens an exchange with other arguments than rank 0: gtopk of 1009 entries"));
    assert_int_equal(sparsetrain_open(&x, NULL, "topka", N, last ? "density=0.1" : NULL, why), SPARSETRAIN_MISTAKE);
    assert_non_null(strstr(why, "\"density=0.1\""));
    assert_int_equal(sparsetrain_open(&x, NULL, "topka", last ? N : N - 1, NULL, why), SPARSETRAIN_MISTAKE);
    assert_int_equal(sparsetrain_open(&x, NULL, "topka", last ? 0 : N, NULL, why), SPARSETRAIN_MISTAKE);
    assert_non_null(strstr(why, "a gradient of 0 entries"));
}

static void calls_out_of_order_are_told_so(struct comm *c) {
    sparsetrain *x = opened("dense-ovlp", 0);
    float other[N], *mine = at;
    fill(c, 0);
    assert_int_equal(sparsetrain_ready(x, 0, why), SPARSETRAIN_MISTAKE);
    assert_non_null(strstr(why, "without begin"));
    good(sparsetrain_begin(x, mine, why));
    assert_int_equal(sparsetrain_begin(x, mine, why), SPARSETRAIN_MISTAKE);
    assert_int_equal(sparsetrain_ready(x, N + 1, why), SPARSETRAIN_MISTAKE);
    assert_int_equal(sparsetrain_run(x, other, why), SPARSETRAIN_MISTAKE);
    assert_non_null(strstr(why, "another gradient"));
    assert_int_equal(sparsetrain_save(x, NULL, 0), 0);
    assert_int_equal(sparsetrain_residual(x, 0, 1, other, why), SPARSETRAIN_MISTAKE);
    if (at == grad) {
        assert_int_equal(sparsetrain_set_stream(x, NULL, why), SPARSETRAIN_MISTAKE);
        assert_non_null(strstr(why, "an exchange on host memory has no stream"));
    }
    good(sparsetrain_run(x, mine, NULL));
    sparsetrain_close(x);
    sparsetrain_close(NULL);
}

/* The sums of a step that was begun end before its gradient goes. */
static void close_ends_a_step_that_was_begun(struct comm *c) {
    const char *const rows[] = {"dense-ovlp", "topka", "powersgd"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t groups = 0; groups <= GROUPS; groups += GROUPS)
            for (size_t from = 0; from <= N; from += N) {
                sparsetrain *x;
                char text[600];
                snprintf(text, sizeof text, "%s,bucket-bytes=400", of_device("density=0.1"));
                good(sparsetrain_open_groups(&x, NULL, rows[i], N, text, group, groups, why));
                fill(c, 0);
                device_fill(at, grad, N);
                good(sparsetrain_begin(x, at, why));
                good(sparsetrain_ready(x, from, why));
                sparsetrain_close(x);
                fill(c, 1);
                device_fill(at, grad, N);
                comm_barrier(c); /* what was still under way has come */
                static float now[N];
                device_download(now, at, N);
                fill(c, 1);
                assert_memory_equal(now, grad, sizeof now);
            }
}

/* -- errors ------------------------------------------------------------------------------------------------------- */
/* On all ranks, so that none waits for another. */
static void a_nan_breaks_it_and_nothing_else(struct comm *c) {
    for (size_t i = 0; exchanges[i]; i++) {
        if (!exchange_of_gradients(exchanges[i])) continue;
        sparsetrain *x = opened(exchanges[i]->name, 0);
        fill(c, 0);
        for (size_t j = 0; j < N; j++) grad[j] = NAN;
        device_fill(at, grad, N);
        assert_int_equal(sparsetrain_run(x, at, why), SPARSETRAIN_NUMERIC);
        if (!strstr(why, "is NaN or infinite")) fail_msg("%s: %s", exchanges[i]->name, why);
        fill(c, 1);
        assert_int_equal(sparsetrain_run(x, at, why), SPARSETRAIN_NUMERIC);
        assert_int_equal(sparsetrain_begin(x, at, NULL), SPARSETRAIN_NUMERIC);
        sparsetrain_close(x);
    }
}

/* One rank's alone: its gtopk has posted no receive, which would take the first of two messages that come with the tag
 * of one into memory that is freed by then. */
static void a_nan_leaves_no_receive_posted(struct comm *c) {
    enum { TAG_UP = 300 };
    struct tree_step step = {0};
    int round = 0, word;
    if (c->size == 1) return;
    while ((step = tree_reduce_step(c->size, 0, round)).role != TREE_RECEIVE) round++;
    rig_open(c, exchange_named("gtopk"), exact(), 100, 10, GTOPK_CONSERVE);
    make_gradient(WHOLE, c->rank, c->size, 0, 100, rig.grad);
    rig.grad[42] = NAN;
    if (c->rank == 0) assert_false(rig_run(10));
    rig_close();
    for (int sent = 1; sent <= 2; sent++) {
        if (c->rank == step.peer) comm_send(c, 0, TAG_UP + round, &sent, sizeof sent);
        if (c->rank == 0) comm_recv(c, step.peer, TAG_UP + round, &word, sizeof word);
        if (c->rank == 0) assert_int_equal(word, sent);
    }
}

/* Whatever allocation fails: an error, not the end of the process. One rank, as others would wait for it. */
static void no_memory_is_an_error(struct comm *c) {
#ifdef ST_SANITIZE
    skip(); /* what is taken where it fails stays taken, which the leak checker takes for a mistake */
#endif
    if (c->size > 1 || c->wire_check || at != grad) return; /* ... nor does a device */
    const char *const rows[] = {"dense-ovlp", "gtopk", "oktopk", "hitopk", "spardl"};
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++)
        for (size_t groups = 0; groups <= GROUPS; groups += GROUPS) {
            int status = SPARSETRAIN_SYSTEM;
            for (long nth = 1; status != SPARSETRAIN_GOOD; nth++) {
                sparsetrain *x;
                mem_fail_at(nth);
                status = sparsetrain_open_groups(&x, NULL, rows[row], N, options, group, groups, why);
                mem_fail_at(0);
                if (status == SPARSETRAIN_GOOD)
                    sparsetrain_close(x);
                else if (x || status != SPARSETRAIN_SYSTEM || !strstr(why, "no memory for") || nth > 1000)
                    fail_msg("%s, allocation %ld: status %d: %s", rows[row], nth, status, why);
            }
        }
}

/* With overlap by layers it is the exchange's own thread that dies, and run that tells. */
static bool dies(struct exchange *x, float *g, size_t k, struct exchange_sum *sum) {
    (void)x, (void)g, (void)k, (void)sum;
    die("this row dies");
}
static void what_dies_in_the_thread_is_told_by_run(struct comm *c) {
    struct error_catch catch;
    struct exchange_ops deadly = *exchange_named("dense");
    struct exchange x;
    struct exchange_sum sum;
    const struct exchange_setup setup = {.comm = c, .n = N, .k_max = 1, .group = group, .groups = GROUPS};
    deadly.run = dies;
    volatile int overlaps = 0;
    const int before = threads(0);
    for (; overlaps < 2; overlaps++) {
        error_catch_begin(&catch);
        if (setjmp(catch.back) == 0) {
            exchange_open_layers(&x, &deadly, &setup);
            if (overlaps) exchange_begin(&x, grad, 1), exchange_ready(&x, 0);
            exchange_run(&x, grad, 1, &sum);
            fail_msg("it did not die");
        }
        assert_non_null(strstr(catch.e.text, "this row dies"));
        assert_true(exchange_layers_abandon(&x)); /* as where nobody else would close it */
        assert_int_equal(threads(before), before);
        exchange_close(&x);
    }
    assert_false(error_is_caught());
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"mistakes_are_told_in_a_line", mistakes_are_told_in_a_line},
        {"null_is_told_so", null_is_told_so},
        {"a_loop_over_algorithms_gives_all_the_same_options", a_loop_over_algorithms_gives_all_the_same_options},
        {"ranks_that_differ_are_told_so", ranks_that_differ_are_told_so},
        {"calls_out_of_order_are_told_so", calls_out_of_order_are_told_so},
        {"close_ends_a_step_that_was_begun", close_ends_a_step_that_was_begun},
        {"a_nan_breaks_it_and_nothing_else", a_nan_breaks_it_and_nothing_else},
        {"a_nan_leaves_no_receive_posted", a_nan_leaves_no_receive_posted},
        {"no_memory_is_an_error", no_memory_is_an_error},
        {"what_dies_in_the_thread_is_told_by_run", what_dies_in_the_thread_is_told_by_run},
    };
    return library_test_main(argc, argv, "comm_library_mistakes", cases, sizeof cases / sizeof *cases);
}
