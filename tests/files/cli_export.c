/* cli_export.c: what `sparsetrain export` writes of a run's checkpoint: every parameter and running statistic, bit by
 * bit, under the name and in the shape that PyTorch has for it. PyTorch itself has loaded such files and evaluated a
 * batch with them (tests/golden/export.py); a net of ours with what the file says must come to the same loss.
 * Statistics, and the parameters of replicas that have drifted apart, are means over the ranks.
 *
 * Tolerance: the few small steps that were made before differ by roundings from machine to machine; with the kernels of
 * SSE4.1, AVX, AVX2 and AVX-512 the losses came within 3e-5 of the golden ones (VGG-16; 1e-6 the others). */
/* ranks: 1 2 3 */
#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/table.h"
#include "cli/checkpoint/checkpoint_files.h"
#include "cli/export/export.h"
#include "cli/train/run.h"
#include "tests/golden/export.h"
#include "tests/lib/export_reader.h"
#include "tests/lib/mpi_harness.h"

#define TOLERANCE 3e-4

enum { WORDS_MAX = 48, PIXELS = 3 * 32 * 32, SECTION_MAX = 64 };

static char directory[64];

/* -- runs and exports ------------------------------------------------------------------------------------------ */

/* Trains with the options of the line and leaves the checkpoints in `directory`. */
static void train(struct comm *c, const char *line) {
    static struct run r;
    struct options o;
    struct err e = {0};
    char copy[1024], *argv[WORDS_MAX];
    int argc = 0, status;
    mpi_test_path(c, "export", directory);
    snprintf(copy, sizeof copy, "%s --seed %d --lr 0.0002 --lr-warmup 0 --device cpu --quiet --eval-every 0 --out %s",
             line, GOLDEN_SEED, directory);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) argv[argc++] = word;
    options_default(&o);
    if (!options_parse(&o, argc, argv, 0, &e) || !run_open(&r, &o, "sparsetrain", c, &e)) fail_msg("%s", e.text);
    assert_true(run_train(&r, &status, &e));
    run_close(&r);
    comm_barrier(c);
}

/* Removes `directory`. Collective. */
static void clear(struct comm *c) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    comm_barrier(c);
    if (c->rank == 0) assert_int_equal(system(command), 0);
    comm_barrier(c);
}

/* Of the checkpoint of this step (0: the newest), to a file of this name. */
static void export_to(const char *path, size_t step, const char *format) {
    char from[CHECKPOINT_PATH_MAX];
    if (step > 0)
        checkpoint_name(from, directory, (long long)step);
    else
        snprintf(from, sizeof from, "%s", directory);
    char *argv[] = {"export", from, "--format", (char *)format, "--out", (char *)path};
    assert_int_equal(export_verb(6, argv), EXIT_DONE);
}

static void read_back(struct read_file *f, const char *path, const char *format) {
    if (strcmp(format, "npz") == 0)
        read_npz(f, path);
    else
        read_safetensors(f, path);
}

/* -- against the checkpoint ------------------------------------------------------------------------------------ */

/* The mean over the ranks of a section of their files; NULL: they have none. Fresh memory. */
static float *mean_of(struct comm *c, size_t step, const char *section, size_t n) {
    double *sum = mem_zalloc(n, sizeof *sum, "a test's sums");
    float *mean = mem_alloc(n, sizeof *mean, "a test's means");
    for (int rank = 0; rank < c->size; rank++) {
        char dir[CHECKPOINT_PATH_MAX], path[CHECKPOINT_PATH_MAX + SECTION_MAX];
        struct container file;
        struct err e = {0};
        checkpoint_name(dir, directory, (long long)step);
        snprintf(path, sizeof path, "%s/rank%04d.ckpt", dir, rank);
        if (!container_read(path, &file, &e) || !container_get(&file, section, mean, n * sizeof *mean, &e))
            fail_msg("%s", e.text);
        for (size_t i = 0; i < n; i++) sum[i] += (double)mean[i];
        container_close(&file);
    }
    for (size_t i = 0; i < n; i++) mean[i] = (float)(sum[i] / c->size);
    mem_free(sum);
    return mean;
}

/* PyTorch's name of a slice of ours: what an LSTM has carries the number of the layer. */
static void pytorch_name(const char *ours, char name[64]) {
    bool lstm = strncmp(ours, "lstm", 4) == 0;
    snprintf(name, 64, "%s%s", ours, lstm ? "_l0" : "");
}

static void check_slices(const struct read_file *f, const struct slice *slice, size_t slices, const float *value) {
    for (size_t i = 0; i < slices; i++) {
        const struct slice *s = &slice[i];
        char name[64];
        pytorch_name(s->name, name);
        const struct read_array *x = read_find(f, name);
        assert_int_equal(x->dims, s->dims);
        for (int d = 0; d < s->dims; d++) assert_int_equal(x->dim[d], s->dim[d]);
        assert_int_equal(x->size, s->size);
        assert_memory_equal(x->value, value + s->offset, s->size * sizeof(float));
    }
}

