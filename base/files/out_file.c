/* out_file.c: see out_file.h. */
#include "base/files/out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/mem.h"

enum { TRIES = 100 };

static bool fail(const struct out_file *o, int status, const char *why, struct err *e) {
    bool advise = o->option && status == EXIT_USER;
    return err_with(e, status, "cannot write %s: %s%s%s", o->path, why, advise ? "; give another " : "",
                    advise ? o->option : "");
}

static bool refuse(const struct out_file *o, const char *why, struct err *e) {
    return fail(o, EXIT_USER, why, e);
}

/* The system's reason why it could not be opened. */
static bool refused(const struct out_file *o, int reason, struct err *e) {
    return fail(o, err_of_errno(reason), strerror(reason), e);
}

/* -- what is there ------------------------------------------------------------------------------------------------- */

/* The number of a descriptor by its name, or -1. */
static int descriptor_of(const char *path) {
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "/dev/stdout") == 0) return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        size_t length = strlen(folders[i]);
        if (strncmp(path, folders[i], length) != 0) continue;
        size_t digits = strspn(path + length, "0123456789");
        if (digits > 0 && digits < 8 && !path[length + digits]) return atoi(path + length);
    }
    return -1;
}

bool out_file_is_stream(const char *path) {
    return descriptor_of(path) >= 0;
}

static bool is_null_device(const struct stat *info) {
    struct stat null;
    return S_ISCHR(info->st_mode) && stat("/dev/null", &null) == 0 && S_ISCHR(null.st_mode) &&
           null.st_rdev == info->st_rdev;
}

/* What a link leads to is asked of the system, which may forbid to follow it (in /tmp, one of another user's). */
static bool look(struct out_file *o, bool *discard, mode_t *mode, struct err *e) {
    struct stat info;
    const char *name = strrchr(o->path, '/');
    *discard = false;
    *mode = 0;
    name = name ? name + 1 : o->path;
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return refuse(o, *o->path ? "that names a directory" : "the name is empty", e);
    o->target = mem_printf("%s", o->path);
    if (lstat(o->path, &info) != 0) return errno == ENOENT || refused(o, errno, e);
    if (S_ISLNK(info.st_mode) && o->own) return true;
    if (S_ISLNK(info.st_mode)) {
        char *real = stat(o->path, &info) == 0 ? realpath(o->path, NULL) : NULL;
        if (!real && errno == ENOENT) return refuse(o, "it is a link that leads nowhere", e);
        if (!real) return refused(o, errno, e);
        mem_free(o->target);
        o->target = mem_printf("%s", real);
        free(real);
    }
    *discard = is_null_device(&info);
    *mode = info.st_mode & 0777;
    if (*discard) return true;
    if (file_kind(info.st_mode)) return refuse(o, file_kind(info.st_mode), e);
    return access(o->target, W_OK) == 0 || refused(o, errno, e);
}

/* -- opening ------------------------------------------------------------------------------------------------------- */

FILE *out_file_stream(const char *path, const char **why) {
    const int number = descriptor_of(path), flags = fcntl(number, F_GETFL);
    *why = flags < 0 ? "it is not open" : (flags & O_ACCMODE) == O_RDONLY ? "it is open for reading only" : NULL;
    if (*why) errno = EINVAL;
    if (*why) return NULL;
    fflush(stdout);
    const int file = fcntl(number, F_DUPFD_CLOEXEC, 3); /* one that can be closed by itself */
    FILE *stream = file >= 0 ? fdopen(file, "wb") : NULL;
    if (stream) return stream;
    const int reason = errno;
    if (file >= 0) close(file);
    *why = strerror(reason);
    errno = reason;
    return NULL;
}

static bool take_stream(struct out_file *o, struct err *e) {
    const char *why;
    o->file = out_file_stream(o->path, &why);
    return o->file || fail(o, err_of_errno(errno), why, e);
}

