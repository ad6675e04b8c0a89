/* jobs.c: see jobs.h. */
#include "cli/study/jobs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "base/files/text_line.h"
#include "base/mem.h"
#include "cli/csv.h"

enum { COMMITS = 64, NAME = 64 };

struct job {
    char number[16];
    size_t commit; /* in commits */
    double seconds;
    bool used; /* a row of it is there */
};

struct jobs {
    struct job *job; /* [count] */
    size_t count, room;
    size_t commits;
    struct commit {
        char name[NAME];
        size_t rows;
        bool used;
        bool seen[BEST_ALGORITHMS][BEST_FORMATS]; /* rows of exchanges in a format */
    } commit[COMMITS];
};

static size_t commit_of(struct jobs *j, const char *name) {
    size_t i = 0;
    while (i < j->commits && strcmp(j->commit[i].name, name) != 0) i++;
    if (i == j->commits && i < COMMITS - 1) snprintf(j->commit[j->commits++].name, NAME, "%s", name);
    return i;
}

static void take_job(struct jobs *j, const char *line) {
    struct job x = {.used = false};
    char commit[NAME];
    if (sscanf(line, "%15[^\t]\t%63[^\t]\t%lf", x.number, commit, &x.seconds) != 3) return; /* the head */
    x.commit = commit_of(j, commit);
    if (j->count == j->room) {
        j->room = 2 * j->room + 256;
        j->job = mem_grow(j->job, j->count, j->room, sizeof *j->job, "jobs of the scaling study");
    }
    j->job[j->count++] = x;
}

static bool read_jobs(struct jobs *j, const char *path, struct err *e) {
    const char *why;
    char line[CSV_LINE];
    size_t number = 0;
    FILE *file = file_read(path, &why);
    if (!file) return err_with(e, err_of_errno(errno), "cannot open %s: %s", path, why);
    while (text_line(file, line, sizeof line, path, &number, e)) take_job(j, line);
    fclose(file);
    return !e->text[0];
}

/* The last of this number; NULL: there is none. */
static struct job *find(struct jobs *j, const char *number) {
    for (size_t i = j->count; i > 0; i--)
        if (strcmp(j->job[i - 1].number, number) == 0) return &j->job[i - 1];
    return NULL;
}

/* Of a file of rows, whose job each is. */
static bool read_rows(struct jobs *j, const char *path, struct err *e) {
    struct csv t;
    if (!csv_open(&t, path, "wire,algo,job", e)) return false;
    while (csv_next(&t)) {
        struct job *job = find(j, csv_cell(&t, "job"));
        size_t algo = study_find_algo(csv_cell(&t, "algo")), format = study_find_format(csv_cell(&t, "wire"));
        struct commit *commit = &j->commit[job ? job->commit : commit_of(j, "unknown")];
        if (job) job->used = true;
        commit->used = true;
        commit->rows++;
        if (exchanges[algo] && study_format(format)) commit->seen[algo][format] = true;
    }
    return csv_close(&t);
}

bool jobs_read(struct jobs **jobs, const char *folder, struct err *e) {
    static const char *const rows[] = {"simulated.csv", "aims.csv"};
    char path[STUDY_PATH];
    struct jobs *j = *jobs = mem_zalloc(1, sizeof *j, "jobs of the scaling study");
    bool good = study_path(path, folder, "jobs.tsv", e) && read_jobs(j, path, e);
    for (size_t i = 0; good && i < 2; i++) good = study_path(path, folder, rows[i], e) && read_rows(j, path, e);
    return good;
}

void jobs_free(struct jobs *j) {
    if (j) mem_free(j->job);
    mem_free(j);
}

/* -- what they say --------------------------------------------------------------------------------- */
/* The commits that have rows, by name. Returns how many. */
static size_t sorted(const struct jobs *j, const struct commit *list[COMMITS]) {
    size_t count = 0;
    for (size_t i = 0; i < COMMITS; i++) {
        size_t at = count;
        if (!j->commit[i].used) continue;
        for (; at > 0 && strcmp(list[at - 1]->name, j->commit[i].name) > 0; at--) list[at] = list[at - 1];
        list[at] = &j->commit[i];
        count++;
    }
    return count;
}

void jobs_table(const struct jobs *j) {
    const struct commit *list[COMMITS];
    size_t count = sorted(j, list);
    puts("| commit | rows | algorithms and formats |\n|---|---|---|");
    for (size_t c = 0; c < count; c++) {
        bool first = true;
        printf("| %s | %zu | ", list[c]->name, list[c]->rows);
        for (size_t i = 0; exchanges[i]; i++)
            for (size_t w = 0; w < study_formats(); w++) {
                bool format = best_takes_format(exchanges[i]);
                if (!list[c]->seen[i][w]) continue;
                printf("%s%s%s%s", first ? "" : ", ", exchanges[i]->name, format ? " " : "",
                       format ? study_format(w)->name : "");
                first = false;
            }
        puts(" |");
    }
}

char *jobs_commits(const struct jobs *j) {
    const struct commit *list[COMMITS];
    size_t count = sorted(j, list), used = 0;
    char *text = mem_zalloc(COMMITS, NAME + 1, "names of commits");
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, COMMITS * (NAME + 1) - used, "%s%s", i > 0 ? " " : "", list[i]->name);
    return text;
}

double jobs_seconds(const struct jobs *j) {
    double seconds = 0;
    for (size_t i = 0; i < j->count; i++) seconds += j->job[i].used ? j->job[i].seconds : 0;
    return seconds;
}
