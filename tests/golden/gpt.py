#!/usr/bin/env python3
"""gpt.py > gpt.h: golden values for tests/nets/nets_golden_gpt.c from PyTorch, which shares no code with this project.

Ten steps of two decoders as nets/models/gpt.c has them: the preset char-cpu (without biases, exact GELU, nothing dropped), and a
small one with biases, the tanh form of GELU and dropout everywhere. AdamW, whose rate changes with each step; only matrices
decay. Tokens, initial parameters and dropout masks come from the project's random numbers (common.py). Computed in double
precision, and in single precision to see what rounding does (range_...: the largest difference of a loss, and of a gradient
relative to its norm). Last run with PyTorch 1.13.0."""

import math

import numpy
import torch
from torch import nn
from torch.nn import functional

from common import DROPOUT, INIT, SEED, TEST, normals, numbers, sample, words

STEPS, RATE, BETA1, BETA2, DECAY = 10, 1e-3, 0.9, 0.99, 0.1
# name: batch, context, vocabulary, blocks, heads, features, biases, tanh, dropped
MODELS = {
    "char_cpu": (12, 64, 65, 4, 4, 128, False, False, 0.0),
    "small": (3, 7, 19, 2, 3, 24, True, True, 0.3),
}


def rates():
    """A warm-up of three steps and a cosine down to a tenth."""
    return [
        RATE * (t + 1) / 4 if t < 3 else RATE * (0.1 + 0.9 * (1 + math.cos(math.pi * (t - 3) / (STEPS - 3))) / 2)
        for t in range(STEPS)
    ]


def window_of(index, batch, context, vocabulary):
    """Tokens and labels, [batch][context]: words modulo the vocabulary."""
    w = words(TEST, index, 2 * batch * context) % numpy.uint64(vocabulary)
    w = torch.from_numpy(w.astype(numpy.int64)).reshape(2, batch, context)
    return w[0], w[1]


