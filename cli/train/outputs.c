/* outputs.c: see outputs.h. */
#include "cli/train/outputs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "cli/checkpoint/checkpoint_clean.h"
#include "cli/checkpoint/checkpoint_files.h"

enum { FILES = 3, OUT = FILES, FOLDER, OUTPUTS };

struct output {
    const char *option, *name; /* the user's; "" where none is given */
    char *place, *named;       /* what it leads to, and its own, where it is a link; NULL: none is given */
};

/* -- places -------------------------------------------------------------------------------------------------------- */

static char *place_of(const char *name);

/* The place of a name in this folder, which is taken over. */
static char *place_in(char *folder, const char *name, size_t length) {
    char *last = strrchr(folder, '/'), *place;
    if (length == 1 && *name == '.') return folder;
    if (length == 2 && strncmp(name, "..", 2) == 0)
        place = mem_printf("%.*s", last ? (int)(last - folder) : 0, folder);
    else
        place = mem_printf("%s/%.*s", folder, (int)length, name);
    mem_free(folder);
    return place;
}

/* Of what need not be there, by the folder that it is in. */
static char *place_to_be(const char *name) {
    size_t length = strlen(name), last;
    while (length > 0 && name[length - 1] == '/') length--;
    for (last = length; last > 0 && name[last - 1] != '/';) last--;
    char *folder = last > 0 ? mem_printf("%.*s", (int)last, name) : mem_printf(".");
    char *place = place_in(place_of(folder), name + last, length - last);
    mem_free(folder);
    return place;
}

/* The whole name, without links, "." and ".."; of the root "". Fresh memory. */
static char *place_of(const char *name) {
    char *real = realpath(name, NULL);
    if (!real) return strcmp(name, ".") == 0 ? mem_printf(".") : place_to_be(name);
    char *place = mem_printf("%s", strcmp(real, "/") == 0 ? "" : real);
    free(real);
    return place;
}

/* What is left of a place behind a folder: "" of the folder itself; NULL: it is not in it. */
static const char *behind(const char *folder, const char *place) {
    const size_t length = strlen(folder);
    if (strncmp(place, folder, length) != 0 || (place[length] && place[length] != '/')) return NULL;
    return place + length + (place[length] == '/');
}

/* -- what excludes each other -------------------------------------------------------------------------------------- */

/* Does the run itself make something of this name in --out? */
static bool is_own(const char *name) {
    static const char *const files[] = {"run.jsonl", "vocabulary.txt", "lock"};
    char first[64]; /* a checkpoint is a folder */
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const size_t length = strlen(files[i]);
        if (strncmp(name, files[i], length) == 0 && (!name[length] || strcmp(name + length, ".tmp") == 0)) return true;
    }
    snprintf(first, sizeof first, "%.*s", (int)strcspn(name, "/"), name);
    return checkpoint_step_of(first) >= 0 || checkpoint_is_aside(first);
}

static bool outside_of_run(const struct output *p, const struct output *out, struct err *e) {
    const char *place = behind(out->place, p->place), *named = behind(out->place, p->named);
    return !((place && is_own(place)) || (named && is_own(named))) ||
           err_set(e, "--%s %.300s has the name of a file that the run itself keeps in --out; give it another name",
                   p->option, p->name);
}

/* file: one of a file, not of a folder. */
static bool apart(const struct output *file, const struct output *p, struct err *e) {
    const char *rest = behind(file->place, p->place);
    return !rest || err_set(e, "--%s %.300s is %s the file of --%s; give it another name", p->option, p->name,
                            *rest ? "below" : "also", file->option);
}

static bool all_apart(const struct output p[OUTPUTS], struct err *e) {
    for (int i = 0; i < OUTPUTS; i++) {
        if (!p[i].place) continue;
        if (i != OUT && p[OUT].place && !outside_of_run(&p[i], &p[OUT], e)) return false;
        for (int j = 0; j < i && j < FILES; j++)
            if (p[j].place && !apart(&p[j], &p[i], e)) return false;
    }
    return true;
}

bool outputs_apart(const struct options *o, struct err *e) {
    struct output p[OUTPUTS] = {{.option = "record", .name = o->record},
                                {.option = "trace", .name = o->trace},
                                {.option = "mllog", .name = o->mllog},
                                [OUT] = {.option = "out", .name = o->out},
                                [FOLDER] = {.option = "log-tensorboard", .name = o->log_tensorboard}};
    for (int i = 0; i < OUTPUTS; i++) {
        if (!p[i].name[0]) continue;
        p[i].place = place_of(p[i].name);
        p[i].named = place_to_be(p[i].name);
    }
    const bool good = all_apart(p, e);
    for (int i = 0; i < OUTPUTS; i++) mem_free(p[i].place), mem_free(p[i].named);
    return good;
}

/* A folder of its own within --out is nothing that the run makes. */
bool outputs_wait(const struct options *o, const char *name) {
    struct stat info;
    if (!o->out[0] || lstat(o->out, &info) == 0 || errno != ENOENT) return false;
    char *out = place_of(o->out), *place = place_to_be(name);
    const char *rest = behind(out, place);
    const bool waits = rest && *rest && !strchr(rest, '/');
    mem_free(out);
    mem_free(place);
    return waits;
}
