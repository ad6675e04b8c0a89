#!/usr/bin/env python3
"""peer.py BINARY [--model NAME] [--hidden N] [--preset NAME] [--rounds N] [--steps N] [--batch LIST] [--json]:
training, f32, one thread, of sparsetrain next to PyTorch on this machine, now. Both do forward, backward and an SGD step
with momentum on random 32x32 images or, for lstm, on random words, with dropout, the states carried from step to step, or, for
speech, on noise of 2.7 s; for gpt and bert an AdamW step on random windows, and PyTorch's attention is its fused one where it has that. They run in turn,
round after round, so that a machine whose speed wanders slows both alike; a row gives the medians, and the median of
the rounds' ratios. Memory is the most that a process of each had resident, PyTorch's in one of its own, and how much of that was
there before there was a model, which is mostly the library. PyTorch runs images in both of its layouts; the better one
counts. Images also run with --precision f32-winograd, which PyTorch's CPU has not, beside the f32 of both. A PyTorch that multiplies matrices by a system's BLAS is as fast as that: the LSTM's heading names the library,
OpenBLAS (libopenblas0-pthread) being a fair one, which is told the processor. Without PyTorch: one line that says so."""

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import time

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"


def best_core():
    """The kernels with which OpenBLAS, which takes processors that it does not know for old ones, is at its best."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            flags = file.read().split()
    except OSError:
        return ""
    return "SkylakeX" if "avx512f" in flags else "Haswell" if "avx2" in flags else ""


if best_core():
    os.environ["OPENBLAS_CORETYPE"] = best_core()

sys.dont_write_bytecode = True  # the checkout stays as it is
try:
    import torch

    from peer_models import (BERT, GPT, LSTM, MODELS, Batch, Speech, has_presets, open_model, open_optimiser,
                             takes_images, takes_tokens)
except ImportError:
    print("skipped: torch is not installed")
    sys.exit(0)


LAYOUTS = {"NCHW": torch.contiguous_format, "NHWC": torch.channels_last}


class Peer:
    """PyTorch at one batch size; layout: of images."""

    def __init__(self, options, batch, layout):
        name = options.model
        model = open_model(name, options.hidden, options.preset)
        if takes_images(name):
            model = model.to(memory_format=layout)
        self.optimiser = open_optimiser(name, model, options.preset)
        self.batch = Batch(name, model, batch, layout=layout)
        self.run(2)

    def run(self, steps):
        """Images or words a second over these steps."""
        begin = time.perf_counter()
        for _ in range(steps):
            self.optimiser.zero_grad(set_to_none=True)
            self.batch.loss().backward()
            self.optimiser.step()
        return steps * self.batch.rows / (time.perf_counter() - begin)


def memory(name):
    """Of this process, in bytes: VmRSS, what is resident now, or VmHWM, the most that ever was."""
    with open("/proc/self/status", encoding="ascii") as status:
        return int(next(line for line in status if line.startswith(name + ":")).split()[1]) * 1024


def alone(options, batch, layout):
    """PyTorch in a process of its own: the most memory of a few steps, and what it had before there was a model."""
    command = [sys.executable, *sys.argv, "--batch", str(batch), "--alone", layout]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def unit(options):
    return "words" if takes_tokens(options.model) else "images" if takes_images(options.model) else "utterances"


def ours(options, batch, steps, precision="f32"):
    command = [options.binary, "bench", "net", "--device", "cpu", "--model", options.model, "--batch", str(batch),
               "--steps", str(steps), "--repeat", "1", "--precision", precision, "--json"]
    if options.preset:
        command += ["--preset", options.preset]
    elif takes_tokens(options.model):
        command += ["--hidden", str(options.hidden)]
    row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    if row["wrong"]:
        sys.exit("peer.py: the bench's own check failed")
    return row


def measure(options, batch):
    layouts = LAYOUTS if takes_images(options.model) else {"rows": None}
    peers = {name: Peer(options, batch, layout) for name, layout in layouts.items()}
    steps = max(1, options.steps * 32 // batch) if takes_images(options.model) else options.steps
    rates = unit(options) + "_per_s"
    rows, winograd, theirs = [], [], {name: [] for name in peers}
    for _ in range(options.rounds):
        rows.append(ours(options, batch, steps))
        if takes_images(options.model):
            winograd.append(ours(options, batch, steps, "f32-winograd")[rates])
        for name, peer in peers.items():
            theirs[name].append(peer.run(steps))
    best = max(theirs, key=lambda name: statistics.median(theirs[name]))
    mine = [row[rates] for row in rows]
    features = [row["feature_s"] for row in rows if "feature_s" in row]
    peer = alone(options, batch, best)
    return {
        "bench": "peer",
        "model": options.model,
        "batch": batch,
        **({"preset": options.preset} if options.preset else {}),
        **({"hidden": options.hidden} if takes_tokens(options.model) else {}),
        "threads": 1,
        "backend": rows[-1]["backend"],
        "peer": "PyTorch " + torch.__version__,
        "peer_blas": blas(),
        rates: statistics.median(mine),
        "peer_" + rates: {name: statistics.median(each) for name, each in theirs.items()},
        "peer_layout": best,
        "ratio": statistics.median(a / b for a, b in zip(mine, theirs[best])),
        **({"winograd_" + rates: statistics.median(winograd),
            "ratio_winograd": statistics.median(a / b for a, b in zip(winograd, mine))} if winograd else {}),
        **({"feature_s": statistics.median(features)} if features else {}),
        "memory_max": rows[-1]["memory_max"],
        "peer_memory_max": peer["max"],
        "peer_memory_without_model": peer["without_model"],
        "rounds": options.rounds,
        "steps": steps,
    }


def blas():
    """The matrix products of PyTorch, without oneDNN: "libopenblasp-r0.3.21.so (SkylakeX)"; None where they are part of
    PyTorch, or where the system does not say what it has loaded."""
    try:
        with open("/proc/self/maps", encoding="utf-8") as maps:
            paths = sorted({line.split()[-1] for line in maps if ".so" in line and "blas" in os.path.basename(line)})
    except OSError:
        return None
    for path in sorted(paths, key=lambda path: "openblas" not in path):
        library = ctypes.CDLL(path)
        kind = ""
        if hasattr(library, "openblas_get_corename"):
            library.openblas_get_corename.restype = ctypes.c_char_p
            kind = f" ({library.openblas_get_corename().decode()})"
        return os.path.basename(path) + kind
    return None


def print_head(options):
    if not takes_images(options.model):
        print(f"# PyTorch's BLAS: {blas() or 'its own'}")
        hidden = "   hidden" if takes_tokens(options.model) else ""
        print(f"#  batch{hidden}  sparsetrain       PyTorch   ratio   ({unit(options)}/s)")
    else:
        print("#  batch  sparsetrain  PyTorch NCHW  PyTorch NHWC   ratio   (images/s; ratio to the better layout)")


def print_row(options, row):
    rates = unit(options) + "_per_s"
    hidden = f" {row['hidden']:8}" if "hidden" in row else ""
    peers = "".join(f" {rate:13.1f}" for rate in row["peer_" + rates].values())
    print(f"{row['batch']:8}{hidden} {row[rates]:12.1f}{peers} {row['ratio']:7.2f}"
          f"   {row['backend']} against {row['peer']}; memory {row['memory_max'] / 2**20:.0f} MiB against"
          f" {row['peer_memory_max'] / 2**20:.0f}, {row['peer_memory_without_model'] / 2**20:.0f} of it without a model"
          + (f"; with f32-winograd {row['ratio_winograd']:.2f} times as fast as with f32" if "ratio_winograd" in row else "")
          + (f"; features, made anew for each batch, are {100 * row['feature_s'] * row[rates]:.2f}% of a step" if "feature_s" in row else ""), flush=True)


def usual_batches(options):
    if options.model == "gpt":
        return str(GPT.presets[options.preset][8])
    if options.model == "bert":
        return str(BERT.batch_default)
    if options.model == "speech":
        return Speech.batch_default
    return str(LSTM.batch_default) if takes_tokens(options.model) else "32,128"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--model", choices=MODELS, default="resnet20")
    parser.add_argument("--hidden", type=int, help=f"of lstm (default {LSTM.hidden_default})")
    parser.add_argument("--preset", choices=[*GPT.presets, *BERT.presets],
                        help="of gpt (default char-cpu) and bert (default tiny)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=12,
                        help="of a round at batch 32; larger batches of images take fewer")
    parser.add_argument("--batch", help=f"(default 32,128; of lstm {LSTM.batch_default}, of gpt the preset's, of bert {BERT.batch_default}, of speech {Speech.batch_default})")
    parser.add_argument("--json", action="store_true", help="one JSON object per row instead of the table")
    parser.add_argument("--alone", choices=["rows", *LAYOUTS], help=argparse.SUPPRESS)  # the process of alone()
    options = parser.parse_args()
    if has_presets(options.model):
        presets = MODELS[options.model].presets
        options.preset = options.preset or next(iter(presets))
        if options.preset not in presets or options.hidden:
            parser.error(f"--preset of {options.model} is one of {', '.join(presets)}; --hidden is for lstm")
        options.hidden = presets[options.preset][4 if options.model == "gpt" else 2]
    elif options.preset:
        parser.error("--preset is for gpt and bert")
    elif takes_tokens(options.model):
        options.hidden = options.hidden or LSTM.hidden_default
    elif options.hidden:
        parser.error(f"--hidden is for lstm, not for {options.model}")
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    if options.alone:
        without_model = memory("VmRSS")
        Peer(options, int(options.batch), LAYOUTS.get(options.alone))
        print(json.dumps({"max": memory("VmHWM"), "without_model": without_model}))
        return
    if not options.json:
        print_head(options)
    for batch in (options.batch or usual_batches(options)).split(","):
        row = measure(options, int(batch))
        if options.json:
            print(json.dumps(row), flush=True)
        else:
            print_row(options, row)


if __name__ == "__main__":
    main()
