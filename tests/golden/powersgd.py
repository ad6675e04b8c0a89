#!/usr/bin/env python3
"""powersgd.py > powersgd.h: golden values for tests/exchanges/comm_powersgd.c from PyTorch's own powerSGD_hook, with as many
processes over Gloo as there are ranks.

Gradients are the project's random numbers (base/rng.h), written again in common.py, a new one for each rank and step, to
which each slice adds a matrix of rank 2 that stays: of noise alone the directions are so ill determined that in ten steps
rounding shows in the fifth digit. The hook is given the first directions of comm/algorithms/powersgd.c where it keeps those of the step before (warm start), so
that it draws none; it compresses from the first step on. Kept are the means of all steps at some entries of each slice, and
what rank 0 has in its error then, in double precision; golden_range is how far single precision is from that in PyTorch
itself, of a number x in units of 1 + |x|. Last run with PyTorch 2.15.0."""

import os
import sys
import tempfile

import numpy
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook

from common import SEED, TEST, normals, words

DIRECTIONS = 16  # RNG_DIRECTIONS of base/rng.h
SHAPES = ((20, 20), (20,), (10, 20), (10,), (8, 5, 3, 2), (4, 3), (10, 20))
WORLDS, RANKS, STEPS = (2, 3), (1, 2, 4), 10
SIZES = [int(numpy.prod(shape)) for shape in SHAPES]
FROM = [sum(SIZES[:i]) for i in range(len(SIZES))]
ENTRIES = [start + size * i // 5 + i % 2 for start, size in zip(FROM, SIZES) for i in range(5)]


class Bucket:
    """What the hook reads of torch.distributed.GradBucket: one bucket with all gradients."""

    def __init__(self, gradient):
        self.whole = gradient

    def index(self):
        return 0

    def buffer(self):
        return self.whole

    def gradients(self):
        return [self.whole[start : start + size].view(shape) for start, size, shape in zip(FROM, SIZES, SHAPES)]

    def is_last(self):
        return True


def signal():
    """What all gradients have: of each slice a matrix of rank 2."""
    parts = []
    for size, shape in zip(SIZES, SHAPES):
        i, j = numpy.divmod(numpy.arange(size), size // shape[0] if shape[1:] else size)
        parts.append(2 * (i % 3 - 1) * (j % 4 - 1.5) + (i % 2 - 0.5) * (j % 5 - 2))
    return numpy.concatenate(parts)


def uniform(index, count):
    """rng_uniform, `count` times."""
    w = words(DIRECTIONS, index, 2 * count).reshape(count, 2)
    return (((w[:, 0] << numpy.uint64(32)) | w[:, 1]) >> numpy.uint64(11)).astype(numpy.float64) * 2.0**-53


def first_directions(r):
    """[cols, r] of each matrix that is compressed, in the hook's order: by shape, as it first meets them."""
    by_shape = {}
    for start, shape in zip(FROM, SHAPES):
        rows, cols = shape[0], int(numpy.prod(shape[1:]))
        if 2 * r * (rows + cols) < rows * cols:
            q = numpy.stack([2 * uniform(start + c, cols) - 1 for c in range(r)], axis=1)
            by_shape.setdefault((rows, cols), []).append((rows, q.astype(numpy.float32)))
    return [pair for pairs in by_shape.values() for pair in pairs]


def train(r, dtype):
    """Means [STEPS][ENTRIES], and this rank's error in the end [ENTRIES]."""
    state = PowerSGDState(None, matrix_approximation_rank=r, start_powerSGD_iter=2, min_compression_rate=2)
    first = first_directions(r)
    state.iter = 2
    state.q_memory_dict[0] = torch.from_numpy(numpy.concatenate([q.reshape(-1) for _, q in first])).to(dtype)
    state.p_memory_dict[0] = torch.zeros(sum(rows * r for rows, _ in first), dtype=dtype)
    means = []
    for step in range(STEPS):
        gradient = (normals(TEST, 1000 * dist.get_rank() + step, sum(SIZES)) + signal()).astype(numpy.float32)
        mean = powerSGD_hook(state, Bucket(torch.from_numpy(gradient).to(dtype))).wait()
        means.append(mean[ENTRIES].tolist())
    return means, state.error_dict[0][ENTRIES].tolist()


def work(rank, world, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=world)
    found = [[train(r, dtype) for r in RANKS] for dtype in (torch.float64, torch.float32)]
    if rank == 0:
        torch.save(found, f"{folder}/found")
    dist.destroy_process_group()


def of_world(world):
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, args=(world, folder), nprocs=world)
        return torch.load(os.path.join(folder, "found"))


def line(values):
    return "{" + ", ".join(f"{v:.8g}" for v in values) + "}"


def apart(double, single):
    """Largest difference between the means of two trainings."""
    return max(abs(x - y) / (1 + abs(x)) for a, b in zip(double[0], single[0]) for x, y in zip(a, b))


def main():
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    both = [of_world(world) for world in WORLDS]
    found = [double for double, _ in both]
    most = max(apart(*pair) for double, single in both for pair in zip(double, single))
    print("/* powersgd.h: made by tests/golden/powersgd.py with PyTorch's powerSGD_hook; see there. */")
    print("#ifndef ST_TESTS_GOLDEN_POWERSGD_H\n#define ST_TESTS_GOLDEN_POWERSGD_H\n")
    print(f"enum {{ GOLDEN_SEED = {SEED}, GOLDEN_N = {sum(SIZES)}, GOLDEN_SLICES = {len(SHAPES)}, GOLDEN_STEPS = {STEPS} }};")
    print(f"enum {{ GOLDEN_WORLDS = {len(WORLDS)}, GOLDEN_RANKS = {len(RANKS)}, GOLDEN_ENTRIES = {len(ENTRIES)} }};\n")
    print("/* Where slices begin, their rows and columns. */")
    slices = ", ".join(f"{{{start}, {s[0] if s[1:] else 1}, {size // s[0] if s[1:] else size}}}" for start, size, s in zip(FROM, SIZES, SHAPES))
    print(f"static const size_t golden_slice[GOLDEN_SLICES][3] = {{{slices}}};")
    print(f"static const int golden_world[] = {{{', '.join(map(str, WORLDS))}}};")
    print(f"static const int golden_rank[] = {{{', '.join(map(str, RANKS))}}};")
    print(f"static const size_t golden_entry[] = {{{', '.join(map(str, ENTRIES))}}};")
    print(f"static const double golden_range = {most:.3g};\n")
    print("/* Means over the ranks at these entries after each step. */")
    print("static const double golden_mean[GOLDEN_WORLDS][GOLDEN_RANKS][GOLDEN_STEPS][GOLDEN_ENTRIES] = {")
    for ranks in found:
        print("    {" + ",\n     ".join("{" + ",\n      ".join(map(line, means)) + "}" for means, _ in ranks) + "},")
    print("};\n\n/* The error of rank 0 after the last step. */")
    print("static const double golden_error[GOLDEN_WORLDS][GOLDEN_RANKS][GOLDEN_ENTRIES] = {")
    for ranks in found:
        print("    {" + ",\n     ".join(line(error) for _, error in ranks) + "},")
    print("};\n\n#endif")


if __name__ == "__main__":
    main()
