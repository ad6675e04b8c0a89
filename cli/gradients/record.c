/* record.c: see record.h. */
#include "cli/gradients/record.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/hash.h"
#include "base/mem.h"

/* By what a file holds: gradients, selected entries. */
static const struct {
    char magic[8];
    const char *what, *made_by;
} kinds[2] = {
    {{'S', 'T', 'R', 'A', 'I', 'N', 'G', 'R'}, "recorded gradients", "train --record FILE"},
    {{'S', 'T', 'R', 'A', 'I', 'N', 'S', 'E'}, "recorded selections", "train --record FILE --record-what selected"}};
enum { BYTE_ORDER_MARK = 0x01020304, TAG_GRADIENT = 911 };
#define SLICES_MAX 1000000u

/* What stands before each gradient. */
struct row_head {
    uint64_t step;
    uint32_t rank, crc;
};

static uint32_t row_crc(const struct row_head *row, const float *grad, size_t n) {
    uint32_t crc = crc32_of(0, &row->step, sizeof row->step);
    crc = crc32_of(crc, &row->rank, sizeof row->rank);
    return crc32_of(crc, grad, n * sizeof *grad);
}

static size_t row_bytes(size_t n) {
    return sizeof(struct row_head) + n * sizeof(float);
}

/* -- writing ------------------------------------------------------------------------------------------------------- */

bool record_cannot_write(const struct record *r, struct err *e) {
    return err_with(e, err_of_errno(errno), "cannot write the gradients to %s: %s", r->path, strerror(errno));
}

static void write_head(struct record *r, const struct record_about *about, struct err *e) {
    struct record_head head = {.version = RECORD_VERSION,
                               .byte_order = BYTE_ORDER_MARK,
                               .n = about->n,
                               .ranks = (uint64_t)r->comm->size,
                               .slices = about->slices,
                               .batch = about->batch};
    memcpy(head.magic, kinds[about->selected].magic, sizeof head.magic);
    snprintf(head.model, sizeof head.model, "%s", about->model);
    snprintf(head.data, sizeof head.data, "%s", about->data);
    size_t bytes = about->slices * sizeof *about->slice, more = about->selected ? sizeof about->selection : 0;
    uint32_t crc = crc32_of(crc32_of(0, &head, sizeof head), &about->selection, more);
    crc = crc32_of(crc, about->slice, bytes);
    bool good = fwrite(&head, sizeof head, 1, r->file) == 1 &&
                (more == 0 || fwrite(&about->selection, more, 1, r->file) == 1) &&
                (bytes == 0 || fwrite(about->slice, bytes, 1, r->file) == 1) &&
                fwrite(&crc, sizeof crc, 1, r->file) == 1 && fflush(r->file) == 0;
    if (!good) record_cannot_write(r, e);
}

static bool record_exists(const char *path, struct err *e) {
    return err_set(e, "%s is there already; remove it or give --record another name", path);
}

bool record_check(const char *path, struct err *e) {
    struct stat info;
    return lstat(path, &info) != 0 || record_exists(path, e);
}

/* Closes and removes a file that this process has made. */
static void discard(struct record *r, int file) {
    if (r->file)
        fclose(r->file);
    else
        close(file);
    r->file = NULL;
    remove(r->path);
}

/* Rank 0. O_EXCL: gradients of another run are not to be lost by a slip. A file without its head does not stay, or the
 * same command would be refused the next time. */
static void create(struct record *r, const char *path, const struct record_about *about, struct err *e) {
    if (strlen(path) >= sizeof r->path) {
        err_set(e, "the name of the record file is longer than %zu characters", sizeof r->path - 1);
        return;
    }
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 && errno == EEXIST) {
        record_exists(path, e);
        return;
    }
    if (file >= 0) r->file = fdopen(file, "wb");
    if (!r->file)
        record_cannot_write(r, e);
    else
        write_head(r, about, e);
    if (file >= 0 && e->text[0]) discard(r, file);
}

bool record_open(struct record *r, struct comm *c, const char *path, const struct record_about *about, struct err *e) {
    *r = (struct record){.comm = c, .n = about->n, .device = about->device};
    enum traffic traffic = c->traffic;
    c->traffic = TRAFFIC_CONTROL;
    snprintf(r->path, sizeof r->path, "%s", path);
    if (c->rank == 0) create(r, path, about, e);
    r->open = !comm_agree(c, e);
    if (r->open && !about->selected)
        r->stage = mem_alloc(about->n, sizeof *r->stage, "a gradient on its way to the record file");
    c->traffic = traffic;
    return r->open;
}

