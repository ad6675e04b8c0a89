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

sys.dont_write_bytecode = True  # the checkout stays as it is
try:
    import torch
    from torch.nn import functional

    from peer_models import open_model
except ImportError:
    print("skipped: torch is not installed")
    sys.exit(0)


class Peer:
    """PyTorch at one batch size in one layout."""

    def __init__(self, batch, layout):
        self.model = open_model("resnet20").to(memory_format=layout)
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
