/* fuzz_rows.c: an arbitrary file as the run.jsonl of a run that resumes. What stays of it are rows up to the
 * checkpoint, it stays as it is when it is read again, and says the same of the steps that were taken. Input: a byte,
 * the step of the checkpoint, with bit 7 that of the run's end; then the file. */
#include <sys/stat.h>

#include "cli/log/log_rows.h"
#include "cli/train/run.h"
#include "tests/lib/fuzzing.h"

/* As the log is opened; its bytes afterwards, to be freed. */
static char *resumed(struct run *r, const char *path, size_t *bytes) {
    struct err e = {0};
    MUST(fuzz_answer(log_prepare_file(r, &e) && log_open_file(r, &e), &e));
    fclose(r->log.file);
    FILE *f = fopen(path, "rb");
    MUST(f != NULL);
    *bytes = (size_t)r->log.bytes;
    char *text = malloc(*bytes + 1);
    MUST(text && fread(text, 1, *bytes + 1, f) == *bytes);
    fclose(f);
    text[*bytes] = '\0';
    return text;
}

static void check_rows(const char *text, size_t bytes, const struct run *r) {
    MUST(strlen(text) == bytes);
    for (const char *end; *text; text = end + 1) {
        MUST((end = strchr(text, '\n')) != NULL);
        char *row = fuzz_copy(text, (size_t)(end - text) + 2);
        row[end - text + 1] = '\0';
        MUST(row[0] == '{' && end[-1] == '}');
        MUST(!log_row_is(row, "summary") && log_row_step(row) <= (long long)r->first_step);
        free(row);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct run r; /* large */
    uint64_t run_id;
    struct stat info;
    if (size < 1) return 0;
    memset(&r, 0, sizeof r);
    r.first_step = data[0] & 0x7f;
    r.stop = r.first_step + !(data[0] & 0x80);
    MUST(strlen(fuzz_folder()) < sizeof r.options.out);
    strcpy(r.options.out, fuzz_folder());
    strcpy(r.options.resume, ".");
    char *path = fuzz_copy(fuzz_file("run.jsonl", data + 1, size - 1), strlen(fuzz_folder()) + sizeof "/run.jsonl");
    log_rows_run(path, &run_id);
    log_rows_end(path, r.first_step, "\"completed\":true");

    size_t once, twice;
    char *text = resumed(&r, path, &once);
    check_rows(text, once, &r);
    const struct totals said = r.log.totals;
    const bool evaluated = r.log.evaluated;
    MUST(said.steps >= 0 && said.steps < (double)size);
    MUST(!log_rows_end(path, r.first_step, ""));
    memset(&r.log, 0, sizeof r.log);
    char *again = resumed(&r, path, &twice);
    MUST(once == twice && memcmp(text, again, once) == 0);
    MUST(memcmp(&said, &r.log.totals, sizeof said) == 0 && evaluated == r.log.evaluated);
    char left[1200];
    snprintf(left, sizeof left, "%s.tmp", path);
    MUST(stat(left, &info) != 0);
    free(text);
    free(again);
    free(path);
    return 0;
}
