/* tables.h: what the scaling study has found, on standard output: cells.csv, and tables in Markdown, which read well in
 * a terminal, too. All after study_compare. */
#ifndef ST_CLI_TABLES_H
#define ST_CLI_TABLES_H

#include "cli/study/study.h"

/* cells.csv, a line for each cell, class of messages (`wire`: the format that the class is called by), without and with
 * local work (`local`); all seconds are with it where it is 1. What local work nobody knows has no line. */
void table_cells(const struct study *s);

/* How often ours is ahead, within the error and behind, and by how much, over the simulated cells or those of the
 * model. */
void table_leads(const struct study *s, bool simulated);

/* The same by network over the simulated cells, lossless and rounded: without local work, with it, and with it as if
 * packing were free (study_view). */
void table_bound(const struct study *s);

/* Where, as stretches of P: a row a network, model and density, a column a class. winner: who wins there; else whether
 * ours is ahead. (m): all of a stretch is by the model. */
void table_stretches(const struct study *s, bool charged, bool winner);
/* The winner of each cell, and how far the best of ours is ahead: bold: behind; ~: within the error. By communication
 * alone, a table for each density. */
void table_map(const struct study *s, size_t class);

/* Simulated seconds over predicted ones, of everything that was simulated; and where another algorithm wins than the
 * model says. */
void table_ratios(const struct study *s);
void table_disagreements(const struct study *s);

/* -- for sentences ------------------------------------------------------------------------------------------------- */
enum { TABLE_TEXT = 512 };
/* "topka, gtopk": who is published; one of the dense rows stands for them. */
void table_published(char text[TABLE_TEXT]);
/* "micro in 70, spardl in 30": the best published one, in how many simulated cells. */
void table_best_published(const struct study *s, bool charged, char text[TABLE_TEXT]);
/* The least factor by which the model has dense behind the best in coo32. */
double table_dense_behind(const struct study *s);
int table_simulated_to(const struct study *s); /* the largest P of a simulated cell */

/* Ascending. */
void table_sort(double *x, size_t count);
double table_median(const double *sorted, size_t count); /* the lower one of two */

#endif
