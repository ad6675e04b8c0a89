/* emulate.cc: runs kernels on the host; emulate.h is its contract.
 *
 * Idea: the threads of a block take turns within their warp, in the order of their lanes, each until it ends or waits:
 * one pass. When a pass ends, either all lanes wait for each other at one collective, and the next pass begins, or all
 * wait for the block (or have ended), and the next warp has its turn; anything else is a divergence that a GPU answers
 * with a hang or with garbage, and is complained about. A thread needs a stack of its own only while it waits: a stack
 * whose thread has ended takes the next thread that has not begun, so that kernels without barriers run in one stack
 * from the first thread to the last.
 *
 * SPARSETRAIN_HOSTCUDA_REVERSE=1 runs blocks and warps from the last to the first: what a missing barrier hides in
 * one order shows in the other. */
#include "tests/hostcuda/emulate.h"

#include "tests/hostcuda/fiber.h"
#include "tests/hostcuda/internal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

hostcuda_thread *hostcuda_running;
uint3 blockIdx;
dim3 blockDim, gridDim;

namespace {

enum { LANES = 32, MAX_THREADS = 1024, MAX_WARPS = MAX_THREADS / LANES };
#ifdef ST_SANITIZE
const size_t STACK_BYTES = 256 << 10; /* frames are larger there */
#else
const size_t STACK_BYTES = 64 << 10;
#endif

enum state { NEW, ENDED, WAITS_FOR_WARP, WAITS_FOR_BLOCK };

struct thread : hostcuda_thread {
    fiber *on;               /* while it has begun and not ended */
    hostcuda_values *halves; /* [2]: of its warp */
    enum state state;
    int line;         /* where in the source it waits, */
    const char *what; /* ... and at what */
    enum hostcuda_barrier_kind kind;
    bool predicate;
};

/* Those who wait, of a warp in this pass or of the block: how many, how many of them where the first does, and for how
 * many the predicate holds. It spares looking at each of them again. */
struct meeting {
    unsigned came, together, holds;
    const thread *first;

