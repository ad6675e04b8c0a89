/* scores.c: see scores.h. */
#include "cli/task/scores.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "cli/train/run.h"

const struct scores scores_none = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};

static bool has_valid(const struct run *r) {
    return r->data.task->count(&r->data.set, SPLIT_VALID) > 0;
}

static bool is_aligned(const struct run *r) {
    return !r->data.task->speech && run_has_test(r);
}

static bool is_speech(const struct run *r) {
    return r->data.task->speech;
}

static bool is_speech_with_valid(const struct run *r) {
    return r->data.task->speech && has_valid(r);
}

static bool is_text(const struct run *r) {
    return r->data.task->text;
}

static bool is_text_with_test(const struct run *r) {
    return r->data.task->text && run_has_test(r);
}

static bool by_characters(const struct run *r) {
    return r->data.task->text && strcmp(run_sample(r), "character") == 0;
}

static bool by_characters_with_test(const struct run *r) {
    return by_characters(r) && run_has_test(r);
}

static bool is_pairs(const struct run *r) {
    return r->data.task->pairs;
}

#define AT(member) offsetof(struct scores, member)
const struct score score_table[] = {
    {"test_loss", TARGET_TEST, TARGET_LOSS, AT(test_loss), SCORE_PLAIN, run_has_test},
    {"test_accuracy", TARGET_TEST, TARGET_ACCURACY, AT(test_accuracy), SCORE_PLAIN, is_aligned},
    {"test_perplexity", TARGET_TEST, TARGET_PERPLEXITY, AT(test_loss), SCORE_PERPLEXITY, is_text_with_test},
    {NULL, TARGET_TEST, TARGET_BPC, AT(test_loss), SCORE_BITS, by_characters_with_test},
    {"valid_loss", TARGET_VALID, TARGET_LOSS, AT(valid_loss), SCORE_PLAIN, has_valid},
    {"valid_next_loss", TARGET_VALID, TARGET_NEXT_LOSS, AT(next_loss), SCORE_PLAIN, is_pairs},
    {"valid_next_accuracy", TARGET_VALID, TARGET_NEXT_ACCURACY, AT(next_accuracy), SCORE_PLAIN, is_pairs},
    {"valid_perplexity", TARGET_VALID, TARGET_PERPLEXITY, AT(valid_loss), SCORE_PERPLEXITY, is_text},
    {NULL, TARGET_VALID, TARGET_BPC, AT(valid_loss), SCORE_BITS, by_characters},
    {"valid_loss_sampled", TARGET_VALID, TARGET_LOSS_SAMPLED, AT(sampled_loss), SCORE_PLAIN, text_is_sampled},
    {"test_wer", TARGET_TEST, TARGET_WER, AT(test_wer), SCORE_PLAIN, is_speech},
    {"test_cer", TARGET_TEST, TARGET_CER, AT(test_cer), SCORE_PLAIN, is_speech},
    {"valid_wer", TARGET_VALID, TARGET_WER, AT(valid_wer), SCORE_PLAIN, is_speech_with_valid},
    {"valid_cer", TARGET_VALID, TARGET_CER, AT(valid_cer), SCORE_PLAIN, is_speech_with_valid},
    {NULL, TARGET_EITHER, TARGET_METRICS, 0, SCORE_PLAIN, NULL},
};

const struct score *score_find(const struct run *r, enum target_split split, enum target_metric metric) {
    for (const struct score *s = score_table; s->when; s++)
        if (s->split == split && s->metric == metric && s->when(r)) return s;
    return NULL;
}

double score_value(const struct score *s, const struct scores *scores) {
    double value;
    memcpy(&value, (const char *)scores + s->at, sizeof value);
    return s->form == SCORE_PERPLEXITY ? exp(value) : s->form == SCORE_BITS ? value / log(2) : value;
}

void score_learn(const struct score *s, struct scores *scores, double value) {
    if (s->form == SCORE_PLAIN && isnan(score_value(s, scores))) memcpy((char *)scores + s->at, &value, sizeof value);
}

void scores_write(const struct run *r, const struct scores *scores, struct json *j) {
    for (const struct score *s = score_table; s->when; s++)
        if (s->key && s->when(r)) json_number(j, s->key, score_value(s, scores));
}
