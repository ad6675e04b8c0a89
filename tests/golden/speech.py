#!/usr/bin/env python3
"""speech.py > speech.h: golden values for tests/nets/nets_golden_speech.c and nets_ctc.c from PyTorch, which shares no code with
this project.

Ten steps of SGD with momentum of a small speech recogniser as nets/models/speech.c has it (32 features, two LSTM layers), of
passes that differ in length, with utterances that do not count among them; an evaluation after them, with its best path; and the
first step of the full width. And losses and gradients of CTC alone. Spectrograms, labels and initial parameters come from the
project's random numbers (common.py). Utterances without frames are left out here; batch normalisation sees the frames of the
others alone, gathered from all of them, and LSTMs packed sequences. Computed in double precision, and in single precision to see
what rounding does (range_...: the largest difference of a loss, and of a gradient relative to its scale). Last run with PyTorch
2.15.0."""

import math

import numpy
import torch
from torch import nn
from torch.nn import functional

from common import INIT, SEED, TEST, normals, numbers, sample, words

STEPS, RATE, MOMENTUM = 10, 1e-5, 0.9
BATCH, FREQUENCIES, WIDTH, CLASSES, STRIDE = 4, 161, 64, 29, 7
# hidden features, LSTM layers, steps
MODELS = {"small": (32, 2, STEPS), "full": (800, 5, 1)}
# steps, classes, labels: of CTC alone
ALONE = ((1, 2, 0), (1, 5, 1), (5, 3, 2), (12, 29, 5), (40, 29, 19), (150, 29, 60))


def frames_of(step):
    return WIDTH - 7 * (step % 4)


