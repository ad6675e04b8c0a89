/* options_resolve.c: what options mean together: defaults that depend on other options, and combinations that would be
 * without effect or contradict each other, which are the user's mistakes. See options_resolve in options.h. */
#include <math.h>
#include <string.h>

#include "base/table.h"
#include "cli/options/options.h"
#include "cli/options/target_text.h"

static bool is_one_of(const char *name, const char *const *names) {
    while (*names && strcmp(*names, name) != 0) names++;
    return *names != NULL;
}
#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Is it a parameter of an algorithm, or of a part of one? Beside --algo auto such an option is used if an algorithm
 * that reads it is chosen. All other options say how to train; --algo auto changes none of them. */
static bool is_parameter(const char *name) {
    return options_is_own(option_find(&train_options, name, strlen(name))) ||
           is_one_of(name, NAMES("select", "audit", "wire", "density", "density-warmup", "dense-steps", "overlap-bytes",
                                 "ranks-per-node"));
}

/* Options that change how an exchange works. Beside --algo auto only algorithms that can work like that may be chosen.
 * Beside an algorithm that was named and has no use for it, such an option is ignored, as a parameter is. */
static bool is_manner(const char *name) {
    return is_one_of(name, NAMES("select-scope", "dense-slices", "log-xi", "overlap", "average-every", "outer-lr",
                                 "outer-momentum"));
}

static bool algo_is_named(const struct options *o) {
    return options_given(o, "algo") && !options_auto(o);
}

/* An option without effect is refused: the user expects something else to run than will. But a named algorithm ignores
 * options of other algorithms, so that a loop over algorithms can give the same options to all. */
static bool refuse_if_given(struct options *o, const char *name, const char *why, struct err *e) {
    if (!options_given(o, name)) return true;
    bool of_exchange = is_parameter(name) || is_manner(name);
    if (o->lenient ? is_parameter(name) : of_exchange && algo_is_named(o)) {
        options_reset(o, name);
        if (!o->lenient) options_ignore(o, name);
        return true;
    }
    if (of_exchange && !options_given(o, "algo"))
        return err_set(e, "--%s has no effect %s; name another --algo than this, the default, or leave it out", name,
                       why);
    return err_set(e, "--%s has no effect %s; leave it out", name, why);
}

static void fill(double *value, double standard) {
    if (isnan(*value)) *value = standard;
}

/* Refuses any of these options where `meant` is false: they have an effect only together with something else. */
static bool only_where(struct options *o, bool meant, const char *const *names, const char *why, struct err *e) {
    for (; !meant && *names; names++)
        if (!refuse_if_given(o, *names, why, e)) return false;
    return true;
}

static bool check_selector(struct options *o, const struct exchange_ops *x, struct err *e) {
    char why[128];
    snprintf(why, sizeof why, "with --algo %s, which selects and sends in its own way", x->name);
    if (!only_where(o, x->selects, NAMES("select", "audit"), why, e)) return false;
    if ((x->own_parts || !x->selects) && o->select_scope == SCOPE_LAYER)
        return err_set(
            e, "--select-scope layer cannot be combined with --algo %s, which selects in %s; use another algorithm",
            x->name, x->own_parts ? "parts of the gradient of its own" : "its own way");
    if (x->selects && o->select < 0) options_set(o, "select", x->default_select);
    return true;
}

/* Formats that x does not take are refused; with --algo auto only those count that somebody takes. */
static bool check_wire(struct options *o, const struct exchange_ops *x, struct err *e) {
    const struct wire_ops *wire = wires[o->wire];
    char why[192];
    if (exchange_takes(x, wire)) return true;
    snprintf(why, sizeof why, "with --algo %s, which %s", x->name,
             x->drifts                ? "exchanges no gradients"
             : x->sparse              ? "selects and sends in its own way"
             : x->outer && !x->halves ? "sends in its own way"
             : x->halves              ? "sends dense values: it takes bf16 and fp16"
                                      : "sends every entry in its own way");
    return refuse_if_given(o, "wire", why, e);
}

/* Of what is rounded off something must be rounded off. */
static bool check_feedback(struct options *o, const struct exchange_ops *x, struct err *e) {
    return only_where(o, !x->halves || wires[o->wire]->pack, NAMES("feedback"),
                      "without --wire bf16 or fp16: nothing is rounded off", e);
}

