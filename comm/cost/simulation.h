/* simulation.h: what simulating a step of many ranks on one machine takes (docs/simulation.md): memory, and time of
 * one core. Rows of exchanges say it of themselves (exchange_ops.simulation).
 *
 *        double bytes = simulation_memory(256, 14728266, 0.001, SIMULATION_LISTS, list, count, false);
 *        double seconds = simulation_seconds(&exchange_gtopk, 256, 14728);
 */
#ifndef ST_COMM_SIMULATION_H
#define ST_COMM_SIMULATION_H

#include "comm/exchange.h"

/* How ranks hold their gradients: as arrays (the device cpu), as lists of what is not zero (the device sparse), or in a
 * way that nobody knows here. */
enum simulation_held { SIMULATION_ARRAYS, SIMULATION_LISTS, SIMULATION_UNKNOWN };

/* Bytes of P ranks with n entries each, of which they select a part (density), for the one of these rows that needs the
 * most. ops: [count]. checked: with a plain sum to compare with (bench without --no-check). */
double simulation_memory(int P, double n, double density, enum simulation_held held,
                         const struct exchange_ops *const *ops, size_t count, bool checked);

/* Seconds of one core for a step of P ranks that select k entries each, to tell minutes from hours. */
double simulation_seconds(const struct exchange_ops *ops, int P, double k);

/* The row's own, or what is taken of rows that nobody measured: that of topka. */
const struct exchange_simulation *simulation_of(const struct exchange_ops *ops);

#endif
