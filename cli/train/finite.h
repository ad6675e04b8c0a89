/* finite.h: a run in which a number has become NaN or infinite ends at once (EXIT_NUMERIC), naming step, rank and,
 * where that can be told, the layer. */
#ifndef ST_CLI_FINITE_H
#define ST_CLI_FINITE_H

#include "cli/train/run.h"

/* In the step under way. index: of the gradient's or the parameters' entry; r->model.n: unknown. */
_Noreturn void not_finite(const struct run *r, const char *what, size_t index);
/* In what comes after the step that was the last, before the next one. */
_Noreturn void not_finite_after(const struct run *r, const char *what, size_t index);
/* The loss is not finite. The gradient is searched for the layer where it began; if all of it is finite, only the
 * loss is named. */
_Noreturn void loss_not_finite(const struct run *r);
/* Are the parameters finite after this step's update? On a device this is asked only when the host had to wait for it
 * anyway. */
void check_update(struct run *r, size_t step);

#endif