static bool write_row(struct record *r, uint64_t step, int rank, const float *grad) {
    struct row_head row = {.step = step, .rank = (uint32_t)rank};
    row.crc = row_crc(&row, grad, r->n);
    return fwrite(&row, sizeof row, 1, r->file) == 1 && fwrite(grad, sizeof *grad, r->n, r->file) == r->n;
}

/* Rank 0: its own gradient, then the others' in turn. All of them are received, whatever happens to the file. */
static bool write_rows(struct record *r, uint64_t step, const float *own) {
    size_t bytes = r->n * sizeof *own;
    bool good = write_row(r, step, 0, own);
    int reason = errno;
    for (int rank = 1; rank < r->comm->size; rank++) {
        char ready = 1; /* asked one by one, so that no gradient waits in a buffer of the transport */
        comm_send(r->comm, rank, TAG_GRADIENT, &ready, sizeof ready);
        comm_recv(r->comm, rank, TAG_GRADIENT, r->stage, bytes);
        if (good && !write_row(r, step, rank, r->stage)) good = false, reason = errno;
    }
    if (good && fflush(r->file) != 0) good = false, reason = errno;
    errno = reason;
    return good;
}

bool record_step(struct record *r, uint64_t step, const float *grad, struct err *e) {
    struct comm *c = r->comm;
    size_t bytes = r->n * sizeof *grad;
    enum traffic traffic = c->traffic;
    const float *host = grad;
    char ready;
    c->traffic = TRAFFIC_CONTROL;
    if (r->device && !device_is_host(r->device)) {
        r->device->to_host(r->stage, grad, bytes);
        host = r->stage;
    }
    if (c->rank == 0) {
        if (!write_rows(r, step, host)) record_cannot_write(r, e);
    } else {
        comm_recv(c, 0, TAG_GRADIENT, &ready, sizeof ready);
        comm_send(c, 0, TAG_GRADIENT, host, bytes);
    }
    bool good = !comm_agree(c, e);
    if (good) r->steps++;
    c->traffic = traffic;
    return good;
}

void record_close(struct record *r) {
    if (!r->open) return;
    if (r->file) fclose(r->file);
    if (r->file && r->steps == 0) remove(r->path);
    mem_free(r->stage);
    sparse_close(&r->entries);
    *r = (struct record){0};
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

static bool cannot_read(const struct record_reader *in, struct err *e) {
    return err_with(e, err_of_errno(errno), "cannot read %s: %s", in->path, strerror(errno));
}

static bool check_head(const struct record_reader *in, struct err *e) {
    const struct record_head *head = &in->head;
    if (memcmp(head->magic, kinds[!in->selected].magic, sizeof head->magic) == 0)
        return err_set(e, "%s holds %s, not %s (%s makes those)", in->path, kinds[!in->selected].what,
                       kinds[in->selected].what, kinds[in->selected].made_by);
    if (memcmp(head->magic, kinds[in->selected].magic, sizeof head->magic) != 0)
        return err_set(e, "%s is not a file of %s (%s makes one)", in->path, kinds[in->selected].what,
                       kinds[in->selected].made_by);
    if (head->byte_order != BYTE_ORDER_MARK)
        return err_set(e, "the gradients in %s were recorded on a machine of the other byte order", in->path);
    if (head->version != RECORD_VERSION)
        return err_set(e, "the gradients in %s have format version %u; this program reads version %d", in->path,
                       head->version, RECORD_VERSION);
    if (head->n < 1 || head->n > UINT32_MAX || head->ranks < 1 || head->ranks > 1000000 || head->slices > SLICES_MAX)
        return err_set(e, "%s is damaged: its head makes no sense", in->path);
    return true;
}

/* A text of a file that may be anybody's, on its way to a terminal: it ends, and can be shown. */
static void make_shown(char *text, size_t size) {
    text[size - 1] = '\0';
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f) *text = '?';
}

/* Their sizes add up to n; a sum that runs over is not mistaken for it. */
static bool slices_add_up(struct record_reader *in) {
    uint64_t rest = in->head.n;
    for (size_t i = 0; i < in->head.slices; i++) {
        if (in->slice[i].size > rest) return false;
        rest -= in->slice[i].size;
        make_shown(in->slice[i].name, sizeof in->slice[i].name);
    }
    return in->head.slices == 0 || rest == 0;
}

