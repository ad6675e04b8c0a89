/* bench_net_options.c: the command line of `bench net`. */
#include "cli/bench/bench_net.h"
#include "cli/options/options.h"

enum { COUNT_MAX = 10000 };

static const struct option_row options[] = {
    {"model", "NAME", OPTION_CHOICE, "resnet20", "the network", OPTION_AT(struct bench_net_request, model_number),
     .choice = model_name},
    {"preset", "NAME", OPTION_WORD, NULL,
     "size of a model that has several: gpt char-cpu, char or gpt2; bert tiny, mini, small or base",
     OPTION_AT(struct bench_net_request, preset)},
    {"batch", "LIST", OPTION_NUMBERS, NULL,
     "images, streams of words, or utterances a step, with commas between (default: 32,128; of words the model's; of "
     "speech 2,16)",
     OPTION_AT(struct bench_net_request, batch), .min = 1, .max = COUNT_MAX, .whole = true},
    {"hidden", "N", OPTION_INT, NULL, "features of a model of words or speech (default: the model's)",
     OPTION_AT(struct bench_net_request, hidden), .min = 1, .max = COUNT_MAX},
    {"sequence", "N", OPTION_INT, NULL, "words of each stream a step (default: the model's)",
     OPTION_AT(struct bench_net_request, sequence), .min = 1, .max = COUNT_MAX},
    {"layers", "N", OPTION_INT, NULL, "LSTM layers of a model of speech (default: the model's)",
     OPTION_AT(struct bench_net_request, layers), .min = 1, .max = COUNT_MAX},
    {"frames", "N", OPTION_INT, NULL, "of each utterance, 10 ms each (default: 270, the mean of AN4)",
     OPTION_AT(struct bench_net_request, frames), .min = 2 * BENCH_NET_LABELS, .max = COUNT_MAX},
    {"device", "NAME", OPTION_WORD, "auto", "auto, cpu or cuda; auto: a GPU where one can be used",
     OPTION_AT(struct bench_net_request, device_name)},
    {"precision", "NAME", OPTION_CHOICE, "f32", "in which it computes; of a CPU f32 or f32-winograd",
     OPTION_AT(struct bench_net_request, precision_number), .choice = precision_name},
    {"steps", "N", OPTION_INT, "10", "steps of a round", OPTION_AT(struct bench_net_request, steps), .min = 1,
     .max = COUNT_MAX},
    {"repeat", "N", OPTION_INT, "7", "rounds; the median is printed", OPTION_AT(struct bench_net_request, repeat),
     .min = 1, .max = COUNT_MAX},
    {"threads", "N", OPTION_INT, "1", "of the CPU backend", OPTION_AT(struct bench_net_request, threads), .min = 1,
     .max = COUNT_MAX},
    {"kernels", NULL, OPTION_FLAG, NULL,
     "of a GPU: where a step goes, call by call, in place of its speed (--repeat steps)",
     OPTION_AT(struct bench_net_request, kernels)},
    {"json", NULL, OPTION_FLAG, NULL, "one JSON object per row instead of the table",
     OPTION_AT(struct bench_net_request, json)},
};

const struct option_table net_options = {
    .verb = "bench net",
    .row = options,
    .rows = sizeof options / sizeof *options,
    .call = "sparsetrain bench net",
    .about = "Images, words or utterances a second of forward, backward and optimiser step, one process: random 32x32 "
             "images, random words, or noise.",
};

static bool settle_preset(struct bench_net_request *r, struct err *e) {
    const struct model_preset *preset = r->preset ? model_preset(r->model, r->preset) : NULL;
    char names[OPTION_TEXT_MAX];
    r->like = preset ? &preset->reference : &r->model->reference;
    r->classes = preset ? preset->classes : r->model->classes;
    if (!r->preset || preset) return true;
    model_preset_names(r->model, names, sizeof names);
    return err_set(e, "bench net: --preset has no \"%.40s\" for %s; there are: %s", r->preset, r->model->name, names);
}

/* An option that only models of another kind have. *value becomes 0. */
static bool leave_out(const struct bench_net_request *r, int *value, const char *option, const char *kind,
                      struct err *e) {
    if (*value > 0)
        return err_set(e, "bench net: %s is for models of %s, but %s takes %s: leave it out", option, kind,
                       r->model->name, model_input_names[r->model->input]);
    *value = 0;
    return true;
}

/* Sizes are for models that have them; what was not given becomes the model's own. */
static bool settle(struct bench_net_request *r, struct err *e) {
    const struct model_ops *model = r->model = models[r->model_number];
    const bool images = model->input == MODEL_IMAGES, speech = model->input == MODEL_SPEECH;
    r->precision = (enum precision)r->precision_number;
    if (!settle_preset(r, e)) return false;
    if (images && !leave_out(r, &r->hidden, "--hidden", "words", e)) return false;
    if ((images || speech) && !leave_out(r, &r->sequence, "--sequence", "words", e)) return false;
    if (!speech &&
        (!leave_out(r, &r->layers, "--layers", "speech", e) || !leave_out(r, &r->frames, "--frames", "speech", e)))
        return false;
    if (r->hidden < 0) r->hidden = r->like->hidden;
    if (r->sequence < 0) r->sequence = r->like->sequence;
    if (r->layers < 0) r->layers = r->like->layers;
    if (r->frames < 0) r->frames = BENCH_NET_FRAMES;
    if (r->batch.count > 0) return true;
    if (images)
        r->batch = (struct option_numbers){{32, 128}, 2};
    else if (speech)
        r->batch = (struct option_numbers){{2, 16}, 2};
    else
        r->batch = (struct option_numbers){{r->like->batch}, 1};
    return true;
}

bool bench_net_parse(struct bench_net_request *r, int argc, char **argv, struct err *e) {
    option_defaults(&net_options, r);
    return option_parse(&net_options, r, NULL, argc, argv, 1, e) && settle(r, e);
}
