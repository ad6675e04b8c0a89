/* cli_options.c: the table of options: every row through parsing, echo, help and resuming; every kind of mistake. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/options/options.h"
#include "comm/algorithms/oktopk.h"

enum { WORDS = 64 };

/* Parses and resolves a command line given as one text; the error, or "". */
static const char *parse(struct options *o, const char *line) {
    static struct err e;
    static char copy[1024];
    char *argv[WORDS];
    int argc = 0;
    e.text[0] = '\0';
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) argv[argc++] = word;
    options_default(o);
    if (options_parse(o, argc, argv, 0, &e)) options_resolve(o, &e);
    return e.text;
}

static void says(const char *line, const char *part) {
    struct options o;
    const char *text = parse(&o, line);
    if (!strstr(text, part)) fail_msg("%s: \"%s\" does not say \"%s\"", line, text, part);
    if (strchr(text, '\n')) fail_msg("%s: more than one line", line);
}

static void defaults_are_the_reference_configuration(void **state) {
    (void)state;
    struct options o;
    assert_string_equal(parse(&o, "--algo gtopk"), "");
    assert_int_equal(o.batch, 128);
    assert_true(o.lr == 0.1 && o.method.momentum == 0.9 && o.method.weight_decay == 1e-4 && o.density == 0.001 &&
                o.epochs == 140);
    assert_string_equal(options_choice(&o, "select"), "exact");
    assert_int_equal(o.steps, -1);
    assert_false(o.quiet);
}

static void values_arrive(void **state) {
    (void)state;
    struct options o;
    assert_string_equal(
        parse(&o, "--algo=topka --density 0.02 --steps=10 --batch 7 --quiet --data synthetic:100x20 --seed 9"), "");
    assert_string_equal(options_choice(&o, "algo"), "topka");
    assert_true(o.density == 0.02 && o.quiet);
    assert_int_equal(o.steps, 10);
    assert_int_equal(o.batch, 7);
    assert_int_equal(o.seed, 9);
    const char *where;
    assert_non_null(options_dataset(o.data, &where));
    assert_string_equal(where, "100x20");
    assert_true(options_given(&o, "steps") && !options_given(&o, "lr"));
    assert_string_equal(parse(&o, "--eval-every never"), "");
    assert_true(isinf(o.eval_every));
    assert_string_equal(parse(&o, "--seed 1000000000000000"), "");
    assert_true(o.seed == 1000000000000000);
}

static void mistakes_get_one_line(void **state) {
    (void)state;
    says("--algo bogus", "--algo has no \"bogus\"; there are: dense, ");
    says("--algos dense", "did you mean --algo?");
    says("--xyzzyplugh 1", "there is no option --xyzzyplugh");
    says("dense", "is not an option");
    says("-np 4", "is not an option");
    says("--algo", "wants a value");
    says("--quiet=1", "takes no value");
    says("--lr x", "wants a number");
    says("--lr 0.1x", "wants a number");
    says("--lr nan", "wants a number");
    says("--lr 0", "out of range");
    says("--lr -1", "out of range");
    says("--lr inf", "out of range");
    says("--lr never", "wants a number");
    says("--eval-every inf", "out of range");
    says("--eval-every Never", "wants a number");
    says("--batch 0", "out of range");
    says("--batch 1.5", "whole number");
    says("--batch 99999999999999999999999", "out of range");
    says("--density 0", "must be above 0 and at most 1");
    says("--density 1.01", "out of range");
    says("--seed -1", "out of range: it must be at least 0");
    says("--seed 9223372036854775809", "it must be at least 0 and at most 1000000000000000");
    says("--seed 18446744073709551616", "it must be at least 0 and at most 1000000000000000");
    says("--seed 1000000000000001", "it must be at least 0 and at most 1000000000000000");
    says("--epochs 0", "out of range: it must be above 0");
    says("--epochs 1e18", "it must be above 0 and at most 1000000000");
    says("--steps 1e18", "it must be at least 1 and at most 1000000000000000");
    says("--lr 0.1 --lr 0.2", "given twice");
    says("--steps 5 --epochs 5", "give one of them");
    says("--density 0.01", "--density has no effect with --algo dense, which sends every entry; name another --algo");
    says("--density-warmup none", "has no effect");
    says("--gtopk-residual paper", "--gtopk-residual has no effect without --algo gtopk; name another --algo");
    says("--quiet --progress bar", "contradict");
    says("--checkpoint-every 5", "no effect without --out");
    says("--keep 5", "no effect without --out");
    says("--keep-every 5", "no effect without --out");
    says("--keep 0 --out x", "out of range");
    says("--data imagenet", "--data has no \"imagenet\"; there are: an4, cifar10");
    says("--lr-schedule sometimes", "sometimes");
    says("--device abacus", "there are: auto, cpu, cuda");
}

