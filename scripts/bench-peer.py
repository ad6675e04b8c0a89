#!/usr/bin/env python3
"""bench-peer.py BINARY [--rounds N] [--steps N] [--batch LIST] [--json]: ResNet-20 training, f32, one thread, of
sparsetrain next to PyTorch on this machine, now. Both do forward, backward and an SGD step with momentum on random
32x32 images. They run in turn, round after round, so that a machine whose speed wanders slows both alike; a row gives
the medians, and the median of the rounds' ratios. PyTorch runs in both of its layouts; the better one counts.
Without PyTorch: one line that says so."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
os.environ.pop("OPENBLAS_CORETYPE", None)  # a leftover of other machines: it can halve PyTorch's matrix products

try:
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError:
    print("skipped: torch is not installed")
    sys.exit(0)


class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut without parameters (option A)."""

    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.stride, self.pad = stride, (after - before) // 2

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        if self.stride != 1:
            x = functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.pad, self.pad))
        return functional.relu(y + x, inplace=True)


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        widths = [16] * 4 + [32] * 3 + [64] * 3
        self.blocks = nn.Sequential(*(Block(a, b, 1 if a == b else 2) for a, b in zip(widths, widths[1:])))
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        x = self.blocks(x)
        return self.linear(functional.adaptive_avg_pool2d(x, 1).flatten(1))


class Peer:
    """PyTorch at one batch size in one layout."""

    def __init__(self, batch, layout):
        torch.manual_seed(1)
        self.model = ResNet20().to(memory_format=layout)
        count = sum(p.numel() for p in self.model.parameters())
        assert count == 269722, count
        self.optimiser = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
        self.x = torch.randn(batch, 3, 32, 32).to(memory_format=layout)
        self.y = torch.randint(0, 10, (batch,))
        self.batch = batch
        self.run(2)

    def run(self, steps):
        """Images a second over these steps."""
        begin = time.perf_counter()
        for _ in range(steps):
            self.optimiser.zero_grad(set_to_none=True)
            functional.cross_entropy(self.model(self.x), self.y).backward()
            self.optimiser.step()
        return steps * self.batch / (time.perf_counter() - begin)


def ours(binary, batch, steps):
    command = [binary, "bench", "net", "--device", "cpu", "--batch", str(batch), "--steps", str(steps), "--repeat", "1", "--json"]
    row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    if row["wrong"]:
        sys.exit("bench-peer.py: the bench's own check failed")
    return row["images_per_s"], row["backend"]


def measure(options, batch):
    layouts = {"NCHW": torch.contiguous_format, "NHWC": torch.channels_last}
    peers = {name: Peer(batch, layout) for name, layout in layouts.items()}
    steps = max(1, options.steps * 32 // batch)
    mine, theirs, backend = [], {name: [] for name in peers}, ""
    for _ in range(options.rounds):
        rate, backend = ours(options.binary, batch, steps)
        mine.append(rate)
        for name, peer in peers.items():
            theirs[name].append(peer.run(steps))
    best = max(theirs, key=lambda name: statistics.median(theirs[name]))
    return {
        "bench": "peer",
        "model": "resnet20",
        "batch": batch,
        "threads": 1,
        "backend": backend,
        "peer": "PyTorch " + torch.__version__,
        "images_per_s": statistics.median(mine),
        "peer_images_per_s": {name: statistics.median(rates) for name, rates in theirs.items()},
        "peer_layout": best,
        "ratio": statistics.median(a / b for a, b in zip(mine, theirs[best])),
        "rounds": options.rounds,
        "steps": steps,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=12, help="of a round at batch 32; larger batches take fewer")
    parser.add_argument("--batch", default="32,128")
    parser.add_argument("--json", action="store_true", help="one JSON object per row instead of the table")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    if not options.json:
        print("#  batch  sparsetrain  PyTorch NCHW  PyTorch NHWC   ratio   (images/s; ratio to the better layout)")
    for batch in (int(text) for text in options.batch.split(",")):
        row = measure(options, batch)
        if options.json:
            print(json.dumps(row), flush=True)
            continue
        peer = row["peer_images_per_s"]
        print(f"{batch:8} {row['images_per_s']:12.1f} {peer['NCHW']:13.1f} {peer['NHWC']:13.1f} {row['ratio']:7.2f}"
              f"   {row['backend']} against {row['peer']}", flush=True)


if __name__ == "__main__":
    main()
