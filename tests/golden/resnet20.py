#!/usr/bin/env python3
"""resnet20.py > resnet20.h: golden values for tests/nets_golden.c from PyTorch, which shares no code with this project.

Ten training steps of ResNet-20 (batch 16, SGD with rate 0.005, momentum 0.9, weight decay 0.01; a new batch each step),
then the evaluation of one more batch. Images, labels and initial parameters come from the project's random numbers
(base/rng.h), written again here, so no data has to be kept. Everything is computed twice: in double precision, the
values that the test compares with, and in single precision: how far PyTorch itself then is from them shows what
rounding does to such a computation, and is what the test's tolerances are drawn from (RANGE_...: the largest
difference). Last run with PyTorch 1.13.0."""

import copy
import math

import numpy
import torch
from torch import nn
from torch.nn import functional

SEED, BATCH, STEPS, EVALUATED = 5, 16, 10, 100
INIT, TEST = 1, 7  # enum rng_stream of base/rng.h
RATE, MOMENTUM, DECAY = 0.005, 0.9, 0.01


def words(stream, index, count):
    """The first `count` words of Philox4x32-10 as rng_open(SEED, stream, index) gives them."""
    blocks = (count + 3) // 4
    c = [numpy.arange(blocks, dtype=numpy.uint64)] + [
        numpy.full(blocks, v, dtype=numpy.uint64) for v in (stream, index & 0xFFFFFFFF, index >> 32)
    ]
    low = numpy.uint64(0xFFFFFFFF)
    shift = numpy.uint64(32)
    key = [SEED & 0xFFFFFFFF, SEED >> 32]
    for _ in range(10):
        p0, p1 = c[0] * numpy.uint64(0xD2511F53), c[2] * numpy.uint64(0xCD9E8D57)
        c = [(p1 >> shift) ^ c[1] ^ numpy.uint64(key[0]), p1 & low, (p0 >> shift) ^ c[3] ^ numpy.uint64(key[1]), p0 & low]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return numpy.stack(c, axis=1).reshape(-1)[:count]


def normals(stream, index, count):
    """rng_normal, `count` times: four words each."""
    w = words(stream, index, 4 * count).reshape(count, 2, 2)
    uniform = (((w[:, :, 0] << numpy.uint64(32)) | w[:, :, 1]) >> numpy.uint64(11)).astype(numpy.float64) * 2.0**-53
    return numpy.sqrt(-2.0 * numpy.log(1.0 - uniform[:, 0])) * numpy.cos(6.283185307179586 * uniform[:, 1])


def batch_of(index):
    """Noise around one of ten fixed images: something to learn."""
    label = (numpy.arange(BATCH) * 7 + index) % 10
    noise = normals(TEST, index, BATCH * 3072).reshape(BATCH, 3, 32, 32)
    wave = numpy.sin((label[:, None] + 1) * (numpy.arange(3072)[None, :] % 101) * 0.05).reshape(BATCH, 3, 32, 32)
    x = (0.5 * noise + wave).astype(numpy.float32)
    return torch.from_numpy(x), torch.from_numpy(label)


class Block(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.stride, self.pad = stride, (after - before) // 2

    def forward(self, x):
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        if self.stride != 1:
            x = functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.pad, self.pad))
        return functional.relu(y + x)


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        before = 16
        for stage in range(3):
            blocks = nn.Module()
            for i in range(3):
                after = 16 << stage
                blocks.add_module(f"block{i}", Block(before, after, 2 if after != before else 1))
                before = after
            self.add_module(f"stage{stage + 1}", blocks)
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)))
        for stage in (self.stage1, self.stage2, self.stage3):
            for block in stage.children():
                x = block(x)
        return self.linear(x.mean(dim=(2, 3)))


def initialise(model):
    for number, (name, p) in enumerate(model.named_parameters()):
        if p.dim() > 1:
            deviation = math.sqrt(2.0 / (p.numel() / p.shape[0]))
            values = (deviation * normals(INIT, number, p.numel())).astype(numpy.float32)
            p.data = torch.from_numpy(values).reshape(p.shape)
        else:
            p.data.fill_(1.0 if name.endswith(".weight") else 0.0)


