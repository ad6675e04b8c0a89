#!/usr/bin/env python3
"""topk.py BINARY [--select LIST|all] [--rounds N] [--repeat N] [--n LIST] [--density LIST] [--json]: the selectors
of sparsetrain, accumulation included, one thread, next to torch.topk on |x| on this machine, now. They run in turn, round
after round, so that a machine whose speed wanders slows all alike; a row gives the medians over the rounds, and the
median of the rounds' ratios. The time of sparsetrain contains acc += grad and the list of indices and values (the mean
over its steps, those with a new exact threshold included); that of PyTorch is torch.topk alone, on magnitudes computed
beforehand. Without PyTorch: sparsetrain's own rows, and one line that says so."""

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

sys.dont_write_bytecode = True  # the checkout stays as it is
try:
    import torch

    from peer_models import magnitudes
except ImportError:
    torch = None

MEDIANS = ("median_s", "mean_s", "accumulate_s", "ratio_accumulate", "ratio_accumulate_mean", "ratio_scan", "found_mean")


def ours(options, n, density):
    """The rows of one run, in the order of the table of selectors."""
    command = [options.binary, "bench", "select", "--device", "cpu", "--select", options.select, "--n", n, "--density", density,
               "--repeat", str(options.repeat), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    if any(row["wrong"] for row in rows):
        sys.exit("topk.py: the bench's own check failed")
    if done.returncode:
        sys.exit(f"topk.py: {' '.join(command)} failed")
    return rows


def theirs(x, k):
    """Seconds of one torch.topk, the order of its result left open."""
    begin = time.perf_counter()
    torch.topk(x, k, sorted=False)
    return time.perf_counter() - begin


def measure(options, n, density):
    """One row for each selector."""
    rounds, peer = [], []
    x = magnitudes(int(n)) if torch else None
    for _ in range(options.rounds):
        rounds.append(ours(options, n, density))
        if torch:
            peer.append(statistics.median(theirs(x, rounds[-1][0]["k"]) for _ in range(3)))
    for mine in zip(*rounds):
        ratios = [seconds / row["mean_s"] for seconds, row in zip(peer, mine)]
        yield {
            "bench": "topk",
            "n": mine[0]["n"],
            "density": mine[0]["density"],
            "k": mine[0]["k"],
            "selector": mine[0]["selector"],
            "threads": 1,
            "kernels": mine[0]["kernels"],
            **{key: statistics.median(row[key] for row in mine) for key in MEDIANS},
            "peer": "PyTorch " + torch.__version__ if torch else None,
            "peer_s": statistics.median(peer) if peer else None,
            "ratio_peer": statistics.median(ratios) if ratios else None,
            "rounds": options.rounds,
            "repeat": options.repeat,
        }


def show(row):
    peer = f"{row['peer_s'] * 1e3:10.3f} {row['ratio_peer']:8.1f}" if row["peer_s"] else f"{'-':>10} {'-':>8}"
    print(f"{row['n']:11} {row['density']:9} {row['k']:9}  {row['selector']:10} {row['median_s'] * 1e3:9.3f} "
          f"{row['mean_s'] * 1e3:9.3f} {row['accumulate_s'] * 1e3:9.3f} {row['ratio_accumulate']:7.2f} "
          f"{row['ratio_accumulate_mean']:7.2f} {row['found_mean'] / row['k']:8.3f} {peer}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--select", default="all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=36, help="steps of a round")
    parser.add_argument("--n", default="1000000,14728266")
    parser.add_argument("--density", default="0.001,0.02")
    parser.add_argument("--json", action="store_true", help="one JSON object per row instead of the table")
    options = parser.parse_args()
    if torch:
        torch.set_num_threads(1)
    if not options.json:
        print(f"{'#         n':11} {'density':>9} {'k':>9}  {'selector':10} {'step/ms':>9} {'mean/ms':>9} {'accum/ms':>9} "
              f"{'/accum':>7} {'mean/a':>7} {'found/k':>8} {'topk/ms':>10} {'faster':>8}"
              "   (accumulation included; topk: torch.topk on |x|; faster: than that, by the mean)")
    for n in options.n.split(","):
        for density in options.density.split(","):
            for row in measure(options, n, density):
                if options.json:
                    print(json.dumps(row), flush=True)
                else:
                    show(row)
    if not torch:
        print("skipped: torch is not installed", file=sys.stderr if options.json else sys.stdout)


if __name__ == "__main__":
    main()
