#!/usr/bin/env python3
"""bert_base.py RUN.jsonl PAIRS.jsonl [--double]: does PyTorch, which shares no code with this project, train the same encoder on the
same pairs to the same losses? Made for --preset base, 133,547,324 parameters, and takes any.

RUN.jsonl: the log of a run of --model bert --dropout 0 with dense gradients, on P ranks. PAIRS.jsonl: the pairs that it was trained
on, as `sparsetrain data show --json` prints them. The encoder is bert.py's; its initial parameters come from the project's random
numbers, written again (common.py). Each rank's loss is the mean over its masked words plus that over its pairs; the gradient is the
mean over the ranks, clipped by its norm; then AdamW, in which matrices alone decay, at a rate that rises and falls linearly.
Everything is in single precision, as in the run; with --double, in double.

Prints a table in Markdown, and says what exceeds what it may: then the exit status is 1. 2: not such a run.

What rounding does: PyTorch in single and in double precision, of BERT-base and ten steps of two ranks at the full rate, differ by at
most 2.3e-7 of a loss and 2.1e-7 of a gradient's norm, and the program from double by 1.2e-7 and 1.9e-7. RANGE is ten times that. What
it tells apart, of BERT-tiny and the same steps: without weight decay the norm differs by 5.1e-6, with 0.99 for beta2, 1e-6 for epsilon
or without clipping losses do by 2.0e-4 to 1.3e-3. Last run with PyTorch 2.15.0."""

import json
import math
import sys

import torch
from torch.nn import functional

import common
from bert import BERT, initialise

RANGE = 2e-6  # of a loss and of a norm, relative
WANTED = {"model": "bert", "algo": "dense", "optimiser": "adamw", "accumulate": 1, "clip-at": "update", "lr-schedule": "linear",
          "dropout": 0, "precision": "f32", "init-from": None}


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def mistake(text):
    print(f"bert_base.py: {text}", file=sys.stderr)
    sys.exit(2)


def rate(config, steps, t):
    """Of step t from 0: up to the rate over the first W steps, then down to 0 at the end of all."""
    base, rise = config["lr"], config["lr-warmup-steps"]
    return base * (t + 1) / (rise + 1) if t < rise else base * (steps - t) / (steps - rise)


def inputs_of(pairs):
    """Tensors of a batch, in the order that losses_of takes them."""
    return [torch.tensor([pair[key] for pair in pairs]) for key in ("token", "type", "length", "chosen", "y", "next")]


class Sums:
    """What the ranks of a step add up to."""

    def __init__(self):
        self.words = self.pairs = 0
        self.word_loss = self.next_loss = 0.0

    def add(self, model, inputs, ranks):
        """A rank's loss and its part of the mean gradient."""
        token, types, lengths, row, label, following = inputs
        logits, sentence = model(token, types, lengths, row, None)
        word_loss = functional.cross_entropy(logits.flatten(0, 1), label.flatten(), ignore_index=-1)
        next_loss = functional.cross_entropy(sentence, following)
        ((word_loss + next_loss) / ranks).backward()
        words = int((label >= 0).sum())
        self.words, self.pairs = self.words + words, self.pairs + len(following)
        self.word_loss += word_loss.item() * words
        self.next_loss += next_loss.item() * len(following)


def clip(model, limit):
    """The norm of the gradient, which is scaled down to the limit where it is longer."""
    norm = math.sqrt(sum(torch.linalg.vector_norm(p.grad, dtype=torch.float64).item() ** 2 for p in model.parameters()))
    if norm > limit > 0:
        for p in model.parameters():
            p.grad.mul_(limit / norm)
    return norm


def train(header, count, pairs, dtype):
    """For each step: masked words, their loss, that of next sentences, the norm of the gradient, the learning rate."""
    config, ranks, batch = header["config"], header["ranks"], header["config"]["batch"]
    common.SEED = config["seed"]
    model = BERT(header["vocabulary"], config["layers"], config["heads"], config["hidden"], 0.0)
    parameters = sum(p.numel() for p in model.parameters())
    if parameters != header["parameters"]:
        mistake(f"the run has {header['parameters']} parameters, PyTorch's encoder {parameters}")
    initialise(model)
    model = model.to(dtype)
    groups = [{"params": [p for p in model.parameters() if (p.dim() > 1) == decays],
               "weight_decay": config["weight-decay"] if decays else 0.0} for decays in (True, False)]
    optimiser = torch.optim.AdamW(groups, lr=config["lr"], betas=(config["beta1"], config["beta2"]), eps=config["epsilon"])
    for t in range(count):
        sums, lr = Sums(), rate(config, header["steps"], t)
        optimiser.zero_grad()
        for r in range(ranks):
            first = (t * ranks + r) * batch
            sums.add(model, inputs_of(pairs[first:first + batch]), ranks)
        norm = clip(model, config["clip-norm"])
        for group in optimiser.param_groups:
            group["lr"] = lr
        optimiser.step()
        yield sums.words, sums.word_loss / sums.words, sums.next_loss / sums.pairs, norm, lr


def compared(ours, theirs):
    """Theirs against a row of the log: the line of the table, the largest relative differences of a loss and of a norm."""
    words, word_loss, next_loss, norm, lr = theirs
    if ours["samples"] != words:
        mistake(f"step {ours['step']}: {ours['samples']} masked words in the run, {words} in the pairs: these are others")
    if abs(ours["lr"] - lr) > 1e-12 * lr:
        mistake(f"step {ours['step']}: the run's learning rate is {ours['lr']}, not {lr}")
    both = ((ours["loss"], word_loss), (ours["next_loss"], next_loss), (ours["gradient_norm_mean"], norm))
    apart = [(a - b) / b for a, b in both]
    cells = " | ".join(f"{a:.6f} | {b:.6f} | {d:+.1e}" for (a, b), d in zip(both, apart))
    return f"| {ours['step']} | {lr:.3g} | {words} | {cells} |", max(map(abs, apart[:2])), abs(apart[2])


def main():
    words = [word for word in sys.argv[1:] if word != "--double"]
    if len(words) != 2:
        mistake("RUN.jsonl and PAIRS.jsonl are wanted, and nothing else but --double")
    rows, pairs = rows_of(words[0]), rows_of(words[1])
    header = rows[0]
    steps = [row for row in rows if row["type"] == "step"]
    for key, value in WANTED.items():
        if (header["config"][key] or None) != (value or None):
            mistake(f"--{key} of the run is {header['config'][key]}, not {value}")
    if len(pairs) < len(steps) * header["ranks"] * header["config"]["batch"]:
        mistake(f"{len(pairs)} pairs are too few for {len(steps)} steps")
    print("| step | rate | masked words | loss of these | PyTorch | apart | next-sentence loss | PyTorch | apart | gradient norm | PyTorch "
          "| apart |\n" + "|---" * 12 + "|")
    losses = norms = 0.0  # the largest differences
    for ours, theirs in zip(steps, train(header, len(steps), pairs, torch.float64 if "--double" in sys.argv else torch.float32)):
        line, loss, norm = compared(ours, theirs)
        losses, norms = max(losses, loss), max(norms, norm)
        print(line, flush=True)
    fine = max(losses, norms) <= RANGE
    print(f"\nPyTorch {torch.__version__.split('+')[0]}, {header['parameters']} parameters. The largest relative difference of a loss is "
          f"{losses:.1e}, of a gradient's norm {norms:.1e}; {RANGE:.0e} is allowed{'' if fine else ': TOO MUCH'}.")
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
