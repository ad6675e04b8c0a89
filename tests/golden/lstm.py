#!/usr/bin/env python3
"""lstm.py > lstm.h: golden values for tests/nets/nets_golden_lstm.c from PyTorch, which shares no code with this project.

Training steps of two language models: tokens, embedding, two LSTMs, dropout before, between and after them, a linear
layer; SGD with momentum; states carried from window to window, and an evaluated window in the end that continues the
last one. One has layers of three different sizes, the other one size for all, as nets/models/lstm.c has it. Tokens, initial
parameters and dropout masks come from the project's random numbers (common.py). Computed in double precision, and in
single precision to see what rounding does (range_...: the largest difference of a loss, and of a gradient or state
relative to its norm). Last run with PyTorch 1.13.0."""

import math

import numpy
import torch
from torch import nn
from torch.nn import functional

from common import DROPOUT, INIT, SEED, TEST, normals, numbers, sample, words

BATCH, SEQUENCE, VOCABULARY, STEPS = 4, 6, 50, 5
RATE, MOMENTUM = 0.5, 0.9
# name: features of the embedding, of the first and of the second LSTM; elements dropped
MODELS = {"of_sizes": (12, 10, 7, 0.35), "lstm": (16, 16, 16, 0.5)}
ROWS = BATCH * SEQUENCE


def window_of(index):
    """Tokens and labels of a window, [SEQUENCE][BATCH]: words modulo the vocabulary."""
    w = words(TEST, index, 2 * ROWS) % numpy.uint64(VOCABULARY)
    w = torch.from_numpy(w.astype(numpy.int64)).reshape(2, SEQUENCE, BATCH)
    return w[0], w[1]


class Model(nn.Module):
    def __init__(self, features, hidden1, hidden2, dropped):
        super().__init__()
        self.dropped = dropped
        self.embedding = nn.Embedding(VOCABULARY, features)
        self.lstm1 = nn.LSTM(features, hidden1)
        self.lstm2 = nn.LSTM(hidden1, hidden2)
        self.linear = nn.Linear(hidden2, VOCABULARY)

    def drop(self, x, layer, step):
        if step is None:
            return x
        kept = words(DROPOUT + 256 * layer, step, x.numel()) >= numpy.uint64(int(self.dropped * 2**32))
        return x * torch.from_numpy(kept).reshape(x.shape) / (1 - self.dropped)

    def forward(self, token, state, step):
        """step: of training, None in evaluation; layers are numbered as in the project's models."""
        x = self.drop(self.embedding(token), 1, step)
        x, one = self.lstm1(x, state[0])
        x = self.drop(x, 3, step)
        x, two = self.lstm2(x, state[1])
        x = self.drop(x, 5, step)
        return self.linear(x), [one, two]


def initialise(model):
    for number, (name, p) in enumerate(model.named_parameters()):
        if name.startswith("lstm"):
            w = words(INIT, number, 2 * p.numel()).reshape(-1, 2)
            uniform = (((w[:, 0] << numpy.uint64(32)) | w[:, 1]) >> numpy.uint64(11)).astype(numpy.float64) * 2.0**-53
            values = (2 * uniform - 1) / math.sqrt(p.shape[0] / 4)
        elif p.dim() > 1:
            values = math.sqrt(2.0 / (p.numel() / p.shape[0])) * normals(INIT, number, p.numel())
        else:
            values = numpy.zeros(p.numel())
        p.data = torch.from_numpy(values.astype(numpy.float32)).reshape(p.shape)


def cut(state):
    return [tuple(t.detach() for t in pair) for pair in state]


def summary(t):
    t = t.double().flatten()
    return (t.sum().item(), t.norm().item(), [t[i].item() for i in sample(t.numel())])