/* Where no other process is at it, what a kill has left under the name goes. */
static void name_temporary(struct out_file *o, int try) {
    mem_free(o->temporary);
    o->temporary =
        o->alone ? mem_printf("%s.tmp", o->target) : mem_printf("%s.tmp.%ld.%d", o->target, (long)getpid(), try);
    if (o->alone) unlink(o->temporary);
}

/* A new file beside the target, which nobody else has made. */
static bool make_temporary(struct out_file *o, mode_t mode, struct err *e) {
    int file = -1;
    for (int i = 0; file < 0 && i < TRIES; i++) {
        name_temporary(o, i);
        file = open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (file < 0 && errno != EEXIST) break;
    }
    int reason = errno;
    if (file >= 0 && (!mode || fchmod(file, mode) == 0) && (o->file = fdopen(file, "wb"))) return true;
    if (file >= 0) {
        reason = errno;
        unlink(o->temporary);
        close(file);
    }
    return refused(o, reason, e);
}

static void forget(struct out_file *o) {
    mem_free(o->target);
    mem_free(o->temporary);
    o->target = o->temporary = NULL;
    o->file = NULL;
}

/* o: but for what is found out here. */
static bool open_file(struct out_file *o, struct err *e) {
    bool discard;
    mode_t mode;
    const bool stream = !o->own && out_file_is_stream(o->path);
    bool good = stream ? take_stream(o, e) : look(o, &discard, &mode, e);
    if (good && !stream && discard) {
        o->file = fopen("/dev/null", "wbe");
        good = o->file || refused(o, errno, e);
    } else if (good && !stream) {
        good = make_temporary(o, mode, e);
    }
    if (!good) forget(o);
    if (good) errno = 0; /* see out_file_close */
    return good;
}

bool out_file_open(struct out_file *o, const char *path, const char *option, struct err *e) {
    *o = (struct out_file){.path = path, .option = option};
    return open_file(o, e);
}

bool out_file_replace(struct out_file *o, const char *path, struct err *e) {
    *o = (struct out_file){.path = path, .own = true, .alone = true};
    return open_file(o, e);
}

bool out_file_replace_shared(struct out_file *o, const char *path, const char *option, struct err *e) {
    *o = (struct out_file){.path = path, .option = option, .own = true};
    return open_file(o, e);
}

bool out_file_check(const char *path, const char *option, struct err *e) {
    struct out_file o;
    if (!out_file_open(&o, path, option, e)) return false;
    out_file_abandon(&o);
    return true;
}

/* -- closing ------------------------------------------------------------------------------------------------------- */

/* Is there still nothing, or a regular file? */
static bool may_replace(const struct out_file *o, const char **why) {
    struct stat info;
    *why = lstat(o->target, &info) == 0 && !(o->own && S_ISLNK(info.st_mode)) ? file_kind(info.st_mode) : NULL;
    return !*why;
}

bool out_file_close(struct out_file *o, struct err *e) {
    const char *why = NULL;
    const int earlier = ferror(o->file) ? errno : 0; /* the stream does not know why; what succeeds leaves errno */
    errno = 0;
    bool good = fflush(o->file) == 0 && !ferror(o->file) && (!o->temporary || fsync(fileno(o->file)) == 0);
    int reason = errno ? errno : earlier ? earlier : EIO;
    if (fclose(o->file) != 0 && good) good = false, reason = errno;
    if (good && o->temporary && !may_replace(o, &why)) good = false;
    if (good && o->temporary && rename(o->temporary, o->target) != 0) good = false, reason = errno;
    if (!good && o->temporary) unlink(o->temporary);
    if (!good) fail(o, why ? EXIT_USER : EXIT_SYSTEM, why ? why : strerror(reason), e);
    forget(o);
    return good;
}

void out_file_abandon(struct out_file *o) {
    if (!o->file) return;
    fclose(o->file);
    if (o->temporary) unlink(o->temporary);
    forget(o);
}
