/* comm_misuse.c: what a caller of comm may not do ends the program with a line that says so, and what another rank sent
 * is not taken where it does not fit, before anything is written or sent. Each mistake in a process of its own. */
#include "tests/lib/in_child.h"

#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "comm/exchange.h"
#include "comm/parts/regions.h"
#include "topk/selector.h"

enum { N = 8, K = 2 };

/* -- exchanges ----------------------------------------------------------------------------------------------------- */
/* A job of one rank without MPI, of which opening wants no more. */
static struct comm alone = {.size = 1, .local_size = 1, .nodes = 1};
static struct store store, other_store;
static struct exchange exchange;
static struct exchange_sum sum;
static float grad[N];

static struct exchange_setup setup_of(struct selector *selector) {
    return (struct exchange_setup){.comm = &alone, .store = &store, .selector = selector, .n = N, .k_max = K};
}

static struct exchange_setup setup(void) {
    store_open(&store, N, device_find("cpu"));
    store_open(&other_store, N + 1, device_find("cpu"));
    return setup_of(selector_open(selectors[0], &store, K, NULL));
}

static void open_row(const char *name, const struct exchange_setup *s) {
    const struct exchange_ops *ops = NULL;
    TABLE_FIND(exchanges, name, ops);
    exchange_open(&exchange, ops, s);
}

#define OPENS(function, name, change)                                                                                  \
    static void function(void) {                                                                                       \
        struct exchange_setup s = setup();                                                                             \
        change;                                                                                                        \
        open_row(name, &s);                                                                                            \
    }
OPENS(no_entries, "dense", s.n = 0)
OPENS(too_many_entries, "dense", s.n = (size_t)UINT32_MAX + 1)
/* Its line names the node, which MPI knows. */
OPENS(uneven_nodes, "hitopk", s.comm = comm_open(&(int){0}, &(char **){NULL}); s.comm->size = 3; s.comm->nodes = 2;
      s.comm->local_size = 2)
OPENS(no_store, "topka", s.store = NULL)
OPENS(store_of_another, "topka", s.store = &other_store)
OPENS(no_k, "topka", s.k_max = 0)
OPENS(k_above_n, "topka", s.k_max = N + 1)
OPENS(no_selector, "topka", s.selector = NULL)
OPENS(k_above_selector, "topka", s.k_max = K + 1)

#define RUNS(function, name, call)                                                                                     \
    static void function(void) {                                                                                       \
        struct exchange_setup s = setup();                                                                             \
        open_row(name, &s);                                                                                            \
        call;                                                                                                          \
    }
RUNS(run_without_k, "topka", exchange_run(&exchange, grad, 0, &sum))
RUNS(run_with_more, "topka", exchange_run(&exchange, grad, K + 1, &sum))
RUNS(sent_unasked, "topka", exchange.setup.wants_sent = true; exchange_run(&exchange, grad, K, &sum))
RUNS(combine_dense, "topka", exchange_combine(&exchange, &sum, grad))
RUNS(combine_unsent, "topka", sum.sparse = &(struct sparse){0}; exchange_combine(&exchange, &sum, grad))

static void layers(const char *name, const size_t *group, size_t groups, struct exchange_setup s) {
    const struct exchange_ops *ops = NULL;
    TABLE_FIND(exchanges, name, ops);
    s.group = group;
    s.groups = groups;
    exchange_open_layers(&exchange, ops, &s);
}

#define LAYERS(function, name, change, ...)                                                                            \
    static void function(void) {                                                                                       \
        struct exchange_setup s = setup();                                                                             \
        const size_t group[] = {__VA_ARGS__};                                                                          \
        change;                                                                                                        \
        layers(name, group, sizeof group / sizeof *group, s);                                                          \
    }
LAYERS(layers_from_the_middle, "topka", , 1, 4)
LAYERS(layers_backwards, "topka", , 0, 4, 4)
LAYERS(layers_beyond, "topka", , 0, N + 1)
LAYERS(layers_of_none, "dense", s.n = 0, 0)
LAYERS(layers_without_store, "topka", s.store = NULL, 0)
LAYERS(layers_without_selector, "topka", s.selector = NULL, 0)

/* -- what comes from other ranks ----------------------------------------------------------------------------------- */
static void outbox_too_small(void) {
    struct outbox box;
    outbox_open(&box, 16);
    outbox_add(&box, 9);
    outbox_next(&box, 5);
}

static void dense_too_long(void) {
    float values[3] = {1, 2, 3};
    struct sparse s;
    sparse_open(&s, 2);
    struct exchange x = {0};
    dense_read(&x, values, 0, 3, 5, &s);
}

/* Entries 3 and 4 of rank 5, behind this one. */
static void append(uint32_t last, size_t room) {
    uint32_t message[4] = {3, 4};
    struct exchange x = {.setup = {.wire = wires[0]}};
    struct sparse u;
    sparse_open(&u, room);
    u.idx[u.nnz++] = last;
    regions_append(&x, message, sizeof message, 0, N, 5, &u);
}

static void append_out_of_order(void) {
    append(3, 4);
}

static void append_too_many(void) {
    append(2, 2);
}

/* -- the transport, over MPI on one rank --------------------------------------------------------------------------- */
#define MPI(function, call)                                                                                            \
    static void function(void) {                                                                                       \
        struct comm *c = comm_open(&(int){0}, &(char **){NULL});                                                       \
        char data[16] = "";                                                                                            \
        call;                                                                                                          \
    }