static void exchange_mistakes(void **state) {
    (void)state;
    says("--algo oktopk --oktopk-thresholds old", "there are: guarded, paper");
    says("--algo gaussiank --gaussian-adjust maybe", "--gaussian-adjust has no \"maybe\"; there are: on, off");
    says("--algo oktopk --oktopk-off balance,speed",
         "--oktopk-off has no \"speed\"; it takes none, or some of regions");
    says("--algo oktopk --oktopk-off balance,", "--oktopk-off has no \"\"");
    says("--algo oktopk --tau 0", "out of range");
    says("--algo dense --local-update", "--local-update has no effect with --algo dense");
    says("--algo topka --local-update --check-replicas 30", "take a multiple of --average-every 500");
    says("--algo auto --local-update --check-replicas 30", "take a multiple of --average-every 500");
    says("--algo fedavg --check-replicas 30", "take a multiple of --average-every 20");
    says("--algo diloco --check-replicas 30", "take a multiple of --average-every 500");
    says("--outer-lr 0.5", "--outer-lr has no effect without --algo diloco or --algo sparseloco");
    says("--algo auto --outer-momentum 0.5", "--outer-momentum has no effect without --algo diloco");
    says("--algo sparseloco --check-replicas 20", "take a multiple of --average-every 30");
    says("--residual-decay 0.5", "--residual-decay has no effect without --algo sparseloco");
    says("--algo demo --demo-k 0", "out of range");
    says("--algo demo --demo-k 4097", "out of range");
    says("--algo demo --demo-decay 1.5", "out of range");
    says("--algo demo --demo-sign maybe", "--demo-sign has no \"maybe\"; there are: on, off");
    says("--demo-k 5", "--demo-k has no effect without --algo demo");
    says("--algo diloco --outer-lr 0", "out of range");
    says("--algo diloco --outer-momentum 1", "out of range");
    says("--algo diloco --local-update", "--local-update has no effect with --algo diloco, which exchanges no grad");
    says("--algo diloco --clip-norm 1 --clip-at local", "--clip-at has no effect with an algorithm that exchanges no");
    says("--algo hitopk --ranks-per-node 0", "out of range");
    says("--algo gtopk --record-every 2", "without --record");
    says("--algo topka --record-what selected", "--record-what has no effect without --record");
    says("--algo gtopk --record x --record-what selected", "--algo gtopk: it needs one that sends all that a rank");
    says("--algo topka --record x --record-what all", "there are: gradients, selected");
    says("--algo gtopk --wire zip", "--wire has no \"zip\"; there are: coo32");
    says("--algo gtopk --overlap sometimes", "there are: none, layers");
}

