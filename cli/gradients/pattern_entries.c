/* pattern_entries.c: the patterns whose gradients are lists of entries: selected:FILE and fitted:PROFILE, see
 * pattern.h. */
#include <string.h>

#include "base/mem.h"
#include "cli/gradients/pattern.h"

enum { TAG_ENTRIES = 922 };

bool pattern_has_entries(const struct pattern *p) {
    return p->kind == PATTERN_SELECTED || p->kind == PATTERN_FITTED;
}

void pattern_case(struct pattern *p, size_t n, size_t k) {
    if (p->kind != PATTERN_FITTED) return;
    draw_close(&p->draw);
    draw_open(&p->draw, &p->profile, n, k, p->seed);
    sparse_close(&p->entries);
    p->room = p->draw.room;
}

/* -- recorded entries ---------------------------------------------------------------------------------------------- */

void pattern_open_selected(struct pattern *p, const char *path, struct err *e) {
    if (!record_selected_open(&p->file, path, e)) return;
    p->n = p->file.n;
    p->ranks = p->file.ranks;
    p->steps = p->file.steps;
    p->incomplete = p->file.incomplete;
    p->density = p->file.selection.density;
    p->room = p->file.most;
    sparse_open(&p->other, p->room);
}

/* What cannot be read is none; *e says why. */
static void read_selected(struct pattern *p, size_t step, int rank, struct sparse *out, struct err *e) {
    size_t s = pattern_recorded_step(p, step, rank), r = pattern_recorded_rank(p, rank);
    if (!record_selected_read(&p->file, s, r, out, e)) out->nnz = 0;
}

/* Rank 0 reads for all, as it does whole gradients. A rank that is ready is sent the number, the indices and the
 * values. */
static bool replay_entries(struct pattern *p, size_t step, struct sparse *out, struct err *e) {
    struct comm *c = p->comm;
    enum traffic traffic = c->traffic;
    uint64_t nnz;
    char ready = 1;
    c->traffic = TRAFFIC_CONTROL;
    if (c->rank == 0) {
        read_selected(p, step, 0, out, e);
        for (int r = 1; r < c->size; r++) {
            read_selected(p, step, r, &p->other, e);
            nnz = p->other.nnz;
            comm_recv(c, r, TAG_ENTRIES, &ready, sizeof ready);
            comm_send(c, r, TAG_ENTRIES, &nnz, sizeof nnz);
            comm_send(c, r, TAG_ENTRIES, p->other.idx, p->other.nnz * sizeof *p->other.idx);
            comm_send(c, r, TAG_ENTRIES, p->other.val, p->other.nnz * sizeof *p->other.val);
        }
    } else {
        comm_send(c, 0, TAG_ENTRIES, &ready, sizeof ready);
        comm_recv(c, 0, TAG_ENTRIES, &nnz, sizeof nnz);
        out->nnz = (size_t)nnz;
        comm_recv(c, 0, TAG_ENTRIES, out->idx, out->nnz * sizeof *out->idx);
        comm_recv(c, 0, TAG_ENTRIES, out->val, out->nnz * sizeof *out->val);
    }
    bool good = !comm_agree(c, e);
    c->traffic = traffic;
    return good;
}

/* -- drawn entries ------------------------------------------------------------------------------------------------- */

/* Every rank reads the same text, so that all of them find the same mistakes. */
bool pattern_share_profile(struct pattern *p, char *text, const char *path, struct err *e) {
    uint64_t bytes = text ? strlen(text) + 1 : 0;
    comm_bcast(p->comm, 0, &bytes, sizeof bytes);
    char *copy = mem_zalloc(bytes, 1, "a profile");
    if (p->comm->rank == 0) memcpy(copy, text, bytes);
    comm_bcast(p->comm, 0, copy, bytes);
    bool good = profile_parse(&p->profile, copy, path, e);
    mem_free(copy);
    if (!good) return false;
    p->n = (size_t)p->profile.n;
    p->density = p->profile.density;
    p->scales = true;
    return true;
}

bool pattern_entries(struct pattern *p, size_t step, size_t n, struct sparse *out, struct err *e) {
    if (out->cap < p->room) die("room for %zu entries where %zu may come", out->cap, p->room);
    if (p->kind == PATTERN_SELECTED) return replay_entries(p, step, out, e);
    if (!pattern_has_entries(p) || p->draw.n != n) die("a list of entries of a pattern that has none of this length");
    draw_entries(&p->draw, (uint64_t)p->comm->rank, step, out);
    return true;
}
