/* own_part.c: see own_part.h. */
#include "comm/parts/own_part.h"

#include "base/error.h"
#include "base/mem.h"

void own_part_open(struct own_part *p, size_t most) {
    sparse_open(&p->part, most);
    p->there = mem_alloc(most, sizeof *p->there, "marks of a rank's own entries");
}

void own_part_close(struct own_part *p) {
    mem_free(p->there);
    sparse_close(&p->part);
    p->there = NULL;
}

void own_part_begin(struct own_part *p, const struct sparse *u) {
    if (u->nnz > p->part.cap) die("a sum of %zu entries in room for %zu", u->nnz, p->part.cap);
    p->part.nnz = u->nnz;
    for (size_t i = 0; i < u->nnz; i++) {
        p->part.idx[i] = u->idx[i];
        p->part.val[i] = 0;
        p->there[i] = false;
    }
}

static void add(struct own_part *p, const struct sparse *s, float sign) {
    if (s->nnz == 0) return;
    struct sparse *part = &p->part;
    size_t at = sparse_lower_bound(part, s->idx[0]);
    for (size_t i = 0; i < s->nnz; i++) {
        while (at < part->nnz && part->idx[at] < s->idx[i]) at++;
        if (at == part->nnz) return;
        if (part->idx[at] != s->idx[i]) continue;
        part->val[at] += sign * s->val[i];
        p->there[at] = true;
    }
}

void own_part_add(struct own_part *p, const struct sparse *s) {
    add(p, s, 1);
}

void own_part_take(struct own_part *p, const struct sparse *s) {
    add(p, s, -1);
}

const struct sparse *own_part_end(struct own_part *p) {
    struct sparse *part = &p->part;
    size_t kept = 0;
    for (size_t i = 0; i < part->nnz; i++) {
        if (!p->there[i]) continue;
        part->idx[kept] = part->idx[i];
        part->val[kept++] = part->val[i];
    }
    part->nnz = kept;
    return part;
}