/* Of residuals there must be some. */
static bool check_residuals(struct options *o, const struct exchange_ops *x, struct err *e) {
    const struct option_values own = options_own(o);
    char why[96];
    snprintf(why, sizeof why, "with --algo %s, which keeps no residual", x->name);
    return only_where(o, exchange_keeps(x, &own, wires[o->wire]), NAMES("resume-residuals"), why, e);
}

/* Refuses options that the chosen algorithm and selector do not declare. */
static bool check_own(struct options *o, const struct exchange_ops *x, struct err *e) {
    for (size_t i = 0; i < train_options.rows; i++) {
        const struct option_row *row = &train_options.row[i];
        char readers[128], why[160];
        if (!options_is_own(row) || exchange_reads(x, options_selector(o), row->name)) continue;
        exchange_readers(row->name, readers, sizeof readers);
        snprintf(why, sizeof why, "without %s", readers);
        if (!refuse_if_given(o, row->name, why, e)) return false;
    }
    return true;
}

static bool check_exchange(struct options *o, struct err *e) {
    const struct exchange_ops *x = options_exchange(o);
    struct density_schedule d = {.target = o->density};
    char why[96];
    snprintf(why, sizeof why, "with --algo %s, which %s", x->name,
             exchange_of_gradients(x) ? "sends every entry" : "exchanges no gradients");
    if (!only_where(o, x->sparse,
                    NAMES("density", "density-warmup", "dense-slices", "select", "select-scope", "audit",
                          "local-update", "momentum-correction", "momentum-masking", "fold-lr", "log-xi"),
                    why, e) ||
        !only_where(o, (x->sparse || x->rounds) && !x->outer, NAMES("dense-steps"), why, e))
        return false;
    snprintf(why, sizeof why, "with --algo %s, which %s", x->name,
             exchange_of_gradients(x) ? "overlaps by itself" : "exchanges no gradients");
    bool layers = o->overlap == OVERLAP_LAYERS;
    if (layers && (x->begin || !exchange_of_gradients(x))) {
        if (!refuse_if_given(o, "overlap", why, e)) return false;
        layers = false;
    }
    return check_selector(o, x, e) && check_wire(o, x, e) && check_own(o, x, e) && check_feedback(o, x, e) &&
           check_residuals(o, x, e) &&
           only_where(o, x->by_node, NAMES("ranks-per-node"), "without an algorithm that goes by nodes", e) &&
           only_where(o, layers || x->begin, NAMES("overlap-bytes"), "without --overlap layers or dense-ovlp", e) &&
           (!x->sparse || density_parse_warmup(o->density_warmup, &d, e));
}

/* "without --local-update or --algo fedavg or ...": the rows between whose sums replicas drift. */
static const char *drifters(char *why, size_t size) {
    size_t used = (size_t)snprintf(why, size, "without --local-update");
    for (size_t i = 0; exchanges[i] && used < size; i++)
        if (!exchange_of_gradients(exchanges[i]))
            used += (size_t)snprintf(why + used, size - used, " or --algo %s", exchanges[i]->name);
    return why;
}

/* Rates of the outer step: the row's own unless given. */
static bool check_outer(struct options *o, const struct exchange_ops *x, struct err *e) {
    char why[128] = "without";
    for (size_t i = 0, count = 0; exchanges[i]; i++) {
        if (!exchanges[i]->outer) continue;
        size_t used = strlen(why);
        snprintf(why + used, sizeof why - used, "%s --algo %s", count++ ? " or" : "", exchanges[i]->name);
    }
    if (!only_where(o, x->outer, NAMES("outer-lr", "outer-momentum"), why, e)) return false;
    if (!x->outer) return true;
    fill(&o->outer.rate, x->rounds_of.rate);
    fill(&o->outer.momentum, x->rounds_of.momentum);
    return true;
}

