/* embedding.h: y [row] = w [token of the row] [+ add [row]]. x holds tokens (LAYOUT_TOKENS), each less than the
 * vocabulary, as net.c has made sure. Parameters: NAME.weight [vocabulary][features], whose gradient is dense; the rows
 * of equal tokens are added up in their order. Where a linear layer is tied to it (linear.h), its gradient is there
 * already, and these are added to it (embedding.shared). */
#ifndef ST_NETS_LAYERS_EMBEDDING_H
#define ST_NETS_LAYERS_EMBEDDING_H

#include "nets/net_build.h"

int build_embedding(struct net *net, const char *name, int x, int vocabulary, int features); /* He-normal weights */

/* deviation: of the normal initial weights. */
int build_embedding_normal(struct net *net, const char *name, int x, int vocabulary, int features, double deviation);

/* Added to the rows of a tensor; x: tokens, or numbers of another kind. */
int build_embedding_onto(struct net *net, const char *name, int x, int vocabulary, int add, double deviation);

#endif
