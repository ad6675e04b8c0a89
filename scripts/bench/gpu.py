#!/usr/bin/env python3
"""gpu.py BINARY topk|net [OPTION...]: sparsetrain next to PyTorch on one GPU, now; one JSON object per row.

topk   the selectors of `bench select`, accumulation included, next to torch.topk on |x|.
net    forward, backward and SGD step of `bench net`, next to PyTorch: eager in f32 (NCHW), with tf32 (NHWC), with bf16
       (autocast, NHWC), and compiled by torch.compile in each mode of --compile, which takes from seconds to minutes a
       mode. --model lstm and gpt train on words: rows count them, and have "hidden" or, of gpt, whose step is AdamW's
       (PyTorch's fused one), "preset". --net 'OPTION...', again for each network: several of them.

Ours and theirs run in turn, round after round, so that clocks that change slow all alike; a row gives the medians, and
the medians of the rounds' ratios. Every length and every network has its first round, and in it its share of the time,
before any has its second; of a network ours come first, then what is eager, then what is compiled, each in at most
three fifths of what is left. What the time (--seconds, PyTorch's start included) does not suffice for is named in a row
of its own, and what was measured before is kept, also when a round is stopped in its midst (SIGTERM, too).
--device cpu: the same on the CPU, to try the script. Without PyTorch: sparsetrain's own rows."""

import argparse
import contextlib
import json
import os
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time

BEGIN = time.monotonic()
sys.dont_write_bytecode = True  # the checkout stays as it is
try:
    import torch

    from peer_models import WEIGHT_DECAY, Batch, magnitudes, open_model, open_optimiser, takes_tokens
except ImportError:
    torch = None

# What our precisions are held against: PyTorch's variant of the same arithmetic. In f32 it takes Winograd's algorithm over
# large tiles where that is fastest, as our f32-winograd does and our f32 does not.
EAGER = {"f32": "eager-f32", "f32-winograd": "eager-f32", "tf32": "eager-tf32", "bf16": "eager-bf16"}
# PyTorch brings its own libraries, so that ours must not stand before them: they have a variable of their own.
OUR_ENVIRONMENT = dict(os.environ)
if "OUR_LIBRARY_PATH" in os.environ:
    OUR_ENVIRONMENT["LD_LIBRARY_PATH"] = os.environ["OUR_LIBRARY_PATH"]
PRESET_BATCH = {"char-cpu": 12, "char": 64, "gpt2": 8}  # windows of 64, 256 and 1024 tokens
SKIPPED_MAX = 300  # characters of a reason
TURN = 0.6  # of what is left: the most for one of several that wait
FOR_ROUNDS = 0.25  # of a network's time that compilers do not get
FAILED = []  # what went wrong, and not for want of time


def left(options):
    return options.seconds - (time.monotonic() - BEGIN)


def say(row):
    print(json.dumps(row), flush=True)


def not_done(options, what, why):
    say({"bench": "gpu_" + options.part, **identity(options), "skipped": what,
         "why": str(why).splitlines()[0][:SKIPPED_MAX] if str(why) else type(why).__name__})


def identity(options):
    """What says of a row which network it is of."""
    if options.part != "net" or options.net:
        return {}
    return {key: getattr(options, key) for key in ("model", "hidden", "preset") if getattr(options, key)}


class Late(Exception):
    """Something took longer than there was time for. rows: of ours, what it had given before."""

    def __init__(self, why="longer than there was time for", rows=()):
        super().__init__(why)
        self.rows = list(rows)


STOPPED = []  # signals from outside that said to end


def late(number, _frame):
    if number == signal.SIGTERM:
        STOPPED.append(number)
    raise Late


@contextlib.contextmanager
def within(seconds):
    """What is in here ends by itself, or is ended as Late."""
    signal.alarm(max(1, int(seconds)))
    try:
        yield
    finally:
        signal.alarm(0)


def rows_of(text):
    """Whole lines that are rows; the last one may be cut off."""
    lines = (text or "").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}\n")]


def run(options, seconds, *arguments):
    """Rows of one run of ours, in at most so many seconds; Late has those that came before."""
    command = [options.binary, "bench", *arguments, "--device", options.our_device, "--json"]
    with tempfile.TemporaryFile("w+") as rows_file, tempfile.TemporaryFile("w+") as said:
        try:
            status = subprocess.run(command, stdout=rows_file, stderr=said, env=OUR_ENVIRONMENT, check=False,
                                    timeout=max(5, seconds)).returncode
        except (subprocess.TimeoutExpired, Late):
            rows_file.seek(0)
            raise Late(rows=rows_of(rows_file.read())) from None
        rows_file.seek(0)
        said.seek(0)
        rows = rows_of(rows_file.read())
        if status or any(row["wrong"] for row in rows):
            last = (said.read().strip().splitlines() or ["its own check failed"])[-1]
            raise RuntimeError(f"bench {' '.join(arguments)}: status {status}: {last}")
        return rows


