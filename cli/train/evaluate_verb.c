/* evaluate_verb.c: see evaluate_verb.h. The options are the checkpoint's where the command line says nothing else. On
 * as many ranks as the run had, each rank gets what it had itself, so that the scores are those of the run's log to the
 * bit; on another number all get the averages, and a text is cut into as many streams as the run cut it into, which the
 * ranks share. */
#include "cli/train/evaluate_verb.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/checkpoint/checkpoint_model.h"
#include "cli/observe/watching.h"
#include "cli/options/device_option.h"
#include "cli/train/run.h"

struct request {
    const char *checkpoint;
    struct options options; /* as far as they are given */
    bool json;
};

/* -- options --------------------------------------------------------------------------------------------------- */
#define AT(field) OPTION_AT(struct request, options.field)

static const struct option_row options[] = {
    {"data", "NAME[:WHERE]", OPTION_TEXT, NULL, "another dataset, or the same at another place (default: the run's)",
     AT(data)},
    {"batch", "B", OPTION_INTEGER, NULL,
     "images, streams or windows of text, pairs of sentences or utterances on each rank (default: the run's; of a text "
     "as many streams in all)",
     AT(batch), .min = 1, .max = 65536},
    {"device", "NAME", OPTION_CHOICE, NULL, "on what it computes (default: as the run was started)", AT(device),
     .choice = device_option_name},
    {"precision", "NAME", OPTION_CHOICE, NULL, "in which it computes (default: the run's)", AT(precision),
     .choice = precision_name},
    {"threads", "N", OPTION_INTEGER, NULL, "of the CPU backend on each rank (default: the run's)", AT(threads),
     .min = 1, .max = 1024},
    {"timeout", "S", OPTION_REAL, "300", WATCHING_HELP, AT(timeout), .max = 1e9},
    {"samples", "N", OPTION_INTEGER, NULL,
     "speech: what is heard of N utterances of the test beside what is said (default: the run's)", AT(samples),
     .min = 0, .max = 1000},
    {"json", NULL, OPTION_FLAG, NULL, "one JSON object instead of the lines", OPTION_AT(struct request, json)},
};

const struct option_table evaluate_options = {
    .verb = "evaluate",
    .row = options,
    .rows = sizeof options / sizeof *options,
    .operand = "checkpoint",
    .operand_at = offsetof(struct request, checkpoint),
    .wanted = "a checkpoint is needed: sparsetrain evaluate RUN",
    .call = "mpirun -np P sparsetrain evaluate CHECKPOINT",
    .about =
        "Evaluates the model of a checkpoint on the test images or utterances, or on the validation and test texts, as "
        "its run does. CHECKPOINT: the directory of a run, whose newest checkpoint is taken, or a checkpoint in it. On "
        "any number of ranks; on as many as the run had the scores are the run's own, bit for bit "
        "(docs/checkpoints.md).",
};

/* What is given here counts as given to train. */
static bool parse(struct request *q, int argc, char **argv, struct err *e) {
    bool given[sizeof options / sizeof *options] = {false};
    options_default(&q->options);
    if (!option_parse(&evaluate_options, q, given, argc, argv, 1, e)) return false;
    for (size_t i = 0; i < evaluate_options.rows; i++)
        if (given[i] && options[i].type != OPTION_FLAG) options_give(&q->options, options[i].name);
    return true;
}

/* As many streams of text in all as the run had, unless a number is given. */
static void share_streams(struct run *r, uint32_t ranks) {
    struct options *o = &r->options;
    const char *where;
    size_t first, behind;
    if (options_dataset(o->data, &where)->kind != DATA_TEXT || options_model(o)->windows) return;
    size_t size = (size_t)r->comm->size;
    r->data.streams = (size_t)o->batch * (options_given(o, "batch") ? size : ranks);
    loader_share(r->data.streams, r->comm->rank, r->comm->size, &first, &behind);
    bool any = behind > first;
    r->data.first_stream = any ? first : r->data.streams;
    o->batch = any ? (int64_t)(behind - first) : 1;
}

/* -- the evaluation -------------------------------------------------------------------------------------------- */

/* Other data by mistake would be other scores without a word. */
static bool same_data(const struct run *r, const struct checkpoint_model *m, struct err *e) {
    if (options_given(&r->options, "data") || r->data.checksum == m->position.data_checksum) return true;
    return err_set(
        e,
        "evaluate: the dataset differs from the one of the checkpoint (checksum %08x, now %08x); give --data "
        "if that is meant",
        m->position.data_checksum, r->data.checksum);
}