    void come(const thread *t) {
        if (!came++) first = t;
        together += t->what == first->what && t->line == first->line && t->kind == first->kind;
        holds += t->predicate;
    }
    bool complete(unsigned of) const { return came == of && together == of; }
};

/* The block that runs now; the lock of the stand-in is held. */
const hostcuda_call *call; /* NULL: none */
unsigned thread_count;
thread threads[MAX_THREADS];
/* Two halves for a warp: a lane may be one collective ahead of another that has yet to read. */
hostcuda_values values[MAX_WARPS][2];
meeting warp_meeting, block_meeting;
int barrier_result;
fiber scheduler;
fiber *free_fibers;
char *dynamic_end; /* of the area for dynamic shared memory; an inaccessible page follows */

/* "thread 3 has ended", "thread 3 waits at __syncthreads in line 12" */
void describe(char *text, size_t size, const thread *t) {
    if (t->state == ENDED)
        snprintf(text, size, "thread %d has ended", int(t - threads));
    else
        snprintf(text, size, "thread %d waits at %s in line %d", int(t - threads), t->what, t->line);
}

[[noreturn]] void complain_block(const char *problem, const thread *a, const thread *b) {
    char one[100], other[100];
    describe(one, sizeof one, a);
    describe(other, sizeof other, b);
    hostcuda_complain("kernel %s, block (%u, %u, %u): %s: %s, %s", call->name, blockIdx.x, blockIdx.y, blockIdx.z,
                      problem, one, other);
}

bool same_place(const thread *a, const thread *b) {
    return a->state == b->state && a->line == b->line && (a->what == b->what || strcmp(a->what, b->what) == 0);
}

thread *running(void) {
    return static_cast<thread *>(hostcuda_running);
}

/* The first lane of its warp, and the one behind the last. */
thread *warp_begin(thread *t) {
    return t - t->lane;
}
thread *warp_end(thread *t) {
    thread *const full = warp_begin(t) + LANES, *const all = threads + thread_count;
    return full < all ? full : all;
}

/* After a pass: do the lanes wait for each other (true), or has the warp nothing to do before the block has? */
bool judge_warp(thread *t) {
    const thread *first = warp_begin(t), *end = warp_end(t);
    const bool collective = warp_meeting.came > 0, complete = warp_meeting.complete(LANES);
    warp_meeting = {};
    for (const thread *lane = first; collective && !complete && lane < end; lane++)
        if (!same_place(lane, first)) complain_block("the lanes of a warp are not at the same collective", first, lane);
    return collective;
}

/* Who has the turn after thread t, which ended or waits; NULL: the scheduler. */
thread *next_turn(thread *t) {
    thread *const end = warp_end(t);
    for (thread *next = t + 1; next < end; next++)
        if (next->state != ENDED) return next;
    return judge_warp(t) ? warp_begin(t) : nullptr;
}

void run_threads(void);

fiber *take_fiber(void) {
    fiber *f = free_fibers;
    if (!f) return fiber_new(STACK_BYTES, run_threads);
    free_fibers = f->next_free;
    return f;
}

/* The fiber on which thread t goes on or begins. */
fiber *fiber_of(thread *t) {
    if (!t) return &scheduler;
    hostcuda_running = t;
    if (t->state == NEW) t->on = take_fiber();
    return t->on;
}

/* The life of a fiber: it runs the thread that has the turn and what has not begun behind it, and rests until it is
 * taken again. */
void run_threads(void) {
    fiber *self = running()->on;
    fiber_arrived(self);
    for (;;) {
        running()->on = self;
        call->thread(call);
        running()->state = ENDED;
        thread *next = next_turn(running());
        if (next && next->state == NEW) {
            hostcuda_running = next;
            continue;
        }
        self->next_free = free_fibers;
        free_fibers = self;
        fiber_change(self, fiber_of(next));
    }
}

/* Gives the turn away; returns when it has come back. Mostly it passes from a lane to the next one, which waits, too.
 */
inline void wait_turn(thread *self) {
    thread *const beside = self + 1;
    if (self->lane < LANES - 1 && beside < threads + thread_count && beside->state > ENDED) {
        hostcuda_running = beside;
        if (self->lane < LANES - 2 && beside[1].on) fiber_expect(beside[1].on);
        fiber_change(self->on, beside->on);
        return;
    }
    thread *const next = next_turn(self);
    if (next != self) fiber_change(self->on, fiber_of(next));
}

/* After all warps had their turn: are there threads at a barrier? Then they all are, and it opens. */
bool judge_block(void) {
    const meeting m = block_meeting;
    block_meeting = {};
    for (const thread *t = threads; m.came && !m.complete(thread_count) && t < threads + thread_count; t++)
        if (!same_place(t, threads) || t->kind != threads->kind)
            complain_block("threads wait at a barrier that others do not reach", threads, t);
    const enum hostcuda_barrier_kind kind = threads->kind;
    barrier_result = kind == HOSTCUDA_COUNT ? int(m.holds)
                     : kind == HOSTCUDA_OR  ? m.holds > 0
                                            : m.holds == thread_count;
    return m.came > 0;
}

bool reverse(void) {
    static const char *const wanted = getenv("SPARSETRAIN_HOSTCUDA_REVERSE");
    return wanted && strcmp(wanted, "1") == 0;
}

void run_block(void) {
    const unsigned warps = (thread_count + LANES - 1) / LANES;
    for (unsigned t = 0; t < thread_count; t++) threads[t].state = NEW;
    if (call->shared) memset(hostcuda_shared_dynamic(), HOSTCUDA_POISON, call->shared);
    do {
        for (unsigned w = 0; w < warps; w++) {
            thread *t = &threads[(reverse() ? warps - 1 - w : w) * LANES], *const end = warp_end(t);
            while (t < end && t->state == ENDED) t++;
            if (t < end) fiber_change(&scheduler, fiber_of(t));
        }
    } while (judge_block());
}

void run_grid(void) {
    const uint64_t blocks = uint64_t(call->grid.x) * call->grid.y * call->grid.z;
    blockDim = call->block;
    gridDim = call->grid;
    thread_count = call->block.x * call->block.y * call->block.z;
    for (unsigned t = 0; t < thread_count; t++) {
        threads[t].index = make_uint3(t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y);
        threads[t].lane = t % LANES;
        threads[t].all = threads[t].halves = values[t / LANES];
    }
    for (uint64_t i = 0; i < blocks; i++) {
        const uint64_t b = reverse() ? blocks - 1 - i : i;
        blockIdx = make_uint3(unsigned(b % gridDim.x), unsigned(b / gridDim.x % gridDim.y),
                              unsigned(b / gridDim.x / gridDim.y));
        run_block();
    }
}

/* -- launching ----------------------------------------------------------------------------------------------------- */

void check_pointer(const hostcuda_call *c, int number, const void *p) {
    const char *wrong = p ? hostcuda_range(p, 0) : nullptr;
    if (wrong) hostcuda_complain("kernel %s, argument %d: %s", c->name, number, wrong);
}

/* The kernel may read all of the pinned blocks that it gets pointers to; the range that holds these blocks. */
const char *pinned_begin, *pinned_end;
void note_pinned(const hostcuda_call *, int, const void *p) {
    if (!p || hostcuda_place_of(p) != HOSTCUDA_PINNED) return;
    const hostcuda_block *b = hostcuda_block_of(p);
    if (!pinned_begin || b->start < pinned_begin) pinned_begin = b->start;
    if (!pinned_end || b->start + b->bytes > pinned_end) pinned_end = b->start + b->bytes;
}

void run_call(const void *argument) {
    call = static_cast<const hostcuda_call *>(argument);
    call->pointers(call, check_pointer); /* again: a graph may be older than what has been freed since */
    run_grid();
    hostcuda_check_ends(call->name);
    hostcuda_count(HOSTCUDA_KERNELS, 1);
    call = nullptr;
}

cudaError_t check_configuration(const hostcuda_call *c) {
    const dim3 &g = c->grid, &b = c->block;
    if (hostcuda_devices() == 0) return cudaErrorNoDevice;
    if (g.x < 1 || g.y < 1 || g.z < 1 || g.x > 0x7fffffffu || g.y > 65535 || g.z > 65535)
        return cudaErrorInvalidConfiguration;
    if (b.x < 1 || b.y < 1 || b.z < 1 || b.x > 1024 || b.y > 1024 || b.z > 64) return cudaErrorInvalidConfiguration;
    if (b.x * b.y * b.z > MAX_THREADS) return cudaErrorInvalidConfiguration;
    return c->shared > hostcuda_shared_limit(c->function) ? cudaErrorInvalidValue : cudaSuccess; /* as the driver */
}

} // namespace