/* rest: bytes behind the fixed part of the head. */
static bool read_slices(struct record_reader *in, size_t rest, struct err *e) {
    struct record_head *head = &in->head;
    uint32_t crc;
    size_t bytes = head->slices * sizeof *in->slice, more = in->selected ? sizeof in->selection : 0;
    if (bytes + more + sizeof crc > rest) return err_set(e, "%s is truncated within its head", in->path);
    in->slice = mem_alloc(head->slices + 1, sizeof *in->slice, "the layers of a record file");
    if (fread(&in->selection, 1, more, in->file) != more || fread(in->slice, 1, bytes, in->file) != bytes ||
        fread(&crc, sizeof crc, 1, in->file) != 1)
        return ferror(in->file) ? cannot_read(in, e) : err_set(e, "%s is truncated within its head", in->path);
    if (crc != crc32_of(crc32_of(crc32_of(0, head, sizeof *head), &in->selection, more), in->slice, bytes))
        return err_set(e, "%s is damaged: the checksum of its head is wrong", in->path);
    make_shown(head->model, sizeof head->model);
    make_shown(head->data, sizeof head->data);
    if (!slices_add_up(in)) return err_set(e, "%s is damaged: its layers do not add up", in->path);
    const struct record_selection *s = &in->selection;
    if (in->selected && !(s->k >= 1 && s->k <= head->n && s->density > 0 && s->density <= 1))
        return err_set(e, "%s is damaged: its head makes no sense", in->path);
    return true;
}

static bool read_head(struct record_reader *in, size_t *rest, struct err *e) {
    struct stat info;
    if (fstat(fileno(in->file), &info) != 0) return err_system(e, "cannot read %s: %s", in->path, strerror(errno));
    if (fread(&in->head, sizeof in->head, 1, in->file) != 1) {
        const char *magic = kinds[in->selected].magic;
        if (ferror(in->file)) return cannot_read(in, e);
        if (info.st_size >= 8 && memcmp(in->head.magic, magic, sizeof in->head.magic) == 0)
            return err_set(e, "%s is truncated within its head", in->path);
        return err_set(e, "%s is not a file of %s (%s makes one)", in->path, kinds[in->selected].what,
                       kinds[in->selected].made_by);
    }
    if (!check_head(in, e) || !read_slices(in, (size_t)info.st_size - sizeof in->head, e)) return false;
    in->n = (size_t)in->head.n;
    in->ranks = (size_t)in->head.ranks;
    in->first = (size_t)ftello(in->file);
    *rest = (size_t)info.st_size - in->first;
    return true;
}

bool record_read_head(struct record_reader *in, const char *path, bool selected, size_t *bytes, struct err *e) {
    memset(in, 0, sizeof *in);
    in->selected = selected;
    snprintf(in->path, sizeof in->path, "%s", path);
    const char *why;
    in->file = file_read(path, &why);
    if (!in->file)
        return err_with(e, err_of_errno(errno), "cannot read %s from %s: %s", kinds[selected].what, path, why);
    if (read_head(in, bytes, e)) return true;
    record_read_close(in);
    return false;
}

bool record_no_step(const struct record_reader *in, struct err *e) {
    return err_set(e, "%s holds no complete step%s", in->path,
                   in->incomplete ? ": it is truncated, or the run that recorded it was killed in its first" : "");
}

bool record_read_open(struct record_reader *in, const char *path, struct err *e) {
    size_t rest;
    if (!record_read_head(in, path, false, &rest, e)) return false;
    size_t step = in->ranks * row_bytes(in->n);
    in->steps = rest / step;
    in->incomplete = rest % step != 0;
    if (in->steps > 0) return true;
    record_no_step(in, e);
    record_read_close(in);
    return false;
}

bool record_read(struct record_reader *in, size_t step, size_t rank, float *grad, struct err *e) {
    size_t at = in->first + (step * in->ranks + rank) * row_bytes(in->n);
    struct row_head row;
    if (step >= in->steps || rank >= in->ranks) die("step %zu, rank %zu of %s", step, rank, in->path);
    if (fseeko(in->file, (off_t)at, SEEK_SET) != 0 || fread(&row, sizeof row, 1, in->file) != 1 ||
        fread(grad, sizeof *grad, in->n, in->file) != in->n)
        return err_with(e, ferror(in->file) ? EXIT_SYSTEM : EXIT_USER, "cannot read step %zu of %s: %s", step + 1,
                        in->path, feof(in->file) ? "it has become shorter" : strerror(errno));
    if (row.rank != rank || row.crc != row_crc(&row, grad, in->n))
        return err_set(e, "%s is damaged: the checksum of rank %zu in its step %zu is wrong", in->path, rank, step + 1);
    return true;
}

void record_read_close(struct record_reader *in) {
    if (in->file) fclose(in->file);
    mem_free(in->slice);
    mem_free(in->row);
    mem_free(in->at);
    memset(in, 0, sizeof *in);
}
