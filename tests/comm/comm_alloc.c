/* comm_alloc.c: running out of memory. For every exchange (with every wire format), selector, store and sparse vector,
 * and every n: the nth allocation of `open` fails, in a process of its own. It must end with status 1 and one line that
 * says what there was no memory for. Then the whole way without a failure: `close` allocates nothing and leaves nothing
 * behind.
 *
 * The child is a copy of a rank that has started MPI, and it leaves by _exit, not by MPI_Abort: starting MPI a thousand
 * times would take minutes. That a rank without memory takes all others with it is tested in comm_ends.c.
 *
 * On another device than the CPU a copy of a process that has used it must not go on using it: there, that everything
 * is closed again.
 * ranks: 1
 * devices: cuda sparse */
#include <sys/wait.h>

#include "tests/lib/exchange_rig.h"

enum { N = 1000, K = 50, ALLOCATIONS_MAX = 1000, LEAST = 1 };

/* What is opened and closed. */
struct subject {
    const struct exchange_ops *exchange;
    const struct wire_ops *wire;
    const struct selector_ops *select; /* without an exchange: this selector alone */
    bool layers, exempt;
    enum { EXCHANGE, SELECTOR, STORE, VIEW, SPARSE } kind;
};

/* Everything under it is open already. */
struct parts {
    struct store store, view;
    struct selector *selector;
    struct sparse sparse;
    struct exchange exchange;
};
static struct parts parts;
static struct comm *job;

static void open_below(const struct subject *s) {
    memset(&parts, 0, sizeof parts);
    if (s->kind == STORE || s->kind == SPARSE) return;
    store_open(&parts.store, N, test_device());
    if (s->kind == EXCHANGE) parts.selector = selector_open(s->select, &parts.store, K, NULL);
}

static void open_subject(const struct subject *s) {
    static const size_t groups[] = {0, 300, 700};
    static const uint32_t exempt[] = {0, 299, 300, 301, 999};
    struct exchange_setup setup = {.comm = job, .n = N, .k_max = K, .wire = s->wire, .wants_sent = true};
    if (s->kind == STORE) store_open(&parts.store, N, test_device());
    if (s->kind == VIEW) store_view_open(&parts.view, &parts.store, 100, 500);
    if (s->kind == SPARSE) sparse_open(&parts.sparse, N);
    if (s->kind == SELECTOR) parts.selector = selector_open(s->select, &parts.store, K, NULL);
    if (s->kind != EXCHANGE) return;
    if (exchange_keeps(s->exchange, &setup.options, s->wire) || !test_device_is_host()) setup.store = &parts.store;
    if (s->exchange->selects) setup.selector = parts.selector;
    if (s->exempt) {
        setup.exempt = exempt;
        setup.exempts = sizeof exempt / sizeof *exempt;
    }
    if (s->layers) {
        setup.group = groups;
        setup.groups = 3;
        exchange_open_layers(&parts.exchange, s->exchange, &setup);
    } else
        exchange_open(&parts.exchange, s->exchange, &setup);
}

static void close_subject(const struct subject *s) {
    if (s->kind == STORE) store_close(&parts.store);
    if (s->kind == VIEW) store_view_close(&parts.view);
    if (s->kind == SPARSE) sparse_close(&parts.sparse);
    if (s->kind == SELECTOR) selector_close(parts.selector);
    if (s->kind == EXCHANGE) exchange_close(&parts.exchange);
}

static void close_below(const struct subject *s) {
    if (s->kind == STORE || s->kind == SPARSE) return;
    if (s->kind == EXCHANGE) selector_close(parts.selector);
    store_close(&parts.store);
}

static void describe(const struct subject *s, char *text, size_t size) {
    static const char *const kinds[] = {"exchange", "selector", "store", "view of a store", "sparse vector"};
    snprintf(text, size, "%s %s %s %s%s%s", kinds[s->kind], s->exchange ? s->exchange->name : "",
             s->select ? s->select->name : "", s->wire ? s->wire->name : "", s->layers ? " by layers" : "",
             s->exempt ? " with exempt entries" : "");
}

/* -- the child ---------------------------------------------------------------------------------------------------- */
enum { NOT_REACHED = 42 }; /* exit status: fewer than nth allocations */

static void leave(int status) {
    _exit(status);
}

static void child(const struct subject *s, long nth, int to) {
    dup2(to, STDERR_FILENO);
    error_set_abort(leave);
    open_below(s);
    mem_fail_at(nth);
    open_subject(s);
    mem_fail_at(LEAST);
    close_subject(s);
    _exit(NOT_REACHED);
}

/* -- the parent --------------------------------------------------------------------------------------------------- */
static char said[4096];