def lengths_of(step):
    frames = frames_of(step)
    return [frames, frames // 2 + 1, 1 if step % 3 == 0 else frames - 5, 0 if step % 2 == 0 else 9]


def utterances_of(step):
    """Spectrograms [batch][1][frequencies][frames], lengths and labels."""
    frames = frames_of(step)
    x = normals(TEST, 11200 + step, BATCH * FREQUENCIES * frames).astype(numpy.float32)
    w = (words(TEST, 1000 + step, BATCH * STRIDE) % numpy.uint64(CLASSES - 1)).astype(int).reshape(BATCH, STRIDE) + 1
    lengths = lengths_of(step)
    labels = [w[i, : min((i + step) % (STRIDE + 1), (lengths[i] + 1) // 2 // 2)].tolist() for i in range(BATCH)]
    return torch.from_numpy(x).reshape(BATCH, 1, FREQUENCIES, frames), lengths, labels


class Norm(nn.Module):
    """Over the steps that are valid: x [batch][features]...[time]."""

    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x, lengths):
        valid = torch.arange(x.shape[-1])[None, :] < torch.tensor(lengths)[:, None]
        last = x.movedim(-1, 1)
        normal = functional.batch_norm(last[valid].unsqueeze(-1) if x.dim() == 3 else last[valid], self.running_mean,
                                       self.running_var, self.weight, self.bias, self.training, 0.1, 1e-5)
        out = torch.zeros_like(last)
        out[valid] = normal.squeeze(-1) if x.dim() == 3 else normal
        return out.movedim(1, -1)


class Lookahead(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(features, 21))

    def forward(self, x):
        """x [batch][features][time], 0 behind the end of an utterance"""
        return functional.conv1d(functional.pad(x, (0, 20)), self.weight.unsqueeze(1), groups=x.shape[1])


class Speech(nn.Module):
    def __init__(self, hidden, layers):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 32, (41, 11), (2, 2), (20, 5)), Norm(32)
        self.conv2, self.bn2 = nn.Conv2d(32, 32, (21, 11), (2, 1), (10, 5)), Norm(32)
        for i in range(1, layers + 1):
            if i > 1:
                self.add_module(f"norm{i}", Norm(hidden))
            self.add_module(f"lstm{i}", nn.LSTM(1312 if i == 1 else hidden, hidden, batch_first=True))
        self.layers = layers
        self.lookahead, self.norm = Lookahead(hidden), Norm(hidden)
        self.linear = nn.Linear(hidden, CLASSES, bias=False)

    def forward(self, x, lengths):
        """Logits [batch][steps][classes] and steps of each; all lengths above 0."""
        steps = [(n + 1) // 2 for n in lengths]
        for i, n in enumerate(lengths):
            x[i, :, :, n:] = 0
        x = functional.hardtanh(self.bn1(self.conv1(x), steps), 0, 20)
        x = functional.hardtanh(self.bn2(self.conv2(x), steps), 0, 20)
        x = x.flatten(1, 2)
        for i in range(1, self.layers + 1):
            if i > 1:
                x = getattr(self, f"norm{i}")(x, steps)
            packed = nn.utils.rnn.pack_padded_sequence(x.transpose(1, 2), steps, batch_first=True, enforce_sorted=False)
            x, _ = nn.utils.rnn.pad_packed_sequence(getattr(self, f"lstm{i}")(packed)[0], batch_first=True)
            x = x.transpose(1, 2)
        x = functional.hardtanh(self.lookahead(x), 0, 20)
        return self.linear(self.norm(x, steps).transpose(1, 2)), steps


def ctc(logits, steps, labels):
    """The sum of the losses, logits [batch][steps][classes]."""
    return functional.ctc_loss(logits.log_softmax(-1).transpose(0, 1), torch.tensor(sum(labels, []), dtype=torch.long),
                               torch.tensor(steps), torch.tensor([len(label) for label in labels]), reduction="sum")


def initialise(model):
    for number, (name, p) in enumerate(model.named_parameters()):
        if name.startswith("lstm"):
            w = words(INIT, number, 2 * p.numel()).reshape(-1, 2)
            uniform = (((w[:, 0] << numpy.uint64(32)) | w[:, 1]) >> numpy.uint64(11)).astype(numpy.float64) * 2.0**-53
            values = (2 * uniform - 1) / math.sqrt(p.shape[0] / 4)
        elif p.dim() > 1:
            values = math.sqrt(2.0 / (p.numel() / p.shape[0])) * normals(INIT, number, p.numel())
        else:
            values = numpy.full(p.numel(), 1.0 if name.endswith("weight") else 0.0)
        p.data = torch.from_numpy(values.astype(numpy.float32)).reshape(p.shape)


def summary(t):
    t = t.double().flatten()
    return (t.sum().item(), t.norm().item(), [t[i].item() for i in sample(t.numel())])


def scales_of(gradients):
    """What errors are relative to: the norm; of biases of convolutions, which are 0 but for rounding, that of the weights."""
    return {k: g[k.replace("bias", "weight")] if (k.startswith("conv")) else g[k]
            for g in [{k: s[1] for k, s in gradients.items()}] for k in gradients}


def loss_of(model, step, dtype):
    x, lengths, labels = utterances_of(step)
    use = [i for i in range(BATCH) if lengths[i] > 0]
    logits, steps = model(x[use].to(dtype), [lengths[i] for i in use])
    path = [logits[k, : steps[k]].argmax(-1).tolist() for k in range(len(use))]
    return ctc(logits, steps, [labels[i] for i in use]) / len(use), dict(zip(use, path))


def train(hidden, layers, steps, dtype):
    """losses, gradients of the first and of the last step, running statistics, loss and best path of an evaluation"""
    model = Speech(hidden, layers)
    initialise(model)
    model = model.to(dtype)
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    losses, gradients = [], []
    for step in range(steps):
        optimiser.zero_grad()
        loss, _ = loss_of(model, step, dtype)
        loss.backward()
        losses.append(loss.item())
        if step in (0, steps - 1):
            gradients.append({k.replace("_l0", ""): summary(p.grad) for k, p in model.named_parameters()})
        optimiser.step()
    states = {k: summary(v) for k, v in model.named_buffers()}
    model.eval()
    with torch.no_grad():
        evaluation, path = loss_of(model, STEPS, dtype)
    return losses, gradients, states, evaluation.item(), path


def apart(a, b, scale):
    return max(abs(x - y) for x, y in zip([a[0], a[1]] + a[2], [b[0], b[1]] + b[2])) / scale


def line(s):
    return f"{{{s[0]:.17g}, {s[1]:.17g}, {{{numbers(s[2])}}}}}"


def run(name, model):
    losses, gradients, states, evaluation, path = train(*model, torch.float64)
    losses32, gradients32, states32, evaluation32, path32 = train(*model, torch.float32)
    assert path == path32
    ranges = []
    for g, g32 in zip(gradients, gradients32):
        scales = scales_of(g)
        ranges.append(max(apart(g[k], g32[k], scales[k]) for k in g))
    print(f"static const struct golden_run golden_{name} = {{")
    print(f"    .hidden = {model[0]}, .layers = {model[1]}, .steps = {model[2]},")
    print(f"    .range_losses = {max(abs(a - b) for a, b in zip(losses + [evaluation], losses32 + [evaluation32])):.17g},")
    print(f"    .range_slices = {{{numbers(ranges)}}},")
    print(f"    .range_states = {max(apart(states[k], states32[k], states[k][1]) for k in states):.17g},")
    print(f"    .losses = {{{numbers(losses)}}},")
    print(f"    .evaluation = {evaluation:.17g},")
    rows = ", ".join("{" + ", ".join(str(k) for k in path.get(i, [-1])) + "}" for i in range(BATCH))
    print(f"    .path = {{{rows}}},")
    print(f"    .slices = {len(gradients[0])}, .states = {len(states)},")
    print("    .gradients = {")
    for k in gradients[0]:
        scale = ", ".join(f"{scales_of(g)[k]:.17g}" for g in gradients)
        print(f'    {{"{k}", {{{scale}}}, {{{", ".join(line(g[k]) for g in gradients)}}}}},')
    print("    },\n    .statistics = {")
    for k, s in states.items():
        print(f'    {{"{k}", {line(s)}}},')
    print("    },\n};\n")


def alone():
    print("/* CTC of one utterance: steps, classes, labels, logits twice as large as normal numbers. */")
    print("static const struct {\n    int steps, classes, labels;\n    double loss;\n    struct golden gradient;\n"
          "} golden_ctc[] = {")
    for number, (steps, classes, labels) in enumerate(ALONE):
        z = 2 * normals(TEST, 2000 + number, steps * classes).astype(numpy.float32).astype(numpy.float64)
        label = (words(TEST, 3000 + number, labels) % numpy.uint64(classes - 1)).astype(int) + 1
        logits = torch.from_numpy(z).reshape(1, steps, classes).requires_grad_()
        loss = ctc(logits, [steps], [label.tolist()])
        loss.backward()
        print(f"    {{{steps}, {classes}, {labels}, {loss.item():.17g}, {line(summary(logits.grad))}}},")
    print("};\n")


def main():
    torch.set_num_threads(1)
    print("/* speech.h: made by tests/golden/speech.py with PyTorch; see there. */")
    print("#ifndef ST_TESTS_GOLDEN_SPEECH_H\n#define ST_TESTS_GOLDEN_SPEECH_H\n\n#include \"tests/lib/nets_golden_slices.h\"\n")
    names = ("BATCH", "FREQUENCIES", "WIDTH", "CLASSES", "STRIDE", "STEPS")
    print(f"enum {{ GOLDEN_SEED = {SEED}, {', '.join(f'GOLDEN_{n} = {globals()[n]}' for n in names)} }};")
    print(f"#define GOLDEN_RATE {RATE:.5f}\n#define GOLDEN_MOMENTUM {MOMENTUM}\n")
    print("struct golden_run {\n    int hidden, layers, steps;\n"
          "    /* Largest differences between single and double precision in PyTorch itself: of losses, of gradients of the\n"
          "     * first and of the last step relative to the slice's scale, of running statistics relative to the norm. */\n"
          "    double range_losses, range_slices[2], range_states;\n"
          "    double losses[GOLDEN_STEPS], evaluation; /* means over the utterances that count */\n"
          "    int path[GOLDEN_BATCH][GOLDEN_WIDTH / 2]; /* of the evaluation */\n"
          "    int slices, states;\n"
          "    struct {\n        const char *name;\n        double scale[2];\n        struct golden step[2]; /* the first and the last */\n"
          "    } gradients[40];\n"
          "    struct {\n        const char *name;\n        struct golden after; /* after the last step */\n"
          "    } statistics[16];\n};\n")
    for name, model in MODELS.items():
        run(name, model)
    alone()
    print("#endif")


if __name__ == "__main__":
    main()
