/* gelu.h: Gaussian error linear units (Hendrycks and Gimpel, arXiv 1606.08415), of every number by itself:
 *
 *      exact   y = x (1 + erf(x / sqrt(2))) / 2
 *      tanh    y = x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2          their approximation, which GPT-2 takes */
#ifndef ST_NETS_LAYERS_GELU_H
#define ST_NETS_LAYERS_GELU_H

#include "nets/net_build.h"

enum gelu_form { GELU_EXACT, GELU_TANH };
int build_gelu(struct net *net, const char *name, int x, enum gelu_form form);

#endif
