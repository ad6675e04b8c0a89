/* memory.c: device memory and pinned host memory.
 *
 * Device memory is one range of addresses that nobody can touch. A block is taken from it page by page: its pages are
 * accessible only while the stand-in runs work (hostcuda_memory_open), so that the host that follows a device pointer
 * is stopped at once. The page behind every block stays inaccessible for ever, and the block is moved as near to it as
 * a multiple of 16 bytes allows: its start is aligned to 256 bytes only where its size is a multiple of 256. What is
 * left of its pages beside it keeps the poison, and is looked at whenever work has run. Addresses are given out in
 * rising order and come round again after 16 GiB, so that what is used after cudaFree is found, too. */
#include "tests/hostcuda/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RANGE ((size_t)16 << 30)
#ifdef __x86_64__
enum { PAGE = 4096 };
#else
enum { PAGE = 65536 }; /* a multiple of every size of pages in use */
#endif
enum { FIT = 16 };
/* Bytes from which a block wants pages of 2 MiB, which are opened and closed 512 times as fast. */
enum { LARGE = 4 << 20 };

/* Blocks by rising address. */
struct blocks {
    struct hostcuda_block *block;
    size_t count, room;
};

static char *range;   /* [RANGE]; NULL before the first allocation */
static size_t cursor; /* where in the range to look for room next */
static struct blocks device_blocks, pinned_blocks;
static size_t used[HOSTCUDA_MAX_DEVICES]; /* bytes */
static int open_depth;

static size_t round_up(size_t n, size_t to) {
    return (n + to - 1) / to * to;
}