def train(sizes, dtype):
    """losses, {slice: gradient of the first and of the last step}, {carry slice: states}, loss of the evaluation"""
    model = Model(*sizes)
    initialise(model)
    model = model.to(dtype)
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    zeros = [tuple(torch.zeros(1, BATCH, h, dtype=dtype) for _ in range(2)) for h in sizes[1:3]]
    state, losses, gradients = zeros, [], {}
    for step in range(STEPS):
        token, label = window_of(step)
        optimiser.zero_grad()
        z, state = model(token, cut(state), step)
        loss = functional.cross_entropy(z.reshape(ROWS, VOCABULARY), label.reshape(ROWS))
        loss.backward()
        losses.append(loss.item())
        for name, p in model.named_parameters() if step in (0, STEPS - 1) else ():
            gradients.setdefault(name.replace("_l0", ""), []).append(summary(p.grad))
        optimiser.step()
    states = {
        f"lstm{i + 1}.{what}": summary(state[i][k]) for i in range(2) for k, what in enumerate(("hidden", "cell"))
    }
    token, label = window_of(STEPS)
    with torch.no_grad():
        z, _ = model(token, state, None)
    return losses, gradients, states, functional.cross_entropy(z.reshape(ROWS, -1), label.reshape(ROWS)).item()


def apart(a, b):
    return max(abs(x - y) for x, y in zip([a[0], a[1]] + a[2], [b[0], b[1]] + b[2])) / a[1]


def line(s):
    return f"{{{s[0]:.17g}, {s[1]:.17g}, {{{numbers(s[2])}}}}}"


def run(name, sizes):
    """The values of one model, as a struct golden_run."""
    losses, gradients, states, loss = train(sizes, torch.float64)
    losses32, gradients32, states32, loss32 = train(sizes, torch.float32)
    loss_range = max(abs(a - b) for a, b in zip(losses + [loss], losses32 + [loss32]))
    range_of = max(
        [apart(g[k], gradients32[slice][k]) for slice, g in gradients.items() for k in range(2)]
        + [apart(s, states32[slice]) for slice, s in states.items()]
    )
    print(f"static const struct golden_run golden_{name} = {{")
    print(f"    .features = {sizes[0]}, .hidden = {{{sizes[1]}, {sizes[2]}}}, .dropped = {sizes[3]},")
    print(f"    .range_losses = {loss_range:.17g}, .range_slices = {range_of:.17g},")
    print(f"    .losses = {{{numbers(losses)}}}, .evaluation = {loss:.17g},")
    print("    .gradients = {")
    for slice, (first, last) in gradients.items():
        print(f'    {{"{slice}", {{{line(first)}, {line(last)}}}}},')
    print("    },\n    .carry = {")
    for slice, state in states.items():
        print(f'    {{"{slice}", {line(state)}}},')
    print("    },\n};\n")


def main():
    torch.set_num_threads(1)
    print("/* lstm.h: made by tests/golden/lstm.py with PyTorch; see there. */")
    print("#ifndef ST_TESTS_GOLDEN_LSTM_H\n#define ST_TESTS_GOLDEN_LSTM_H\n\n#include \"tests/lib/nets_golden_slices.h\"\n")
    names = ("BATCH", "SEQUENCE", "VOCABULARY", "STEPS")
    print(f"enum {{ GOLDEN_SEED = {SEED}, {', '.join(f'GOLDEN_{n} = {globals()[n]}' for n in names)}, "
          "GOLDEN_SLICES = 11, GOLDEN_CARRIED = 4 };")
    print(f"#define GOLDEN_RATE {RATE}\n#define GOLDEN_MOMENTUM {MOMENTUM}\n")
    print("struct golden_run {\n    int features, hidden[2]; /* of the embedding and of the two LSTMs */\n    double dropped;\n"
          "    /* Largest differences between single and double precision in PyTorch itself: of losses, and of gradients\n"
          "     * and states, relative to the slice's norm. */\n"
          "    double range_losses, range_slices;\n"
          "    double losses[GOLDEN_STEPS], evaluation; /* means: of each step, of the window that is evaluated in the end */\n"
          "    struct {\n        const char *name;\n        struct golden step[2]; /* the first and the last */\n"
          "    } gradients[GOLDEN_SLICES];\n"
          "    struct {\n        const char *name;\n        struct golden state; /* after the last step */\n"
          "    } carry[GOLDEN_CARRIED];\n};\n")
    for name, sizes in MODELS.items():
        run(name, sizes)
    print("#endif")


if __name__ == "__main__":
    main()
