/* file_sync.h: names that are on the disk, not only on their way to it. A file is fsynced by whoever writes it. */
#ifndef ST_CLI_FILE_SYNC_H
#define ST_CLI_FILE_SYNC_H

#include "base/error.h"

/* The names in a directory are on the disk: of what was made, renamed or removed in it before. File systems that know
 * no such thing need none. False: they may be lost by a power failure; *e names the directory. */
bool directory_sync(const char *dir, struct err *e);

#endif