/* The net that the options build, with parameters of another seed; hidden: of a model of words. */
static struct net *open_net(const char *name, int batch, int sequence, int hidden, int classes) {
    const struct model_ops *model;
    struct err e = {0};
    TABLE_FIND(models, name, model);
    const bool blocks = model && model->windows;
    const struct net_setup setup = {.batch = batch,
                                    .channels = 3,
                                    .height = 32,
                                    .width = 32,
                                    .classes = classes,
                                    .threads = 1,
                                    .seed = GOLDEN_SEED + 1,
                                    .device = device_find("cpu"),
                                    .sequence = sequence,
                                    .hidden = hidden,
                                    .layers = blocks ? GOLDEN_LAYERS : 0,
                                    .heads = blocks ? GOLDEN_HEADS : 0};
    struct net *net = net_open(model, &setup, &e);
    if (!net) fail_msg("%s", e.text);
    return net;
}

/* -- against PyTorch ------------------------------------------------------------------------------------------- */

static void put_slices(const struct read_file *f, const struct slice *slice, size_t slices, float *value) {
    for (size_t i = 0; i < slices; i++) {
        char name[64];
        pytorch_name(slice[i].name, name);
        memcpy(value + slice[i].offset, read_find(f, name)->value, slice[i].size * sizeof *value);
    }
}

/* The same images and labels as batch_of(EVALUATED) in images.py. */
static void fill_images(float *x, int32_t *y) {
    struct rng rng = rng_open(GOLDEN_SEED, RNG_TEST, GOLDEN_EVALUATED);
    for (int i = 0; i < GOLDEN_BATCH; i++) {
        y[i] = (i * 7 + GOLDEN_EVALUATED) % 10;
        for (int j = 0; j < PIXELS; j++)
            x[i * PIXELS + j] = (float)(0.5 * rng_normal(&rng) + sin((y[i] + 1) * (j % 101) * 0.05));
    }
}

/* The same words as window() in export.py. */
static void fill_words(int32_t *token, int32_t *label, int vocabulary) {
    struct rng r = rng_open(GOLDEN_SEED, RNG_TEST, GOLDEN_EVALUATED);
    const int rows = GOLDEN_BATCH * GOLDEN_SEQUENCE;
    for (int i = 0; i < rows; i++) token[i] = (int32_t)(rng_u32(&r) % (uint32_t)vocabulary);
    for (int i = 0; i < rows; i++) label[i] = (int32_t)(rng_u32(&r) % (uint32_t)vocabulary);
}

static double loss_of(struct net *net) {
    static float x[GOLDEN_BATCH * PIXELS];
    static int32_t token[GOLDEN_BATCH * GOLDEN_SEQUENCE], y[GOLDEN_BATCH * GOLDEN_SEQUENCE];
    struct net_result result;
    if (net->model->input == MODEL_TOKENS) {
        net_carry_reset(net);
        fill_words(token, y, net->setup.classes);
        net_evaluate_tokens(net, token, y, net_rows(&net->setup), &result);
    } else {
        fill_images(x, y);
        net_evaluate(net, x, y, GOLDEN_BATCH, &result);
    }
    return result.loss / result.count;
}

static const struct golden_export *golden_of(const char *model) {
    for (size_t i = 0; i < sizeof golden_exports / sizeof *golden_exports; i++)
        if (strcmp(golden_exports[i].model, model) == 0) return &golden_exports[i];
    fail_msg("there is no golden loss of model %s: add it to tests/golden/export.py", model);
    return NULL;
}

/* $GOLDEN_EXPORT/MODEL.FORMAT, for tests/golden/export.py; else a file of this test's. */
static void file_name(char path[256], const char *model, const char *format) {
    const char *keep = getenv("GOLDEN_EXPORT");
    snprintf(path, 256, "%.200s/%s.%s", keep ? keep : directory, model, format);
}

/* Fresh matrices of a decoder are so small that attention hardly shows in its loss: as in export.py. */
static void magnify(struct arena *a) {
    for (size_t i = 0; i < a->slices; i++)
        for (size_t j = 0; a->slice[i].dims > 1 && j < a->slice[i].size; j++)
            a->param[a->slice[i].offset + j] *= GOLDEN_MAGNIFIED;
}

