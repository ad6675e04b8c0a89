/* limits.h: what the system lets this process have. MPI and oneDNN end in stack traces, or crash, where it is too
 * little. */
#ifndef ST_CLI_LIMITS_H
#define ST_CLI_LIMITS_H

#include "base/error.h"

/* Before MPI starts, of so many ranks as far as is known. Raises the number of files that may be open as far as that
 * helps and is allowed. False: too few, or too little memory: one line in *e. */
bool limits_check(int ranks, struct err *e);

#endif