/* A loop over algorithms may give the same options to all: each is then as if it had been given its own alone. */
static void what_has_no_effect_is_ignored(void **state) {
    (void)state;
    static struct options o, own;
    static const struct {
        const char *line, *own, *ignored;
    } cases[] = {
        {"--algo dense --density 0.1", "--algo dense", "--density"},
        {"--algo dense --wire packed --density 0.1 --select exact", "--algo dense", "--select, --density and --wire"},
        {"--algo dense --select-scope layer --dense-slices 1d --log-xi 2", "--algo dense",
         "--select-scope, --dense-slices and --log-xi"},
        {"--algo topka --gaussian-adjust off", "--algo topka", "--gaussian-adjust"},
        {"--algo gaussiank --select exact --gaussian-adjust on", "--algo gaussiank --select exact",
         "--gaussian-adjust"},
        {"--algo topka --gtopk-residual paper", "--algo topka", "--gtopk-residual"},
        {"--algo topka --tau 5 --tau-prime 5 --oktopk-off balance", "--algo topka",
         "--tau-prime, --tau and --oktopk-off"},
        {"--algo topka --select reuse --tau-prime 5 --tau 3", "--algo topka --select reuse --tau-prime 5", "--tau"},
        {"--algo micro --select exact --wire packed --density 0.1", "--algo micro --wire packed --density 0.1",
         "--select"},
        {"--algo gtopk --ranks-per-node 2 --overlap-bytes 100", "--algo gtopk", "--ranks-per-node and --overlap-bytes"},
        {"--algo gtopk --average-every 5", "--algo gtopk", "--average-every"},
        {"--algo fedavg --average-every 5 --density 0.01", "--algo fedavg --average-every 5", "--density"},
        {"--algo fedavg --overlap layers", "--algo fedavg", "--overlap"},
        {"--algo fedavg --outer-lr 0.5", "--algo fedavg", "--outer-lr"},
        {"--algo diloco --overlap layers --density 0.1", "--algo diloco", "--density and --overlap"},
        {"--algo sparseloco --wire fp16 --select exact", "--algo sparseloco", "--select and --wire"},
        {"--algo sparseloco --dense-steps 9", "--algo sparseloco", "--dense-steps"},
        {"--algo topka --demo-k 5 --demo-sign off", "--algo topka", "--demo-k and --demo-sign"},
        {"--algo diloco --residual-decay 0.5", "--algo diloco", "--residual-decay"},
        {"--algo dense-ovlp --overlap layers --overlap-bytes 99", "--algo dense-ovlp --overlap-bytes 99", "--overlap"},
        {"--model lstm --algo dense --density 0.1", "--model lstm --algo dense", "--density"},
        {"--algo gtopk --density 0.1 --wire packed", "--algo gtopk --density 0.1 --wire packed", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char ignored[OPTION_TEXT_MAX];
        assert_string_equal(parse(&own, cases[i].own), "");
        assert_string_equal(parse(&o, cases[i].line), "");
        options_ignored(&o, ignored, sizeof ignored);
        assert_string_equal(ignored, cases[i].ignored);
        for (enum option_rule rule = RULE_RUN; rule <= RULE_LOCAL; rule++) {
            char *text = options_text(&o, rule), *alone = options_text(&own, rule);
            assert_string_equal(text, alone);
            mem_free(text);
            mem_free(alone);
        }
    }
}

static void every_algorithm_takes_all_parameters(void **state) {
    (void)state;
    static struct options o;
    char line[1024];
    for (size_t i = 0; exchanges[i]; i++) {
        snprintf(line, sizeof line,
                 "--algo %s --select exact --density 0.02 --density-warmup 0.5 --dense-steps 3 --dense-slices bias "
                 "--wire packed --tau 5 --tau-prime 7 --oktopk-bucket 3 --oktopk-off balance --gtopk-residual paper "
                 "--ranks-per-node 1 --overlap layers --overlap-bytes 100 --average-every 3 --audit 2 --log-xi 2",
                 exchanges[i]->name);
        assert_string_equal(parse(&o, line), "");
    }
}

static const struct exchange_ops *row_named(const char *name) {
    for (size_t i = 0; exchanges[i]; i++)
        if (strcmp(exchanges[i]->name, name) == 0) return exchanges[i];
    fail_msg("no row %s", name);
    return NULL;
}

/* The value of an option, as text. */
static const char *value(const struct options *o, const char *name) {
    static char text[OPTION_TEXT_MAX];
    option_value(option_find(&train_options, name, strlen(name)), o, text);
    return text;
}

static void exchange_options_arrive(void **state) {
    (void)state;
    struct options o;
    struct exchange_setup setup = {0};
    struct oktopk_use use;
    assert_string_equal(
        parse(&o, "--algo oktopk --tau 7 --tau-prime 3 --oktopk-bucket 2 --oktopk-off rotation,balance"), "");
    assert_string_equal(options_choice(&o, "select"), "reuse");
    options_setup(&o, &setup);
    option_take(&row_named("oktopk")->options, &use, &setup.options);
    assert_true(use.period == 3 && use.balance_period == 7 && use.bucket == 2);
    assert_true(use.off == (OKTOPK_NO_ROTATION | OKTOPK_NO_BALANCE) && use.thresholds == REUSE_GUARDED);
    assert_string_equal(parse(&o, "--algo oktopk --oktopk-thresholds paper --select exact"), "");
    options_setup(&o, &setup);
    option_take(&row_named("oktopk")->options, &use, &setup.options);
    assert_true(use.thresholds == REUSE_PAPER && use.period == 32);
    assert_string_equal(setup.wire->name, "coo32");
    assert_int_equal(setup.bucket_bytes, 4194304);
    assert_string_equal(parse(&o, "--algo topka --select reuse --tau-prime 128 --wire packed"), "");
    options_setup(&o, &setup);
    assert_string_equal(setup.wire->name, "packed");
    assert_string_equal(parse(&o, "--algo hitopk --ranks-per-node 2 --local-update --check-replicas 1"), "");
    assert_string_equal(parse(&o, "--algo gtopk --local-update"), "");
    assert_true(o.average_every == 500 && options_drift(&o));
    assert_string_equal(parse(&o, "--algo fedavg"), "");
    assert_true(o.average_every == 20 && options_drift(&o));
    assert_string_equal(parse(&o, "--algo diloco"), "");
    assert_true(o.average_every == 500 && options_drift(&o) && o.outer.rate == 0.7 && o.outer.momentum == 0.9);
    assert_string_equal(parse(&o, "--algo sparseloco"), "");
    assert_true(o.average_every == 30 && options_drift(&o) && o.outer.rate == 1 && o.outer.momentum == 0);
    assert_string_equal(parse(&o, "--algo diloco --average-every 30 --outer-lr 0.5 --outer-momentum 0"), "");
    assert_true(o.average_every == 30 && o.outer.rate == 0.5 && o.outer.momentum == 0);
    assert_string_equal(parse(&o, "--algo gtopk"), "");
    assert_false(options_drift(&o));
}

/* The models' papers give what the user leaves out; what is given stays. */
static void models_bring_their_settings(void **state) {
    (void)state;
    struct options o;
    assert_string_equal(parse(&o, "--model lstm"), "");
    assert_string_equal(o.data, "ptb");
    assert_string_equal(o.lr_schedule, "constant");
    assert_true(o.batch == 20 && o.hidden == 1500 && o.bptt == 35 && o.epochs == 40);
    assert_true(o.lr == 1 && o.method.momentum == 0.9 && o.method.weight_decay == 0 && o.clip_norm == 0.25 &&
                o.density == 0.005);
    assert_true(o.dropout == 0.65);
    assert_string_equal(parse(&o, "--model lstm --hidden 650 --data synthetic-text --lr 3 --clip-norm 0"), "");
    assert_string_equal(o.data, "synthetic-text");
    assert_true(o.hidden == 650 && o.dropout == 0.5 && o.lr == 3 && o.clip_norm == 0);
    assert_string_equal(parse(&o, "--model lstm --hidden 200"), "");
    assert_true(o.dropout == 0);
    assert_string_equal(parse(&o, "--model lstm --hidden 200 --dropout 0.2 --bptt 20"), "");
    assert_true(o.dropout == 0.2 && o.bptt == 20);
    assert_string_equal(parse(&o, "--model vgg16"), "");
    assert_string_equal(o.data, "cifar10");
    assert_string_equal(o.lr_schedule, "step:50%,75%");
    assert_true(o.batch == 128 && o.lr == 0.1 && o.method.weight_decay == 1e-4 && o.clip_norm == 0 && o.hidden == -1);
    assert_string_equal(parse(&o, "--optimiser adam"), "");
    assert_true(o.lr == 0.001 && o.method.beta1 == 0.9 && o.method.beta2 == 0.999 && o.method.epsilon == 1e-8);
    assert_string_equal(parse(&o, "--clip-norm 1 --clip-at local"), "");
    assert_true(options_clip_local(&o));
    assert_string_equal(parse(&o, "--clip-norm 1"), "");
    assert_false(options_clip_local(&o));
}

/* What goes with a preset, and with its optimiser alone. */
static void presets_bring_their_settings(void **state) {
    (void)state;
    struct options o;
    struct err e = {0};
    assert_string_equal(parse(&o, "--model gpt"), "");
    assert_string_equal(o.preset, "char-cpu");
    assert_string_equal(o.data, "text-char");
    assert_string_equal(o.lr_schedule, "cosine:0.1");
    assert_string_equal(options_choice(&o, "optimiser"), "adamw");
    assert_true(o.layers == 4 && o.heads == 4 && o.hidden == 128 && o.context == 64 && o.batch == 12 && o.bptt == -1);
    assert_true(o.steps == 2000 && o.lr_warmup_steps == 100 && o.lr_warmup == 0 && o.dropout == 0 &&
                o.eval_samples == 240);
    assert_true(o.lr == 1e-3 && o.method.beta2 == 0.99 && o.method.weight_decay == 0.1 && o.clip_norm == 1);
    assert_int_equal(options_sequence(&o), 64);
    assert_true(options_resolve(&o, &e) && o.steps == 2000); /* once more, and the same */
    assert_string_equal(parse(&o, "--model gpt --preset char --context 128 --heads 3"), "");
    assert_true(o.layers == 6 && o.heads == 3 && o.hidden == 384 && o.context == 128 && o.batch == 64 &&
                o.dropout == 0.2);
    assert_true(o.steps == 5000 && o.eval_samples == 12800);
    assert_string_equal(parse(&o, "--model gpt --preset gpt2 --dropout 0.1"), "");
    assert_true(o.layers == 12 && o.dropout == 0.1 && o.method.beta2 == 0.95);
    assert_string_equal(parse(&o, "--model gpt --epochs 3"), "");
    assert_true(o.steps == -1 && o.epochs == 3);
    assert_string_equal(parse(&o, "--model gpt --steps 7 --eval-samples 0"), "");
    assert_true(o.steps == 7 && o.eval_samples == 0);
    assert_string_equal(parse(&o, "--model gpt --optimiser sgd"), "");
    assert_true(o.lr == 0.3 && o.method.momentum == 0.9 && o.method.weight_decay == 0);
    assert_string_equal(parse(&o, "--model gpt --optimiser adam"), "");
    assert_true(o.lr == 1e-3 && o.method.beta2 == 0.999 && o.method.weight_decay == 0);
    assert_string_equal(parse(&o, "--model gpt --beta2 0.95 --weight-decay 0.01"), "");
    assert_true(o.method.beta2 == 0.95 && o.method.weight_decay == 0.01);
    assert_string_equal(parse(&o, ""), "");
    assert_string_equal(options_choice(&o, "optimiser"), "sgd");
    assert_int_equal(options_sequence(&o), 0);
    says("--model gpt --preset huge", "--preset has no \"huge\" for model gpt; there are: char-cpu, char, gpt2");
    says("--model gpt --bptt 20", "--bptt has no effect with --model gpt");
    says("--model lstm --context 20", "--context has no effect with --model lstm");
    says("--model lstm --layers 2", "--layers has no effect with --model lstm");
    says("--model lstm --eval-samples 2", "--eval-samples has no effect with --model lstm");
    says("--preset char", "--preset has no effect with --model resnet20");
    says("--model gpt --data cifar10", "model gpt takes text, but --data cifar10 holds images");
    says("--model gpt --momentum 0.9", "--momentum has no effect without --optimiser sgd");
    says("--model speech --heads 4", "--heads has no effect with --model speech; leave it out");
    says("--model speech --data ptb", "model speech takes speech, but --data ptb holds text");
}

/* In epochs or in steps; one turns the other off, which it never does to what was asked for. */
static void one_warmup_of_the_rate(void **state) {
    (void)state;
    struct options o;
    assert_string_equal(parse(&o, ""), "");
    assert_true(o.lr_warmup == 4 && o.lr_warmup_steps == 0);
    assert_string_equal(parse(&o, "--lr-warmup-steps 100"), "");
    assert_true(o.lr_warmup == 0 && o.lr_warmup_steps == 100);
    assert_string_equal(parse(&o, "--lr-warmup-steps 0"), "");
    assert_true(o.lr_warmup == 0 && o.lr_warmup_steps == 0);
    assert_string_equal(parse(&o, "--lr-warmup 2"), "");
    assert_true(o.lr_warmup == 2 && o.lr_warmup_steps == 0);
    says("--lr-warmup 2 --lr-warmup-steps 3", "--lr-warmup and --lr-warmup-steps both set the warm-up");
    says("--lr-warmup 0 --lr-warmup-steps 0", "--lr-warmup and --lr-warmup-steps both set the warm-up");
    says("--lr-warmup-steps -1", "out of range");
    says("--lr-warmup-steps 1.5", "1.5");
    says("--lr-schedule inverse-sqrt", "give --lr-warmup-steps N, 1 at least");
    says("--lr-schedule inverse-sqrt --lr-warmup-steps 0", "give --lr-warmup-steps N, 1 at least");
    assert_string_equal(parse(&o, "--lr-schedule inverse-sqrt --lr-warmup-steps 1"), "");
    assert_string_equal(parse(&o, "--lr-schedule cosine:0.1"), "");
    struct err e = {0};
    assert_string_equal(parse(&o, "--lr-warmup-steps 7"), "");
    assert_true(options_resolve(&o, &e) && o.lr_warmup == 0 && o.lr_warmup_steps == 7); /* once more, and the same */
    options_default(&o); /* as a checkpoint may bring them */
    o.lr_warmup = 1, o.lr_warmup_steps = 1;
    assert_false(options_resolve(&o, &e));
    e = (struct err){0};
    options_default(&o); /* of a time before there were any in steps */
    o.lr_warmup = 3;
    assert_true(options_resolve(&o, &e) && o.lr_warmup == 3 && o.lr_warmup_steps == 0);
}

static void model_mistakes(void **state) {
    (void)state;
    says("--model lstm --data synthetic", "model lstm takes text, but --data synthetic holds images");
    says("--data synthetic-text", "model resnet20 takes images, but --data synthetic-text holds text");
    says("--data an4", "model resnet20 takes images, but --data an4 holds speech");
    says("--model lstm --data speech:somewhere", "model lstm takes text, but --data speech holds speech");
    says("--model bert --data an4", "model bert takes pairs of texts, but --data an4 holds speech");
    says("--model vgg16 --data ptb:somewhere", "model vgg16 takes images, but --data ptb holds text");
    says("--model vgg16 --hidden 200", "--hidden has no effect with --model vgg16");
    says("--bptt 20", "--bptt has no effect with --model resnet20");
    says("--dropout 0.1", "--dropout has no effect with --model resnet20");
    says("--model lstm --no-augment", "--no-augment has no effect with --model lstm");
    says("--model lstm --hidden 0", "out of range");
    says("--model lstm --hidden 65537", "out of range");
    says("--model lstm --bptt 0", "out of range");
    says("--model lstm --dropout 1", "out of range");
    says("--model lstm --dropout -0.1", "out of range");
}

static void technique_mistakes(void **state) {
    (void)state;
    says("--algo gtopk --momentum-masking", "--momentum-masking has no effect without --momentum-correction");
    says("--momentum-correction", "--momentum-correction has no effect with --algo dense");
    says("--algo gtopk --momentum-correction --momentum 0", "with --momentum above 0");
    says("--algo gtopk --momentum-correction --optimiser adam", "needs --optimiser sgd");
    says("--algo gtopk --momentum-correction --local-update", "cannot be combined");
    says("--algo hitopk --momentum-correction --momentum-masking",
         "--momentum-masking cannot be combined with --algo hitopk");
    says("--clip-at local", "--clip-at has no effect without --clip-norm");
    says("--algo dense-ovlp --clip-norm 1 --clip-at local", "dense-ovlp sends while backward goes on");
    says("--algo gtopk --overlap layers --clip-norm 1 --clip-at local",
         "--overlap layers sends while backward goes on");
    says("--algo fedavg --clip-norm 1 --clip-at local", "--clip-at has no effect with an algorithm that exchanges no");
    says("--clip-norm -1", "out of range");
    says("--dense-slices bias", "--dense-slices has no effect with --algo dense");
    says("--algo dense --momentum-correction", "--momentum-correction has no effect with --algo dense");
    says("--algo micro --select-scope layer", "--select-scope layer cannot be combined with --algo micro");
    says("--select-scope layer", "--select-scope has no effect with --algo dense");
    says("--algo gtopk --select-scope row", "there are: global, layer");
    for (const char *const *algo = (const char *const[]){"hitopk", "micro", "spardl", NULL}; *algo; algo++) {
        char line[80];
        snprintf(line, sizeof line, "--algo %s --select-scope layer", *algo);
        says(line, "--select-scope layer");
    }
    says("--optimiser adam --momentum 0.9", "--momentum has no effect without --optimiser sgd");
    says("--beta1 0.9", "--beta1 has no effect without --optimiser adam or adamw");
    says("--optimiser adam --beta2 1", "out of range");
    says("--optimiser adam --epsilon 0", "out of range");
}

static void warmup_mistakes(void **state) {
    (void)state;
    struct options o;
    assert_string_not_equal(parse(&o, "--algo topka --density-warmup 0.5,2"), "");
    assert_string_not_equal(parse(&o, "--algo topka --density-warmup 0.5,,0.1"), "");
    assert_string_not_equal(parse(&o, "--algo topka --density-warmup 0"), "");
    assert_string_equal(parse(&o, "--algo topka --density-warmup 0.5,0.1"), "");
    assert_string_not_equal(parse(&o, "--lr-schedule step:"), "");
    assert_string_not_equal(parse(&o, "--lr-schedule step:50%,20%"), "");
}

/* Each row's echo reads back to the same value. */
/* -- --algo auto ------------------------------------------------------------------------------------------ */
/* Which rows go with this command line, as "+name" of each; what it resolves to with one of them is what it would
 * resolve to with that row asked for by name. */
static void candidates(const char *line, char names[512]) {
    static struct options o, with, named;
    char by_name[1024];
    assert_string_equal(parse(&o, line), "");
    assert_true(options_auto(&o));
    names[0] = '\0';
    for (size_t i = 0; exchanges[i]; i++) {
        struct err e = {0};
        if (!options_candidate(&o, exchanges[i], wires[0], &with, &e)) {
            assert_true(e.text[0] != '\0');
            continue;
        }
        assert_false(with.lenient || options_auto(&with));
        snprintf(names + strlen(names), 512 - strlen(names), "+%s", exchanges[i]->name);
        if (strstr(line, "--density")) continue; /* by name, dense refuses it */
        snprintf(by_name, sizeof by_name, "--algo %s%s", exchanges[i]->name, line + strlen("--algo auto"));
        assert_string_equal(parse(&named, by_name), "");
        char *chosen = options_text(&with, RULE_RUN), *asked = options_text(&named, RULE_RUN);
        assert_string_equal(chosen, asked);
        mem_free(chosen);
        mem_free(asked);
    }
}

/* Which rows go with an option, by their flags. */
static bool any(const struct exchange_ops *x) {
    return x != NULL;
}
static bool is_sparse(const struct exchange_ops *x) {
    return x->sparse;
}
static bool knows_its_part(const struct exchange_ops *x) {
    return x->sparse && !x->by_node;
}
static bool combines(const struct exchange_ops *x) {
    return knows_its_part(x) || x->combine;
}
static bool selects_anywhere(const struct exchange_ops *x) {
    return x->selects && !x->own_parts;
}
static bool waits_for_backward(const struct exchange_ops *x) {
    return !x->begin;
}
static bool has_magnitudes(const struct exchange_ops *x) {
    return !x->flattens;
}
static bool is_not_gtopk(const struct exchange_ops *x) {
    return strcmp(x->name, "gtopk") != 0;
}

static void auto_chooses_among(void **state) {
    (void)state;
    static const struct {
        const char *line;
        bool (*goes_with)(const struct exchange_ops *x);
        const char *one, *not ; /* of the rows, and one that does not go with it */
    } cases[] = {
        {"--algo auto", any, "dense", "fedavg"},
        {"--algo auto --density 0.1 --tau 3 --wire packed --select reuse --overlap-bytes 99", any, "micro", "fedavg"},
        {"--algo auto --local-update", combines, "hitopk", "torus2d"},
        {"--algo auto --dense-slices 1d", is_sparse, "hitopk", "dense"},
        {"--algo auto --select-scope layer", selects_anywhere, "oktopk", "micro"},
        {"--algo auto --overlap layers", waits_for_backward, "torus2d", "dense-ovlp"},
        {"--algo auto --momentum-correction --momentum-masking", knows_its_part, "micro", "hitopk"},
        {"--algo auto --clip-norm 1 --clip-at local", waits_for_backward, "dense", "dense-ovlp"},
        {"--algo auto --optimiser adamw", has_magnitudes, "qsgd", "onebit"},
        {"--algo auto --optimiser adam --freeze-variance-after 50", any, "onebit", "fedavg"},
        {"--algo auto --gtopk-residual paper --density 0.1", is_not_gtopk, "gtopk-rd", "gtopk"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char names[512], wanted[512] = "";
        for (size_t x = 0; exchanges[x]; x++)
            if (exchanges[x]->conserves && !exchange_apart(exchanges[x]) && cases[i].goes_with(exchanges[x]))
                snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted), "+%s", exchanges[x]->name);
        candidates(cases[i].line, names);
        assert_string_equal(names, wanted);
        assert_true(cases[i].goes_with(row_named(cases[i].one)));
        assert_true(exchange_apart(row_named(cases[i].not )) || !cases[i].goes_with(row_named(cases[i].not )));
    }
}

