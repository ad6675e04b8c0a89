/* event_file.c: see event_file.h. */
#include "cli/log/event_file.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files/file.h"

/* -- checksums ----------------------------------------------------------------------------------------------------- */

uint32_t event_crc32c(const void *data, size_t bytes) {
    const unsigned char *p = data;
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

/* Turned and shifted, so that a checksum of data that hold checksums is none of them. */
uint32_t event_masked(uint32_t crc) {
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* -- protocol buffers ---------------------------------------------------------------------------------------------- */

/* A message that is being put together in memory of the caller's. */
struct message {
    unsigned char *data;
    size_t bytes, room;
};

enum wire_type { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5 };

static void put(struct message *m, const void *data, size_t bytes) {
    if (bytes > m->room - m->bytes) die("an event has more than %zu bytes", m->room);
    memcpy(m->data + m->bytes, data, bytes);
    m->bytes += bytes;
}

/* Seven bits a byte, the lowest first; all bytes but the last have their highest bit set. */
static void put_varint(struct message *m, uint64_t value) {
    do {
        const unsigned char byte = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        put(m, &byte, 1);
        value >>= 7;
    } while (value);
}

static void put_key(struct message *m, unsigned field, enum wire_type type) {
    put_varint(m, field << 3 | (unsigned)type);
}

static void put_little(struct message *m, uint64_t bits, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) put(m, &(unsigned char){(unsigned char)(bits >> 8 * i)}, 1);
}

static void put_double(struct message *m, unsigned field, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(m, field, FIXED64);
    put_little(m, bits, sizeof bits);
}

static void put_float(struct message *m, unsigned field, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(m, field, FIXED32);
    put_little(m, bits, sizeof bits);
}

static void put_bytes(struct message *m, unsigned field, const void *data, size_t bytes) {
    put_key(m, field, LENGTH);
    put_varint(m, bytes);
    put(m, data, bytes);
}

static void put_integer(struct message *m, unsigned field, int64_t value) {
    put_key(m, field, VARINT);
    put_varint(m, (uint64_t)value);
}

/* -- records ------------------------------------------------------------------------------------------------------- */

static void fail(struct event_file *f) {
    if (f->failed.text[0]) return;
    err_system(&f->failed, "cannot write %s: %s", f->path, strerror(errno ? errno : EIO));
}

static void write_record(struct event_file *f, const struct message *m) {
    unsigned char head[12], tail[4];
    struct message h = {head, 0, sizeof head}, t = {tail, 0, sizeof tail};
    put_little(&h, m->bytes, 8);
    put_little(&h, event_masked(event_crc32c(head, 8)), 4);
    put_little(&t, event_masked(event_crc32c(m->data, m->bytes)), 4);
    if (f->failed.text[0]) return;
    errno = 0;
    if (fwrite(head, 1, sizeof head, f->file) != sizeof head || fwrite(m->data, 1, m->bytes, f->file) != m->bytes ||
        fwrite(tail, 1, sizeof tail, f->file) != sizeof tail)
        fail(f);
}

static void begin_event(struct message *m, int64_t step) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    put_double(m, 1, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
    if (step) put_integer(m, 2, step);
}

static void write_version(struct event_file *f) {
    static const char version[] = "brain.Event:2";
    unsigned char data[64];
    struct message m = {data, 0, sizeof data};
    begin_event(&m, 0);
    put_bytes(&m, 3, version, sizeof version - 1);
    write_record(f, &m);
}

/* A session that starts: of what other files have, steps from this one on are not shown. */
static void write_start(struct event_file *f, int64_t step) {
    unsigned char data[64], log[8];
    struct message m = {data, 0, sizeof data}, l = {log, 0, sizeof log};
    put_integer(&l, 1, 1);
    begin_event(&m, step);
    put_bytes(&m, 7, log, l.bytes);
    write_record(f, &m);
}

/* -- the file ------------------------------------------------------------------------------------------------------ */

static bool refuse(const char *dir, int reason, struct err *e) {
    return err_with(e, err_of_errno(reason), "cannot write to --log-tensorboard %.300s: %s; give another directory",
                    dir, strerror(reason));
}

static bool make_folder(const char *dir, int *made, struct err *e) {
    if (strlen(dir) > 900) return err_set(e, "--log-tensorboard: the name of the directory is too long");
    const int reason = file_make_folders(dir, made);
    struct stat info;
    if (reason) return refuse(dir, reason, e);
    if (stat(dir, &info) != 0) return refuse(dir, errno, e);
    return S_ISDIR(info.st_mode) ? access(dir, W_OK) == 0 || refuse(dir, errno, e) : refuse(dir, ENOTDIR, e);
}

bool event_file_check(const char *dir, struct err *e) {
    int made = 0;
    const bool good = make_folder(dir, &made, e);
    file_remove_folders(dir, made);
    return good;
}

/* The latest time in the name of an event file in dir; 0: there is none. */
static long long latest_in(const char *dir) {
    static const char begins[] = "events.out.tfevents.";
    long long latest = 0;
    DIR *d = opendir(dir);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        if (strncmp(entry->d_name, begins, sizeof begins - 1) != 0) continue;
        const long long when = strtoll(entry->d_name + sizeof begins - 1, NULL, 10);
        if (when > latest && when < 9999999999) latest = when;
    }
    if (d) closedir(d);
    return latest;
}

