/* net_input.c: what comes in with a pass, before the backend is fed: is it what the model takes, and what the caller
 * leaves to be completed. */
#include "nets/ctc.h"
#include "nets/net_impl.h"

/* What does not fit would be read beyond the end of some table. */
static void check_numbers(const struct net_tensor *t, const int32_t *number, const char *what) {
    for (int i = 0; i < t->shape.n; i++)
        if (number[i] < t->least || number[i] >= t->limit)
            die("%s %d in row %d: the vocabulary has %d", what, (int)number[i], i, t->limit);
}

/* Frames of a pass, and CTC's labels. */
static void check_speech(const struct net *net, const struct net_input *input) {
    const struct net_setup *s = &net->setup;
    if (input->frames < 1 || input->frames > s->width)
        die("model %s: a pass of %d frames; the net was opened for %d", net->model->name, input->frames, s->width);
    for (int i = 0; i < s->batch; i++)
        if (input->numbers[NUMBERS_LENGTHS] && input->numbers[NUMBERS_LENGTHS][i] > input->frames)
            die("an utterance of %d frames in a pass of %d", (int)input->numbers[NUMBERS_LENGTHS][i], input->frames);
    for (int i = 0; i < s->batch * input->label_stride; i++)
        if (input->label[0][i] == 0 || input->label[0][i] >= s->classes)
            die("label %d of an utterance: there are classes 1 to %d", (int)input->label[0][i], s->classes - 1);
}

void net_input_check(const struct net *net, const struct net_input *input) {
    static const char *const names[NET_NUMBERS] = {"type", "length", "chosen row"};
    const struct net_impl *m = net_impl(net);
    const bool tokens = m->tensor[0].shape.layout == LAYOUT_TOKENS;
    if (m->tensor[0].shape.frames) check_speech(net, input);
    if ((input->token != NULL) != tokens) die("model %s takes %s", net->model->name, tokens ? "tokens" : "images");
    if (tokens) check_numbers(&m->tensor[0], input->token, "token");
    for (int k = 0; k < NET_NUMBERS; k++) {
        if ((input->numbers[k] != NULL) != (m->numbers[k] > 0))
            die("model %s: %s of its rows", net->model->name, names[k]);
        if (m->numbers[k]) check_numbers(&m->tensor[m->numbers[k]], input->numbers[k], names[k]);
    }
}

/* Rows that count of a loss of a training pass, in which all are valid; at least 1, which there is to divide by. */
static int rows_that_count(const struct net_input *input, int which) {
    int count = 0;
    for (int i = 0; i < input->labels[which]; i++) count += input->label[which][i] >= 0;
    return count > 0 ? count : 1;
}

/* The same of CTC's utterances. */
static int utterances_that_count(const struct net *net, const struct net_input *input) {
    const struct net_impl *m = net_impl(net);
    const int each = m->tensor[m->logits[0]].shape.frames, stride = input->label_stride;
    int count = 0;
    for (int i = 0; i < net->setup.batch; i++) {
        const int32_t *label = input->label[0] + (size_t)i * (size_t)stride;
        count += ctc_counts(label, ctc_labels(label, stride), steps_of(input->numbers[NUMBERS_LENGTHS][i], each));
    }
    return count > 0 ? count : 1;
}

/* What the caller leaves to us. */
void net_input_complete(const struct net *net, struct net_input *input) {
    const struct net_impl *m = net_impl(net);
    const double parts = net->setup.accumulate > 1 ? net->setup.accumulate : 1;
    for (int k = 0; k < m->losses; k++) {
        input->labels[k] = m->ctc ? net->setup.batch * input->label_stride : m->tensor[m->logits[k]].shape.n;
        input->over[k] = (m->ctc ? utterances_that_count(net, input) : rows_that_count(input, k)) * parts;
        if (k == 0 && input->mean_over > 0) input->over[k] = input->mean_over * parts;
    }
    for (int k = 0; k < NET_NUMBERS; k++) input->counts[k] = m->numbers[k] ? m->tensor[m->numbers[k]].shape.n : 0;
    if (input->valid == 0) input->valid = m->ctc ? net->setup.batch : input->labels[0];
    if (input->valid < 0) input->valid = 0;
    input->step = m->step;
}
