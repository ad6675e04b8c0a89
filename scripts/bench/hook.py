#!/usr/bin/env python3
"""hook.py: what a step of PyTorch's DistributedDataParallel takes with its own allreduce (Gloo) and with the exchanges
of sparsetrain in its place, under mpirun:

    PYTHONPATH=comm/torch mpirun -np 2 python3 scripts/bench/hook.py [--rounds 7] [--steps 10]

A perceptron of 4.2 million parameters, batch 32, a thread a rank. The variants run in turn in every round; medians over the
rounds of the slowest rank's time of a step. Rank 0 prints."""

import argparse
import statistics
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import sparsetrain

VARIANTS = (
    ("DDP's allreduce", None),
    ("dense", {"algo": "dense", "group_bytes": None}),
    ("dense, by groups", {"algo": "dense"}),
    ("gtopk, 0.01", {"algo": "gtopk", "density": 0.01, "group_bytes": None}),
    ("gtopk, 0.01, by groups", {"algo": "gtopk", "density": 0.01}),
)


class Variant:
    def __init__(self, name, options):
        self.name, self.seconds = name, []
        torch.manual_seed(1)
        layers = []
        for _ in range(4):
            layers += [torch.nn.Linear(1024, 1024), torch.nn.ReLU()]
        self.model = DistributedDataParallel(torch.nn.Sequential(*layers))
        self.optimiser = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.x = torch.randn(32, 1024)
        if options is not None:
            sparsetrain.register(self.model, **options)

    def run(self, steps):
        dist.barrier()
        begin = time.monotonic()
        for _ in range(steps):
            self.optimiser.zero_grad()
            self.model(self.x).square().mean().backward()
            self.optimiser.step()
        slowest = torch.tensor((time.monotonic() - begin) / steps, dtype=torch.float64)
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        return slowest.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=10)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    sparsetrain.init_process_group("gloo")
    variants = [Variant(name, options) for name, options in VARIANTS]
    for variant in variants:
        variant.run(3)
    for _ in range(asked.rounds):
        for variant in variants:
            variant.seconds.append(variant.run(asked.steps))
    if dist.get_rank() == 0:
        own = statistics.median(variants[0].seconds)
        print(f"PyTorch {torch.__version__}, sparsetrain {sparsetrain.version()}, {dist.get_world_size()} ranks on one machine")
        print(f"{'exchange':24} {'step ms':>9} {'of the first':>12} {'least':>9} {'most':>9}")
        for variant in variants:
            median = statistics.median(variant.seconds)
            print(f"{variant.name:24} {1e3 * median:9.2f} {median / own:12.2f} {1e3 * min(variant.seconds):9.2f} {1e3 * max(variant.seconds):9.2f}")
    dist.barrier()


main()
