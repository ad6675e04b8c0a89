"""What tests/verbs/cli_torch.sh runs under mpirun: DDP on CPUs with the exchanges of sparsetrain.

program.py FOLDER PART...: parts one after the other, as PyTorch takes a second to start. Rank 0 prints "fine PART" after each;
a rank on which something is wrong says what, and ends with status 1."""

import argparse
import contextlib
import ctypes
import hashlib
import os
import sys
import threading
import warnings

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import sparsetrain

torch.set_num_threads(1)
STEPS = 20


def make_model(seed=3):
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(40, 64), torch.nn.ReLU(), torch.nn.Linear(64, 50), torch.nn.ReLU(), torch.nn.Linear(50, 10, bias=False)
    )


def batch(step, rank):
    generator = torch.Generator().manual_seed(1000 * step + rank)
    x = torch.randn(16, 40, generator=generator)
    return x, (x[:, :10] * 3).argmax(1)


def ddp(buckets_of=0.002):
    """Small buckets, so that there are several, which are cut anew after the first step."""
    return DistributedDataParallel(make_model(), bucket_cap_mb=buckets_of)


def train(model, steps, lr=0.05, momentum=0.9, before=None, optimiser=None):
    optimiser = optimiser or torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)
    for step in steps:
        x, y = batch(step, dist.get_rank())
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        if before:
            before(step, model)
        optimiser.step()
    return optimiser