/* Averages of the parameters, and what they forbid. */
static bool check_average(struct options *o, struct err *e) {
    const struct exchange_ops *x = options_exchange(o);
    char why[128];
    if (!check_outer(o, x, e)) return false;
    if (!only_where(o, options_drift(o), NAMES("average-every"), drifters(why, sizeof why), e)) return false;
    if (!options_drift(o)) return true;
    if (o->average_every < 0) o->average_every = exchange_of_gradients(x) ? 500 : x->rounds_of.steps;
    const bool by_node = o->local_update && x->by_node && !o->lenient; /* the ranks of a node can always be compared */
    if (o->check_replicas % o->average_every != 0 && !by_node)
        return err_set(e,
                       "--check-replicas %lld: the replicas differ between averages; take a multiple of "
                       "--average-every %lld",
                       (long long)o->check_replicas, (long long)o->average_every);
    return true;
}

/* u is the sum of what the ranks have selected. */
static bool sends_as_selected(const struct exchange_ops *x) {
    return x->sends_all && !x->keeps_k;
}

/* Selected entries are those of algorithms in which a rank sends all that it selected, as it selected it. */
static bool check_record(struct options *o, struct err *e) {
    const struct exchange_ops *x = options_exchange(o);
    char names[OPTION_TEXT_MAX] = "";
    if (!only_where(o, o->record[0], NAMES("record-every", "record-what"), "without --record", e)) return false;
    if (!options_record_selected(o) || (x && sends_as_selected(x))) return true;
    for (size_t i = 0; exchanges[i]; i++)
        if (sends_as_selected(exchanges[i])) names_add(names, sizeof names, exchanges[i]->name);
    return err_set(e,
                   "--record-what selected cannot be combined with --algo %s: it needs one that sends all that a rank "
                   "has selected: %s",
                   options_choice(o, "algo"), names);
}

static bool check_target(const struct options *o, struct err *e) {
    struct target_wish wish;
    if (!target_parse(o->target, &wish, e)) return false;
    if (!wish.wanted || !isinf(o->eval_every)) return true;
    return err_set(e, "--target %.100s is looked for in evaluations, and --eval-every never has none; give one of them",
                   o->target);
}

static bool check_output(struct options *o, struct err *e) {
    if (!only_where(o, o->out[0] || o->resume[0], NAMES("checkpoint-every", "keep", "keep-every"), "without --out",
                    e) ||
        !only_where(o, o->resume[0], NAMES("resume-residuals"), "without --resume", e))
        return false;
    if (!check_record(o, e) || !check_target(o, e)) return false;
    if (o->quiet && options_given(o, "progress") && o->progress != PROGRESS_NONE)
        return err_set(e, "--quiet and --progress %s contradict each other; give one of them",
                       options_choice(o, "progress"));
    return true;
}

/* Is there such a preset? */
static bool resolve_preset(struct options *o, const struct model_ops *model, struct err *e) {
    char names[OPTION_TEXT_MAX];
    if (!model->presets) return true;
    if (!o->preset[0]) strcpy(o->preset, model->presets->name);
    if (model_preset(model, o->preset)) return true;
    model_preset_names(model, names, sizeof names);
    return err_set(e, "--preset has no \"%.100s\" for model %s; there are: %s", o->preset, model->name, names);
}

static void take(int64_t *value, int64_t standard) {
    if (*value < 0 && standard > 0) *value = standard;
}

enum { SAMPLES = 3 }; /* that a recogniser of speech shows */

/* What only some models have. */
static bool resolve_model(struct options *o, const struct model_ops *model, struct err *e) {
    const bool streams = model->input == MODEL_TOKENS && !model->windows;
    char why[96];
    snprintf(why, sizeof why, "with --model %s", model->name);
    if (!only_where(o, model->reference.hidden > 0, NAMES("hidden"), why, e) ||
        !only_where(o, model->presets != NULL, NAMES("preset"), why, e) ||
        !only_where(o, model->reference.layers > 0, NAMES("layers"), why, e) ||
        !only_where(o, model->reference.heads > 0, NAMES("heads"), why, e) ||
        !only_where(o, streams, NAMES("bptt"), why, e) || !only_where(o, model->windows, NAMES("context"), why, e) ||
        !only_where(o, model->windows && model->input == MODEL_TOKENS, NAMES("eval-samples"), why, e) ||
        !only_where(o, model->input == MODEL_SPEECH, NAMES("samples"), why, e) ||
        !only_where(o, model->dropout != NULL, NAMES("dropout"), why, e) ||
        !only_where(o, model->input == MODEL_IMAGES || model->input == MODEL_SPEECH, NAMES("no-augment"), why, e) ||
        !resolve_preset(o, model, e))
        return false;
    const struct model_reference *ref = options_reference(o);
    take(&o->hidden, ref->hidden);
    take(&o->layers, ref->layers);
    take(&o->heads, ref->heads);
    take(model->windows ? &o->context : &o->bptt, ref->sequence);
    if (model->windows && model->input == MODEL_TOKENS && o->eval_samples < 0) o->eval_samples = ref->samples;
    if (model->input == MODEL_SPEECH && o->samples < 0) o->samples = SAMPLES;
    if (isnan(o->dropout) && model->dropout) o->dropout = model->dropout(ref, (int)o->hidden);
    return true;
}