/* TensorBoard reads the files of a folder in the order of their names, which must rise with time, then. No file is
 * written to that is there. */
static bool open_new(struct event_file *f, const char *dir, struct err *e) {
    char host[256] = "localhost";
    long long now = (long long)time(NULL);
    const long long latest = latest_in(dir);
    gethostname(host, sizeof host - 1);
    if (now <= latest) now = latest + 1;
    snprintf(f->path, sizeof f->path, "%s/events.out.tfevents.%010lld.%s.%ld", dir, now, host, (long)getpid());
    f->file = fopen(f->path, "wbxe");
    return f->file || refuse(dir, errno, e);
}

bool event_file_open(struct event_file *f, const char *dir, int64_t after, struct err *e) {
    if (!make_folder(dir, &f->made, e)) return false;
    if (!open_new(f, dir, e)) {
        file_remove_folders(dir, f->made);
        return false;
    }
    write_version(f);
    if (after > 0) write_start(f, after + 1);
    return true;
}

void event_file_flush(struct event_file *f) {
    errno = 0;
    if (f->file && fflush(f->file) != 0) fail(f);
}

void event_file_close(struct event_file *f) {
    if (f->file) fclose(f->file);
    f->file = NULL;
}

void event_file_abandon(struct event_file *f) {
    if (!f->file) return;
    event_file_close(f);
    unlink(f->path);
    *strrchr(f->path, '/') = '\0';
    file_remove_folders(f->path, f->made);
}

/* -- scalars ------------------------------------------------------------------------------------------------------- */

void event_step(struct event_file *f, int64_t step) {
    f->step = step;
    f->summary.bytes = 0;
}

void event_scalar(struct event_file *f, const char *tag, double value) {
    unsigned char data[256];
    struct message m = {data, 0, sizeof data}, all = {f->summary.data, f->summary.bytes, EVENT_BYTES_MAX};
    if (!f->file || !isfinite(value)) return;
    put_bytes(&m, 1, tag, strlen(tag));
    put_float(&m, 2, (float)value);
    put_bytes(&all, 1, data, m.bytes);
    f->summary.bytes = all.bytes;
}

void event_end(struct event_file *f) {
    unsigned char data[EVENT_BYTES_MAX + 64];
    struct message m = {data, 0, sizeof data};
    if (!f->file || f->summary.bytes == 0) return;
    begin_event(&m, f->step);
    put_bytes(&m, 5, f->summary.data, f->summary.bytes);
    write_record(f, &m);
}
