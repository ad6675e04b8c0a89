/* device_sparse.c: a device for simulations: memory that holds only what is not zero.
 *
 * Idea: hundreds of simulated ranks in one process each want gradient and residual of millions of floats, of which some
 * thousands are not zero. A block of this device is a range of addresses without any memory behind it, so that pointer
 * arithmetic works as ever (and code that reads device memory from the host faults), and two lists beside it, the
 * places and the values of the words that are not zero. A pointer is brought back to its block by a search among the
 * live ones.
 *
 * Memory: 8 bytes for each word that is not zero, in pages of 4 KiB; what a block has once needed it keeps until it is
 * released. The lists have addresses for the case that every word is not zero, so that nothing is allocated as they
 * grow (the system gives pages as they are touched); 12 bytes of address space for each word. Two mappings a block, of
 * the 65530 that Linux allows a process (vm.max_map_count). Where the system counts address space as memory
 * (vm.overcommit_memory = 2, ulimit -v), long blocks are refused.
 *
 * Time: a copy to the device reads every word, one from it writes every word; all else looks at what is not zero alone.
 * Restrictions: whole words of 4 bytes; 2^32 of them in a block; no networks, no pointers for MPI (no_arrays). */
#include "base/sim/device_sparse.h"

#include <inttypes.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/device/device.h"
#include "base/mem.h"
#include "base/simd.h"

enum { WORD = sizeof(float), GROUP = 1024 /* words that are looked at together */ };

struct sparse_block {
    char *range; /* what the device's pointers point into: no memory */
    size_t words;
    size_t mapped; /* bytes from `range` on: the range, idx, val */
    uint32_t *idx; /* [words], the first nnz strictly increasing */
    float *val;    /* [words] */
    size_t nnz;
};

/* The live blocks, by rising address. */
static struct {
    pthread_mutex_t lock;
    struct sparse_block **block; /* [room] */
    size_t count, room;
} live = {.lock = PTHREAD_MUTEX_INITIALIZER};

void device_sparse_lock(void) {
    pthread_mutex_lock(&live.lock);
}
void device_sparse_unlock(void) {
    pthread_mutex_unlock(&live.lock);
}

/* -- blocks -------------------------------------------------------------------------------------------------------- */

