/* font.h: a bitmap font for the contact sheet: the printable ASCII characters on 5 x 7 pixels, and one row below the
 * line for the tails of g, j, p, q and y. */
#ifndef ST_DATA_FONT_H
#define ST_DATA_FONT_H

#include <stdint.h>

enum { FONT_WIDTH = 5, FONT_HEIGHT = 8, FONT_ADVANCE = 6 };

/* The columns of a character, [FONT_WIDTH], from left to right; bit 0 is the top row. Characters that the font does
 * not have come as '?'. */
const uint8_t *font_glyph(char c);

#endif
