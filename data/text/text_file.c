/* text_file.c: see text_file.h. */
#include "data/text/text_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/file.h"

static bool is_gzip(const char *path) {
    size_t length = strlen(path);
    return length > 3 && strcmp(path + length - 3, ".gz") == 0;
}

static bool bring_anew(struct err *e, const struct err *why) {
    if (err_status(why) == EXIT_SYSTEM) return err_system(e, "%s", why->text);
    return err_set(e, "%.900s; bring the file here anew", why->text);
}

bool text_size(const char *path, uint64_t *bytes, struct err *e) {
    struct err why = {0};
    struct stat s;
    if (stat(path, &s) != 0) return err_with(e, err_of_errno(errno), "cannot read %s: %s", path, strerror(errno));
    if (!S_ISREG(s.st_mode)) return err_set(e, "%s is not a file; put the text there", path);
    if (is_gzip(path)) return gzip_unpacked_size(path, bytes, &why) || bring_anew(e, &why);
    *bytes = (uint64_t)s.st_size;
    return true;
}

bool text_file_open(struct text_file *f, const char *path, uint64_t promised, struct err *e) {
    struct err why = {0};
    *f = (struct text_file){.path = path, .promised = promised, .left = promised};
    if (is_gzip(path)) {
        f->gzip = gzip_open(path, &why);
        return f->gzip || bring_anew(e, &why);
    }
    const char *reason;
    f->file = file_read(path, &reason);
    return f->file || err_with(e, err_of_errno(errno), "cannot read %s: %s", path, reason);
}

void text_file_close(struct text_file *f) {
    if (f->file) fclose(f->file);
    gzip_close(f->gzip);
}

bool text_file_read(struct text_file *f, void *to, size_t room, size_t *got, struct err *e) {
    struct err why = {0};
    errno = 0;
    if (f->gzip && !gzip_read(f->gzip, to, room, got, &why)) return bring_anew(e, &why);
    if (f->file) *got = fread(to, 1, room, f->file);
    if (f->file && ferror(f->file))
        return err_with(e, err_of_errno(errno), "cannot read %s: %s", f->path, strerror(errno));
    if (*got > f->left) /* there is memory for what was promised, and no more */
        return err_set(e, "%s holds more than the %llu bytes that %s; %s", f->path, (unsigned long long)f->promised,
                       f->gzip ? "its end says" : "it had", f->gzip ? "pack it anew, in one piece" : "start again");
    f->left -= *got;
    return true;
}