static void auto_gives_parameters_to_whom_they_concern(void **state) {
    (void)state;
    static struct options o, with;
    struct err e = {0};
    assert_string_equal(
        parse(&o, "--algo auto --density 0.1 --density-warmup 0.3 --select reuse --tau 3 --ranks-per-node 2"), "");
    assert_true(options_candidate(&o, row_named("oktopk"), wires[1], &with, &e));
    assert_true(with.density == 0.1 && with.ranks_per_node == -1);
    assert_string_equal(value(&with, "tau"), "3");
    assert_string_equal(options_choice(&with, "select"), "reuse");
    assert_string_equal(options_choice(&with, "wire"), wires[1]->name);
    assert_string_equal(with.density_warmup, "0.3");
    assert_true(options_candidate(&o, row_named("hitopk"), NULL, &with, &e));
    assert_string_equal(value(&with, "tau"), "64");
    assert_int_equal(with.ranks_per_node, 2);
    assert_true(options_candidate(&o, row_named("dense"), NULL, &with, &e));
    assert_true(with.density == 0.001 && with.ranks_per_node == -1);
    assert_string_equal(value(&with, "tau"), "64");
    assert_int_equal(with.select, -1);
    assert_string_equal(with.density_warmup, "gtopk");
    assert_string_equal(parse(&o, "--algo auto"), "");
    assert_true(options_candidate(&o, row_named("gaussiank"), NULL, &with, &e));
    assert_string_equal(options_choice(&with, "select"), "gaussian"); /* each its own */
    assert_string_equal(parse(&o, "--algo auto --gaussian-adjust off"), "");
    assert_true(options_candidate(&o, row_named("gaussiank"), NULL, &with, &e));
    assert_string_equal(options_choice(&with, "gaussian-adjust"), "off");
    assert_true(options_candidate(&o, row_named("topka"), NULL, &with, &e));
    assert_string_equal(options_choice(&with, "gaussian-adjust"), "on");
}