def parameters(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def digest(tensor):
    return hashlib.sha256(tensor.detach().contiguous().numpy().tobytes()).hexdigest()


def expect(condition, what):
    if not condition:
        print(f"rank {dist.get_rank()}: {what}", file=sys.stderr, flush=True)
        os._exit(1)


def same_everywhere(model, what):
    all_digests = [None] * dist.get_world_size()
    dist.all_gather_object(all_digests, digest(parameters(model)))
    expect(len(set(all_digests)) == 1, what + ": the replicas differ")


def dense(_):
    """The parameters of DDP's own allreduce."""
    own = ddp()
    train(own, range(STEPS))
    for group_bytes in (None, 1, 9000):
        model = ddp()
        hook = sparsetrain.register(model, algo="dense", group_bytes=group_bytes)
        train(model, range(STEPS))
        off = (parameters(model) - parameters(own)).abs().max().item()
        expect(off <= 1e-6, f"dense, groups of {group_bytes}: off by {off}")
        expect(hook.stats()["steps"] == STEPS, "steps are not counted")
        same_everywhere(model, "dense")
        hook.close()


def every(_):
    """All algorithms train; buckets do not matter, nor does overlap where groups are the same."""
    start = None
    for algo in sparsetrain.algorithms():
        found = []
        for buckets_of in (0.002, 25):
            model = ddp(buckets_of)
            hook = sparsetrain.register(model, algo=algo, density=0.05, group_bytes=9000)
            x, y = batch(0, 0)
            start = torch.nn.functional.cross_entropy(model.module(x), y).item()
            train(model, range(STEPS), lr=0.005 if algo == "demo" else 0.5, momentum=0)  # demo steps by signs
            end = torch.nn.functional.cross_entropy(model.module(x), y).item()
            least = 0.99 if algo == "randomk" else 0.97  # random entries take longer
            expect(end < least * start, f"{algo}: the loss went from {start} to {end}")
            same_everywhere(model, algo)
            found.append(digest(parameters(model)))
            hook.close()
        expect(found[0] == found[1], f"{algo}: other buckets, other parameters")


def two(_):
    """Two models in one backward, in either order, which is as DDP does it."""

    def both(models, steps):
        optimiser = torch.optim.SGD([p for model in models for p in model.parameters()], lr=0.05, momentum=0.9)
        for step in steps:
            x, y = batch(step, dist.get_rank())
            optimiser.zero_grad()
            outputs = [model(x) for model in (models if step % 2 else models[::-1])]
            torch.nn.functional.cross_entropy(outputs[0] + outputs[1].tanh(), y).backward()
            optimiser.step()

    own = [ddp(), ddp(25)]
    both(own, range(STEPS))
    for group_bytes in (None, 1, 9000):
        models = [ddp(), ddp(25)]
        hooks = [sparsetrain.register(model, algo="dense", group_bytes=group_bytes) for model in models]
        both(models, range(STEPS))
        off = max((parameters(a) - parameters(b)).abs().max().item() for a, b in zip(own, models))
        expect(off <= 1e-6, f"two models, groups of {group_bytes}: off by {off}")
        for hook in hooks:
            hook.close()
    models = [ddp(), ddp(25)]
    hooks = [sparsetrain.register(model, algo="oktopk", density=0.05, tau=4, tau_prime=3, group_bytes=9000) for model in models]
    both(models, range(3 * STEPS))
    for model, hook in zip(models, hooks):
        same_everywhere(model, "two models")
        expect(hook.stats()["steps"] == 3 * STEPS, "two models: steps are not counted")
        hook.close()


class WithEmpty(torch.nn.Module):
    """Parameters without entries, before, between and after the others."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.first = torch.nn.Parameter(torch.zeros(0))
        self.a = torch.nn.Linear(40, 8)
        self.middle = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(0))])
        self.b = torch.nn.Linear(8, 10)
        self.c = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(0))])

    def forward(self, x):
        return self.b(torch.relu(self.a(x + self.first.sum()) + self.middle[0].sum())) + self.c[0].sum()


def empty(_):
    """What has no entries is trained as DDP does it."""
    own = DistributedDataParallel(WithEmpty(), bucket_cap_mb=0.0005)
    train(own, range(4))
    for group_bytes in (None, 0, 1, 4 << 20):
        model = DistributedDataParallel(WithEmpty(), bucket_cap_mb=0.0005)
        hook = sparsetrain.register(model, algo="dense", group_bytes=group_bytes)
        train(model, range(4))
        off = (parameters(model) - parameters(own)).abs().max().item()
        expect(off <= 1e-6, f"groups of {group_bytes}: off by {off}")
        expect(hook.residual()["module.first"].numel() == 0, "the residual of nothing")
        hook.close()


def sums(folder):
    """The gradients that go in, and the means that come out, for the program's bench to look at."""
    rank, model = dist.get_rank(), ddp()
    hook = sparsetrain.register(model, algo="gtopk", density=0.05, group_bytes=None)
    alone = make_model()
    means = []

    def keep(step, trained):
        means.append(torch.cat([p.grad.reshape(-1) for p in trained.parameters()]))

    gradients = []
    for step in range(3):
        alone.load_state_dict(model.module.state_dict())
        x, y = batch(step, rank)
        alone.zero_grad()
        torch.nn.functional.cross_entropy(alone(x), y).backward()
        gradients.append(torch.cat([p.grad.reshape(-1) for p in alone.parameters()]))
        train(model, [step], momentum=0, before=keep)
    torch.stack(gradients).numpy().tofile(f"{folder}/gradients-{rank}")
    torch.stack(means).numpy().tofile(f"{folder}/means-{rank}")
    hook.close()


def restored(folder):
    """A run that was saved and goes on elsewhere comes to the bits of one that was not."""
    path = f"{folder}/saved-{dist.get_rank()}"
    for algo in ("gtopk", "oktopk", "topkdsa"):
        model = ddp()
        hook = sparsetrain.register(model, algo=algo, density=0.05, tau=4, tau_prime=3, group_bytes=9000)
        optimiser = train(model, range(7))
        torch.save({"model": model.state_dict(), "optimiser": optimiser.state_dict(), "exchange": hook.state_dict()}, path)
        train(model, range(7, STEPS), optimiser=optimiser)
        wanted, residual = digest(parameters(model)), hook.residual()
        hook.close()

        saved = torch.load(path)
        model = ddp()
        hook = sparsetrain.register(model, algo=algo, density=0.05, tau=4, tau_prime=3, group_bytes=9000)
        model.load_state_dict(saved["model"])
        hook.load_state_dict(saved["exchange"])
        optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        optimiser.load_state_dict(saved["optimiser"])
        train(model, range(7, STEPS), optimiser=optimiser)
        expect(digest(parameters(model)) == wanted, f"{algo}: other parameters")
        for name, kept in hook.residual().items():
            expect(torch.equal(kept, residual[name]), f"{algo}: another residual of {name}")
        hook.close()


def refused(text, status, call):
    try:
        call()
    except sparsetrain.Error as error:
        expect(text in str(error) and status in (None, error.status), f"no {text!r} in: {error}")
        return
    expect(False, f"{text!r} was not said")


def serving():
    """How many hooks are open."""
    return sum(thread.name == "sparsetrain" for thread in threading.enumerate())


def mistakes(_):
    """Each a line, on all ranks."""
    model = ddp()
    refused('there is no option "densities"', 2, lambda: sparsetrain.register(model, algo="topka", densities=1))
    refused("select=exact,wire=packed: an option has no comma", 2, lambda: sparsetrain.register(model, select="exact,wire=packed"))
    refused("density=0.1,tau=3: an option has no comma", 2, lambda: sparsetrain.register(model, density="0.1,tau=3"))
    refused('the algorithm has no "best"', 2, lambda: sparsetrain.register(model, algo="best"))
    refused("density 0 is out of range", 2, lambda: sparsetrain.register(model, algo="topka", density=0))
    refused("gradients must be float32", 2, lambda: sparsetrain.register(DistributedDataParallel(make_model().double())))
    refused("no parameter", 2, lambda: sparsetrain.register(ddp().requires_grad_(False)))
    refused("given a Sequential", 2, lambda: sparsetrain.register(make_model()))
    expect(serving() == 0, "a thread is left of a model that is not DDP's")
    hook = sparsetrain.register(model, algo="topka", density=0.1, density_max=0.2)
    try:
        sparsetrain.register(model)
        expect(False, "a second hook was taken")
    except RuntimeError as error:
        expect("hook" in str(error), f"of a second hook: {error}")
    expect(serving() == 1, "a thread is left of the second hook")
    train(model, range(2))
    hook.set_density(0.2)
    refused("density-max", 2, lambda: hook.set_density(0.3))
    state = hook.state_dict()
    state["parameters"] = state["parameters"][:-1]
    refused("other parameters", 2, lambda: hook.load_state_dict(state))
    # One rank's state alone is wrong: the others learn it in place of waiting for it.
    for text, state in (
        ("other parameters", {**hook.state_dict(), "parameters": []}),
        ("no state_dict()", {}),
        ("no state_dict()", None),
        ("turned into torch.float32", {**hook.state_dict(), "bytes": hook.state_dict()["bytes"].float()}),
    ):
        first = dist.get_rank() == 0
        refused(text if first else "", 2 if first else None, lambda of=state if first else hook.state_dict(): hook.load_state_dict(of))
    state = hook.state_dict()
    state["bytes"][-1] ^= 1
    refused("damaged", 2, lambda: hook.load_state_dict(state))
    # What breaks in a step comes out of backward, on every rank.
    try:
        x, y = batch(0, dist.get_rank())
        (torch.nn.functional.cross_entropy(model(x), y) * float("nan")).backward()
        expect(False, "a NaN passed")
    except RuntimeError as error:
        expect("NaN or infinite" in str(error), f"not of a NaN: {error}")
    hook.close()
    hook.close()


def of_step(text, model, x):
    """A step of the model is refused with this text."""
    try:
        model(x).sum().backward()
    except RuntimeError as error:
        expect(text in str(error), f"no {text!r} in: {error}")
        return
    expect(False, f"{text!r} was not said")


def strange(_):
    """Gradients that are not those that were registered."""
    model = DistributedDataParallel(make_model(), find_unused_parameters=True)
    model.module[0].requires_grad_(False)
    hook = sparsetrain.register(model, algo="topka", density=0.1)
    of_step("frozen when register() was called", model, batch(0, 0)[0])
    hook.close()
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Embedding(20, 4, sparse=True), torch.nn.Linear(4, 4)))
    hook = sparsetrain.register(model, algo="topka", density=0.1)
    of_step("the gradient of an embedding is sparse", model, torch.tensor([1, 2, 3]))
    hook.close()


