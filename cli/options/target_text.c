/* target_text.c: see target_text.h. */
#include "cli/options/target_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const splits[] = {[TARGET_VALID] = "valid", [TARGET_TEST] = "test"};

/* Targets lie above min, and not above max. */
static const struct {
    const char *name;
    bool rises; /* the larger the better */
    double min, max;
    const char *range;
} metrics[TARGET_METRICS] = {
    [TARGET_ACCURACY] = {"accuracy", true, 0, 1, "a part of 1, above 0, as accuracy:0.9"},
    [TARGET_LOSS] = {"loss", false, 0, 1e9, "above 0 (nats)"},
    [TARGET_PERPLEXITY] = {"perplexity", false, 1, 1e300, "above 1"},
    [TARGET_BPC] = {"bpc", false, 0, 1e9, "above 0 (bits per character)"},
    [TARGET_NEXT_ACCURACY] = {"next_accuracy", true, 0, 1, "a part of 1, above 0, as next_accuracy:0.9"},
    [TARGET_NEXT_LOSS] = {"next_loss", false, 0, 1e9, "above 0 (nats)"},
    [TARGET_LOSS_SAMPLED] = {"loss_sampled", false, 0, 1e9, "above 0 (nats)"},
    [TARGET_WER] = {"wer", false, 0, 1e9, "above 0, as wer:0.3 (errors over words)"},
    [TARGET_CER] = {"cer", false, 0, 1e9, "above 0, as cer:0.1 (errors over characters)"},
};

const char *target_metric_name(enum target_metric metric) {
    return metrics[metric].name;
}

const char *target_split_name(enum target_split split) {
    return splits[split];
}

bool target_is_reached(const struct target_wish *wish, double score) {
    return metrics[wish->metric].rises ? score >= wish->value : score <= wish->value;
}

/* Is the word [text, text + length) this name? */
static bool is_word(const char *text, size_t length, const char *name) {
    return strlen(name) == length && strncmp(text, name, length) == 0;
}

/* "valid:" or "test:", if the text begins with one. */
static const char *take_split(const char *text, struct target_wish *wish) {
    const char *colon = strchr(text, ':');
    for (enum target_split s = TARGET_VALID; colon && s <= TARGET_TEST; s++) {
        if (!is_word(text, (size_t)(colon - text), splits[s])) continue;
        wish->split = s;
        return colon + 1;
    }
    return text;
}

static bool no_metric(const char *text, size_t length, struct err *e) {
    char names[200] = "";
    for (int i = 0; i < TARGET_METRICS; i++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", metrics[i].name);
    }
    return err_set(e, "--target has no metric \"%.*s\"; there are: %s", length > 60 ? 60 : (int)length, text, names);
}

static bool take_value(const char *text, struct target_wish *wish, struct err *e) {
    char *end;
    wish->value = strtod(text, &end);
    if (end == text || *end || isnan(wish->value))
        return err_set(e, "--target wants a number behind %s:, not \"%.60s\"", metrics[wish->metric].name, text);
    if (wish->value > metrics[wish->metric].min && wish->value <= metrics[wish->metric].max) return true;
    return err_set(e, "--target %s:%.60s is out of range: it must be %s", metrics[wish->metric].name, text,
                   metrics[wish->metric].range);
}

bool target_parse(const char *text, struct target_wish *wish, struct err *e) {
    *wish = (struct target_wish){.split = TARGET_EITHER};
    if (strcmp(text, "none") == 0) return true;
    const char *metric = take_split(text, wish), *colon = strchr(metric, ':');
    if (!colon)
        return err_set(e, "--target %.60s is none: METRIC:VALUE, as accuracy:0.9, or valid:METRIC:VALUE, or none",
                       text);
    const size_t length = (size_t)(colon - metric);
    int i = 0;
    while (i < TARGET_METRICS && !is_word(metric, length, metrics[i].name)) i++;
    if (i == TARGET_METRICS) return no_metric(metric, length, e);
    wish->wanted = true;
    wish->metric = (enum target_metric)i;
    return take_value(colon + 1, wish, e);
}

const char *target_score_name(const struct target_wish *wish, char text[TARGET_SCORE_MAX]) {
    const bool either = wish->split == TARGET_EITHER;
    snprintf(text, TARGET_SCORE_MAX, "%s%s%s", either ? "" : target_split_name(wish->split), either ? "" : ":",
             target_metric_name(wish->metric));
    return text;
}