void hostcuda_enqueue_call(const hostcuda_call *c, size_t bytes, cudaStream_t stream) {
    hostcuda_count(HOSTCUDA_GIVEN, 1);
    cudaError_t error = check_configuration(c);
    if (error == cudaSuccess) {
        hostcuda_lock();
        cudaStream_t s = hostcuda_stream(stream);
        c->pointers(c, check_pointer);
        error = s->device == hostcuda_device() ? hostcuda_may_append(s) : cudaErrorInvalidResourceHandle;
        if (error == cudaSuccess) {
            hostcuda_item *item = hostcuda_item_new(run_call, c, bytes);
            pinned_begin = pinned_end = nullptr;
            c->pointers(c, note_pinned);
            item->reads = pinned_begin;
            item->reads_bytes = size_t(pinned_end - pinned_begin);
            hostcuda_append(s, item);
        }
        hostcuda_unlock();
    }
    hostcuda_answer(error);
}

/* -- what kernels call --------------------------------------------------------------------------------------------- */

/* The thread has come to a place where it waits. */
static inline void wait_at(thread *self, enum state state, meeting *meeting, const char *what, int line) {
    self->state = state;
    self->what = what;
    self->line = line;
    meeting->come(self);
    wait_turn(self);
}

int hostcuda_barrier(enum hostcuda_barrier_kind kind, int predicate, int line) {
    thread *self = running();
    self->kind = kind;
    self->predicate = predicate != 0;
    wait_at(self, WAITS_FOR_BLOCK, &block_meeting, "__syncthreads", line);
    return barrier_result;
}

void hostcuda_meet(const char *name, unsigned mask, uint64_t value, int line) {
    thread *self = running();
    if (mask != 0xffffffffu)
        hostcuda_complain("kernel %s: %s in line %d for mask %08x, and not for the whole warp", call->name, name, line,
                          mask);
    if (warp_begin(self) + LANES > threads + thread_count)
        hostcuda_complain("kernel %s: %s in line %d in a warp that is not full", call->name, name, line);
    self->all = self->all == self->halves ? self->halves + 1 : self->halves;
    self->all->of[self->lane] = value;
    self->kind = HOSTCUDA_SYNC;
    wait_at(self, WAITS_FOR_WARP, &warp_meeting, name, line);
}

/* Its end lies at an inaccessible page, but for what aligns its start to 16 bytes. */
void *hostcuda_shared_dynamic(void) {
    if (!dynamic_end) {
        const size_t area = (HOSTCUDA_SHARED_OPTIN + 65535) / 65536 * 65536, guard = 65536;
        char *map = static_cast<char *>(
            mmap(nullptr, area + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        if (map == MAP_FAILED || mprotect(map + area, guard, PROT_NONE))
            hostcuda_complain("no memory for shared memory");
        dynamic_end = map + area;
    }
    return dynamic_end - (call->shared + 15) / 16 * 16;
}

/* -- faults -------------------------------------------------------------------------------------------------------- */

/* Who follows a pointer to where nothing may be touched is named before the process dies of it. */
static struct sigaction earlier_action;

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)context;
    const char *at = static_cast<const char *>(info->si_addr);
    if (call)
        fprintf(stderr, "hostcuda: kernel %s, block (%u, %u, %u), thread (%u, %u, %u): access to %p%s\n", call->name,
                blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, info->si_addr,
                dynamic_end && at >= dynamic_end && at < dynamic_end + 65536 ? ", behind its dynamic shared memory"
                : hostcuda_place_of(at) == HOSTCUDA_DEVICE                   ? ", beside all blocks of device memory"
                                                                             : "");
    else if (hostcuda_place_of(at) == HOSTCUDA_DEVICE)
        fprintf(stderr, "hostcuda: the host follows a pointer to device memory, %p\n", info->si_addr);
    fflush(stderr);
    sigaction(SIGSEGV, &earlier_action, nullptr); /* the access is repeated, and this time it ends the process */
}

__attribute__((constructor)) void hostcuda_catch_faults(void) {
    struct sigaction action = {}, now;
    sigaction(SIGSEGV, nullptr, &now);
    if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault) return;
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &earlier_action);
}