/* The run with the model in it; everything is opened. */
static bool load(struct run *r, struct checkpoint_model *m, struct err *e) {
    const bool drifted = m->drifted, as_it_was = m->position.ranks == (uint32_t)r->comm->size;
    same_data(r, m, e);
    if (comm_agree(r->comm, e)) return false;
    if (as_it_was) checkpoint_model_rank(m, r->comm->rank, e);
    if (comm_agree(r->comm, e)) return false;
    checkpoint_model_put(m, r->model.net, &r->data.set, r->options.data, e);
    if (comm_agree(r->comm, e)) return false;
    r->step = (size_t)m->position.step;
    r->replicas.drifts = drifted && as_it_was; /* run_evaluate averages, as it did in the run */
    r->replicas.averaged_at = SIZE_MAX;
    return true;
}

static bool open(struct run *r, struct checkpoint_model *m, const struct request *q, struct comm *c, struct err *e) {
    if (!checkpoint_model_open_all(m, c, &checkpoint_evaluate, q->checkpoint, e)) return false;
    r->options = q->options;
    r->comm = c;
    bool good = options_inherit(&r->options, m->at.options, e) && options_resolve(&r->options, e);
    if (good) share_streams(r, m->position.ranks);
    return !comm_agree(c, e) && run_open_evaluation(r, &m->at, e) && load(r, m, e);
}

/* -- what is said ---------------------------------------------------------------------------------------------- */

static void print_data(const struct run *r) {
    char counts[96], in[48] = "";
    task_counts(r, SPLIT_VALID, counts, sizeof counts);
    if (r->data.task->streams) snprintf(in, sizeof in, ", in %zu streams", r->data.streams);
    if (r->data.task->windows) snprintf(in, sizeof in, ", in windows one after the other");
    printf("  data                %s: %s%s\n", r->data.set.ops->name, counts, in);
}

static void print_text(const struct run *r, const struct checkpoint_model *m, const struct scores *s) {
    printf("sparsetrain: %s after step %zu, from %s, on %s; %d rank%s\n", options_model(&r->options)->name, r->step,
           m->at.path, r->model.net->setup.device->label(), r->comm->size, r->comm->size > 1 ? "s" : "");
    print_data(r);
    for (const struct score_shown *shown = r->data.task->listed; shown->label; shown++) {
        const struct score *score = score_find(r, shown->split, shown->metric);
        if (score && shown->percent)
            printf("  %-19s %11.*f%%\n", shown->label, shown->decimals, 100 * score_value(score, s));
        else if (score)
            printf("  %-19s %12.*f\n", shown->label, shown->decimals, score_value(score, s));
    }
    for (size_t i = 0; i < r->heard.count; i++) {
        char *text = heard_text(&r->heard.sample[i]);
        puts(text);
        mem_free(text);
    }
}

static void print_json(const struct run *r, const struct checkpoint_model *m, const struct scores *s, double seconds) {
    char id[24];
    struct json j;
    snprintf(id, sizeof id, "%016llx", (unsigned long long)m->position.run_id);
    json_open(&j);
    json_object(&j, NULL);
    json_string(&j, "checkpoint", m->at.path);
    json_string(&j, "run", id);
    json_integer(&j, "step", (int64_t)r->step);
    json_string(&j, "model", options_model(&r->options)->name);
    json_string(&j, "data", r->options.data);
    json_boolean(&j, "same_data", r->data.checksum == m->position.data_checksum);
    json_integer(&j, "ranks", r->comm->size);
    json_string(&j, "device", r->model.net->setup.device->label());
    if (r->data.task->streams) json_integer(&j, "streams", (int64_t)r->data.streams);
    if (!r->data.task->text) json_integer(&j, "batch", r->options.batch);
    task_write_counts(r, SPLIT_VALID, &j);
    scores_write(r, s, &j);
    heard_write(&r->heard, &j);
    json_number(&j, "seconds", seconds);
    json_end(&j);
    puts(json_text(&j));
    json_close(&j);
}

int evaluate_verb(struct comm *c, int argc, char **argv, struct err *e) {
    static struct run r; /* large */
    static struct request q;
    struct checkpoint_model m = {0};
    struct scores scores;
    c->traffic = TRAFFIC_CONTROL;
    parse(&q, argc, argv, e);
    if (comm_agree(c, e)) return EXIT_USER;
    if (!open(&r, &m, &q, c, e)) {
        comm_shared_close(c, &r.data.memory);
        checkpoint_model_close(&m);
        return EXIT_USER;
    }
    double begin = clock_now();
    run_evaluate(&r, false, &scores);
    double seconds = clock_now() - begin;
    if (c->rank == 0 && q.json) print_json(&r, &m, &scores, seconds);
    if (c->rank == 0 && !q.json) print_text(&r, &m, &scores);
    checkpoint_model_close(&m);
    run_close(&r);
    return EXIT_DONE;
}