/* The optimiser that was asked for, or the model's. */
static const struct optimiser_ops *resolve_optimiser(struct options *o, const struct model_reference *ref) {
    if (o->optimiser < 0) options_set(o, "optimiser", ref->optimiser ? ref->optimiser : "sgd");
    return optimisers[o->optimiser];
}

/* Rates and decay of a model go with one optimiser: is it this one? */
static bool is_reference(const struct model_reference *ref, const struct optimiser_ops *method) {
    return !ref->optimiser || strcmp(ref->optimiser, method->name) == 0;
}

static double reference_rate(const struct model_reference *ref, const struct optimiser_ops *method) {
    if (ref->optimiser && is_reference(ref, method)) return ref->lr;
    if (method->lr > 0) return method->lr;
    return ref->optimiser ? ref->sgd_lr : ref->lr;
}

static bool has_momentum(const struct optimiser_ops *method) {
    return option_declares(&method->options, "momentum");
}

/* Refuses options that only other optimisers declare. */
static bool check_method(struct options *o, const struct optimiser_ops *method, struct err *e) {
    for (size_t i = 0; optimisers[i]; i++)
        for (size_t k = 0; k < optimisers[i]->options.rows; k++) {
            const char *name = optimisers[i]->options.row[k].name;
            char why[128] = "without --optimiser ";
            if (option_declares(&method->options, name)) continue;
            for (size_t j = 0, used; optimisers[j]; j++) {
                if (!option_declares(&optimisers[j]->options, name)) continue;
                used = strlen(why);
                snprintf(why + used, sizeof why - used, "%s%s", j > i ? " or " : "", optimisers[j]->name);
            }
            if (!refuse_if_given(o, name, why, e)) return false;
        }
    return true;
}

/* In epochs or in steps: what is asked for of one, be it none, leaves none of the other. */
static bool resolve_warmup(struct options *o, const struct model_reference *ref, struct err *e) {
    const bool none = isnan(o->lr_warmup) && o->lr_warmup_steps < 0;
    if (none && ref->lr_warmup_steps > 0) o->lr_warmup_steps = ref->lr_warmup_steps;
    fill(&o->lr_warmup, o->lr_warmup_steps < 0 ? ref->lr_warmup : 0);
    if (o->lr_warmup_steps < 0) o->lr_warmup_steps = 0;
    const bool both = options_given(o, "lr-warmup") && options_given(o, "lr-warmup-steps");
    if (!both && (o->lr_warmup <= 0 || o->lr_warmup_steps == 0)) return true;
    return err_set(e, "--lr-warmup and --lr-warmup-steps both set the warm-up of the learning rate; give one of them");
}

static bool check_schedule(const struct options *o, struct err *e) {
    struct lr_schedule schedule = {.warmup_steps = (size_t)o->lr_warmup_steps};
    return lr_parse(o->lr_schedule, o->epochs, &schedule, e) && lr_complete(&schedule, e);
}

