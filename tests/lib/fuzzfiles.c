/* fuzzfiles.c: see fuzzing.h. */
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "tests/lib/fuzzing.h"

static char folder[1024];

static void remove_folder(void) {
    DIR *d = opendir(folder);
    if (!d) return;
    for (struct dirent *entry; (entry = readdir(d));)
        if (entry->d_name[0] != '.') unlinkat(dirfd(d), entry->d_name, 0);
    closedir(d);
    rmdir(folder);
}

const char *fuzz_folder(void) {
    if (folder[0]) return folder;
    const char *base = getenv("FUZZ_SCRATCH");
    if (!base || !*base)
        base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : getenv("TMPDIR"); /* syncing takes no time */
    MUST(snprintf(folder, sizeof folder, "%s/sparsetrain-fuzz.XXXXXX", base && *base ? base : "/tmp") < 900);
    MUST(mkdtemp(folder) != NULL);
    atexit(remove_folder);
    return folder;
}

const char *fuzz_path(const char *name) {
    static char path[1200];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    unlink(path);
    return path;
}

const char *fuzz_file(const char *name, const void *data, size_t bytes) {
    const char *path = fuzz_path(name);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    MUST(file >= 0);
    for (size_t done = 0; done < bytes;) {
        ssize_t n = write(file, (const char *)data + done, bytes - done);
        MUST(n > 0);
        done += (size_t)n;
    }
    MUST(close(file) == 0);
    return path;
}
