/* exchange_options.h: what the options of an exchange mean, shared by training, the bench and the library. */
#ifndef ST_COMM_EXCHANGE_OPTIONS_H
#define ST_COMM_EXCHANGE_OPTIONS_H

#include "comm/exchange.h"

/* option: what it is called where it was given, for messages.
 *
 * oktopk-off: "none", or techniques of Ok-Topk to leave out, with commas between them: regions, rotation, overlap,
 * balance. False: one line in *e. */
bool oktopk_leave_out(const char *option, const char *text, struct oktopk_setup *s, struct err *e);

/* gaussian-adjust: on or off. False: one line in *e. */
bool gaussian_adjust(const char *option, const char *text, bool *unadjusted, struct err *e);

/* The i-th value of gaussian-adjust, oktopk-thresholds, gtopk-residual (in the order of their enums), NULL past the
 * end: for tables of options. */
const char *adjust_name(size_t i);
const char *thresholds_name(size_t i);
const char *residual_name(size_t i);

#endif
