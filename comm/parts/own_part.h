/* own_part.h: what of u is this rank's (exchange_sum.sent), for the rows in which sums are cut or rounded on their way.
 * When a merge drops an entry, or rounding changes a sum, its senders do not learn of it. So the entry stays in its
 * sender's part, and the rank that dropped it subtracts it from its own. Over the ranks the parts add up to u.
 *
 *        own_part_open(&p, most);           // entries of u
 *        own_part_begin(&p, u);
 *        own_part_add(&p, &local);          // as it was sent
 *        own_part_take(&p, &dropped);       // by this rank
 *        sum->sent = own_part_end(&p);      // valid until the next begin
 *        own_part_close(&p); */
#ifndef ST_COMM_OWN_PART_H
#define ST_COMM_OWN_PART_H

#include "topk/sparse.h"

struct own_part {
    struct sparse part; /* [most]: from begin to end as many entries as u */
    bool *there;        /* [most]: has something been added or taken here? */
};

/* most: entries of u. */
void own_part_open(struct own_part *p, size_t most);
void own_part_close(struct own_part *p);

void own_part_begin(struct own_part *p, const struct sparse *u);
/* Entries of s whose index is not in u are passed over. */
void own_part_add(struct own_part *p, const struct sparse *s);
void own_part_take(struct own_part *p, const struct sparse *s);
const struct sparse *own_part_end(struct own_part *p);

#endif
