/* transport_mpi_hello.c: comm.h over MPI: the first words of all ranks. What they hold is the same for ever, whatever
 * else changes from version to version: mixed builds must be able to tell that they are mixed. */
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "comm/transport/transport_mpi.h"

enum { HELLO_WORDS = 14, HELLO_TEXT = 256, HELLO_PROTOCOL = 1 };

/* 128 bytes. A row that a rank does not have is 0. */
struct words {
    char magic[8];
    uint32_t protocol, rows;
    uint64_t row[HELLO_WORDS];
};
_Static_assert(sizeof(struct words) == 128 && (int)COMM_HELLO_ROWS <= (int)HELLO_WORDS,
               "the ranks' first message changes");

static struct words words_of(const struct comm_hello *mine) {
    struct words w = {.magic = "sparsetr", .protocol = HELLO_PROTOCOL, .rows = COMM_HELLO_ROWS};
    for (int i = 0; i < COMM_HELLO_ROWS; i++) w.row[i] = hash64(1, mine->row[i], strlen(mine->row[i]));
    return w;
}

/* The first row in which some rank is not as rank 0 is, and the lowest such rank. Lengths and protocols count as rows
 * of their own before the others: *row -1. */
static bool find_difference(const struct words *all, int size, int *row, int *rank) {
    for (*row = -1; *row < HELLO_WORDS; ++*row) {
        for (*rank = 1; *rank < size; ++*rank) {
            const struct words *w = &all[*rank];
            if (*row >= 0 ? w->row[*row] != all->row[*row] : memcmp(w, all, offsetof(struct words, row)) != 0)
                return true;
        }
    }
    return false;
}

/* The text of one rank, on all. */
static void share_row(const struct comm_hello *mine, int row, int rank, char text[HELLO_TEXT]) {
    snprintf(text, HELLO_TEXT, "%s", row >= 0 && row < COMM_HELLO_ROWS ? mine->row[row] : "another version");
    TRY(MPI_Bcast(text, HELLO_TEXT, MPI_CHAR, rank, MPI_COMM_WORLD), "MPI_Bcast of a greeting");
    text[HELLO_TEXT - 1] = '\0';
}

bool transport_hello(const struct comm_hello *mine, int size, struct err *e) {
    const struct words own = words_of(mine);
    struct words *all = mem_alloc((size_t)size, sizeof *all, "the greetings of all ranks");
    char first[HELLO_TEXT], other[HELLO_TEXT];
    int row, rank;
    TRY(MPI_Allgather(&own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE, MPI_COMM_WORLD), "MPI_Allgather");
    bool differ = find_difference(all, size, &row, &rank);
    mem_free(all);
    if (!differ) return true;
    share_row(mine, row, 0, first);
    share_row(mine, row, rank, other);
    return err_set(e,
                   "the ranks were started differently: rank 0 has %s where rank %d has %s; start all of them with the "
                   "same program, verb, options and environment",
                   first, rank, other);
}
