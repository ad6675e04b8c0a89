/* internal.h: what the files of the stand-in for the CUDA runtime share; hostcuda.h is for those outside. Every public
 * function takes the one lock of the process for its whole length. */
#ifndef ST_TESTS_HOSTCUDA_INTERNAL_H
#define ST_TESTS_HOSTCUDA_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/hostcuda/hostcuda.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HOSTCUDA_MAX_DEVICES = 16,
    HOSTCUDA_MULTIPROCESSORS = 2,
    HOSTCUDA_SHARED = 48 << 10,        /* bytes of shared memory a block may have without asking */
    HOSTCUDA_SHARED_OPTIN = 227 << 10, /* ... and after cudaFuncSetAttribute */
    HOSTCUDA_POISON = 0xff             /* fills what nobody has written; as a float or a double it is NaN */
};

/* -- runtime.c: the process and its devices ------------------------------------------------------------------------ */

void hostcuda_lock(void); /* recursive */
void hostcuda_unlock(void);
cudaError_t hostcuda_answer(cudaError_t error); /* remembers it for cudaGetLastError, gives it back */
int hostcuda_devices(void);
int hostcuda_device(void);                          /* the current one of this thread */
size_t hostcuda_shared_limit(const void *function); /* dynamic shared memory that this kernel may ask for, bytes */

/* -- memory.c: blocks of device memory and of pinned host memory --------------------------------------------------- */

enum hostcuda_place { HOSTCUDA_PAGEABLE, HOSTCUDA_PINNED, HOSTCUDA_DEVICE };
struct hostcuda_block {
    char *start;
    size_t bytes;
    int device; /* on which it is, or which was the current one */
};

/* Where p points. HOSTCUDA_DEVICE: somewhere in the range of device memory, live or not. */
enum hostcuda_place hostcuda_place_of(const void *p);
/* The live block (device or pinned) that p lies in or ends; NULL: none. */
const struct hostcuda_block *hostcuda_block_of(const void *p);

/* Device memory is accessible between the two, which nest; the second finds what was written beside blocks. */
void hostcuda_memory_open(void);
void hostcuda_memory_close(void);
/* Complains when something was written directly behind a block; `who` has just run. */
void hostcuda_check_ends(const char *who);

/* -- workspace.c --------------------------------------------------------------------------------------------------- */

/* This memory has been given back: what is lent there next is overwritten whole again. */
void hostcuda_forget_workspaces(const char *start, size_t bytes);

/* -- stream.c: queues of work, events ------------------------------------------------------------------------------ */

/* A piece of work in a stream, in a capture or in a graph. */
struct hostcuda_item {
    struct hostcuda_item *next;
    uint64_t seq;                      /* of all items enqueued in this process; in a capture: its place there */
    void (*run)(const void *argument); /* NULL: the item only waits */
    uint64_t wait_stream, wait_seq;    /* before it runs, all of that stream up to wait_seq has; 0, 0: no wait */
    unsigned lane;                     /* in a capture: which of its streams */
    bool of_library;                   /* cuBLAS's or cuDNN's, for the counts */
    const void *reads;                 /* pinned memory that it reads, */
    size_t reads_bytes;
    void *writes; /* ... and writes, when it runs */
    size_t writes_bytes;
    size_t bytes;
    unsigned char argument[] __attribute__((aligned(16)));
};

struct hostcuda_item *hostcuda_item_new(void (*run)(const void *), const void *argument, size_t bytes);
struct hostcuda_item *hostcuda_item_copy(const struct hostcuda_item *item);

struct CUstream_st {
    struct CUstream_st *next; /* of all streams */
    uint64_t id;
    int device;
    bool legacy, blocking; /* blocking: its work and that of the legacy stream wait for each other */
    struct hostcuda_item *first, **end;
    struct hostcuda_capture *capture; /* NULL: not captured */
    unsigned lane;
};

struct CUevent_st {
    int references; /* of the program, and of record items not yet run */
    unsigned flags;
    bool recorded, captured;
    uint64_t stream; /* the id of the stream, or of the capture, of the last record */
    uint64_t seq;    /* of the record; in a capture: items of `lane` before this place are meant */
    unsigned lane;
    double ms; /* when the last record was run */
};

cudaStream_t hostcuda_stream(cudaStream_t handle); /* with the default stream resolved; complains if it is none */
cudaStream_t hostcuda_next_stream(cudaStream_t s); /* all of them, from NULL to NULL */
cudaStream_t hostcuda_stream_by_id(uint64_t id);   /* NULL: destroyed, so all of its work is done */

/* May work be enqueued there now? A stream whose capture went wrong takes none, nor does the legacy stream while a
 * stream that it would wait for is captured. */
cudaError_t hostcuda_may_append(cudaStream_t s);
void hostcuda_append(cudaStream_t s, struct hostcuda_item *item); /* to the queue or to the capture; takes item */

bool hostcuda_pending(cudaStream_t s, uint64_t seq);
void hostcuda_run_until(cudaStream_t s, uint64_t seq); /* everything up to seq, and what it waits for */
void hostcuda_run_all(void);

/* -- counts.c ------------------------------------------------------------------------------------------------------ */

enum hostcuda_counter {
    HOSTCUDA_GIVEN, /* by the host to a stream: kernels, calls of libraries, copies, fills, graphs as a whole */
    HOSTCUDA_WAITS, /* of the host, for a stream, an event or a copy with work left to do */
    /* What the device has done, also as a part of graphs. in: from the host; out: to it. */
    HOSTCUDA_KERNELS,
    HOSTCUDA_LIBRARY_CALLS,
    HOSTCUDA_FILLS,
    HOSTCUDA_COPIES_IN,
    HOSTCUDA_COPIES_OUT,
    HOSTCUDA_COPIES_INSIDE,
    HOSTCUDA_BYTES_IN,
    HOSTCUDA_BYTES_OUT,
    HOSTCUDA_BYTES_INSIDE,
    HOSTCUDA_COUNTERS
};
void hostcuda_count(enum hostcuda_counter which, size_t by);
void hostcuda_count_copy(const void *to, const void *from, size_t bytes); /* when it is done */

/* -- capture.c ----------------------------------------------------------------------------------------------------- */

struct hostcuda_capture;
void hostcuda_capture_append(struct hostcuda_capture *c, unsigned lane, struct hostcuda_item *item);
void hostcuda_capture_invalidate(struct hostcuda_capture *c);
bool hostcuda_capture_valid(const struct hostcuda_capture *c);
void hostcuda_capture_record(cudaStream_t s, cudaEvent_t event);
cudaError_t hostcuda_capture_wait(cudaStream_t s, cudaEvent_t event);
/* For calls that may disturb a capture (allocation, synchronous copies): forbidden to this thread now? */
cudaError_t hostcuda_unsafe_call(void);

/* -- emulate.cc ---------------------------------------------------------------------------------------------------- */

/* Names who follows a bad pointer before the process dies of it. Done again with every allocation and every run of
 * work, for somebody else (MPI, cmocka) may have set a handler of their own, which comes after this one then. */
void hostcuda_catch_faults(void);

#ifdef __cplusplus
}
#endif

#endif