static void auto_mistakes(void **state) {
    (void)state;
    says("--algo auto --average-every 5", "--average-every has no effect without --local-update or --algo fedavg");
    says("--algo auto --momentum-masking", "--momentum-masking has no effect without --momentum-correction");
    says("--algo auto --local-update --momentum-correction", "finds no algorithm for these options; of ");
    says("--algo auto --oktopk-off x", "--oktopk-off has no \"x\"");
    says("--algo auto --density-warmup x", "density warm-up");
    says("--algo auto --checkpoint-every 3", "--checkpoint-every has no effect without --out");
    says("--algo auto --steps 3 --epochs 2", "give one of them");
}

/* A checkpoint has the algorithm that was taken; --algo auto beside --resume is content with it. */
static void auto_resumes(void **state) {
    (void)state;
    static struct options o, with, resumed;
    struct err e = {0};
    const char *line = "--algo auto --density 0.1 --tau 3";
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(parse(&o, line), "");
        assert_true(options_candidate(&o, row_named(i ? "dense" : "oktopk"), NULL, &with, &e));
        char *text = options_text(&with, RULE_RUN);
        options_default(&resumed);
        assert_true(options_parse(&resumed, 6, (char *[]){"--algo", "auto", "--density", "0.1", "--tau", "3"}, 0, &e));
        assert_true(options_resume(&resumed, text, &e));
        assert_true(options_resolve(&resumed, &e));
        char *again = options_text(&resumed, RULE_RUN);
        assert_string_equal(again, text);
        mem_free(text);
        mem_free(again);
    }
}

