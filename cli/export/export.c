/* export.c: see export.h. The arena's slices have PyTorch's layouts already (nets/arena.h: convolutions
 * [out][in][k][k], linear layers [out][in], LSTMs with their gates in the order i, f, g, o); what differs are the names
 * of an LSTM's parameters, which torch.nn.LSTM numbers by layer: each of ours is one of one layer. */
#include "cli/export/export.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/out_file.h"
#include "base/mem.h"
#include "base/table.h"
#include "cli/checkpoint/checkpoint_model.h"
#include "cli/options/options.h"
#include "cli/version.h"

extern const struct export_ops export_safetensors, export_npz;
const struct export_ops *const export_formats[] = {&export_safetensors, &export_npz, NULL};

struct request {
    const char *checkpoint, *out;
    int format; /* of export_formats */
};

static const char *format_name(size_t i) {
    return export_formats[i] ? export_formats[i]->name : NULL;
}

static const struct option_row options[] = {
    {"format", "NAME", OPTION_CHOICE, NULL, "safetensors is for safetensors.torch.load_file, npz for numpy.load",
     OPTION_AT(struct request, format), .choice = format_name, .wanted = "--format NAME is needed: safetensors or npz"},
    {"out", "FILE", OPTION_WORD, NULL, "the file to write (default: model-STEP.FORMAT in the directory of the run)",
     OPTION_AT(struct request, out)},
};

const struct option_table export_options = {
    .verb = "export",
    .row = options,
    .rows = sizeof options / sizeof *options,
    .operand = "checkpoint",
    .operand_at = offsetof(struct request, checkpoint),
    .wanted = "a checkpoint is needed: sparsetrain export RUN --format safetensors",
    .call = "sparsetrain export CHECKPOINT",
    .about = "Writes the parameters and the batch-norm statistics of a checkpoint, under the names and in the shapes "
             "that PyTorch gives them. CHECKPOINT: the directory of a run, whose newest checkpoint is taken, or a "
             "checkpoint in it. Needs no data, and is done by one process, whatever the number of ranks was "
             "(docs/checkpoints.md).",
};

/* -- the model ------------------------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

static struct export_array array_of(const struct slice *s, const float *value) {
    struct export_array x = {.dims = s->dims, .size = s->size, .value = value + s->offset};
    bool recurrent = ends_with(s->name, "_ih") || ends_with(s->name, "_hh");
    snprintf(x.name, sizeof x.name, "%s%s", s->name, recurrent ? "_l0" : "");
    memcpy(x.dim, s->dim, sizeof x.dim);
    return x;
}

enum { ABOUTS_MAX = 24, VALUE_MAX = 128 };

/* What the file says of the model. */
struct about {
    const char *pair[ABOUTS_MAX][2];
    char key[ABOUTS_MAX][SLICE_NAME_MAX], value[ABOUTS_MAX][VALUE_MAX];
    size_t count;
};

static void tell(struct about *a, const char *key, const char *value) {
    size_t i = a->count++;
    if (i == ABOUTS_MAX) die("more than %d things to say of a model", ABOUTS_MAX);
    snprintf(a->key[i], sizeof a->key[i], "%s", key);
    snprintf(a->value[i], sizeof a->value[i], "%.*s", VALUE_MAX - 1, value);
    a->pair[i][0] = a->key[i];
    a->pair[i][1] = a->value[i];
}

static void tell_number(struct about *a, const char *key, const char *format, unsigned long long number) {
    char text[VALUE_MAX];
    if (strcmp(format, "x") == 0)
        snprintf(text, sizeof text, "%016llx", number);
    else
        snprintf(text, sizeof text, "%llu", number);
    tell(a, key, text);
}

/* What the shapes of a transformer do not say: how many heads share its features out, and with its preset whether there
 * are biases and which form GELU has. */
static void tell_size(struct about *a, const struct checkpoint_model *m) {
    static const char *const names[] = {"preset", "heads"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char value[OPTION_TEXT_MAX];
        options_text_value(m->at.options, names[i], value);
        if (value[0] != '\0') tell(a, names[i], value);
    }
}