static void check_model(struct comm *c, const struct model_ops *model) {
    const bool text = model->input == MODEL_TOKENS;
    const struct golden_export *golden = golden_of(model->name);
    char line[256], blocks[64] = "";
    if (model->windows)
        snprintf(blocks, sizeof blocks, "--context %d --layers %d --heads %d --eval-samples 0", GOLDEN_SEQUENCE,
                 GOLDEN_LAYERS, GOLDEN_HEADS);
    else if (text)
        snprintf(blocks, sizeof blocks, "--bptt %d", GOLDEN_SEQUENCE);
    snprintf(line, sizeof line, "--model %s --batch 4 --steps %d %s %s", model->name, GOLDEN_STEPS,
             text ? "--data synthetic-text:600x50x50 --hidden 16 --dropout 0" : "--data synthetic:64x8", blocks);
    train(c, line);
    struct net *net = open_net(model->name, GOLDEN_BATCH, text ? GOLDEN_SEQUENCE : 0, text ? 16 : 0, text ? 2000 : 10);
    struct arena *a = &net->arena;
    for (size_t i = 0; export_formats[i]; i++) {
        static struct read_file f;
        const char *format = export_formats[i]->name;
        char path[256];
        file_name(path, model->name, format);
        export_to(path, 0, format);
        read_back(&f, path, format);
        assert_int_equal(f.arrays, a->slices + a->state_slices);
        put_slices(&f, a->slice, a->slices, a->param);
        put_slices(&f, a->state_slice, a->state_slices, a->state);
        check_slices(&f, a->slice, a->slices, a->param); /* the values have just been put there: shapes */
        check_slices(&f, a->state_slice, a->state_slices, a->state);
        if (model->windows) magnify(a);
        double loss = loss_of(net);
        if (!getenv("GOLDEN_EXPORT") && !(fabs(loss - golden->loss) <= TOLERANCE))
            fail_msg("%s as %s: the loss is %.9g, PyTorch's is %.9g", model->name, format, loss, golden->loss);
        read_close(&f);
    }
    net_close(net);
    clear(c);
}

/* What was made from one run on one rank: every model in every format, but for those that train on pairs of texts, of
 * which no made-up ones are built in, and on speech, which the program does not train yet. */
static void pytorch_has_the_same_losses(struct comm *c) {
    for (size_t i = 0; c->size == 1 && models[i]; i++)
        if (models[i]->input != MODEL_PAIRS && models[i]->input != MODEL_SPEECH) check_model(c, models[i]);
}

/* Where all ranks have the same they are in model.ckpt. */
static void check_parameters(const struct read_file *f, const struct arena *a, size_t step) {
    char dir[CHECKPOINT_PATH_MAX], path[CHECKPOINT_PATH_MAX + SECTION_MAX];
    float *param = mem_alloc(a->n, sizeof *param, "a test's parameters");
    struct container file;
    struct err e = {0};
    checkpoint_name(dir, directory, (long long)step);
    snprintf(path, sizeof path, "%s/model.ckpt", dir);
    if (!container_read(path, &file, &e) || !container_get(&file, "parameters", param, a->n * sizeof *param, &e))
        fail_msg("%s", e.text);
    check_slices(f, a->slice, a->slices, param);
    container_close(&file);
    mem_free(param);
}

/* A checkpoint between two evaluations, where each rank has its own statistics, and drifting replicas their own
 * parameters; and the last one, where all have the same. */
static void what_differs_is_averaged(struct comm *c) {
    static const struct {
        const char *how;
        bool drifts;
    } rows[] = {{"--algo dense", false},
                {"--algo gtopk --density 0.01 --density-warmup none", false},
                {"--algo fedavg --average-every 100", true},
                {"--algo topka --density 0.01 --density-warmup none --local-update --average-every 100", true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char line[256];
        snprintf(line, sizeof line, "--data synthetic:64x8 --batch 4 --steps 3 --checkpoint-every 2 %s", rows[i].how);
        train(c, line);
        struct net *net = open_net("resnet20", 1, 0, 0, 10);
        const struct arena *a = &net->arena;
        for (size_t step = 2; c->rank == 0 && step <= 3; step++) {
            static struct read_file f;
            char path[128];
            snprintf(path, sizeof path, "%s/model", directory);
            export_to(path, step, "safetensors");
            read_safetensors(&f, path);
            float *state = mean_of(c, step, "net state", a->n_state);
            check_slices(&f, a->state_slice, a->state_slices, state);
            if (!rows[i].drifts) check_parameters(&f, a, step);
            if (rows[i].drifts) {
                float *param = mean_of(c, step, "own parameters", a->n);
                check_slices(&f, a->slice, a->slices, param);
                bool said = strstr(f.about, "\"parameters\":\"mean over the ranks\"") != NULL;
                assert_int_equal(said, step == 2);
                mem_free(param);
            }
            assert_non_null(strstr(f.about, step == 2 ? "\"step\":\"2\"" : "\"step\":\"3\""));
            mem_free(state);
            read_close(&f);
        }
        net_close(net);
        clear(c);
    }
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {{"pytorch_has_the_same_losses", pytorch_has_the_same_losses},
                                     {"what_differs_is_averaged", what_differs_is_averaged}};
    return mpi_test_main(argc, argv, "cli_export", cases, sizeof cases / sizeof *cases);
}