def closed(_):
    """Whatever comes after close() says so."""
    model = ddp()
    hook = sparsetrain.register(model, algo="topka", density=0.1)
    train(model, range(2))
    state = hook.state_dict()
    hook.close()
    for call in (hook.stats, hook.residual, hook.state_dict, lambda: hook.set_density(0.1), lambda: hook.load_state_dict(state)):
        refused("the exchange has been closed", 2, call)
    of_step("the exchange has been closed", model, batch(0, 0)[0])
    hook.close()


def ends(how):
    """Rank 0 ends at its fourth step, in one of these ways; the others would wait for it for ever."""
    sparsetrain.PATIENCE = 3
    model = ddp()
    hook = sparsetrain.register(model, algo="gtopk", density=0.1)
    train(model, range(3))
    if dist.get_rank() == 0:
        if how == "raised":
            raise ValueError("a mistake of rank 0")
        if how == "left":
            sys.exit(7)
        with contextlib.suppress(RuntimeError) if how == "caught" else contextlib.nullcontext():
            (model(batch(3, 0)[0]).sum() * float("nan")).backward()
        sys.exit(0)
    train(model, range(3, STEPS))
    hook.close()


def host(_):
    """Without a plugin a model on a GPU is trained as ever, after a warning of rank 0; or not, if that is what was asked for."""
    os.environ["SPARSETRAIN_PLUGIN"] = "/nonexistent"
    gpu_of, torch.cuda.device = sparsetrain._gpu_of, lambda gpu: contextlib.nullcontext()
    found = []
    for pretended in (None, torch.device("cuda", 0)):
        sparsetrain._gpu_of = lambda model: pretended or gpu_of(model)
        model = ddp()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            hook = sparsetrain.register(model, algo="gtopk", density=0.05, group_bytes=9000)
        said = [str(one.message) for one in said if "sparsetrain" in str(one.message)]
        expect(len(said) == (pretended is not None and dist.get_rank() == 0), f"warnings: {said}")
        expect(all("gradients pass through host memory: SPARSETRAIN_PLUGIN names /nonexistent" in line for line in said), said)
        train(model, range(STEPS))
        found.append(digest(parameters(model)))
        hook.close()
    expect(found[0] == found[1], "other parameters")
    refused("SPARSETRAIN_PLUGIN names /nonexistent", 2, lambda: sparsetrain.register(ddp(), algo="gtopk", device="cuda"))
    sparsetrain._gpu_of = gpu_of
    refused("do not lie on one GPU", 2, lambda: sparsetrain.register(ddp(), algo="gtopk", device="cuda"))
    hook = sparsetrain.register(ddp(), algo="gtopk", device="cpu")
    hook.close()