/* The settings with which its paper trains the model, where the user says nothing else. */
static bool resolve_training(struct options *o, const struct model_reference *ref, struct err *e) {
    const struct optimiser_ops *method = resolve_optimiser(o, ref);
    if (!check_method(o, method, e)) return false;
    if (o->batch < 0) o->batch = ref->batch;
    if (!o->lr_schedule[0]) strcpy(o->lr_schedule, ref->lr_schedule);
    fill(&o->lr, reference_rate(ref, method));
    if (!resolve_warmup(o, ref, e)) return false;
    fill(&o->method.momentum, has_momentum(method) ? ref->momentum : 0);
    fill(&o->method.beta2, is_reference(ref, method) && ref->beta2 > 0 ? ref->beta2 : 0.999);
    fill(&o->method.weight_decay, is_reference(ref, method) ? ref->weight_decay : 0);
    fill(&o->clip_norm, ref->clip_norm);
    if (o->steps < 0 && isnan(o->epochs) && ref->steps > 0) o->steps = ref->steps;
    fill(&o->epochs, ref->epochs);
    return true;
}

/* Signs clipped to the norm of gradients would leave steps shorter by the root of the number of parameters. */
static bool check_clip_of_signs(struct options *o, const struct exchange_ops *x, struct err *e) {
    const struct option_values own = options_own(o);
    const char *signs = x->signs ? x->signs(&own) : NULL;
    if (!signs || o->clip_at != CLIP_UPDATE) return true;
    if (!options_given(o, "clip-norm")) o->clip_norm = 0; /* the model's */
    return o->clip_norm <= 0 ||
           err_set(
               e,
               "--clip-norm has nothing to clip where --algo %s gives the signs of what it sums (%s); leave it out, or "
               "take --clip-at local for what goes into the sum",
               x->name, signs);
}

static bool check_clip(struct options *o, struct err *e) {
    const struct exchange_ops *x = options_exchange(o);
    if (!check_clip_of_signs(o, x, e) || !only_where(o, o->clip_norm > 0, NAMES("clip-at"), "without --clip-norm", e))
        return false;
    if (!exchange_of_gradients(x) && !refuse_if_given(o, "clip-at", "with an algorithm that exchanges no gradients", e))
        return false;
    bool early = x->begin || o->overlap == OVERLAP_LAYERS;
    if (early && options_clip_local(o))
        return err_set(e,
                       "--clip-at local needs the whole gradient before any of it is exchanged, but %s sends while "
                       "backward goes on; take --clip-at update, or no overlap",
                       x->begin ? x->name : "--overlap layers");
    return true;
}

/* DGC's momentum on each rank. */
static bool check_correction(struct options *o, struct err *e) {
    const struct exchange_ops *x = options_exchange(o);
    if (!only_where(o, o->momentum_correction, NAMES("momentum-masking"), "without --momentum-correction", e))
        return false;
    if (!o->momentum_correction) return true;
    if (!has_momentum(optimisers[o->optimiser]) || !(o->method.momentum > 0))
        return err_set(e,
                       "--momentum-correction moves the momentum of SGD before the exchange: it needs --optimiser sgd "
                       "with --momentum above 0");
    if (o->local_update)
        return err_set(e, "--momentum-correction and --local-update cannot be combined: the local step would apply the "
                          "momentum twice; leave one out");
    if (o->momentum_masking && x->by_node)
        return err_set(e,
                       "--momentum-masking cannot be combined with --algo %s, which adds up the gradients of a node "
                       "before it selects, so that no rank knows what of its own was delivered; use another algorithm",
                       x->name);
    return true;
}

static bool resolve_data(struct options *o, const struct model_ops *model, struct err *e) {
    const char *where;
    if (!o->data[0]) strcpy(o->data, options_reference(o)->data);
    const struct dataset_ops *data = options_dataset(o->data, &where);
    if (!data) {
        char names[OPTION_TEXT_MAX] = "";
        TABLE_NAMES(datasets, names);
        return err_set(e, "--data has no \"%.100s\"; there are: %s", o->data, names);
    }
    static const enum data_kind wanted[] = {[MODEL_IMAGES] = DATA_IMAGES,
                                            [MODEL_TOKENS] = DATA_TEXT,
                                            [MODEL_PAIRS] = DATA_PAIRS,
                                            [MODEL_SPEECH] = DATA_SPEECH};
    static const char *const take[] = {[MODEL_IMAGES] = "take --data cifar10 or synthetic, or another --model",
                                       [MODEL_TOKENS] =
                                           "take --data ptb, text-char or synthetic-text, or another --model",
                                       [MODEL_PAIRS] = "take --data wiki, or another --model",
                                       [MODEL_SPEECH] = "take --data an4 or speech, or another --model"};
    static const char *const holds[] = {
        [DATA_IMAGES] = "images", [DATA_TEXT] = "text", [DATA_PAIRS] = "pairs of texts", [DATA_SPEECH] = "speech"};
    if (data->kind == wanted[model->input]) return true;
    return err_set(e, "model %s takes %s, but --data %s holds %s: %s", model->name, model_input_names[model->input],
                   data->name, holds[data->kind], take[model->input]);
}

