/* backend_onednn_padded.h: convolutions with windows as large as those over spectrograms (41 x 11, 21 x 11). The
 * library's fast kernels refuse a window that reaches further beyond the edge of an image than a few positions; it then
 * makes matrix products, at less than half their speed. So the images are copied with zeros around them, and the window
 * never leaves them:
 *
 *      y   = w * padded x
 *      dw  = padded x * dy, of images with some channels; of others the products are faster
 *      dx  = for each phase of the stride, the rows and columns of x that the same rows and columns of the window meet:
 *            turned w of these * padded dy, a convolution with stride 1
 *
 * x, y, dx, dy lie canonically; the copies are in the layout that the library likes best. */
#ifndef ST_NETS_BACKEND_ONEDNN_PADDED_H
#define ST_NETS_BACKEND_ONEDNN_PADDED_H

#include "nets/onednn/backend_onednn.h"

struct padded;

/* x, y: of the longest pass. NULL: the library has no fast kernel for this either, or they do not lie canonically. */
struct padded *padded_open(struct onednn *b, const struct layer_spec *spec, const struct tensor *x,
                           const struct tensor *y);
void padded_close(struct padded *p); /* NULL is allowed */

/* x, y: as they are in this pass; bias: NULL where there is none. */
void padded_forward(struct padded *p, const struct tensor *x, const struct tensor *y, const float *from,
                    const float *weights, const float *bias, float *to);
/* Of the last forward pass. dw is overwritten, and so is db, or, with `adds`, dw is added to. */
void padded_weights(struct padded *p, const float *x, const float *dy, bool adds, float *dw, float *db);
void padded_data(struct padded *p, const float *weights, const float *dy, float *dx);

#endif