def sample(n):
    """Indices of the entries that are kept of a slice of n."""
    return [0, n // 3, n - 1]


def state_of(model):
    state = {}
    for name, b in model.named_buffers():
        if b.dim() == 1:
            b = b.double()
            state[name] = (b.sum().item(), [b[i].item() for i in sample(b.numel())])
    return state


def train(model, dtype):
    """(losses, {name: (sum, norm, samples)} of the first gradient, the state after one step and after all, each
    {name: (sum, samples)}, loss, correct)"""
    model = copy.deepcopy(model).to(dtype).train()
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM, weight_decay=DECAY)
    losses, gradients, states = [], {}, []
    for step in range(STEPS):
        x, y = batch_of(step)
        optimiser.zero_grad()
        loss = functional.cross_entropy(model(x.to(dtype)), y)
        loss.backward()
        losses.append(loss.item())
        for name, p in model.named_parameters() if step == 0 else ():
            g = p.grad.double().flatten()
            gradients[name] = (g.sum().item(), g.norm().item(), [g[i].item() for i in sample(g.numel())])
        optimiser.step()
        if step in (0, STEPS - 1):
            states.append(state_of(model))
    x, y = batch_of(EVALUATED)
    with torch.no_grad():
        z = model.eval()(x.to(dtype))
    return losses, gradients, states, functional.cross_entropy(z, y).item(), (z.argmax(1) == y).sum().item()


def numbers(values):
    return ", ".join(f"{v:.17g}" for v in values)


def main():
    torch.set_num_threads(1)
    model = ResNet20()
    initialise(model)
    losses, gradients, states, loss, correct = train(model, torch.float64)
    losses32, gradients32, states32, loss32, _ = train(model, torch.float32)
    differences = [abs(a - b) for a, b in zip(losses, losses32)]
    loss_range = [max(differences[: i + 1]) for i in range(STEPS)]  # once apart, runs stay apart
    gradient_range = max(
        max(abs(a - b) for a, b in zip(g[2] + [g[1]], gradients32[name][2] + [gradients32[name][1]])) / g[1]
        for name, g in gradients.items()
    )
    sum_range = max(abs(g[0] - gradients32[name][0]) / g[1] for name, g in gradients.items())
    state_range = [
        max(max(abs(a - b) / (1 + abs(a)) for a, b in zip(s[1], state32[name][1])) for name, s in state.items())
        for state, state32 in zip(states, states32)
    ]
    print("/* resnet20.h: made by tests/golden/resnet20.py with PyTorch; see there. */")
    print("#ifndef ST_TESTS_GOLDEN_RESNET20_H\n#define ST_TESTS_GOLDEN_RESNET20_H\n")
    print(f"enum {{ GOLDEN_SEED = {SEED}, GOLDEN_BATCH = {BATCH}, GOLDEN_STEPS = {STEPS}, "
          f"GOLDEN_EVALUATED = {EVALUATED} }};")
    print(f"#define GOLDEN_RATE {RATE}\n#define GOLDEN_DECAY {DECAY}\n")
    print("/* Largest differences between single and double precision in PyTorch itself. Losses up to each step; gradients and their sums,\n"
          " * relative to the slice's norm; running statistics, relative to 1 + their size; the evaluated loss. */")
    print(f"static const double range_losses[] = {{{numbers(loss_range)}}};")
    print(f"static const double range_state[] = {{{numbers(state_range)}}};")
    print(f"static const double range_gradient = {gradient_range:.17g}, range_sum = {sum_range:.17g},")
    print(f"                    range_evaluation = {abs(loss - loss32):.17g};\n")
    print("/* Mean loss of each step. */")
    print(f"static const double golden_losses[] = {{{numbers(losses)}}};\n")
    print("/* Of each parameter slice after the first backward pass: sum and norm of the gradient, entries 0, n/3, n-1. */")
    print("static const struct {\n    const char *name;\n    double sum, norm, entry[3];\n} golden_gradients[] = {")
    for name, (total, norm, entries) in gradients.items():
        print(f'    {{"{name}", {total:.17g}, {norm:.17g}, {{{numbers(entries)}}}}},')
    print("};\n\n/* Of each slice of the running statistics, after the first step and after all: sum, entries 0, n/3, n-1. */")
    print("static const struct {\n    const char *name;\n    double sum[2], entry[2][3];\n} golden_state[] = {")
    for name in states[0]:
        (sum1, entries1), (sum2, entries2) = (state[name] for state in states)
        print(f'    {{"{name}", {{{sum1:.17g}, {sum2:.17g}}}, {{{{{numbers(entries1)}}}, {{{numbers(entries2)}}}}}}},')
    print("};\n\n/* Mean loss and correct answers of the evaluated batch. */")
    print(f"static const double golden_evaluation = {loss:.17g};")
    print(f"static const int golden_correct = {correct};\n\n#endif")


if __name__ == "__main__":
    main()