/* "format": what the libraries of safetensors look for. No path is told: a file may travel further than it. */
static void tell_all(struct about *a, const struct checkpoint_model *m) {
    char model[OPTION_TEXT_MAX], data[OPTION_TEXT_MAX], key[SLICE_NAME_MAX], value[VALUE_MAX];
    options_text_value(m->at.options, "model", model);
    options_text_value(m->at.options, "data", data);
    data[strcspn(data, ":")] = '\0';
    tell(a, "format", "pt");
    tell(a, "model", model);
    tell(a, "data", data);
    for (size_t i = 0; model_layout_about(m->layout_text, i, key, value); i++) tell(a, key, value);
    tell_size(a, m);
    tell_number(a, "run", "x", m->position.run_id);
    tell_number(a, "step", "u", m->position.step);
    tell_number(a, "ranks", "u", m->position.ranks);
    tell(a, "parameters", m->drifted ? "mean over the ranks" : "the same on all ranks");
    tell(a, "sparsetrain", version_number());
    tell(a, "commit", version_commit());
}

void export_about(struct json *j, const char *key, const struct export_model *m) {
    json_object(j, key);
    for (size_t i = 0; i < m->abouts; i++) json_string(j, m->about[i][0], m->about[i][1]);
    json_end(j);
}

/* The bytes of each number by its value, so on any machine. */
void export_floats(unsigned char *to, const float *from, size_t count) {
    for (size_t i = 0; i < count; i++, to += 4) {
        uint32_t bits;
        memcpy(&bits, &from[i], sizeof bits);
        to[0] = (unsigned char)bits;
        to[1] = (unsigned char)(bits >> 8);
        to[2] = (unsigned char)(bits >> 16);
        to[3] = (unsigned char)(bits >> 24);
    }
}

/* -- the file -------------------------------------------------------------------------------------------------- */

/* named: by the user, who may have meant a link; the name by default is the program's own. */
static bool write_file(const char *path, bool named, const struct export_ops *format, const struct export_model *m,
                       struct err *e) {
    struct out_file out;
    bool open = named ? out_file_open(&out, path, "--out", e) : out_file_replace_shared(&out, path, "--out", e);
    if (!open) return false;
    format->write(out.file, m);
    return out_file_close(&out, e);
}

static bool export_model(const struct request *r, const struct checkpoint_model *m, struct err *e) {
    const struct model_layout *l = &m->layout;
    struct about about = {.count = 0};
    struct export_model x = {.arrays = l->slices + l->state_slices};
    x.array = mem_alloc(x.arrays, sizeof *x.array, "the arrays of an export");
    for (size_t i = 0; i < l->slices; i++) x.array[i] = array_of(&l->slice[i], m->param);
    for (size_t i = 0; i < l->state_slices; i++) x.array[l->slices + i] = array_of(&l->state_slice[i], m->state);
    tell_all(&about, m);
    x.about = (const char *const(*)[2])about.pair;
    x.abouts = about.count;
    char *path = r->out ? mem_printf("%s", r->out)
                        : mem_printf("%s/model-%08llu.%s", m->at.run_dir, (unsigned long long)m->position.step,
                                     export_formats[r->format]->name);
    bool good = write_file(path, r->out, export_formats[r->format], &x, e);
    if (good && !out_file_is_stream(path))
        printf("wrote %s: %zu parameters and %zu running statistics in %zu arrays, after step %llu%s\n", path, l->n,
               l->n_state, x.arrays, (unsigned long long)m->position.step,
               m->drifted ? "; the replicas had drifted apart: their mean" : "");
    mem_free(path);
    mem_free(x.array);
    return good;
}

int export_verb(int argc, char **argv) {
    struct request r = {0};
    struct checkpoint_model m = {0};
    struct err e = {0};
    bool good = option_parse(&export_options, &r, NULL, argc, argv, 1, &e) &&
                (!r.out || out_file_check(r.out, "--out", &e)) &&
                checkpoint_model_open(&m, &checkpoint_export, r.checkpoint, &e) && export_model(&r, &m, &e);
    checkpoint_model_close(&m);
    if (good) return EXIT_DONE;
    fprintf(stderr, "sparsetrain: %s\n", e.text);
    return err_status(&e);
}
