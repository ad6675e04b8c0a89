/* mem.h: checked memory. Every allocation succeeds or ends the job with a line that says how much
 * was asked for and for what. Blocks are 64-byte aligned; blocks of 4 MiB and more ask for huge pages. */
#ifndef ST_BASE_MEM_H
#define ST_BASE_MEM_H

#include <stddef.h>

/* count * size bytes, not initialised; `what` names the use in the error message ("residual").
 * count * size overflowing size_t is an error like any other. count == 0 gives a unique pointer. */
void *mem_alloc(size_t count, size_t size, const char *what);

/* The same, zeroed. */
void *mem_zalloc(size_t count, size_t size, const char *what);

/* Room for `room` things in place of a full block of `count`, which are in it; block: freed, NULL where there is none.
 */
void *mem_grow(void *block, size_t count, size_t room, size_t size, const char *what);

/* Frees what mem_* returned; NULL is allowed. */
void mem_free(void *block);

/* Memory that passes between host and device: page-locked where a device in use wants that, so that copies run at full
 * speed and beside other work; else as mem_alloc. */
void *mem_pinned_alloc(size_t count, size_t size, const char *what);
void mem_pinned_free(void *block);
/* A device that comes into use names who gives and takes back such memory from here on. alloc returns NULL when it
 * cannot, and plain memory is taken. Blocks given out before stay what they were. */
void mem_pin_with(void *(*alloc)(size_t bytes), void (*release)(void *block));

/* printf into fresh memory. */
char *mem_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* For tests: the nth allocation from now (1 = the next) fails as if memory had run out; 0: never. */
void mem_fail_at(long nth);

/* For tests: blocks that mem_* has given out and that are not freed. */
long mem_live(void);

/* Resident memory of this process in bytes, now and at its peak, shared pages included (Linux /proc; 0 where
 * unknown). */
size_t mem_resident(void);
size_t mem_resident_peak(void);
size_t mem_resident_shared(void);  /* the part of it that is shared memory, such as the dataset of a node */
size_t mem_resident_private(void); /* the part that is neither shared nor of a file */

/* Bytes of private memory that this process has asked for and not touched yet, as Linux says, stacks of threads
 * included; 0 where unknown. */
size_t mem_untouched(void);

/* Bytes of this machine that can be had without swapping, as Linux says; 0 where unknown. For tests
 * $SPARSETRAIN_MEMORY_FREE. */
size_t mem_available(void);

#endif
