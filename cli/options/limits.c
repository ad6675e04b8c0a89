/* limits.c: see limits.h. */
#include "cli/options/limits.h"

#include <dirent.h>
#include <sys/resource.h>

/* Measured with Open MPI 4.1: up to 28 in a process that MPI starts alone. Over TCP a rank has two more for each other
 * rank, which MPI opens as it comes to need them. */
enum { FILES = 64, FILES_A_RANK = 2 };
/* Below about 300 MiB oneDNN 2.6 writes to memory that it did not get. */
static const rlim_t memory_least = (rlim_t)512 << 20;

static rlim_t open_files(void) {
    rlim_t count = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d)) count++;
    if (d) closedir(d);
    return count > 3 ? count - 3 : 0; /* ".", "..", and d's own */
}

static bool files_check(int ranks, struct err *e) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return true;
    const rlim_t open = open_files(), least = open + FILES, wanted = least + FILES_A_RANK * (rlim_t)ranks;
    const rlim_t before = limit.rlim_cur;
    if (before >= wanted) return true;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    if (limit.rlim_cur > before && setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;
    if (limit.rlim_cur >= least) return true;
    return err_set(e,
                   "only %llu files may be open at once (ulimit -n), and %llu are; MPI and the program want %d more: "
                   "raise the limit before the start, as by ulimit -n 1024",
                   (unsigned long long)limit.rlim_cur, (unsigned long long)open, FILES);
}

static bool memory_check(struct err *e) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= memory_least)
        return true;
    return err_set(
        e,
        "this process may have only %llu MiB of memory (ulimit -v); MPI and oneDNN alone want %llu: raise the "
        "limit before the start, as by ulimit -v unlimited",
        (unsigned long long)(limit.rlim_cur >> 20), (unsigned long long)(memory_least >> 20));
}

bool limits_check(int ranks, struct err *e) {
    return files_check(ranks, e) && memory_check(e);
}