static bool resolve_exchange(struct options *o, struct err *e) {
    return check_clip(o, e) && check_exchange(o, e) && check_average(o, e) && check_correction(o, e);
}

/* Is there a row that goes with these options? What all refuse for the same reason is refused in their words. */
static bool check_auto(const struct options *o, struct err *e) {
    struct density_schedule d = {.target = o->density};
    struct err first = {0};
    const char *of = NULL;
    bool same = true;
    if (!density_parse_warmup(o->density_warmup, &d, e)) return false;
    for (size_t i = 0; exchanges[i]; i++) {
        struct options with;
        struct err why = {0};
        if (options_candidate(o, exchanges[i], NULL, &with, &why)) return true;
        if (exchange_apart(exchanges[i])) continue; /* not for these options */
        same &= !of || strcmp(why.text, first.text) == 0;
        if (!of || exchanges[i]->sparse) first = why, of = exchanges[i]->name;
    }
    return same ? err_set(e, "%s", first.text)
                : err_set(e, "--algo auto finds no algorithm for these options; of %s: %.300s", of, first.text);
}

/* What goes with the model of an exchange; what was given may have been ignored. */
static void fill_exchange(struct options *o) {
    const struct model_reference *ref = options_reference(o);
    fill(&o->density, ref->density);
    if (!o->density_warmup[0]) strcpy(o->density_warmup, ref->density_warmup ? ref->density_warmup : "gtopk");
}

static bool resolve(struct options *o, struct err *e) {
    const struct model_ops *model = options_model(o);
    if (options_given(o, "steps") && options_given(o, "epochs"))
        return err_set(e, "--steps and --epochs both set the length of the run; give one of them");
    if (!resolve_model(o, model, e)) return false;
    fill_exchange(o);
    return resolve_data(o, model, e) && resolve_training(o, options_reference(o), e) && check_schedule(o, e) &&
           check_output(o, e) && (options_auto(o) ? check_auto(o, e) : resolve_exchange(o, e));
}

bool options_resolve(struct options *o, struct err *e) {
    if (!resolve(o, e)) return false;
    fill_exchange(o);
    return true;
}

/* Squares of sums that have lost their magnitudes are no variance to divide by, unless one is held from before. */
static bool divides_by_variance(const struct options *o) {
    return option_declares(&optimisers[o->optimiser]->options, "freeze-variance-after") &&
           o->method.variance_steps == 0;
}

bool options_candidate(const struct options *o, const struct exchange_ops *x, const struct wire_ops *wire,
                       struct options *out, struct err *e) {
    *out = *o;
    options_set(out, "algo", x->name);
    if (wire) options_set(out, "wire", wire->name);
    if (!exchange_of_gradients(x)) return err_set(e, "the replicas of %s drift", x->name);
    if (x->blind) return err_set(e, "%s does not send the largest entries", x->name);
    if (x->low_rank) return err_set(e, "%s sends matrices of a rank that is for the user to choose", x->name);
    if (!x->conserves) return err_set(e, "%s loses gradient", x->name);
    out->lenient = true;
    bool good = options_resolve(out, e);
    out->lenient = false;
    if (good && x->flattens && divides_by_variance(out))
        return err_set(e, "%s sends signs, and %s wants magnitudes", x->name, optimisers[out->optimiser]->name);
    const struct option_values own = options_own(out);
    const char *loses = good && x->loses ? x->loses(&own) : NULL;
    if (loses) return err_set(e, "with %s %s loses gradient", loses, x->name);
    return good;
}

void options_drop_unused(struct options *o, bool chosen) {
    struct err ignored = {0};
    o->lenient = chosen;
    if (check_exchange(o, &ignored)) check_average(o, &ignored);
    o->lenient = false;
}
