/* backend_onednn_gathered.h: the gradient of a convolution's weights as one matrix product over many images, for shapes
 * for which the library has only its reference, plain loops: with AVX2 those of images of 2 x 2 in its blocked layout,
 * VGG-16's last three, which took 25 s of a step of 32 images whose rest takes less than one.
 *
 *      dw [channels of y][kernel of x's channels]  =  sum over n, i, j of  dy(n, ., i, j)  window of x there (n, i, j)
 *
 * The windows and dy are gathered in rows, of as many images at a time as fit into some megabytes. */
#ifndef ST_NETS_BACKEND_ONEDNN_GATHERED_H
#define ST_NETS_BACKEND_ONEDNN_GATHERED_H

#include "nets/onednn/backend_onednn.h"

struct gathered;

/* x, y: as the layer has them, layouts included. */
struct gathered *gathered_open(const struct layer_spec *spec, const struct tensor *x, const struct tensor *y);
void gathered_close(struct gathered *g); /* NULL is allowed */

/* dw is overwritten, or, with `adds`, added to; db is overwritten, where there is a bias. */
void gathered_weights(struct gathered *g, const float *x, const float *dy, bool adds, float *dw, float *db);

#endif