def seconds_of(options, work):
    """Seconds of work(), all of it done."""
    if options.device == "cuda":
        torch.cuda.synchronize()
    begin = time.perf_counter()
    work()
    if options.device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begin


# -- torch.topk ---------------------------------------------------------------------------------------------------------

class Length:
    """What was measured at one n: our rows, by selector and density, and the seconds of torch.topk, by density."""

    def __init__(self, options, n):
        self.n, self.mine, self.peer, self.rounds, self.cost = n, {}, {}, 0, 0
        self.x = magnitudes(n, options.device) if torch else None

    def round(self, options, seconds):
        begin = time.monotonic()
        try:
            rows = run(options, seconds, "select", "--select", options.select, "--n", str(self.n), "--density",
                       options.density, "--repeat", str(options.steps))
        except Late as stopped:
            self.take(stopped.rows)
            raise
        self.take(rows)
        for density, k in {row["density"]: row["k"] for row in rows}.items() if torch else ():
            torch.topk(self.x, k, sorted=False)
            times = [seconds_of(options, lambda k=k: torch.topk(self.x, k, sorted=False)) for _ in range(5)]
            self.peer.setdefault(density, []).append(statistics.median(times))
        self.rounds += 1
        self.cost = time.monotonic() - begin

    def take(self, rows):
        for row in rows:
            self.mine.setdefault((row["selector"], row["density"]), []).append(row)

    def say(self):
        for (_, density), mine in self.mine.items():
            theirs = self.peer.get(density)
            say({
                **middle(mine),
                "bench": "gpu_topk",
                "peer": "PyTorch " + torch.__version__ if torch else None,
                "peer_s": statistics.median(theirs) if theirs else None,
                "ratio_peer": ratio(theirs, [row["mean_s"] for row in mine]) if theirs else None,
                "rounds": len(mine),
            })


def middle(rows):
    """One row with the medians of what was measured."""
    return {key: statistics.median(row[key] for row in rows)
            if all(isinstance(row[key], float) for row in rows) else value for key, value in rows[0].items()}


def topk(options):
    """Round after round over all lengths. In the first one each has its share of what is left, so that no length finds
    the time gone; later ones are begun where the last one would fit once more."""
    lengths = {n: None for n in (int(text) for text in options.n.split(","))}
    for number in range(options.rounds):
        for place, n in enumerate(lengths):
            seconds = left(options)
            if number == 0:
                seconds /= max(1, len(lengths) - place)
            if STOPPED or number and (not lengths[n] or not lengths[n].rounds or seconds < lengths[n].cost):
                continue
            if seconds < 2:
                not_done(options, f"n {n}", "no time left")
                continue
            one_round(options, lengths, n, seconds)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for length in filter(None, lengths.values()):
        length.say()


def one_round(options, lengths, n, seconds):
    try:
        with within(seconds + 5):
            lengths[n] = lengths[n] or Length(options, n)
            lengths[n].round(options, seconds)
    except Late as stopped:
        kept = f"; {len(stopped.rows)} rows of this round are kept" if stopped.rows else ""
        not_done(options, f"n {n}", f"{stopped}{kept}")
    except Exception as error:  # the other rows are wanted all the same
        not_done(options, f"n {n}", error)
        FAILED.append(error)


def ratio(a, b):
    return statistics.median(x / y for x, y in zip(a, b))


# -- training -----------------------------------------------------------------------------------------------------------

class Peer:
    """PyTorch at one batch size in one variant: eager-f32, eager-tf32, eager-bf16, compiled-MODE (tf32, NHWC)."""

    def __init__(self, options, batch, variant):
        self.options, self.variant, name = options, variant, options.model
        model = open_model(name, options.hidden, options.preset).to(options.device)
        layout = torch.contiguous_format if variant == "eager-f32" else torch.channels_last
        if not takes_tokens(name):
            model = model.to(memory_format=layout)
        self.batch = Batch(name, model, batch, options.device, layout)
        compiled = variant.startswith("compiled-")
        if options.preset:
            self.optimiser = open_optimiser(name, model, options.preset)
        else:
            self.optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=WEIGHT_DECAY[name],
                                             **({"fused": True} if compiled and options.device == "cuda" else {}))
        self.loss = self.loss_of
        if compiled:
            mode = variant[len("compiled-"):]
            self.loss = torch.compile(self.loss_of, mode=None if mode == "default" else mode, dynamic=False)
        self.rate(3)

    def loss_of(self):
        with torch.autocast(self.options.device, torch.bfloat16, enabled=self.variant == "eager-bf16"):
            return self.batch.loss()

    def steps(self, count):
        for _ in range(count):
            self.optimiser.zero_grad(set_to_none=True)
            self.loss().backward()
            self.optimiser.step()

    def rate(self, count):
        """Images or words a second over these steps."""
        short = self.variant != "eager-f32"
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = short
        return count * self.batch.rows / seconds_of(self.options, lambda: self.steps(count))