class Norm(nn.Module):
    def __init__(self, features, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features)) if bias else None

    def forward(self, x):
        return functional.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class Attention(nn.Module):
    def __init__(self, features, heads, bias):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(features, 3 * features, bias=bias)
        self.out = nn.Linear(features, features, bias=bias)

    def forward(self, x, drop, number):
        batch, context, features = x.shape
        q, k, v = (t.reshape(batch, context, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(features / self.heads)
        later = torch.triu(torch.ones(context, context, dtype=torch.bool), 1)
        p = drop(scores.masked_fill(later, -math.inf).softmax(-1), number)
        return self.out((p @ v).transpose(1, 2).reshape(batch, context, features))


class MLP(nn.Module):
    def __init__(self, features, bias, tanh):
        super().__init__()
        self.add_module("in", nn.Linear(features, 4 * features, bias=bias))
        self.out = nn.Linear(4 * features, features, bias=bias)
        self.form = "tanh" if tanh else "none"

    def forward(self, x):
        return self.out(functional.gelu(getattr(self, "in")(x), approximate=self.form))


class Block(nn.Module):
    def __init__(self, features, heads, bias, tanh):
        super().__init__()
        self.norm1, self.attention = Norm(features, bias), Attention(features, heads, bias)
        self.norm2, self.mlp = Norm(features, bias), MLP(features, bias, tanh)

    def forward(self, x, drop, first):
        """first: number of the block's first layer where layers are counted as in gpt.c"""
        x = x + drop(self.attention(self.norm1(x), drop, first + 2), first + 4)
        return x + drop(self.mlp(self.norm2(x)), first + 10)


class GPT(nn.Module):
    def __init__(self, context, vocabulary, blocks, heads, features, bias, tanh, dropped):
        super().__init__()
        self.dropped = dropped
        self.embedding = nn.Embedding(vocabulary, features)
        self.position = nn.Embedding(context, features)
        for i in range(blocks):
            self.add_module(f"block{i}", Block(features, heads, bias, tanh))
        self.norm = Norm(features, bias)

    def forward(self, token, step):
        def drop(x, number):
            if step is None or self.dropped == 0:
                return x
            kept = words(DROPOUT + 256 * number, step, x.numel()) >= numpy.uint64(int(self.dropped * 2**32))
            return x * torch.from_numpy(kept).reshape(x.shape) / (1 - self.dropped)

        x = drop(self.embedding(token) + self.position.weight, 2)
        blocks = [m for name, m in self.named_children() if name.startswith("block")]
        for i, block in enumerate(blocks):
            x = block(x, drop, 3 + 12 * i)
        return self.norm(x) @ self.embedding.weight.T


def initialise(model, blocks):
    for number, (name, p) in enumerate(model.named_parameters()):
        if p.dim() > 1:
            deviation = 0.02 / (math.sqrt(2 * blocks) if ".out." in name else 1)
            values = deviation * normals(INIT, number, p.numel())
            p.data = torch.from_numpy(values.astype(numpy.float32)).reshape(p.shape)
        elif name.endswith("bias"):
            p.data.zero_()


def summary(t):
    t = t.double().flatten()
    return (t.sum().item(), t.norm().item(), [t[i].item() for i in sample(t.numel())])


def train(batch, context, vocabulary, blocks, heads, features, bias, tanh, dropped, dtype):
    """losses, {slice: gradient of the first and of the last step}, loss of an evaluation"""
    model = GPT(context, vocabulary, blocks, heads, features, bias, tanh, dropped)
    initialise(model, blocks)
    model = model.to(dtype)
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() == 1]
    groups = [{"params": matrices, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=RATE, betas=(BETA1, BETA2))
    losses, gradients = [], {}
    for step, rate in enumerate(rates()):
        for group in optimiser.param_groups:
            group["lr"] = rate
        token, label = window_of(step, batch, context, vocabulary)
        optimiser.zero_grad()
        loss = functional.cross_entropy(model(token, step).reshape(-1, vocabulary), label.reshape(-1))
        loss.backward()
        losses.append(loss.item())
        for name, p in model.named_parameters() if step in (0, STEPS - 1) else ():
            gradients.setdefault(name, []).append(summary(p.grad))
        optimiser.step()
    token, label = window_of(STEPS, batch, context, vocabulary)
    with torch.no_grad():
        evaluation = functional.cross_entropy(model(token, None).reshape(-1, vocabulary), label.reshape(-1))
    return losses, gradients, evaluation.item()


def apart(a, b):
    return max(abs(x - y) for x, y in zip([a[0], a[1]] + a[2], [b[0], b[1]] + b[2])) / a[1]


def line(s):
    return f"{{{s[0]:.17g}, {s[1]:.17g}, {{{numbers(s[2])}}}}}"


def run(name, model):
    """The values of one model, as a struct golden_run."""
    batch, context, vocabulary, blocks, heads, features, bias, tanh, dropped = model
    losses, gradients, loss = train(*model, torch.float64)
    losses32, gradients32, loss32 = train(*model, torch.float32)
    loss_range = max(abs(a - b) for a, b in zip(losses + [loss], losses32 + [loss32]))
    range_of = [max(apart(g[k], gradients32[slice][k]) for slice, g in gradients.items()) for k in range(2)]
    print(f"static const struct golden_run golden_{name} = {{")
    print(f"    .batch = {batch}, .context = {context}, .vocabulary = {vocabulary}, .blocks = {blocks}, .heads = {heads},")
    print(f"    .features = {features}, .bias = {str(bias).lower()}, .tanh = {str(tanh).lower()}, .dropped = {dropped},")
    print(f"    .range_losses = {loss_range:.17g}, .range_slices = {{{numbers(range_of)}}},")
    print(f"    .losses = {{{numbers(losses)}}},")
    print(f"    .evaluation = {loss:.17g},")
    print(f"    .slices = {len(gradients)},")
    print("    .gradients = {")
    for slice, (first, last) in gradients.items():
        print(f'    {{"{slice}", {{{line(first)}, {line(last)}}}}},')
    print("    },\n};\n")


def main():
    torch.set_num_threads(1)
    print("/* gpt.h: made by tests/golden/gpt.py with PyTorch; see there. */")
    print("#ifndef ST_TESTS_GOLDEN_GPT_H\n#define ST_TESTS_GOLDEN_GPT_H\n\n#include \"tests/lib/nets_golden_slices.h\"\n\n#include <stdbool.h>\n")
    print(f"enum {{ GOLDEN_SEED = {SEED}, GOLDEN_STEPS = {STEPS}, GOLDEN_SLICES_MAX = 28 }};")
    print(f"#define GOLDEN_BETA1 {BETA1}\n#define GOLDEN_BETA2 {BETA2}\n#define GOLDEN_DECAY {DECAY}")
    print(f"static const double golden_rates[GOLDEN_STEPS] = {{{numbers(rates())}}};\n")
    print("struct golden_run {\n    int batch, context, vocabulary, blocks, heads, features;\n    bool bias, tanh;\n"
          "    double dropped;\n"
          "    /* Largest differences between single and double precision in PyTorch itself: of losses, and of gradients of\n"
          "     * the first and of the last step, relative to the slice's norm. */\n"
          "    double range_losses, range_slices[2];\n"
          "    double losses[GOLDEN_STEPS], evaluation; /* means: of each step, of a batch that is evaluated in the end */\n"
          "    int slices;\n"
          "    struct {\n        const char *name;\n        struct golden step[2]; /* the first and the last */\n"
          "    } gradients[GOLDEN_SLICES_MAX];\n"
          "};\n")
    for name, model in MODELS.items():
        run(name, model)
    print("#endif")


if __name__ == "__main__":
    main()
