/* model_layout.h: what a checkpoint says of its model, so that it can be taken out without the data and the options
 * that it was trained with. A text, one line for each of
 *
 *        input 3 32 32                      channels, height, width of an image; a text has none of the first three
 *        mean 0.491 0.482 0.447             by channel: what the network sees of a pixel is (pixel / 255 - mean) / std
 *        std 0.247 0.243 0.262
 *        classes 10                         of a text: words of the vocabulary
 *        parameter conv1.weight 16 3 3 3    name and shape of each slice of the parameters, in their order,
 *        state bn1.running_mean 16          and of the running statistics
 */
#ifndef ST_CLI_MODEL_LAYOUT_H
#define ST_CLI_MODEL_LAYOUT_H

#include "base/error.h"
#include "data/dataset.h"
#include "nets/arena.h"

struct model_layout {
    struct slice *slice; /* [slices] over n parameters */
    size_t slices, n;
    struct slice *state_slice; /* [state_slices] over n_state running statistics */
    size_t state_slices, n_state;
};

/* Fresh memory. */
char *model_layout_text(const struct arena *a, const struct dataset *d);

/* False where the text is no such text; `from` is the file it comes from, for *e. */
bool model_layout_open(struct model_layout *l, const char *text, const char *from, struct err *e);
void model_layout_close(struct model_layout *l);

/* Has the arena the same slices, of the same names and shapes? If not, *e says which is the first that differs, behind
 * `what`, which says of what ("cannot start from DIR, a resnet20"). */
bool model_layout_fits(const struct model_layout *l, const struct arena *a, const char *what, struct err *e);

/* The i-th line that is of no slice: its first word and the rest. False: there are no more. */
bool model_layout_about(const char *text, size_t i, char key[SLICE_NAME_MAX], char value[128]);

#endif
