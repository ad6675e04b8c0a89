/* place.h: where the parts of this copy of the program lie that are not in it. In a clone, scripts/ and docs/ stand
 * above the folder of the build. An installed copy has share/sparsetrain/scripts and share/doc/sparsetrain/docs beside
 * its bin/, wherever all of it was moved to: it is looked for from the file of the running program (/proc/self/exe).
 *
 *        char path[PLACE_MAX];
 *        printf("see %s\n", place_of("docs/bench.md", path)); // of an installed copy /opt/st/share/doc/...
 */
#ifndef ST_BASE_PLACE_H
#define ST_BASE_PLACE_H

#include <limits.h>

enum { PLACE_MAX = PATH_MAX };

/* The folder of the running program, with a slash at its end; empty where the system does not say. */
void place_program(char folder[PLACE_MAX]);

/* The folder of the file that this code has been loaded from, likewise: of a library in somebody else's program. */
void place_library(char folder[PLACE_MAX]);

/* A file that the sources have as "scripts/..." or "docs/...", where this copy has it: in full, or as it is where that
 * is the same file from here. As it is, too, where this copy lacks it. Returns path. */
const char *place_of(const char *name, char path[PLACE_MAX]);

/* "sh scripts/fetch-data.sh DATASET", as it is to be typed here, quoted for a shell where it must be. The text is this
 * thread's until its next call. */
const char *place_fetch(const char *dataset);

/* "sh scripts/SCRIPT" likewise. */
const char *place_script(const char *script);

/* The text with every "scripts/NAME.sh" and "docs/NAME.md" in it as place_of has it, in fresh memory. */
char *place_text(const char *text);

/* Where datasets lie by default. An installed copy: $XDG_DATA_HOME/sparsetrain, else ~/.local/share/sparsetrain, and
 * where there is no home share/sparsetrain/data beside bin/. Else build/data of this folder or of the clone, whichever
 * is there. scripts/fetch-data.sh has the same rule. */
const char *place_data(void);

/* The folder in which the program keeps what it can make again: $SPARSETRAIN_CACHE, else $XDG_CACHE_HOME/sparsetrain,
 * else $HOME/.cache/sparsetrain; in fresh memory. NULL: none of them is set. It need not be there. */
char *place_cache(void);

/* Makes the folders of a path, all that stands before its last slash; whether that worked shows when a file is opened
 * there. */
void place_make_folders(const char *path);

#endif
