/* canvas.h: a picture in colours, with text on it, to be written as a PNG file. */
#ifndef ST_DATA_CANVAS_H
#define ST_DATA_CANVAS_H

#include <stdint.h>

#include "base/error.h"
#include "data/sheets/font.h"

enum { CANVAS_GAP = 10, CANVAS_LINE = FONT_HEIGHT + 3, CANVAS_SIDE_MAX = 32000 }; /* pixels */

/* [height][width] RGB. */
struct canvas {
    uint8_t *rgb;
    int width, height;
};

struct colour {
    uint8_t r, g, b;
};
extern const struct colour canvas_ink, canvas_pale; /* of text */

/* Empty paper. False: it would be larger than CANVAS_SIDE_MAX one way. */
bool canvas_open(struct canvas *c, int64_t width, int64_t height, struct err *e);
void canvas_close(struct canvas *c);

/* A square of size * size pixels. What is beyond the right or the lower edge is not drawn. */
void canvas_dot(struct canvas *c, int x, int y, int size, struct colour colour);

/* Text with its top left corner at (x, y), cut off at `limit` pixels. */
void canvas_text(struct canvas *c, int x, int y, int scale, int limit, struct colour colour, const char *text);

/* False: the file cannot be written; nothing half-written stays. */
bool canvas_write(const struct canvas *c, const char *path, struct err *e);

#endif