class Part(torch.Tensor):
    """A part of OnDevice: a copy of it, but what is copied to it goes there."""

    def copy_(self, source):
        kept = self.of.kept = source.clone()  # for as long as the copy may take
        self.of.cuda.cudaMemcpyAsync(ctypes.c_void_p(self.at), ctypes.c_void_p(kept.data_ptr()), ctypes.c_size_t(4 * kept.numel()), 1, self.of.stream)
        return self


class OnDevice:
    """What a vector on a GPU is to the hook, in the memory of the stand-in, by a stream on which nothing is done before somebody waits."""

    def __init__(self, cuda, n):
        self.cuda, self.n, self.stream, self.memory = cuda, n, ctypes.c_void_p(), ctypes.c_void_p()
        expect(cuda.cudaStreamCreateWithFlags(ctypes.byref(self.stream), 1) == 0, "no stream")
        expect(cuda.cudaMalloc(ctypes.byref(self.memory), ctypes.c_size_t(4 * n)) == 0, "no memory")

    def data_ptr(self):
        return self.memory.value

    def numel(self):
        return self.n

    def __getitem__(self, part):
        host, at = torch.zeros(part.stop - part.start), self.memory.value + 4 * part.start
        self.cuda.cudaMemcpyAsync(ctypes.c_void_p(host.data_ptr()), ctypes.c_void_p(at), ctypes.c_size_t(4 * host.numel()), 2, self.stream)
        self.cuda.cudaStreamSynchronize(self.stream)
        found = host.as_subclass(Part)
        found.of, found.at = self, at
        return found


def gpu(plugin):
    """The way of a model on a GPU through the hook: the parameters of one on the host."""
    os.environ["SPARSETRAIN_PLUGIN"] = plugin
    found, zeros = [], torch.zeros
    for on_gpu in (False, True):
        model = ddp()
        if on_gpu:
            flat = OnDevice(ctypes.CDLL(plugin), parameters(model).numel())
            torch.cuda.device = lambda gpu: contextlib.nullcontext()
            torch.cuda.current_stream = lambda gpu: argparse.Namespace(cuda_stream=flat.stream.value)
            torch.zeros = lambda *size, device=None, **more: flat if device is not None else zeros(*size, **more)
            sparsetrain._gpu_of = lambda model: torch.device("cuda", 0)
        hook = sparsetrain.register(model, algo="oktopk", density=0.05, tau=4, tau_prime=3, group_bytes=9000)
        train(model, range(STEPS))
        found.append((digest(parameters(model)), [digest(part) for part in hook.residual().values()]))
        hook.close()
    expect(found[0] == found[1], "other parameters, or another residual")
    expect(flat.cuda.cudaFree(flat.memory) == 0, "cudaFree")


def main():
    sparsetrain.version()  # before MPI is started, which ends with the program all the same
    sparsetrain.init_process_group("gloo")
    for part in sys.argv[2:]:
        globals()[part](sys.argv[1])
        dist.barrier()
        if dist.get_rank() == 0:
            print("fine", part, flush=True)


main()
