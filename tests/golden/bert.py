#!/usr/bin/env python3
"""bert.py > bert.h: golden values for tests/nets/nets_golden_bert.c from PyTorch, which shares no code with this project.

Ten steps of two small encoders as nets/models/bert.c has them, both losses added up: one without dropout, one with it
everywhere. Windows are padded, some of the chosen rows have no label. AdamW as in gpt.py. What comes in, initial parameters and
dropout masks come from the project's random numbers (common.py). Computed in double precision, and in single precision to see
what rounding does (range_...: the largest difference of a loss, and of a gradient relative to its norm). Last run with
PyTorch 1.13.0."""

import math

import numpy
import torch
from torch import nn
from torch.nn import functional

from common import DROPOUT, INIT, SEED, TEST, normals, numbers, words
from gpt import BETA1, BETA2, DECAY, RATE, STEPS, apart, line, rates, summary

TYPES, POSITIONS = 2, 512
PIECE = 1 << 20  # entries of a matrix
# name: batch, rows of a window, vocabulary, blocks, heads, features, chosen rows, dropped
MODELS = {
    "plain": (4, 10, 31, 2, 3, 24, 3, 0.0),
    "dropping": (3, 7, 23, 1, 2, 16, 2, 0.2),
}


def window_of(index, batch, context, vocabulary, chosen):
    """Tokens and types [batch][context], lengths [batch], chosen rows and their labels [batch][chosen], next [batch]."""
    rows, places = batch * context, batch * chosen
    w = words(TEST, index, 2 * rows + 2 * batch + 2 * places).astype(numpy.int64)
    token, types, lengths, row, label, following = numpy.split(
        w, numpy.cumsum([rows, rows, batch, places, places]))
    lengths = 1 + lengths % context
    row = row.reshape(batch, chosen) % lengths[:, None]
    tensors = (token % vocabulary, types % TYPES, lengths, row, label % (vocabulary + 1) - 1, following % 2)
    shapes = ((batch, context), (batch, context), (batch,), (batch, chosen), (batch, chosen), (batch,))
    return [torch.from_numpy(numpy.ascontiguousarray(t)).reshape(s) for t, s in zip(tensors, shapes)]


class Norm(nn.LayerNorm):
    def __init__(self, features):
        super().__init__(features, eps=1e-12)