/* The exit status of the child, its stderr in `said`. */
static int try(const struct subject *s, long nth) {
    int ends[2], status;
    size_t length = 0;
    if (pipe(ends) != 0) fail_msg("no pipe");
    pid_t pid = fork();
    if (pid == 0) child(s, nth, ends[1]);
    if (pid < 0) fail_msg("no process");
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], said + length, sizeof said - 1 - length)) > 0;) length += (size_t)got;
    said[length] = '\0';
    close(ends[0]);
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
}

/* "sparsetrain: rank 0: base/mem.c:1: no memory for THE KEYS: 0.1 MiB were asked for\n" and no more. */
static bool names_what_is_missing(void) {
    const char *what = strstr(said, ": no memory for "), *newline = strchr(said, '\n');
    if (strncmp(said, "sparsetrain: ", 13) != 0 || !what || !newline || newline[1]) return false;
    what += strlen(": no memory for ");
    return *what != ':' && strncmp(what, "(null)", 6) != 0 && strstr(what, " MiB were asked for\n");
}

/* Every n. Returns how many allocations there are. */
static long every_allocation(const struct subject *s) {
    char name[256];
    describe(s, name, sizeof name);
    for (long nth = 1; nth < ALLOCATIONS_MAX; nth++) {
        int status = try(s, nth);
        if (status == NOT_REACHED && said[0] == '\0') return nth - 1;
        if (status != EXIT_SYSTEM || !names_what_is_missing())
            fail_msg("%s, allocation %ld: status %d, and it says: %s", name, nth, status, said);
    }
    fail_msg("%s: more than %d allocations", name, ALLOCATIONS_MAX);
    return 0;
}

/* Open, two steps, close: as many blocks as before. */
static void nothing_stays(const struct subject *s) {
    static float grad[N];
    float *device_grad = device_twin(grad, N);
    char name[256];
    long before = mem_live();
    describe(s, name, sizeof name);
    open_below(s);
    open_subject(s);
    for (int step = 0; s->kind == EXCHANGE && step < 2; step++) {
        struct exchange_sum sum;
        make_gradient(WHOLE, 0, 1, step, N, grad);
        device_fill(device_grad, grad, N);
        assert_true(exchange_run(&parts.exchange, device_grad, K, &sum));
    }
    close_subject(s);
    close_below(s);
    if (mem_live() != before) fail_msg("%s: %ld blocks are left", name, mem_live() - before);
    device_twin_free(device_grad, grad);
}

static void check(struct subject s) {
    if (test_device_is_host())
        assert_true(every_allocation(&s) > 0 ||
                    (s.exchange && !exchange_keeps(s.exchange, &(struct option_values){0}, s.wire)) || s.kind == VIEW);
    nothing_stays(&s);
}

static void stores_and_vectors(struct comm *c) {
    job = c;
    check((struct subject){.kind = STORE});
    check((struct subject){.kind = VIEW});
    check((struct subject){.kind = SPARSE});
}

static void all_selectors(struct comm *c) {
    job = c;
    for (size_t i = 0; selectors[i]; i++) check((struct subject){.kind = SELECTOR, .select = selectors[i]});
}

/* The selector's capacity decides the sizes, not the number of allocations: one that promises k, one that does not. */
static void all_exchanges(struct comm *c) {
    job = c;
    for (size_t row = 0; exchanges[row]; row++)
        for (size_t w = 0; wires[w]; w++)
            if (exchange_takes(exchanges[row], wires[w]))
                check((struct subject){.kind = EXCHANGE,
                                       .exchange = exchanges[row],
                                       .wire = wires[w],
                                       .select = w % 2 ? exact() : selectors[1]});
}

static void exchanges_by_layers(struct comm *c) {
    job = c;
    for (size_t row = 0; exchanges[row]; row++)
        if (exchange_keeps(exchanges[row], &(struct option_values){0}, NULL))
            check((struct subject){
                .kind = EXCHANGE, .exchange = exchanges[row], .wire = wires[0], .select = exact(), .layers = true});
}

/* They are opened by what is common to all rows. */
static void exchanges_with_exempt_entries(struct comm *c) {
    job = c;
    for (int layers = 0; layers < 2; layers++)
        check((struct subject){.kind = EXCHANGE,
                               .exchange = exchange_named("topka"),
                               .wire = wires[0],
                               .select = exact(),
                               .layers = layers,
                               .exempt = true});
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"stores_and_vectors", stores_and_vectors},
        {"all_selectors", all_selectors},
        {"all_exchanges", all_exchanges},
        {"exchanges_by_layers", exchanges_by_layers},
        {"exchanges_with_exempt_entries", exchanges_with_exempt_entries},
    };
    return rig_test_main(argc, argv, "comm_alloc", cases, sizeof cases / sizeof cases[0]);
}