static void the_echo_reads_back(void **state) {
    (void)state;
    struct options o, back;
    assert_string_equal(parse(&o, "--algo gtopk --lr 0.30000000000000004 --density 1e-05 --out some/dir --no-augment "
                                  "--eval-every never"),
                        "");
    options_default(&back);
    for (size_t i = 0; i < train_options.rows; i++) {
        char text[OPTION_TEXT_MAX], again[OPTION_TEXT_MAX];
        struct err e = {0};
        if (!option_has_value(&train_options.row[i], &o)) continue;
        option_value(&train_options.row[i], &o, text);
        if (!*text || strcmp(text, "-1") == 0 || strcmp(text, "nan") == 0) continue;
        if (!option_set(&train_options.row[i], &back, text, &e))
            fail_msg("--%s: %s", train_options.row[i].name, e.text);
        option_value(&train_options.row[i], &back, again);
        assert_string_equal(text, again);
    }
    assert_true(back.lr == o.lr && back.density == o.density && back.no_augment && isinf(back.eval_every));
}

static void help_and_man_name_every_row(void **state) {
    (void)state;
    static char help[32768], man[32768];
    FILE *f = fmemopen(help, sizeof help, "w");
    options_help(f);
    fclose(f);
    f = fmemopen(man, sizeof man, "w");
    options_man(f);
    fclose(f);
    for (size_t i = 0; i < train_options.rows; i++) {
        char name[80];
        snprintf(name, sizeof name, "--%s", train_options.row[i].name);
        assert_non_null(strstr(help, name));
        assert_non_null(strstr(help, train_options.row[i].group));
    }
    for (char *line = strtok(help, "\n"); line; line = strtok(NULL, "\n"))
        if (strlen(line) > 120) fail_msg("help line of %zu characters: %s", strlen(line), line);
    assert_non_null(strstr(man, ".TH SPARSETRAIN 1"));
    assert_non_null(strstr(man, "\\-\\-density\\-warmup"));
}