/* How many live blocks begin at or below the address. */
static size_t blocks_up_to(const char *address) {
    size_t low = 0, high = live.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (live.block[middle]->range <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert(struct sparse_block *b) {
    if (live.count == live.room) {
        size_t room = live.room ? 2 * live.room : 16;
        live.block = mem_grow(live.block, live.count, room, sizeof *live.block, "the table of sparse blocks");
        live.room = room;
    }
    size_t at = blocks_up_to(b->range);
    memmove(live.block + at + 1, live.block + at, (live.count - at) * sizeof *live.block);
    live.block[at] = b;
    live.count++;
}

/* Takes a block out of the table; the last one takes the table with it. */
static struct sparse_block *take_out(const char *range) {
    size_t at = blocks_up_to(range);
    if (at == 0 || live.block[at - 1]->range != range) die("%p is no block of the device sparse", (const void *)range);
    struct sparse_block *b = live.block[at - 1];
    memmove(live.block + at - 1, live.block + at, (live.count - at) * sizeof *live.block);
    if (--live.count == 0) {
        mem_free(live.block);
        live.block = NULL;
        live.room = 0;
    }
    return b;
}

/* Address space for three arrays of this many words, the last two to be written. */
static void map(struct sparse_block *b, const char *what) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (b->words * WORD + page - 1) / page * page;
    b->mapped = 3 * bytes;
    b->range = mmap(NULL, b->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (b->range == MAP_FAILED || mprotect(b->range + bytes, 2 * bytes, PROT_READ | PROT_WRITE) != 0)
        die("no memory for %s: %.1f MiB were asked for, as addresses alone (ulimit -v, vm.max_map_count or "
            "vm.overcommit_memory forbid it)",
            what, (double)b->mapped / 1048576.0);
    /* One entry must not cost 2 MiB. */
    (void)madvise(b->range + bytes, 2 * bytes, MADV_NOHUGEPAGE);
    b->idx = (uint32_t *)(void *)(b->range + bytes);
    b->val = (float *)(void *)(b->range + 2 * bytes);
}

static void *alloc(size_t bytes, const char *what) {
    if (bytes / WORD > UINT32_MAX)
        die("%s of %zu bytes: a block of the device sparse has up to %" PRIu32 " floats", what, bytes, UINT32_MAX);
    struct sparse_block *b = mem_zalloc(1, sizeof *b, what);
    b->words = bytes > WORD ? (bytes + WORD - 1) / WORD : 1;
    map(b, what);
    device_sparse_lock();
    insert(b);
    device_sparse_unlock();
    return b->range;
}

static void release(void *range) {
    if (!range) return;
    device_sparse_lock();
    struct sparse_block *b = take_out(range);
    device_sparse_unlock();
    if (munmap(b->range, b->mapped) != 0) die("a block of the device sparse cannot be released");
    mem_free(b);
}

/* -- lists --------------------------------------------------------------------------------------------------------- */

/* The first entry of the block at or behind this place. */
static size_t position_of(const struct sparse_block *b, uint64_t place) {
    size_t low = 0, high = b->nnz;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (b->idx[middle] < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct device_list device_list_of(const float *address, size_t count) {
    static struct sparse_block nothing; /* a range of no words lies in no block: it may begin where one ends */
    if (count == 0) return (struct device_list){.block = &nothing};
    const char *from = (const char *)address;
    size_t blocks = blocks_up_to(from);
    struct sparse_block *b = blocks ? live.block[blocks - 1] : &nothing;
    size_t offset = blocks ? (size_t)(from - b->range) : 0, first = offset / WORD;
    if (first > b->words || count > b->words - first || offset % WORD)
        die("%p and %zu floats from there are not within a block of the device sparse", (const void *)address, count);
    size_t low = position_of(b, first), high = position_of(b, first + count);
    return (struct device_list){b, (uint32_t)first, count, b->idx + low, b->val + low, high - low};
}

void device_list_resize(struct device_list *l, size_t nnz, struct device_list *other) {
    struct sparse_block *b = l->block;
    if (nnz > l->count) die("%zu entries for a range of %zu words", nnz, l->count);
    if (nnz == l->nnz) return;
    uint32_t *end = l->idx + l->nnz;
    size_t behind = (size_t)(b->idx + b->nnz - end);
    if (other && other->block == b && other->idx >= end) {
        other->idx = l->idx + nnz + (other->idx - end);
        other->val = l->val + nnz + (other->val - (l->val + l->nnz));
    }
    memmove(l->idx + nnz, end, behind * sizeof *end);
    memmove(l->val + nnz, l->val + l->nnz, behind * sizeof *l->val);
    b->nnz = b->nnz - l->nnz + nnz;
    l->nnz = nnz;
}

void device_list_drop_zeros(struct device_list *l) {
    size_t kept = 0;
    for (size_t i = 0; i < l->nnz; i++) {
        if (word_is_zero(l->val[i])) continue;
        l->idx[kept] = l->idx[i];
        l->val[kept++] = l->val[i];
    }
    device_list_resize(l, kept, NULL);
}

/* -- copies -------------------------------------------------------------------------------------------------------- */

static size_t words_of(size_t bytes) {
    if (bytes % WORD) die("the device sparse copies whole words of %d bytes, not %zu bytes", (int)WORD, bytes);
    return bytes / WORD;
}

SIMD_CLONES static size_t count_not_zero(const float *x, size_t count) {
    size_t zeros = 0;
    for (size_t i = 0; i < count; i++) zeros += word_is_zero(x[i]);
    return count - zeros;
}

static void to_device(void *device, const void *host, size_t bytes) {
    const float *x = host;
    size_t count = words_of(bytes), at = 0;
    device_sparse_lock();
    struct device_list l = device_list_of(device, count);
    device_list_resize(&l, count_not_zero(x, count), NULL);
    for (size_t from = 0; from < count; from += GROUP) {
        size_t end = count - from < GROUP ? count : from + GROUP;
        if (count_not_zero(x + from, end - from) == 0) continue;
        for (size_t i = from; i < end; i++) {
            if (word_is_zero(x[i])) continue;
            l.idx[at] = l.first + (uint32_t)i;
            l.val[at++] = x[i];
        }
    }
    device_sparse_unlock();
}

static void to_host(void *host, const void *device, size_t bytes) {
    float *to = host;
    memset(host, 0, bytes);
    device_sparse_lock();
    struct device_list l = device_list_of(device, words_of(bytes));
    for (size_t i = 0; i < l.nnz; i++) to[l.idx[i] - l.first] = l.val[i];
    device_sparse_unlock();
}

static void zero(void *device, size_t bytes) {
    device_sparse_lock();
    struct device_list l = device_list_of(device, words_of(bytes));
    device_list_resize(&l, 0, NULL);
    device_sparse_unlock();
}

static void copy(void *to, const void *from, size_t bytes) {
    size_t count = words_of(bytes);
    device_sparse_lock();
    struct device_list l = device_list_of(to, count), source = device_list_of(from, count);
    if (l.block == source.block && count && l.first < source.first + count && source.first < l.first + count)
        die("a copy within the device sparse from a range to one that it overlaps");
    device_list_resize(&l, source.nnz, &source);
    for (size_t i = 0; i < l.nnz; i++) l.idx[i] = source.idx[i] - source.first + l.first;
    if (l.nnz) memcpy(l.val, source.val, l.nnz * sizeof *l.val);
    device_sparse_unlock();
}

static uint32_t to_host_at_once(void *host, const void *device, size_t bytes) {
    to_host(host, device, bytes);
    return 0;
}
static uint32_t to_device_at_once(void *device, const void *host, size_t bytes) {
    to_device(device, host, bytes);
    return 0;
}

/* -- the row ------------------------------------------------------------------------------------------------------- */

static bool available(struct err *why) {
    (void)why;
    return true;
}
static const char *label(void) {
    return "sparse";
}
static const char *describe(void) {
    return "lists in host memory";
}
static void choose(int local_rank, int local_size) {
    (void)local_rank, (void)local_size;
}
static void sync_nothing(void) {}
static void wait_for_nothing(uint32_t ticket) {
    (void)ticket;
}

const struct device_ops device_sparse = {
    .name = "sparse",
    .summary = "gradients as lists of what is not zero, for benches and simulations of many ranks; no networks",
    .no_arrays = true,
    .available = available,
    .label = label,
    .describe = describe,
    .choose = choose,
    .alloc = alloc,
    .release = release,
    .zero = zero,
    .copy = copy,
    .to_device = to_device,
    .to_host = to_host,
    .sync = sync_nothing,
    .to_host_begin = to_host_at_once,
    .to_device_begin = to_device_at_once,
    .wait = wait_for_nothing,
};