def unit(options):
    return "words" if options.words else "images"


class Net:
    """What was measured of one network. mine: (rate, backend) of each round by (batch, precision); theirs: rates by
    (batch, variant)."""

    def __init__(self, options):
        self.options, self.mine, self.theirs, self.peers, self.why = options, {}, {}, {}, {}
        self.cost = 0  # seconds of the last round, without what is done once
        self.batches = [int(text) for text in options.batch.split(",")]
        # On a CPU PyTorch's bf16 wants instructions that not all have.
        variants = [(batch, variant) for variant in EAGER.values() for batch in self.batches
                    if options.eager and (options.device == "cuda" or variant != "eager-bf16")]
        variants += [(batch, "compiled-" + mode) for mode in options.compile.split(",") if mode
                     for batch in self.batches if batch in options.compile_batches]
        self.turns = [(None, precision) for precision in options.precision]
        self.turns += dict.fromkeys(variants) if torch else ()

    def round(self, end):
        """Everything in turn, until that moment."""
        begin, once = time.monotonic(), 0
        spare = FOR_ROUNDS * (end - begin)
        turns = list(self.turns)
        for place, (batch, what) in enumerate(turns):
            if STOPPED:
                break
            opening = batch and (batch, what) not in self.peers
            seconds = end - time.monotonic() - (spare if opening and what.startswith("compiled-") else 0)
            if seconds < 1:
                self.why.setdefault((batch, what), "no time left")
                continue
            if place + 1 < len(turns):
                seconds *= TURN
            try:
                if not batch:
                    self.ours(what, seconds)
                    continue
                with within(seconds):
                    opened = time.monotonic()
                    try:
                        if opening:
                            self.peers[batch, what] = Peer(self.options, batch, what)
                    finally:
                        once += time.monotonic() - opened
                    self.theirs.setdefault((batch, what), []).append(self.peers[batch, what].rate(self.options.steps))
            except Exception as error:  # a compiler that is not there, or the alarm: the others are wanted
                self.missed(batch, what, error)
        self.cost = time.monotonic() - begin - once

    def missed(self, batch, what, error):
        """Remembers why. What was late may be in time in the next round, but for a compiler."""
        kept = f"; {len(error.rows)} rows of this round are kept" if isinstance(error, Late) and not batch else ""
        self.why[batch, what] = f"{error or type(error).__name__}{kept}"
        if what.startswith("compiled-") or not isinstance(error, Late):
            self.turns.remove((batch, what))
        if not batch and not isinstance(error, Late):
            FAILED.append(error)

    def ours(self, precision, seconds):
        """A round of ours: images or words a second for each batch."""
        options = self.options
        sizes = ("--hidden", str(options.hidden)) if options.hidden else ()
        sizes += ("--preset", options.preset) if options.preset else ()
        late = None
        try:
            rows = run(options, seconds, "net", "--model", options.model, "--batch", ",".join(map(str, self.batches)),
                       "--steps", str(options.steps), "--repeat", "1", "--precision", precision, *sizes)
        except Late as stopped:
            rows, late = stopped.rows, stopped
        for row in rows:
            self.mine.setdefault((row["batch"], precision), []).append((row[unit(options) + "_per_s"], row["backend"]))
        if late:
            raise late

    def say(self):
        measured = {(None, precision) for _, precision in self.mine} | set(self.theirs)
        for (batch, what), why in self.why.items():
            # What has all its rows from other rounds lacks nothing; one that was cut off in its first does.
            if (batch, what) not in measured or not batch and any((n, what) not in self.mine for n in self.batches):
                not_done(self.options, f"{what}, batch {batch}" if batch else f"sparsetrain in {what}", why)
        for (batch, precision), rounds in self.mine.items():
            self.say_row(batch, precision, [value for value, _ in rounds], rounds[0][1])

    def say_row(self, batch, precision, rates, backend):
        options, theirs, rate = self.options, self.theirs, unit(self.options) + "_per_s"
        eager = theirs.get((batch, EAGER[precision]))
        compiled = {v: r for (b, v), r in theirs.items() if b == batch and v.startswith("compiled-")}
        best = max(compiled, key=lambda v: statistics.median(compiled[v]), default=None)
        say({
            "bench": "gpu_net",
            "model": options.model,
            "batch": batch,
            **identity(options),
            "precision": precision,
            "backend": backend,
            "peer": "PyTorch " + torch.__version__ if torch else None,
            rate: statistics.median(rates),
            "least_" + rate: min(rates),
            "most_" + rate: max(rates),
            "peer_" + rate: {v: statistics.median(r) for (b, v), r in theirs.items() if b == batch},
            "eager": EAGER[precision],
            "ratio_eager": ratio(rates, eager) if eager else None,
            "compiled": best,
            "ratio_compiled": ratio(rates, compiled[best]) if best else None,
            "rounds": len(rates),
            "steps": options.steps,
        })