/* As before, with another length too, unless it is given. */
static void resuming_keeps_as_many(void **state) {
    (void)state;
    struct options first, second;
    struct err e = {0};
    assert_string_equal(parse(&first, "--out x --keep 7 --keep-every 20 --steps 50"), "");
    char *kept = options_text(&first, RULE_RUN);
    assert_string_equal(parse(&second, "--steps 80"), "");
    assert_true(options_resume(&second, kept, &e));
    assert_true(second.keep == 7 && second.keep_every == 20 && second.steps == 80);
    assert_string_equal(parse(&second, "--out x --keep 1"), "");
    assert_true(options_resume(&second, kept, &e));
    assert_true(second.keep == 1 && second.keep_every == 20 && second.steps == 50);
    mem_free(kept);
}

static void resuming_takes_values_over(void **state) {
    (void)state;
    struct options first, second;
    struct err e = {0};
    assert_string_equal(parse(&first, "--algo gtopk --lr 0.05 --steps 50 --seed 3"), "");
    char *text = options_text(&first, RULE_RUN);
    assert_string_equal(parse(&second, ""), "");
    assert_true(options_resume(&second, text, &e));
    assert_string_equal(options_choice(&second, "algo"), "gtopk");
    assert_true(second.lr == 0.05 && second.steps == 50 && second.seed == 3);

    assert_string_equal(parse(&second, "--epochs 7"), "");
    assert_true(options_resume(&second, text, &e));
    assert_true(second.epochs == 7 && second.steps == -1);

    assert_string_equal(parse(&second, "--lr 0.05 --steps 80"), "");
    assert_true(options_resume(&second, text, &e));
    assert_int_equal(second.steps, 80);

    assert_string_equal(parse(&second, "--algo topka"), "");
    assert_false(options_resume(&second, text, &e));
    assert_non_null(strstr(e.text, "the checkpoint was made with --algo gtopk, not topka"));

    mem_free(text);

    e.text[0] = '\0';
    assert_string_equal(parse(&first, "--algo hitopk --steps 50"), "");
    text = options_text(&first, RULE_RUN);
    assert_string_equal(parse(&second, "--algo hitopk --ranks-per-node 2"), "");
    assert_false(options_resume(&second, text, &e));
    assert_non_null(strstr(e.text, "the checkpoint was made without --ranks-per-node, not with 2; leave it out"));
    assert_string_equal(parse(&second, "--algo hitopk --steps 80"), "");
    assert_true(options_resume(&second, text, &e));
    mem_free(text);

    e.text[0] = '\0';
    assert_false(options_resume(&second, "no-such-option=1\n", &e));
    assert_non_null(strstr(e.text, "another version"));
    e.text[0] = '\0';
    assert_false(options_resume(&second, "garbage", &e));
}

