/* fuzz_resume.c: an arbitrary checkpoint, model.ckpt and rank0000.ckpt, through all that reads one and needs no
 * communication, that is, finding it, its position, options and layout, parameters and running statistics. The
 * container around the sections is sound, since fuzz_container is about that. Input: for each section a byte, which one
 * (bit 7: of the rank's file), two for its length and the contents; a last one may be cut off. */
#include "base/mem.h"
#include "cli/checkpoint/checkpoint_model.h"
#include "cli/options/options.h"
#include "tests/lib/fuzzing.h"

enum { SECTIONS = 16, NAMES = 10 };
static const char *const names[NAMES] = {"position",  "options",        "layout",        "parameters", "optimiser",
                                         "net state", "own parameters", "own optimiser", "exchange",   "residual"};

struct file {
    struct section section[SECTIONS];
    void *memory[SECTIONS];
    size_t count;
};

static void add_section(struct file *f, const char *name, const uint8_t *data, size_t bytes) {
    if (f->count == SECTIONS) return;
    f->memory[f->count] = fuzz_copy(data, bytes);
    f->section[f->count] = (struct section){name, f->memory[f->count], bytes};
    f->count++;
}

static void split(const uint8_t *data, size_t size, struct file *model, struct file *rank) {
    while (size >= 3) {
        size_t bytes = data[1] | (size_t)data[2] << 8;
        if (bytes > size - 3) bytes = size - 3;
        add_section(data[0] & 0x80 ? rank : model, names[(data[0] & 0x7f) % NAMES], data + 3, bytes);
        data += 3 + bytes;
        size -= 3 + bytes;
    }
}

static void write_file(struct file *f, const char *name) {
    struct err e = {0};
    MUST(container_write(fuzz_path(name), f->section, f->count, &e));
    for (size_t i = 0; i < f->count; i++) free(f->memory[i]);
}

static volatile double seen; /* so that what is read is really read */

static void look_at(struct checkpoint_model *m) {
    static struct options o; /* large */
    struct err e = {0};
    char key[SLICE_NAME_MAX], value[128];
    double sum = 0;
    for (size_t i = 0; i < m->layout.n; i++) sum += (double)m->param[i];
    for (size_t i = 0; i < m->layout.n_state; i++) sum += (double)m->state[i];
    for (size_t i = 0; model_layout_about(m->layout_text, i, key, value); i++) sum += key[0] + value[0];
    seen = sum;
    options_default(&o);
    if (fuzz_answer(options_inherit(&o, m->at.options, &e), &e)) fuzz_answer(options_resolve(&o, &e), &e);
    e = (struct err){0};
    fuzz_answer(checkpoint_model_rank(m, 0, &e), &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct checkpoint_model m;
    struct file model = {0}, rank = {0};
    struct err e = {0};
    split(data, size, &model, &rank);
    write_file(&model, "model.ckpt");
    write_file(&rank, "rank0000.ckpt");
    if (fuzz_answer(checkpoint_model_open(&m, &checkpoint_evaluate, fuzz_folder(), &e), &e)) look_at(&m);
    checkpoint_model_close(&m);
    return 0;
}