/* The number of blocks that start at or below p. */
static size_t blocks_below(const struct blocks *b, const char *p) {
    size_t low = 0, high = b->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (b->block[middle].start <= p)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The block with start <= p <= start + bytes, or NULL. */
static struct hostcuda_block *blocks_find(const struct blocks *b, const char *p) {
    size_t below = blocks_below(b, p);
    struct hostcuda_block *block = below ? &b->block[below - 1] : NULL;
    return block && p <= block->start + block->bytes ? block : NULL;
}

static void blocks_add(struct blocks *b, struct hostcuda_block block) {
    if (b->count == b->room) {
        b->room = b->room ? 2 * b->room : 64;
        b->block = realloc(b->block, b->room * sizeof *b->block);
        if (!b->block) hostcuda_complain("no memory for the table of blocks");
    }
    size_t at = blocks_below(b, block.start);
    memmove(&b->block[at + 1], &b->block[at], (b->count - at) * sizeof *b->block);
    b->block[at] = block;
    b->count++;
}

static void blocks_remove(struct blocks *b, struct hostcuda_block *block) {
    size_t at = (size_t)(block - b->block);
    memmove(block, block + 1, (b->count - at - 1) * sizeof *block);
    b->count--;
}

/* The pages of a block, without the one behind it. */
static char *pages(const struct hostcuda_block *b) {
    return b->start - (uintptr_t)b->start % PAGE;
}
static size_t pages_bytes(const struct hostcuda_block *b) {
    return round_up((size_t)(b->start + b->bytes - pages(b)), PAGE);
}

/* -- who is where -------------------------------------------------------------------------------------------------- */

enum hostcuda_place hostcuda_place_of(const void *p) {
    const char *at = p;
    if (range && at >= range && at < range + RANGE) return HOSTCUDA_DEVICE;
    const struct hostcuda_block *block = blocks_find(&pinned_blocks, at);
    return block && at < block->start + block->bytes ? HOSTCUDA_PINNED : HOSTCUDA_PAGEABLE;
}

const struct hostcuda_block *hostcuda_block_of(const void *p) {
    const struct hostcuda_block *block = blocks_find(&device_blocks, p);
    return block ? block : blocks_find(&pinned_blocks, p);
}

const char *hostcuda_range(const void *p, size_t bytes) {
    static _Thread_local char text[200];
    hostcuda_lock();
    const struct hostcuda_block *b = hostcuda_block_of(p);
    const char *wrong = text;
    if (b && (size_t)(b->start + b->bytes - (const char *)p) >= bytes)
        wrong = NULL;
    else if (b)
        snprintf(text, sizeof text, "%zu bytes at %p end %zu bytes behind a block of %zu bytes", bytes, p,
                 bytes - (size_t)(b->start + b->bytes - (const char *)p), b->bytes);
    else if (hostcuda_place_of(p) == HOSTCUDA_DEVICE)
        snprintf(text, sizeof text, "%p is beside all live blocks of device memory (freed?)", p);
    else
        snprintf(text, sizeof text, "%p is neither device memory nor pinned host memory", p);
    hostcuda_unlock();
    return wrong;
}

void hostcuda_need(const char *function, const char *argument, const void *p, size_t bytes, size_t alignment) {
    const char *wrong = hostcuda_range(p, bytes);
    if (wrong) hostcuda_complain("%s: %s (%p, %zu bytes): %s", function, argument, p, bytes, wrong);
    if ((uintptr_t)p % alignment)
        hostcuda_complain("%s: %s (%p) is not aligned to %zu bytes", function, argument, p, alignment);
}

void hostcuda_apart(const char *function, const void *output, size_t output_bytes, const char *argument,
                    const void *input, size_t input_bytes) {
    const char *out = output, *in = input;
    if (out && in && out < in + input_bytes && in < out + output_bytes)
        hostcuda_complain("%s: the output overlaps %s", function, argument);
}

/* -- accessible or not --------------------------------------------------------------------------------------------- */

/* Where the processor has protection keys, all blocks have one, and a thread opens and closes it by an instruction;
 * elsewhere, and under valgrind, every block is protected by a system call each time. */
static int key = -1;

static void set_key(bool open) {
    if (pkey_set(key, open ? 0 : PKEY_DISABLE_ACCESS)) hostcuda_complain("pkey_set failed");
}

/* With a key, of all blocks at once. */
static void set_block(const struct hostcuda_block *b, bool open) {
    if (key >= 0)
        set_key(open);
    else if (mprotect(pages(b), pages_bytes(b), open ? PROT_READ | PROT_WRITE : PROT_NONE))
        hostcuda_complain("mprotect of %zu bytes failed", pages_bytes(b));
}

static void set_all(bool open) {
    if (key >= 0)
        set_key(open);
    else
        for (size_t i = 0; i < device_blocks.count; i++) set_block(&device_blocks.block[i], open);
}

static bool poisoned(const char *from, const char *to) {
    return from == to ||
           ((unsigned char)*from == HOSTCUDA_POISON && memcmp(from, from + 1, (size_t)(to - from - 1)) == 0);
}

static void check_end(const struct hostcuda_block *b, const char *who) {
    const char *end = b->start + b->bytes;
    if (!poisoned(end, pages(b) + pages_bytes(b)))
        hostcuda_complain("%s wrote directly behind the end of a block of %zu bytes at %p", who, b->bytes,
                          (void *)b->start);
}

void hostcuda_check_ends(const char *who) {
    for (size_t i = 0; i < device_blocks.count; i++) check_end(&device_blocks.block[i], who);
}

void hostcuda_memory_open(void) {
    if (open_depth++) return;
    hostcuda_catch_faults();
    set_all(true);
}

void hostcuda_memory_close(void) {
    if (--open_depth) return;
    for (size_t i = 0; i < device_blocks.count; i++) {
        const struct hostcuda_block *b = &device_blocks.block[i];
        check_end(b, "work on the device");
        if (!poisoned(pages(b), b->start))
            hostcuda_complain("work on the device wrote before the start of a block of %zu bytes at %p", b->bytes,
                              (void *)b->start);
    }
    set_all(false);
}

/* -- allocation ---------------------------------------------------------------------------------------------------- */

static size_t capacity(void) { /* bytes of one device */
    const char *mib = getenv("SPARSETRAIN_HOSTCUDA_MIB");
    return (mib ? strtoull(mib, NULL, 10) : 2048) << 20;
}

/* The offset of `bytes` free bytes in the range (a multiple of PAGE), or RANGE when there are none. */
static size_t find_room(size_t bytes) {
    for (int round = 0; round < 2; round++, cursor = 0) {
        while (cursor + bytes <= RANGE) {
            size_t below = blocks_below(&device_blocks, range + cursor + bytes - 1);
            const struct hostcuda_block *last = below ? &device_blocks.block[below - 1] : NULL;
            size_t end = last ? (size_t)(pages(last) - range) + pages_bytes(last) + PAGE : 0;
            if (end <= cursor) {
                cursor += bytes;
                return cursor - bytes;
            }
            cursor = end;
        }
    }
    return RANGE;
}

static void range_reserve(void) {
    if (range) return;
    range = mmap(NULL, RANGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) hostcuda_complain("no %zu bytes of addresses for device memory", RANGE);
    key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
}

static cudaError_t device_alloc(void **p, size_t bytes) {
    const int device = hostcuda_device();
    *p = NULL;
    if (bytes == 0) return cudaSuccess;
    if (bytes > capacity() || used[device] + bytes > capacity()) return cudaErrorMemoryAllocation;
    range_reserve();
    hostcuda_catch_faults();
    const size_t fit = round_up(bytes, FIT), whole = round_up(fit, PAGE), at = find_room(whole + PAGE);
    if (at == RANGE) return cudaErrorMemoryAllocation;
    struct hostcuda_block block = {range + at + whole - fit, bytes, device};
    if (whole >= LARGE) madvise(range + at, whole, MADV_HUGEPAGE); /* a wish */
    /* Any advice that sets the block apart from what lies around it: else the kernel makes one area of them each time
     * it is closed, and cuts it out again when it is opened, which takes most of the time of either. */
    madvise(range + at, whole, MADV_DONTDUMP);
    if (key >= 0 && pkey_mprotect(range + at, whole, PROT_READ | PROT_WRITE, key))
        hostcuda_complain("pkey_mprotect of %zu bytes failed", whole);
    set_block(&block, true);
    memset(range + at, HOSTCUDA_POISON, whole);
    if (!open_depth) set_block(&block, false);
    blocks_add(&device_blocks, block);
    used[device] += bytes;
    *p = block.start;
    return cudaSuccess;
}

static void device_release(void *p) {
    struct hostcuda_block *block = blocks_find(&device_blocks, p);
    if (!block || block->start != p) hostcuda_complain("cudaFree of %p, which is not the start of a live block", p);
    used[block->device] -= block->bytes;
    /* Mapped anew: the memory goes back to the system, the addresses stay taken. */
    if (mmap(pages(block), pages_bytes(block), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
             0) == MAP_FAILED)
        hostcuda_complain("mmap of a freed block failed");
    hostcuda_forget_workspaces(block->start, block->bytes);
    blocks_remove(&device_blocks, block);
}

cudaError_t cudaMalloc(void **p, size_t bytes) {
    if (hostcuda_devices() == 0) return hostcuda_answer(cudaErrorNoDevice);
    hostcuda_lock();
    cudaError_t error = hostcuda_unsafe_call();
    if (error == cudaSuccess) error = device_alloc(p, bytes);
    hostcuda_unlock();
    return hostcuda_answer(error);
}

cudaError_t cudaFree(void *p) {
    hostcuda_lock();
    cudaError_t error = hostcuda_unsafe_call();
    if (error == cudaSuccess && p) {
        hostcuda_run_all();
        device_release(p);
    }
    hostcuda_unlock();
    return hostcuda_answer(error);
}

/* Pinned memory is a mapping of its own with an inaccessible page behind it, fitted like device memory. */
cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned flags) {
    (void)flags;
    if (hostcuda_devices() == 0) return hostcuda_answer(cudaErrorNoDevice);
    *p = NULL;
    if (bytes == 0) return cudaSuccess;
    hostcuda_lock();
    cudaError_t error = hostcuda_unsafe_call();
    if (error == cudaSuccess) {
        const size_t fit = round_up(bytes, FIT), whole = round_up(fit, PAGE);
        char *map = mmap(NULL, whole + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (map == MAP_FAILED || mprotect(map + whole, PAGE, PROT_NONE)) {
            error = cudaErrorMemoryAllocation;
        } else {
            memset(map, HOSTCUDA_POISON, whole);
            blocks_add(&pinned_blocks, (struct hostcuda_block){map + whole - fit, bytes, hostcuda_device()});
            *p = map + whole - fit;
        }
    }
    hostcuda_unlock();
    return hostcuda_answer(error);
}

cudaError_t cudaMallocHost(void **p, size_t bytes) {
    return cudaHostAlloc(p, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void *p) {
    hostcuda_lock();
    cudaError_t error = hostcuda_unsafe_call();
    if (error == cudaSuccess && p) {
        hostcuda_run_all();
        struct hostcuda_block *block = blocks_find(&pinned_blocks, p);
        if (!block || block->start != p)
            hostcuda_complain("cudaFreeHost of %p, which is not the start of a live block", p);
        check_end(block, "somebody");
        munmap(pages(block), pages_bytes(block) + PAGE);
        blocks_remove(&pinned_blocks, block);
    }
    hostcuda_unlock();
    return hostcuda_answer(error);
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total) {
    if (hostcuda_devices() == 0) return hostcuda_answer(cudaErrorNoDevice);
    hostcuda_lock();
    *total = capacity();
    *available = *total - used[hostcuda_device()];
    hostcuda_unlock();
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *p) {
    hostcuda_lock();
    const struct hostcuda_block *b = hostcuda_block_of(p);
    const enum hostcuda_place place = b ? hostcuda_place_of(b->start) : HOSTCUDA_PAGEABLE;
    memset(attributes, 0, sizeof *attributes);
    attributes->type = place == HOSTCUDA_DEVICE   ? cudaMemoryTypeDevice
                       : place == HOSTCUDA_PINNED ? cudaMemoryTypeHost
                                                  : cudaMemoryTypeUnregistered;
    attributes->device = b ? b->device : -2; /* cudaInvalidDeviceId */
    memcpy(&attributes->devicePointer, &p, b ? sizeof p : 0);
    memcpy(&attributes->hostPointer, &p, place == HOSTCUDA_DEVICE ? 0 : sizeof p);
    hostcuda_unlock();
    return cudaSuccess;
}

/* At the end of a process that succeeded: what was not given back. */
static void report_leaks(int status, void *unused) {
    (void)unused;
    if (status != 0) return;
    for (size_t i = 0; i < device_blocks.count; i++)
        fprintf(stderr, "hostcuda: %zu bytes of device memory at %p were not freed\n", device_blocks.block[i].bytes,
                (void *)device_blocks.block[i].start);
    const char *strict = getenv("SPARSETRAIN_HOSTCUDA_LEAKS");
    if (device_blocks.count && strict && strcmp(strict, "1") == 0) {
        fflush(NULL);
        _exit(97);
    }
}

__attribute__((constructor)) static void watch_leaks(void) {
    on_exit(report_leaks, NULL);
}
