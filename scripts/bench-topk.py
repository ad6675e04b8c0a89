#!/usr/bin/env python3
"""bench-topk.py BINARY [--rounds N] [--repeat N] [--n LIST] [--density LIST] [--json]: exact selection with
accumulation, one thread, of sparsetrain next to torch.topk on |x| on this machine, now. They run in turn, round after
round, so that a machine whose speed wanders slows both alike; a row gives the medians, and the median of the rounds'
ratios. The time of sparsetrain contains acc += grad and the list of indices and values; that of PyTorch is torch.topk
alone, on magnitudes computed beforehand. Without PyTorch: sparsetrain's own rows, and one line that says so."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
os.environ.pop("OPENBLAS_CORETYPE", None)  # a leftover of other machines: a peer must run at its best

try:
    import torch
except ImportError:
    torch = None


def ours(binary, n, density, repeat):
    command = [binary, "bench", "select", "--n", n, "--density", density, "--repeat", str(repeat), "--json"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    row = next(row for row in map(json.loads, lines) if row["selector"] == "exact")
    if row["wrong"]:
        sys.exit("bench-topk.py: the bench's own check failed")
    return row


def magnitudes(n):
    """[n]: normal numbers whose scale wanders from layer to layer, as in `sparsetrain bench select`."""
    torch.manual_seed(1)
    layer = torch.exp(2.0 * ((torch.arange(n) // 16384) % 64) / 64.0)
    return (torch.randn(n) * layer * 3e-3).abs()


def theirs(x, k):
    """Seconds of one torch.topk, the order of its result left open."""
    begin = time.perf_counter()
    torch.topk(x, k, sorted=False)
    return time.perf_counter() - begin


def measure(options, n, density):
    mine, peer, ratios, row = [], [], [], {}
    x = magnitudes(int(n)) if torch else None
    for _ in range(options.rounds):
        row = ours(options.binary, n, density, options.repeat)
        mine.append(row)
        if torch:
            seconds = statistics.median(theirs(x, row["k"]) for _ in range(3))
            peer.append(seconds)
            ratios.append(seconds / row["median_s"])
    middle = {key: statistics.median(row[key] for row in mine)
              for key in ("median_s", "accumulate_s", "ratio_accumulate", "ratio_scan")}
    return {
        "bench": "topk",
        "n": row["n"],
        "density": row["density"],
        "k": row["k"],
        "threads": 1,
        "kernels": row["kernels"],
        **middle,
        "peer": "PyTorch " + torch.__version__ if torch else None,
        "peer_s": statistics.median(peer) if peer else None,
        "ratio_peer": statistics.median(ratios) if ratios else None,
        "rounds": options.rounds,
        "repeat": options.repeat,
    }


def show(row):
    peer = f"{row['peer_s'] * 1e3:12.3f} {row['ratio_peer']:8.1f}" if row["peer_s"] else f"{'-':>12} {'-':>8}"
    print(f"{row['n']:12} {row['density']:9} {row['k']:9} {row['median_s'] * 1e3:12.3f} "
          f"{row['accumulate_s'] * 1e3:12.3f} {row['ratio_accumulate']:8.2f} {peer}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=9, help="of a round")
    parser.add_argument("--n", default="269722,14728266")
    parser.add_argument("--density", default="0.001,0.02")
    parser.add_argument("--json", action="store_true", help="one JSON object per row instead of the table")
    options = parser.parse_args()
    if torch:
        torch.set_num_threads(1)
    if not options.json:
        print(f"{'#          n':12} {'density':>9} {'k':>9} {'select/ms':>12} {'accum/ms':>12} {'/accum':>8} "
              f"{'topk/ms':>12} {'faster':>8}   (select: accumulation included; topk: torch.topk on |x|)")
    for n in options.n.split(","):
        for density in options.density.split(","):
            row = measure(options, n, density)
            if options.json:
                print(json.dumps(row), flush=True)
            else:
                show(row)
    if not torch:
        print("skipped: torch is not installed", file=sys.stderr if options.json else sys.stdout)


if __name__ == "__main__":
    main()
