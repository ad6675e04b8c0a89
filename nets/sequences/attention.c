/* attention.c: see attention.h. */
#include "nets/sequences/attention.h"

#include "nets/layers/layer.h"

bool attention_can_drop(int windows, int sequence, int heads) {
    return (double)windows * heads * sequence * sequence < 0x1p34;
}

int build_attention(struct net *net, const char *name, int x, int lengths, const struct attention_form *form) {
    const struct layer_spec spec = {.kind = LAYER_ATTENTION,
                                    .attention = {.heads = form->heads,
                                                  .sequence = layer_sequence(net),
                                                  .causal = form->causal,
                                                  .padded = lengths != BUILD_NONE,
                                                  .drop = form->drop}};
    struct tensor y = layer_shape(net, x);
    if (form->heads < 1 || y.h != 1 || y.w != 1 || y.c % (3 * form->heads) != 0)
        die("layer %s: %d heads of %d numbers", name, form->heads, y.c);
    if (!(form->drop >= 0 && form->drop < 1)) die("layer %s: elements dropped with probability %g", name, form->drop);
    y.c /= 3;
    if (form->drop > 0 && !attention_can_drop(y.n / spec.attention.sequence, spec.attention.sequence, form->heads))
        die("layer %s: more probabilities than dropout can number", name);
    if (lengths != BUILD_NONE && layer_shape(net, lengths).layout != LAYOUT_TOKENS)
        die("layer %s: lengths are whole numbers", name);
    return layer_add(net, name, &spec, x, lengths, y);
}
