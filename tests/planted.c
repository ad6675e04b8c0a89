/* planted.c: a library that somebody has put where the program might look for its plugin: it leaves a mark as soon as
 * it is loaded (tests/cli_plugin.sh). */
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void leave_a_mark(void) {
    const char *path = getenv("PLANTED_MARK");
    int file = path ? open(path, O_WRONLY | O_CREAT, 0666) : -1;
    if (file >= 0) close(file);
}

const void *sparsetrain_plugin(void);
const void *sparsetrain_plugin(void) {
    return NULL;
}
