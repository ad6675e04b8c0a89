/* record_selected.c: the entries that every rank selected, in a file; see record.h. Rows differ in length, so that a
 * reader goes from row to row once, when it opens the file; the checksum of a row by itself tells a damaged length from
 * a file that broke off. */
#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "cli/gradients/record.h"
#include "topk/finite.h"

enum { TAG_SELECTED = 912 };

static uint32_t crc_of_row(const struct record_row *row) {
    struct record_row copy = *row;
    copy.row_crc = 0;
    return crc32_of(0, &copy, sizeof copy);
}

static uint32_t crc_of_entries(const struct sparse *s) {
    return crc32_of(crc32_of(0, s->idx, s->nnz * sizeof *s->idx), s->val, s->nnz * sizeof *s->val);
}

/* -- writing ------------------------------------------------------------------------------------------------------- */

static bool write_row(struct record *r, uint64_t step, uint64_t k, int rank, const struct sparse *s) {
    struct record_row row = {.step = step, .k = k, .nnz = s->nnz, .rank = (uint32_t)rank, .crc = crc_of_entries(s)};
    row.row_crc = crc_of_row(&row);
    return fwrite(&row, sizeof row, 1, r->file) == 1 && fwrite(s->idx, sizeof *s->idx, s->nnz, r->file) == s->nnz &&
           fwrite(s->val, sizeof *s->val, s->nnz, r->file) == s->nnz;
}

/* Rank 0: the entries of another rank, which it asks for, so that nothing waits in a buffer of the transport. */
static void receive_entries(struct record *r, int rank) {
    uint64_t nnz = 0;
    char ready = 1;
    struct sparse *s = &r->entries;
    comm_send(r->comm, rank, TAG_SELECTED, &ready, sizeof ready);
    comm_recv(r->comm, rank, TAG_SELECTED, &nnz, sizeof nnz);
    if (nnz > s->cap || !s->idx) {
        sparse_close(s);
        sparse_open(s, (size_t)nnz + (size_t)nnz / 8);
    }
    s->nnz = (size_t)nnz;
    comm_recv(r->comm, rank, TAG_SELECTED, s->idx, s->nnz * sizeof *s->idx);
    comm_recv(r->comm, rank, TAG_SELECTED, s->val, s->nnz * sizeof *s->val);
}

static void send_entries(struct comm *c, const struct sparse *s) {
    uint64_t nnz = s->nnz;
    char ready;
    comm_recv(c, 0, TAG_SELECTED, &ready, sizeof ready);
    comm_send(c, 0, TAG_SELECTED, &nnz, sizeof nnz);
    comm_send(c, 0, TAG_SELECTED, s->idx, s->nnz * sizeof *s->idx);
    comm_send(c, 0, TAG_SELECTED, s->val, s->nnz * sizeof *s->val);
}

/* Rank 0: its own entries, then the others' in turn. All are received, whatever happens to the file. */
static bool write_rows(struct record *r, uint64_t step, uint64_t k, const struct sparse *own) {
    bool good = write_row(r, step, k, 0, own);
    int reason = errno;
    for (int rank = 1; rank < r->comm->size; rank++) {
        receive_entries(r, rank);
        if (good && !write_row(r, step, k, rank, &r->entries)) good = false, reason = errno;
    }
    if (good && fflush(r->file) != 0) good = false, reason = errno;
    errno = reason;
    return good;
}

