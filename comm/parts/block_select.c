/* block_select.c: a selector for every block of the vector, see block_select.h. */
#include "comm/parts/block_select.h"

#include "base/mem.h"
#include "comm/parts/peers.h"

size_t block_budget(size_t n, int P, size_t k, int b) {
    size_t share = even_part(k, P, b), length = even_part(n, P, b);
    if (share == 0) share = 1;
    return share < length ? share : length;
}

/* In a step with a smaller k a block's share may be the larger one by 1 (of k = 7 and 8 block 2 of 5 gets 2 and 1), but
 * never above ceil(k_max / P). */
void block_select_open(struct block_select *s, struct selector *whole, struct store *store, int P, size_t k_max) {
    size_t share = (k_max + (size_t)P - 1) / (size_t)P;
    *s = (struct block_select){.whole = whole, .n = store->n, .P = P};
    s->block = mem_zalloc((size_t)P, sizeof *s->block, "selectors of blocks");
    for (int b = 0; b < P; b++) {
        size_t length = even_part(s->n, P, b);
        if (length > 0)
            selector_part_open(&s->block[b], whole->ops, store, even_cut(s->n, P, b), length,
                               share < length ? share : length, &whole->settings);
    }
}

void block_select_close(struct block_select *s) {
    for (int b = s->P; b-- > 0;) selector_part_close(&s->block[b]);
    mem_free(s->block);
    *s = (struct block_select){0};
}

size_t block_select_most(const struct block_select *s) {
    size_t most = 0;
    for (int b = 0; b < s->P; b++) {
        const struct selector *selector = s->block[b].selector;
        if (selector) most += selector->most;
    }
    return most;
}

/* A selector at work may need more room than what it returns in the end. */
size_t block_select_capacity(const struct block_select *s) {
    size_t largest = 0;
    for (int b = 0; b < s->P; b++) {
        size_t room = s->block[b].selector ? s->block[b].selector->room : 0;
        largest = room > largest ? room : largest;
    }
    return block_select_most(s) + largest;
}

bool block_select_run(struct block_select *s, const float *grad, size_t k, struct sparse *out, size_t *bad) {
    PHASE_SCOPE(s->whole->store->phases, PHASE_SELECT);
    s->whole->stats = (struct selector_stats){0};
    out->nnz = 0;
    for (int b = 0; b < s->P; b++)
        if (!selector_part_run(&s->block[b], s->whole, grad, block_budget(s->n, s->P, k, b), out, bad)) return false;
    return true;
}

bool block_select_saved(struct block_select *s, size_t part, void **memory, size_t *bytes) {
    *memory = NULL;
    *bytes = 0;
    if (part >= (size_t)s->P) return false;
    if (s->block[part].selector) selector_saved(s->block[part].selector, 0, memory, bytes);
    return true;
}

bool block_select_check(const struct block_select *s, struct err *e) {
    for (int b = 0; b < s->P; b++)
        if (s->block[b].selector && !selector_check(s->block[b].selector, e)) return false;
    return true;
}
