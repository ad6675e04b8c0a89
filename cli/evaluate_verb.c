/* evaluate_verb.c: see evaluate_verb.h. The options are the checkpoint's where the command line says nothing else. On
 * as many ranks as the run had, each rank gets what it had itself, so that the scores are those of the run's log to the
 * bit; on another number all get the averages, and a text is cut into as many streams as the run cut it into, which the
 * ranks share. */
#include "cli/evaluate_verb.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/checkpoint_model.h"
#include "cli/run.h"

const char evaluate_usage[] =
    "usage: mpirun -np P sparsetrain evaluate CHECKPOINT [--data NAME[:WHERE]] [--batch B] [--device NAME]\n"
    "                                         [--precision NAME] [--threads N] [--timeout S] [--json]\n"
    "Evaluates the model of a checkpoint on the test images, or on the validation and test texts, as its run does.\n"
    "CHECKPOINT: the directory of a run, whose newest checkpoint is taken, or a checkpoint in it. On any number of "
    "ranks;\n"
    "on as many as the run had the scores are the run's own, bit for bit (docs/checkpoints.md).\n"
    "  --data NAME[:WHERE]  another dataset, or the same at another place (default the run's)\n"
    "  --batch B            images, or streams of text, on each rank (default the run's; of a text as many streams in "
    "all)\n"
    "  --device NAME        auto, cpu or cuda (default as the run was started)\n"
    "  --precision NAME     of a GPU: f32, f32-winograd, tf32 or bf16 (default the run's)\n"
    "  --threads N          of the CPU backend on each rank (default the run's)\n"
    "  --timeout S          end the job, naming the rank, when one has given no sign of life for S seconds (default "
    "300;\n"
    "                       0: never)\n"
    "  --json               one JSON object instead of the lines\n";

enum { ARGUMENTS_MAX = 32 };

struct request {
    const char *checkpoint;
    struct options options; /* as far as they are given */
    bool json, help;
};

/* -- options --------------------------------------------------------------------------------------------------- */

/* Is this "--data", or "--data=..."? *alone: its value is the next word. */
static bool is_option(const char *word, bool *alone) {
    static const char *const names[] = {"--data", "--batch", "--device", "--precision", "--threads", "--timeout"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(word, names[i], length) != 0 || (word[length] && word[length] != '=')) continue;
        *alone = !word[length];
        return true;
    }
    return false;
}

static bool parse(struct request *r, int argc, char **argv, struct err *e) {
    char *known[ARGUMENTS_MAX];
    int count = 0;
    for (int i = 1; i < argc; i++) {
        bool alone;
        if (strcmp(argv[i], "--json") == 0) {
            r->json = true;
        } else if (strcmp(argv[i], "--help") == 0) {
            r->help = true;
        } else if (is_option(argv[i], &alone)) {
            if (count + 2 > ARGUMENTS_MAX) return err_set(e, "evaluate: too many options");
            known[count++] = argv[i];
            if (alone && i + 1 < argc) known[count++] = argv[++i];
        } else if (argv[i][0] == '-') {
            return err_set(e, "evaluate: unknown option %.60s; sparsetrain evaluate --help shows them all", argv[i]);
        } else if (r->checkpoint) {
            return err_set(e, "evaluate: one checkpoint at a time, not %.200s as well", argv[i]);
        } else {
            r->checkpoint = argv[i];
        }
    }
    if (r->help) return true;
    if (!r->checkpoint) return err_set(e, "evaluate: a checkpoint is needed: sparsetrain evaluate RUN");
    return options_parse(&r->options, count, known, 0, e);
}

/* As many streams of text in all as the run had, unless a number is given. */
static void share_streams(struct run *r, uint32_t ranks) {
    struct options *o = &r->options;
    const char *where;
    size_t first, behind;
    if (options_dataset(o->data, &where)->kind != DATA_TEXT) return;
    size_t size = (size_t)r->comm->size;
    r->streams = (size_t)o->batch * (options_given(o, "batch") ? size : ranks);
    loader_share(r->streams, r->comm->rank, r->comm->size, &first, &behind);
    bool any = behind > first;
    r->first_stream = any ? first : r->streams;
    o->batch = any ? (int64_t)(behind - first) : 1;
}

/* -- the evaluation -------------------------------------------------------------------------------------------- */

/* Other data by mistake would be other scores without a word. */
static bool same_data(const struct run *r, const struct checkpoint_model *m, struct err *e) {
    if (options_given(&r->options, "data") || r->data_checksum == m->position.data_checksum) return true;
    return err_set(
        e,
        "evaluate: the dataset differs from the one of the checkpoint (checksum %08x, now %08x); give --data "
        "if that is meant",
        m->position.data_checksum, r->data_checksum);
}

/* The run with the model in it; everything is opened. */
static bool load(struct run *r, struct checkpoint_model *m, struct err *e) {
    const bool drifted = m->drifted, as_it_was = m->position.ranks == (uint32_t)r->comm->size;
    same_data(r, m, e);
    if (comm_agree(r->comm, e)) return false;
    if (as_it_was) checkpoint_model_rank(m, r->comm->rank, e);
    if (comm_agree(r->comm, e)) return false;
    checkpoint_model_put(m, r->net, e);
    if (comm_agree(r->comm, e)) return false;
    r->step = (size_t)m->position.step;
    r->drifts = drifted && as_it_was; /* run_evaluate averages, as it did in the run */
    r->averaged_at = SIZE_MAX;
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

static void print_text(const struct run *r, const struct checkpoint_model *m, const struct scores *s) {
    const struct dataset *d = &r->data;
    printf("sparsetrain: %s after step %zu, from %s, on %s; %d rank%s\n", r->options.model, r->step, m->at.path,
           r->net->setup.device->label(), r->comm->size, r->comm->size > 1 ? "s" : "");
    if (r->text) {
        printf("  data                %s: %zu validation and %zu test words, in %zu streams\n", d->ops->name,
               d->valid_text.count, d->test_text.count, r->streams);
        printf("  valid perplexity    %12.2f\n", exp(s->valid_loss));
        printf("  test perplexity     %12.2f\n", exp(s->test_loss));
    } else {
        printf("  data                %s: %zu test images\n", d->ops->name, d->test.count);
        printf("  test loss           %12.3f\n", s->test_loss);
        printf("  test accuracy       %11.2f%%\n", 100 * s->test_accuracy);
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
    json_string(&j, "model", r->options.model);
    json_string(&j, "data", r->options.data);
    json_boolean(&j, "same_data", r->data_checksum == m->position.data_checksum);
    json_integer(&j, "ranks", r->comm->size);
    json_string(&j, "device", r->net->setup.device->label());
    if (r->text) {
        json_integer(&j, "streams", (int64_t)r->streams);
        json_integer(&j, "valid_words", (int64_t)r->data.valid_text.count);
        json_integer(&j, "test_words", (int64_t)r->data.test_text.count);
    } else {
        json_integer(&j, "batch", r->options.batch);
        json_integer(&j, "test_images", (int64_t)r->data.test.count);
    }
    log_scores(r, s, &j);
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
    options_default(&q.options);
    parse(&q, argc, argv, e);
    if (comm_agree(c, e)) return EXIT_USER;
    if (q.help) {
        if (c->rank == 0) fputs(evaluate_usage, stdout);
        return EXIT_DONE;
    }
    if (!open(&r, &m, &q, c, e)) {
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