bool record_selected_step(struct record *r, uint64_t step, size_t k, const struct sparse *sent, struct err *e) {
    struct comm *c = r->comm;
    enum traffic traffic = c->traffic;
    c->traffic = TRAFFIC_CONTROL;
    if (c->rank > 0)
        send_entries(c, sent);
    else if (!write_rows(r, step, k, sent))
        record_cannot_write(r, e);
    bool good = !comm_agree(c, e);
    if (good) r->steps++;
    c->traffic = traffic;
    return good;
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

/* The row at *at, which moves behind its entries. False with nothing in *e: the file ends within it. */
static bool read_row(struct record_reader *in, size_t number, size_t *at, size_t end, struct err *e) {
    struct record_row row;
    if (end - *at < sizeof row) return false;
    if (fseeko(in->file, (off_t)*at, SEEK_SET) != 0 || fread(&row, sizeof row, 1, in->file) != 1)
        return err_system(e, "cannot read %s: %s", in->path, strerror(errno));
    const struct record_row *first = &in->row[number - number % in->ranks];
    const bool begins = number % in->ranks == 0;
    bool same_step =
        begins ? number == 0 || row.step > in->row[number - 1].step : row.step == first->step && row.k == first->k;
    if (row.row_crc != crc_of_row(&row) || row.rank != number % in->ranks || row.nnz > in->n || row.k > in->n ||
        !same_step)
        return err_set(e, "%s is damaged: what stands before rank %zu in its step %zu makes no sense", in->path,
                       number % in->ranks, number / in->ranks + 1);
    size_t bytes = (size_t)row.nnz * (sizeof(uint32_t) + sizeof(float));
    if (end - *at - sizeof row < bytes) return false;
    in->row[number] = row;
    in->at[number] = *at + sizeof row;
    *at += sizeof row + bytes;
    if (row.nnz > in->most) in->most = (size_t)row.nnz;
    return true;
}

/* Twice the room, of which `rows` are in use. Returns it. */
static size_t more_room(struct record_reader *in, size_t rows) {
    size_t room = 2 * (rows + in->ranks);
    struct record_row *row = mem_alloc(room, sizeof *row, "the rows of a record file");
    size_t *at = mem_alloc(room, sizeof *at, "the rows of a record file");
    for (size_t i = 0; i < rows; i++) {
        row[i] = in->row[i];
        at[i] = in->at[i];
    }
    mem_free(in->row);
    mem_free(in->at);
    in->row = row;
    in->at = at;
    return room;
}

/* Finds all rows; `most` is of those of an incomplete last step, too. */
static bool find_rows(struct record_reader *in, size_t rest, struct err *e) {
    size_t at = in->first, end = in->first + rest, rows = 0, room = 0;
    for (;; rows++) {
        if (rows == room) room = more_room(in, rows);
        if (!read_row(in, rows, &at, end, e)) break;
    }
    if (e->text[0]) return false;
    in->steps = rows / in->ranks;
    in->incomplete = rows % in->ranks != 0 || at != end;
    return in->steps > 0 || record_no_step(in, e);
}

bool record_selected_open(struct record_reader *in, const char *path, struct err *e) {
    size_t rest;
    if (!record_read_head(in, path, true, &rest, e)) return false;
    /* before there is memory for a step's rows: they must be there */
    if (rest / sizeof(struct record_row) < in->ranks ? record_no_step(in, e) : find_rows(in, rest, e)) return true;
    record_read_close(in);
    return false;
}

bool record_selected_read(struct record_reader *in, size_t step, size_t rank, struct sparse *out, struct err *e) {
    if (step >= in->steps || rank >= in->ranks) die("step %zu, rank %zu of %s", step, rank, in->path);
    const struct record_row *row = &in->row[step * in->ranks + rank];
    out->nnz = (size_t)row->nnz;
    if (out->nnz > out->cap) die("%zu entries in room for %zu", out->nnz, out->cap);
    if (fseeko(in->file, (off_t)in->at[step * in->ranks + rank], SEEK_SET) != 0 ||
        fread(out->idx, sizeof *out->idx, out->nnz, in->file) != out->nnz ||
        fread(out->val, sizeof *out->val, out->nnz, in->file) != out->nnz)
        return err_with(e, ferror(in->file) ? EXIT_SYSTEM : EXIT_USER, "cannot read step %zu of %s: %s", step + 1,
                        in->path, feof(in->file) ? "it has become shorter" : strerror(errno));
    if (row->crc != crc_of_entries(out))
        return err_set(e, "%s is damaged: the checksum of rank %zu in its step %zu is wrong", in->path, rank, step + 1);
    if (!sparse_valid(out, in->n))
        return err_set(e, "%s is damaged: the indices of rank %zu in its step %zu are in no order", in->path, rank,
                       step + 1);
    if (first_nonfinite(out->val, out->nnz) < out->nnz)
        return err_set(e, "%s is damaged: rank %zu selected a NaN or an infinity in its step %zu", in->path, rank,
                       step + 1);
    return true;
}