class Attention(nn.Module):
    def __init__(self, features, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(features, 3 * features)
        self.out = nn.Linear(features, features)

    def forward(self, x, lengths, drop, number):
        batch, context, features = x.shape
        q, k, v = (t.reshape(batch, context, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(features / self.heads)
        padding = torch.arange(context)[None, :] >= lengths[:, None]
        p = drop(scores.masked_fill(padding[:, None, None, :], -math.inf).softmax(-1), number)
        return self.out((p @ v).transpose(1, 2).reshape(batch, context, features))


class MLP(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.add_module("in", nn.Linear(features, 4 * features))
        self.out = nn.Linear(4 * features, features)

    def forward(self, x):
        return self.out(functional.gelu(getattr(self, "in")(x)))


class Block(nn.Module):
    def __init__(self, features, heads):
        super().__init__()
        self.attention, self.norm1 = Attention(features, heads), Norm(features)
        self.mlp, self.norm2 = MLP(features), Norm(features)

    def forward(self, x, lengths, drop, first):
        """first: number of the block's first layer where layers are counted as in bert.c"""
        x = self.norm1(x + drop(self.attention(x, lengths, drop, first + 1), first + 3))
        return self.norm2(x + drop(self.mlp(x), first + 9))


class Transform(nn.Linear):
    def __init__(self, features):
        super().__init__(features, features)
        self.norm = Norm(features)

    def forward(self, x):
        return self.norm(functional.gelu(super().forward(x)))


class BERT(nn.Module):
    def __init__(self, vocabulary, blocks, heads, features, dropped):
        super().__init__()
        self.dropped = dropped
        self.embedding = nn.Embedding(vocabulary, features)
        self.position = nn.Embedding(POSITIONS, features)
        self.segment = nn.Embedding(TYPES, features)
        self.norm = Norm(features)
        for i in range(blocks):
            self.add_module(f"block{i}", Block(features, heads))
        self.transform = Transform(features)
        self.decoder = nn.Linear(features, vocabulary)
        self.pooler = nn.Linear(features, features)
        self.next = nn.Linear(features, 2)

    def forward(self, token, types, lengths, row, step):
        def drop(x, number):
            if step is None or self.dropped == 0:
                return x
            kept = words(DROPOUT + 256 * number, step, x.numel()) >= numpy.uint64(int(self.dropped * 2**32))
            return x * torch.from_numpy(kept).reshape(x.shape) / (1 - self.dropped)

        x = self.embedding(token) + self.position.weight[: token.shape[1]] + self.segment(types)
        x = drop(self.norm(x), 4)
        for i, block in enumerate(m for name, m in self.named_children() if name.startswith("block")):
            x = block(x, lengths, drop, 5 + 12 * i)
        chosen = x[torch.arange(x.shape[0])[:, None], row]
        return self.decoder(self.transform(chosen)), self.next(torch.tanh(self.pooler(x[:, 0])))


def initialise(model):
    """Piece by piece, as the numbers of a large matrix take many times its memory on their way."""
    for number, (name, p) in enumerate(model.named_parameters()):
        if p.dim() > 1:
            for first in range(0, p.numel(), PIECE):
                part = p.data.view(-1)[first:first + PIECE]
                part.copy_(torch.from_numpy((0.02 * normals(INIT, number, part.numel(), first)).astype(numpy.float32)))
        elif name.endswith("bias"):
            p.data.zero_()


def losses_of(model, inputs, step):
    token, types, lengths, row, label, following = inputs
    words_at, sentence = model(token, types, lengths, row, step)
    return (functional.cross_entropy(words_at.flatten(0, 1), label.flatten(), ignore_index=-1),
            functional.cross_entropy(sentence, following))


def train(batch, context, vocabulary, blocks, heads, features, chosen, dropped, dtype):
    """pairs of losses, {slice: gradient of the first and of the last step}, the losses of an evaluation"""
    model = BERT(vocabulary, blocks, heads, features, dropped)
    initialise(model)
    model = model.to(dtype)
    groups = [{"params": [p for p in model.parameters() if (p.dim() > 1) == decays], "weight_decay": DECAY if decays else 0.0}
              for decays in (True, False)]
    optimiser = torch.optim.AdamW(groups, lr=RATE, betas=(BETA1, BETA2))
    losses, gradients = [], {}
    for step, rate in enumerate(rates()):
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.zero_grad()
        both = losses_of(model, window_of(step, batch, context, vocabulary, chosen), step)
        sum(both).backward()
        losses.append([loss.item() for loss in both])
        for name, p in model.named_parameters() if step in (0, STEPS - 1) else ():
            gradients.setdefault(name, []).append(summary(p.grad))
        optimiser.step()
    with torch.no_grad():
        evaluation = losses_of(model, window_of(STEPS, batch, context, vocabulary, chosen), None)
    return losses, gradients, [loss.item() for loss in evaluation]


def run(name, model):
    """The values of one model, as a struct golden_run."""
    losses, gradients, evaluation = train(*model, torch.float64)
    losses32, gradients32, evaluation32 = train(*model, torch.float32)
    loss_range = max(abs(a - b) for x, y in zip(losses + [evaluation], losses32 + [evaluation32]) for a, b in zip(x, y))
    range_of = [max(apart(g[k], gradients32[slice][k]) for slice, g in gradients.items()) for k in range(2)]
    fields = ("batch", "context", "vocabulary", "blocks", "heads", "features", "chosen", "dropped")
    print(f"static const struct golden_run golden_{name} = {{")
    print("    " + " ".join(f".{field} = {value}," for field, value in zip(fields, model)))
    print(f"    .range_losses = {loss_range:.17g}, .range_slices = {{{numbers(range_of)}}},")
    print("    .losses = {" + ", ".join(f"{{{numbers(both)}}}" for both in losses) + "},")
    print(f"    .evaluation = {{{numbers(evaluation)}}},")
    print(f"    .slices = {len(gradients)},")
    print("    .gradients = {")
    for slice, (first, last) in gradients.items():
        print(f'    {{"{slice}", {{{line(first)}, {line(last)}}}}},')
    print("    },\n};\n")


def main():
    torch.set_num_threads(1)
    print("/* bert.h: made by tests/golden/bert.py with PyTorch; see there. */")
    print("#ifndef ST_TESTS_GOLDEN_BERT_H\n#define ST_TESTS_GOLDEN_BERT_H\n\n#include \"tests/lib/nets_golden_slices.h\"\n")
    print(f"enum {{ GOLDEN_SEED = {SEED}, GOLDEN_STEPS = {STEPS}, GOLDEN_SLICES_MAX = 40 }};")
    print(f"#define GOLDEN_BETA1 {BETA1}\n#define GOLDEN_BETA2 {BETA2}\n#define GOLDEN_DECAY {DECAY}")
    print(f"static const double golden_rates[GOLDEN_STEPS] = {{{numbers(rates())}}};\n")
    print("struct golden_run {\n    int batch, context, vocabulary, blocks, heads, features, chosen;\n    double dropped;\n"
          "    /* Largest differences between single and double precision in PyTorch itself: of losses, and of gradients of\n"
          "     * the first and of the last step, relative to the slice's norm. */\n"
          "    double range_losses, range_slices[2];\n"
          "    /* Means, of masked words and of next sentences: of each step, of a batch that is evaluated in the end. */\n"
          "    double losses[GOLDEN_STEPS][2], evaluation[2];\n"
          "    int slices;\n"
          "    struct {\n        const char *name;\n        struct golden step[2]; /* the first and the last */\n"
          "    } gradients[GOLDEN_SLICES_MAX];\n"
          "};\n")
    for name, model in MODELS.items():
        run(name, model)
    print("#endif")


if __name__ == "__main__":
    main()