MPI(negative_colour, (void)data; comm_split(c, -1, 0))
MPI(message_too_long, comm_send(c, 0, 1, data, (size_t)1 << 63))
MPI(half_to_itself, comm_sendrecv(c, 0, data, 1, 1, data, 1, 1))
MPI(more_to_itself, comm_sendrecv(c, 0, data, 9, 0, data + 8, 8, 1))
MPI(waited_twice, struct comm_request r; comm_irecv(c, 0, 1, data, 8, &r); comm_send(c, 0, 1, data + 8, 8);
    comm_wait(c, &r); comm_wait(c, &r))

MPI(checks_of_grouped, comm_split(c, 0, 0); (void)data; comm_set_wire_check(c, true))
MPI(checks_of_group, (void)data; comm_set_wire_check(comm_split(c, 0, 0), true))

/* What a rank has to send is what it has announced, in words of 4 bytes and no longer than the room for it. */
MPI(unannounced, comm_allgatherv(c, data, 8, data + 8, (size_t[]){4}))
MPI(announces_too_much, (void)data; comm_allgather_sizes(c, 12, 8, (size_t[]){0}))
MPI(announces_part_of_a_word, (void)data; comm_allgather_sizes(c, 7, 8, (size_t[]){0}))

#define FLIP(function, text)                                                                                           \
    static void function(void) {                                                                                       \
        setenv("SPARSETRAIN_FLIP", text, 1);                                                                           \
        comm_open(&(int){0}, &(char **){NULL});                                                                        \
    }
FLIP(flip_without_bit, "0:1")
FLIP(flip_before_the_first, "0:-1:5")
FLIP(flip_below_the_first_bit, "0:1:-5")
FLIP(flip_on_no_way, "0:1:5:on")

static const struct {
    void (*f)(void);
    const char *says;
} mistakes[] = {
    {no_entries, "dense: n = 0 is not in"},
    {too_many_entries, "dense: n = 4294967296 is not in"},
    {uneven_nodes, "need as many ranks on every node, but 3 ranks are on 2 nodes"},
    {no_store, "topka needs a store"},
    {store_of_another, "topka: n = 8 over a store of 9"},
    {no_k, "topka: k = 0 is not in 1..8"},
    {k_above_n, "topka: k = 9 is not in 1..8"},
    {no_selector, "topka needs a selector"},
    {k_above_selector, "topka: k = 3 is not in 1..2"},
    {run_without_k, "topka: k = 0 is not in 1..2"},
    {run_with_more, "topka: k = 3 is not in 1..2"},
    {sent_unasked, "topka was not opened for what ranks have sent"},
    {combine_dense, "topka cannot tell what each rank sent"},
    {combine_unsent, "topka cannot tell what each rank sent"},
    {layers_from_the_middle, "group 0 of 2 is entries 1 to 4 of 8"},
    {layers_backwards, "group 1 of 3 is entries 4 to 4 of 8"},
    {layers_beyond, "group 0 of 2 is entries 0 to 9 of 8"},
    {layers_of_none, "dense: n = 0 is not in"},
    {layers_without_store, "topka needs a store"},
    {layers_without_selector, "topka needs a selector"},
    {outbox_too_small, "5 bytes to send do not fit: 12 of 16 are used"},
    {dense_too_long, "rank 5 sent 3 entries where 2 fit"},
    {append_out_of_order, "rank 5 sent index 3 after index 3"},
    {append_too_many, "rank 5 sent 2 entries where 1 fit"},
    {negative_colour, "a group's colour is -1; it must not be negative"},
    {message_too_long, "a message of 9223372036854775808 bytes is too long"},
    {half_to_itself, "a rank that sends to itself must receive from itself"},
    {more_to_itself, "a message of 9 bytes to itself, of which at most 8 were expected"},
    {waited_twice, "a request was waited for twice"},
    {checks_of_grouped, "checks of messages are set before the ranks are grouped"},
    {checks_of_group, "checks of messages are set before the ranks are grouped"},
    {unannounced, "an all-gather of 8 bytes where 4 were announced"},
    {announces_too_much, "rank 0 announced a message of 12 bytes, the longest has 8"},
    {announces_part_of_a_word, "rank 0 announced a message of 7 bytes, the longest has 8"},
    {flip_without_bit, "SPARSETRAIN_FLIP=0:1 is not RANK:MESSAGE:BIT"},
    {flip_before_the_first, "SPARSETRAIN_FLIP=0:-1:5 is not RANK:MESSAGE:BIT"},
    {flip_below_the_first_bit, "SPARSETRAIN_FLIP=0:1:-5 is not RANK:MESSAGE:BIT"},
    {flip_on_no_way, "SPARSETRAIN_FLIP=0:1:5:on is not RANK:MESSAGE:BIT"},
};

static void each_mistake_is_said(void **state) {
    (void)state;
    char text[8192];
    setenv("SPARSETRAIN_PART_BYTES", "1024", 1);
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        int status = in_child(mistakes[i].f, text, sizeof text);
        if (status != EXIT_SYSTEM || !strstr(text, mistakes[i].says))
            fail_msg("status %d, and not \"%s\" but: %s", status, mistakes[i].says, text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_mistake_is_said)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
