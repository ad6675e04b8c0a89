/* out_file.h: writing a file that the user names. It takes its place when it is complete, and what was there before
 * stays until then. A name may be that
 *
 *   of nothing, or of a regular file   which is replaced, with its permissions; one that may not be written is not
 *   of a link to a regular file        the link stays, and the file that it leads to is replaced
 *   /dev/stdout, /dev/stderr,          written to as they stand, from where they are: a pipe, a terminal, a file that
 * the /dev/fd/N, /proc/self/fd/N         shell has opened /dev/null                          nothing is kept
 *
 * and of nothing else: no directory, FIFO, socket or other device, no link that leads nowhere.
 *
 *        struct out_file o;
 *        if (!out_file_check(path, "--out", e)) return false;   // before any work is done
 *        ...
 *        if (!out_file_open(&o, path, "--out", e)) return false;
 *        fprintf(o.file, ...);                                  // errors are for out_file_close to see
 *        return out_file_close(&o, e);
 */
#ifndef ST_BASE_OUT_FILE_H
#define ST_BASE_OUT_FILE_H

#include <stdio.h>

#include "base/error.h"

struct out_file {
    FILE *file;
    const char *path, *option; /* the caller's, which outlive this */
    char *target, *temporary;  /* what is replaced, and by what; NULL: nothing is */
    bool own;                  /* a link is replaced, not followed */
    bool alone;                /* out_file_replace: no other process is at it */
};

/* Could the file be written? Tried, and nothing is left of the try. option: the one that names it ("--out"), for the
 * advice in *e, or NULL. */
bool out_file_check(const char *path, const char *option, struct err *e);

bool out_file_open(struct out_file *o, const char *path, const char *option, struct err *e);

/* The same for a name of the program's own, as of a file in the directory of a run: there a link is replaced, not
 * followed, since nobody has asked for it. No two processes may do so at once: the new file is NAME.tmp, and what a
 * kill has left there is replaced. */
bool out_file_replace(struct out_file *o, const char *path, struct err *e);

/* The same where several processes may do so at once: the new file is NAME.tmp.PID.N. option: as in out_file_open. */
bool out_file_replace_shared(struct out_file *o, const char *path, const char *option, struct err *e);

/* The file is complete: on the disk and in its place. False: something went wrong, now or while it was written, and
 * nothing has changed. */
bool out_file_close(struct out_file *o, struct err *e);

/* Discards the new file; what was there before stays. */
void out_file_abandon(struct out_file *o);

/* Does this name mean a descriptor that the process has open already? Then the program's messages may go to the same
 * place. */
bool out_file_is_stream(const char *path);

/* Such a descriptor as a stream of its own that writes on from where that is, behind what the program has said so far.
 * NULL: *why says why not, static or strerror's, and errno. */
FILE *out_file_stream(const char *path, const char **why);

#endif