/* Whoever made the file: it names no file to write, and says each thing once, as it can be said. */
static void a_checkpoint_says_only_so_much(void **state) {
    (void)state;
    static const char *const texts[][2] = {
        {"trace=/tmp/x\n", "--trace is none"},
        {"batch=4\nrecord=/tmp/x\n", "line 2 of the checkpoint's options: --record is none"},
        {"out=x\n", "--out is none"},
        {"resume=x\n", "--resume is none"},
        {"dry-run=yes\n", "--dry-run is none"},
        {"batch=4\nbatch=4\n", "--batch for the second time"},
        {"batch=0\n", "--batch 0 is out of range"},
        {"batch=-1\n", "--batch -1 is out of range"},
        {"batch=nan\n", "--batch wants a number"},
        {"batch=1e300\n", "--batch 1e300 is out of range"},
        {"batch=\n", "--batch wants a number"},
        {"batch=2 3\n", "--batch wants a number"},
        {"lr=inf\n", "--lr inf is out of range"},
        {"algo=all\n", "--algo has no \"all\""},
        {"no-augment=perhaps\n", "--no-augment is neither yes nor no"},
        {"no-augment=\n", "--no-augment is neither"},
        {"model\n", "it is no option with its value"},
        {"\n", "it is no option with its value"},
        {"=\n", "its name is that of no option"},
        {"\033[2J=1\n", "its name is that of no option"},
        {"data=a\rb\n", "--data: the text contains a line break"},
        {"batch=4\nlr=1", "line 2 of the checkpoint's options: it has no end"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct options o;
        struct err e = {0};
        if (options_stored(texts[i][0], &e)) fail_msg("\"%s\" is taken", texts[i][0]);
        if (!strstr(e.text, texts[i][1])) fail_msg("\"%s\", not \"%s\"", e.text, texts[i][1]);
        if (strpbrk(e.text, "\n\r\033")) fail_msg("more than a line: %s", e.text);
        e = (struct err){0};
        options_default(&o);
        assert_false(options_resume(&o, texts[i][0], &e));
        e = (struct err){0};
        assert_false(options_inherit(&o, texts[i][0], &e));
    }
    char *longest = mem_alloc(OPTION_TEXT_MAX + 9, 1, "a text");
    snprintf(longest, OPTION_TEXT_MAX + 9, "data=%0*d\n", OPTION_TEXT_MAX, 1);
    struct err e = {0};
    assert_false(options_stored(longest, &e));
    mem_free(longest);
}

static void what_is_stored_may_be_said(void **state) {
    (void)state;
    static const char *const lines[] = {"", "--out x --algo oktopk --keep-every 5 --eval-every never --audit 3",
                                        "--model lstm --hidden 8 --optimiser adam", "--algo dense --no-augment"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct options o;
        struct err e = {0};
        assert_string_equal(parse(&o, lines[i]), "");
        if (!options_resolve(&o, &e)) fail_msg("%s", e.text);
        char *text = options_kept(&o);
        if (!options_stored(text, &e)) fail_msg("%s", e.text);
        mem_free(text);
    }
}

/* How a run is watched, which may also be changed; not where files go, since anybody may have made the checkpoint. */
static void resuming_watches_as_before(void **state) {
    (void)state;
    struct options first, second;
    struct err e = {0};
    assert_string_equal(parse(&first, "--algo gtopk --out x --checkpoint-every 7 --check-replicas 3 --audit 2 "
                                      "--log-slices 4 --log-xi 5 --record r --record-every 6 --trace t --stop-at 2"),
                        "");
    char *kept = options_kept(&first);
    assert_null(strstr(kept, "\nrecord="));
    assert_null(strstr(kept, "\ntrace="));
    assert_null(strstr(kept, "\nout="));
    assert_null(strstr(kept, "\nstop-at="));
    assert_string_equal(parse(&second, "--resume x"), "");
    assert_true(options_resume(&second, kept, &e) && options_resolve(&second, &e));
    assert_true(second.checkpoint_every == 7 && second.check_replicas == 3 && second.audit == 2);
    assert_true(second.log_slices == 4 && second.log_xi == 5 && second.record_every == 6);
    assert_string_equal(second.record, "");
    assert_string_equal(second.trace, "");
    options_default(&second);
    assert_true(
        options_parse(&second, 6, (char *[]){"--resume", "x", "--checkpoint-every", "8", "--audit", "0"}, 0, &e));
    assert_true(options_resume(&second, kept, &e) && options_resolve(&second, &e));
    assert_true(second.checkpoint_every == 8 && second.audit == 0 && second.log_xi == 5);
    mem_free(kept);

    /* A checkpoint of before says nothing of it. */
    kept = options_text(&first, RULE_RUN);
    assert_string_equal(parse(&second, "--resume x --check-replicas 8"), "");
    assert_true(options_resume(&second, kept, &e) && options_resolve(&second, &e));
    assert_true(second.checkpoint_every == -1 && second.audit == 0 && second.check_replicas == 8);
    mem_free(kept);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_the_reference_configuration),
        cmocka_unit_test(values_arrive),
        cmocka_unit_test(mistakes_get_one_line),
        cmocka_unit_test(exchange_mistakes),
        cmocka_unit_test(what_has_no_effect_is_ignored),
        cmocka_unit_test(every_algorithm_takes_all_parameters),
        cmocka_unit_test(exchange_options_arrive),
        cmocka_unit_test(models_bring_their_settings),
        cmocka_unit_test(presets_bring_their_settings),
        cmocka_unit_test(one_warmup_of_the_rate),
        cmocka_unit_test(model_mistakes),
        cmocka_unit_test(technique_mistakes),
        cmocka_unit_test(warmup_mistakes),
        cmocka_unit_test(auto_chooses_among),
        cmocka_unit_test(auto_gives_parameters_to_whom_they_concern),
        cmocka_unit_test(auto_mistakes),
        cmocka_unit_test(auto_resumes),
        cmocka_unit_test(the_echo_reads_back),
        cmocka_unit_test(help_and_man_name_every_row),
        cmocka_unit_test(resuming_takes_values_over),
        cmocka_unit_test(resuming_watches_as_before),
        cmocka_unit_test(a_checkpoint_says_only_so_much),
        cmocka_unit_test(what_is_stored_may_be_said),
        cmocka_unit_test(resuming_keeps_as_many),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