def net(options, several):
    """Round after round over all networks. In the first one each has its share of what is left; later ones are begun
    where the last one would fit once more."""
    if torch and options.device == "cuda":
        torch.backends.cudnn.benchmark = True  # a peer must run at its best
    nets = [Net(each) for each in several]
    with contextlib.suppress(Late):  # SIGTERM between two measurements
        for number in range(options.rounds):
            for place, each in enumerate(nets):
                seconds = left(options)
                if STOPPED or number and seconds < each.cost:
                    continue
                each.round(time.monotonic() + (seconds if number else seconds / (len(nets) - place)))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for each in nets:
        each.say()


def check(parser, options):
    """What goes with the model, where it was not given."""
    gpt, lstm = options.model == "gpt", options.model == "lstm"
    options.words = gpt or lstm
    if options.hidden and not lstm:
        parser.error(f"--hidden is for lstm, but this is {options.model}")
    if options.preset and not gpt:
        parser.error(f"--preset is for gpt, but this is {options.model}")
    options.hidden = options.hidden or 1500 if lstm else None
    options.preset = options.preset or "gpt2" if gpt else None
    options.batch = options.batch or (str(PRESET_BATCH[options.preset]) if gpt else "20" if lstm else "32,128,1024")
    precision = options.precision or ("f32,tf32,bf16" if options.words else "f32,f32-winograd,tf32,bf16")
    options.precision = precision.split(",")
    if options.compile_batches is None:
        options.compile_batches = options.batch if gpt else "128"
    options.compile_batches = [int(text) for text in options.compile_batches.split(",") if text]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("part", choices=("topk", "net"))
    parser.add_argument("--device", default="cuda", help="of PyTorch (default cuda)")
    parser.add_argument("--our-device", help="of sparsetrain (default: as PyTorch's)")
    parser.add_argument("--seconds", type=float, default=120, help="about how long this may take")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=50, help="of a round")
    parser.add_argument("--select", default="all")
    parser.add_argument("--n", default="14728266,133547324")
    parser.add_argument("--density", default="0.001,0.01")
    parser.add_argument("--model", default="resnet20")
    parser.add_argument("--hidden", type=int, help="of lstm (default 1500)")
    parser.add_argument("--preset", choices=PRESET_BATCH, help="of gpt (default gpt2)")
    parser.add_argument("--batch", help="(default 32,128,1024; of lstm 20; of gpt 8 or the preset's)")
    parser.add_argument("--precision", help="(default f32,f32-winograd,tf32,bf16; of lstm and gpt without the second)")
    parser.add_argument("--compile", default="", metavar="MODES", help="default,reduce-overhead,max-autotune (none)")
    parser.add_argument("--no-eager", dest="eager", action="store_false", help="next to what is compiled alone")
    parser.add_argument("--compile-batches", help="(default 128; of gpt as --batch)")
    parser.add_argument("--net", action="append", metavar="OPTIONS", help="a network, by --model and what goes with it")
    options = parser.parse_args()
    options.our_device = options.our_device or options.device
    several = [parser.parse_args([options.binary, "net", *shlex.split(words)]) for words in options.net or ()]
    for each in several or [options]:
        each.device, each.our_device = options.device, options.our_device
        check(parser, each)
    if torch and options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("gpu.py: this PyTorch sees no GPU")
    if not torch:
        not_done(options, "PyTorch", "torch is not installed")
    for number in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(number, late)
    if options.part == "topk":
        topk(options)
    else:
        net(options, several or [options])
    sys.stdout.flush()
    # Compilers' worker processes are not waited for.
    os._exit(1 if FAILED else 0)


if __name__ == "__main__":
    main()
