/* text_line.h: the lines of a text that is read as a table (a network, costs, comma-separated values) and may be
 * anybody's. C takes a zero byte for the end of a text: in a line it would hide what stands behind it, and make another
 * number of one that it is in. Such a line is refused, and so is one that is longer than any of the table.
 *
 *        char line[512];
 *        size_t number = 0;
 *        while (text_line(file, line, sizeof line, path, &number, e)) take(line);
 *        return !e->text[0];
 */
#ifndef ST_BASE_TEXT_LINE_H
#define ST_BASE_TEXT_LINE_H

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

/* The next line, with its end where it has one, to line[size]; *number: lines read, this one among them. False: there
 * is none, or what is wrong with it is in *e: the user's mistake, or that of the system, which cannot read it. */
bool text_line(FILE *file, char *line, size_t size, const char *path, size_t *number, struct err *e);

/* Has a line of this length, read in another way, no zero byte in it? */
bool text_line_whole(const char *line, size_t length, const char *path, size_t number, struct err *e);

#endif
