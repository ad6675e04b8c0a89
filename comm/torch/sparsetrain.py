"""The gradient exchanges of sparsetrain for DistributedDataParallel of PyTorch, through libsparsetrain and ctypes.

    mpirun -np 4 python3 train.py

    import sparsetrain
    sparsetrain.init_process_group("gloo")             # or torch.distributed's own, with ranks in the order of MPI's
    model = torch.nn.parallel.DistributedDataParallel(network)
    hook = sparsetrain.register(model, algo="oktopk", density=0.01)
    ...                                                # train as ever; hook.stats() says what passed
    torch.save({..., "exchange": hook.state_dict()}, f"checkpoint-{rank}.pt")        # of each rank, with its residual

The gradient is exchanged as one vector, the parameters in the order of model.parameters(), so that residuals, and the sums
themselves, do not depend on how DDP cuts it into buckets, which changes after the first step. A thread takes the buckets
as backward completes them; groups of parameters of at least `group_bytes` are exchanged while backward goes on
(group_bytes=None: all at once, after it). Every bucket's future completes when the step's exchange is done. Several models
may be in one backward: they exchange one after the other, in the order in which it comes to them.

Gradients are float32. Those of a model on one GPU stay there, on which the library selects in them, where it finds its
plugin for CUDA and the GPU serves; else they pass through host memory, which a warning says (device="cpu": they shall;
device="cuda": an error in place of the warning). The library is found as $SPARSETRAIN_LIBRARY, beside an
installation's share/sparsetrain/python, by pkg-config, or by the loader.
"""

import atexit
import collections
import ctypes
import os
import queue
import signal
import subprocess
import sys
import threading
import warnings

import torch
import torch.distributed as dist

__all__ = ["Error", "Hook", "algorithms", "init_process_group", "register", "version"]

LINE = 1024
PATIENCE = 30  # seconds that the end of a rank with an error may take
PHASES = ("other", "select", "pack", "communicate", "merge", "update")


class Error(RuntimeError):
    """One line of the library: what is wrong, what to do. status: 1 system, 2 a mistake, 3 NaN or infinity."""

    def __init__(self, status, line):
        super().__init__(line)
        self.status = status


class _Stats(ctypes.Structure):
    _fields_ = [
        ("steps", ctypes.c_uint64),
        ("messages_sent", ctypes.c_uint64),
        ("messages_received", ctypes.c_uint64),
        ("bytes_sent", ctypes.c_uint64),
        ("bytes_received", ctypes.c_uint64),
        ("seconds", ctypes.c_double * len(PHASES)),
        ("hidden_seconds", ctypes.c_double),
        ("k", ctypes.c_uint64),
        ("local_entries", ctypes.c_uint64),
        ("global_entries", ctypes.c_uint64),
        ("words_bound", ctypes.c_double),
        ("local_threshold", ctypes.c_float),
        ("global_threshold", ctypes.c_float),
        ("mass_lost", ctypes.c_double),
    ]


# -- the library -------------------------------------------------------------------------------------------------------


def _places():
    given = os.environ.get("SPARSETRAIN_LIBRARY")
    if given:
        yield given
        return
    here = os.path.dirname(os.path.abspath(__file__))
    yield os.path.join(here, "..", "..", "..", "lib", "libsparsetrain.so.0")  # of PREFIX/share/sparsetrain/python
    yield os.path.join(here, "..", "..", "build", "libsparsetrain.so.0")  # of a clone
    try:
        found = subprocess.run(["pkg-config", "--variable=libdir", "sparsetrain"], capture_output=True, text=True, check=False)
        if found.returncode == 0:
            yield os.path.join(found.stdout.strip(), "libsparsetrain.so.0")
    except OSError:
        pass
    yield "libsparsetrain.so.0"


def _load():
    tried = []
    for place in _places():
        try:
            # MPI opens components of its own, which look for its names among those that all libraries may use.
            return ctypes.CDLL(place, mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            tried.append(str(error))
    raise Error(2, "libsparsetrain is not found: make install, or name it in SPARSETRAIN_LIBRARY (" + tried[-1] + ")")


_library = None


def _lib():
    global _library
    if _library is None:
        lib = _load()
        pointer, size, text = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
        for name, result, arguments in (
            ("version", text, []),
            ("algorithm", text, [size]),
            ("mpi_init", ctypes.c_int, [ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int), text]),
            ("mpi_finalize", None, []),
            (
                "open_slices",
                ctypes.c_int,
                [ctypes.POINTER(pointer), pointer, text, size, text, ctypes.POINTER(size), size, ctypes.POINTER(size), size, text],
            ),
            ("close", None, [pointer]),
            ("set_stream", ctypes.c_int, [pointer, pointer, text]),
            ("set_density", ctypes.c_int, [pointer, ctypes.c_double, text]),
            ("begin", ctypes.c_int, [pointer, pointer, text]),
            ("ready", ctypes.c_int, [pointer, size, text]),
            ("run", ctypes.c_int, [pointer, pointer, text]),
            ("save", size, [pointer, pointer, size]),
            ("restore", ctypes.c_int, [pointer, pointer, size, text]),
            ("residual", ctypes.c_int, [pointer, size, size, pointer, text]),
            ("get_stats", None, [pointer, ctypes.POINTER(_Stats)]),
        ):
            function = getattr(lib, "sparsetrain_" + name)
            function.restype, function.argtypes = result, arguments
        _library = lib
    return _library


def _call(name, *arguments):
    why = ctypes.create_string_buffer(LINE)
    status = getattr(_lib(), "sparsetrain_" + name)(*arguments, why)
    if status != 0:
        raise Error(status, why.value.decode("utf-8", "replace"))


def version():
    """Of the library: "0.1.0 (commit ...)"."""
    return _lib().sparsetrain_version().decode()


def algorithms():
    """What `algo` may be."""
    names = []
    while _lib().sparsetrain_algorithm(len(names)) is not None:
        names.append(_lib().sparsetrain_algorithm(len(names)).decode())
    return names


# Of models in one backward one exchanges at a time: MPI may be used by one thread at a time, and on all ranks in the same
# order, which is that in which backward comes to them.
_turns = collections.deque()  # hooks that have a step under way
_turn = threading.Condition()
_hooks = []  # that are open, in the order in which all ranks have opened them
_left_with = None  # what sys.exit was called with
_started = False  # MPI


def _note_exit():
    """The functions of atexit are not told how a program ends."""
    leave = sys.exit

    def noting(status=None, /):
        global _left_with
        _left_with = status
        leave(status)

    sys.exit = noting


def _end():
    """A rank that ends by an error does not wait for the others, which may be waiting for it in a step: mpirun ends the job
    when a rank leaves without MPI_Finalize, or by a signal. After sys.exit(status) all may come here, but not for ever."""
    raised = hasattr(sys, "last_exc") or hasattr(sys, "last_value")
    broken = [hook._broken for hook in _hooks if hook._broken is not None]
    if raised or broken or _left_with not in (None, 0):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(PATIENCE)
    if raised:
        return
    if broken:  # and nobody has said so: the status would be 0
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(getattr(broken[0], "status", 1))
    for hook in list(_hooks):
        hook.close()
    _lib().sparsetrain_mpi_finalize()
    signal.alarm(0)


def _ranks():
    """Starts MPI unless it runs: this rank and how many there are."""
    global _started
    rank, size = ctypes.c_int(), ctypes.c_int()
    _call("mpi_init", ctypes.byref(rank), ctypes.byref(size))
    if not _started:
        _started = True
        atexit.register(_end)
        _note_exit()
    return rank.value, size.value


def init_process_group(backend="gloo", **arguments):
    """torch.distributed.init_process_group with rank and size of MPI. MASTER_ADDR and MASTER_PORT are the environment's,
    else of this machine."""
    rank, size = _ranks()
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")
    dist.init_process_group(backend, rank=rank, world_size=size, **arguments)


# -- the hook ----------------------------------------------------------------------------------------------------------


class _Bucket:
    """What backward has completed: a flat tensor, whose parts these parameters' gradients are; the future of its mean."""

    def __init__(self, bucket):
        self.buffer = bucket.buffer()
        self.parameters = bucket.parameters()
        self.last = bucket.is_last()
        self.done = None
        if self.buffer.is_cuda:
            self.done = torch.cuda.Event()
            self.done.record()
            self.future = torch.futures.Future(devices=[self.buffer.device])
        else:
            self.future = torch.futures.Future()


def _gpu_of(model):
    """The one on which all of the model that is trained lies, or None."""
    devices = {parameter.device for parameter in model.parameters() if parameter.requires_grad}
    return devices.pop() if len(devices) == 1 and next(iter(devices)).type == "cuda" else None


class Hook:
    """Of one model: see register()."""

    def __init__(self, model, algo, options, group_bytes):
        rank, size = _ranks()
        if not dist.is_initialized():
            raise Error(2, "there is no process group: call sparsetrain.init_process_group first")
        if (dist.get_rank(), dist.get_world_size()) != (rank, size):
            raise Error(
                2,
                f"rank {dist.get_rank()} of {dist.get_world_size()} of the process group is rank {rank} of {size} of MPI: start with "
                "mpirun, and give the process group MPI's ranks (sparsetrain.init_process_group does)",
            )
        self.algo, self.options = algo, options
        self._layout, self._at, at, starts, self._matrices = [], {}, 0, [], []
        for name, parameter in model.named_parameters():
            if not parameter.requires_grad:
                continue
            if parameter.dtype != torch.float32:
                raise Error(2, f"parameter {name} is of {parameter.dtype}: gradients must be float32")
            self._at[id(parameter)] = at
            self._layout.append((name, parameter.numel()))
            if parameter.numel() > 0:
                rows = parameter.shape[0] if parameter.dim() > 1 else 1
                self._matrices += [rows, parameter.numel() // rows]
                starts.append(at)
            at += parameter.numel()
        if at == 0:
            raise Error(2, "the model has no parameter that is trained")
        self._handle = ctypes.c_void_p()
        self._gpu = _gpu_of(model) if options.get("device", "cuda") == "cuda" else None
        if self._gpu is None and options.get("device") == "cuda":
            raise Error(2, "device=cuda: the parameters that are trained do not lie on one GPU")
        self._open(at, self._groups(starts, at, group_bytes), rank)
        self._flat = torch.zeros(at, device=self._gpu)
        self._overlaps = group_bytes is not None
        self._given = False  # some of a step's buckets
        self._broken = None
        self._new_step()
        self._work = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="sparsetrain", daemon=True)
        self._thread.start()
        _hooks.append(self)

    def _open(self, n, groups, rank):
        """On the GPU, if that can be; else self._gpu is None."""
        if self._gpu is not None:
            try:
                with torch.cuda.device(self._gpu):
                    self._open_with({**self.options, "device": "cuda"}, n, groups)
                return
            except Error as error:
                if "device" in self.options:
                    raise
                self._gpu = None
                if rank == 0:
                    warnings.warn(f"sparsetrain: gradients pass through host memory: {error}", RuntimeWarning)
        self._open_with(self.options, n, groups)

    def _open_with(self, options, n, groups):
        _call(
            "open_slices",
            ctypes.byref(self._handle),
            None,
            self.algo.encode(),
            n,
            ",".join(f"{name}={value}" for name, value in sorted(options.items())).encode(),
            (ctypes.c_size_t * len(groups))(*groups),
            len(groups),
            (ctypes.c_size_t * len(self._matrices))(*self._matrices),
            len(self._matrices) // 2,
        )

    @staticmethod
    def _groups(starts, n, group_bytes):
        """Where groups of whole parameters of at least so many bytes begin, counted from the end."""
        if group_bytes is None:
            return []
        groups, end = [], n
        for start in reversed(starts):
            if 4 * (end - start) >= group_bytes or start == 0:
                groups.append(start)
                end = start
        return groups[::-1]

    def _new_step(self):
        self._taken = []  # buckets of this step
        self._waiting = {}  # of gradients that are here: where they begin: where they end
        self._from = self._flat.numel()  # from here on all are

    # -- by the thread of backward

    def give(self, bucket):
        """A bucket whose gradients backward has completed; its future."""
        taken = _Bucket(bucket)
        if self._handle:
            if not self._given and self._broken is None:
                with _turn:
                    _turns.append(self)
            self._given = not taken.last
            self._work.put(taken)
        else:  # nobody takes it any more
            taken.future.set_exception(self._broken)
        return taken.future

    # -- by the thread of the hook

    def _serve(self):
        while True:
            item = self._work.get()
            if item is None:
                return
            try:
                if self._broken is not None:
                    raise self._broken
                with _turn:
                    _turn.wait_for(lambda: self not in _turns or _turns[0] is self)
                self._take(item)
            except Exception as error:  # pylint: disable=broad-except
                self._broken = error
                self._end_turn()
                for taken in self._taken + [item]:
                    if not taken.future.done():
                        taken.future.set_exception(error)
                self._taken = []

    def _end_turn(self):
        with _turn:
            while self in _turns:
                _turns.remove(self)
            _turn.notify_all()

    def _take(self, bucket):
        if bucket.done is not None:
            bucket.done.synchronize()
        self._check(bucket)
        grad = ctypes.c_void_p(self._flat.data_ptr())
        if not self._taken and self._gpu is not None:  # on which this thread copies, below
            _call("set_stream", self._handle, ctypes.c_void_p(torch.cuda.current_stream(self._gpu).cuda_stream))
        if not self._taken and self._overlaps:
            _call("begin", self._handle, grad)
        offset = 0
        for parameter in bucket.parameters:
            at, count = self._at[id(parameter)], parameter.numel()
            if count == 0:
                continue
            self._flat[at : at + count].copy_(bucket.buffer[offset : offset + count])
            self._waiting[at + count] = at
            offset += count
        self._taken.append(bucket)
        before = self._from
        while self._from in self._waiting:
            self._from = self._waiting.pop(self._from)
        if self._overlaps and self._from < before:
            _call("ready", self._handle, self._from)
        if bucket.last:
            self._finish(grad)

    def _check(self, bucket):
        if bucket.buffer.is_sparse:
            raise Error(2, "the gradient of an embedding is sparse: make the embedding with sparse=False")
        if any(id(parameter) not in self._at for parameter in bucket.parameters):
            raise Error(
                2,
                "DDP brings the gradient of a parameter that was frozen when register() was called: freeze before DistributedDataParallel "
                "is made, or after register()",
            )

    def _finish(self, grad):
        if self._from != 0 or self._waiting:
            raise Error(2, "a step has not brought the gradients of all parameters")
        _call("run", self._handle, grad)
        taken = self._taken
        for bucket in taken:
            offset = 0
            for parameter in bucket.parameters:
                at, count = self._at[id(parameter)], parameter.numel()
                bucket.buffer[offset : offset + count].copy_(self._flat[at : at + count])
                offset += count
            if bucket.done is not None:
                torch.cuda.current_stream(bucket.buffer.device).synchronize()
        self._new_step()
        self._end_turn()
        for bucket in taken:
            bucket.future.set_result(bucket.buffer)

    # -- between steps

    def _live(self):
        """The exchange; after close() there is none, which the library would not notice."""
        if not self._handle:
            raise self._broken
        return self._handle

    def stats(self):
        """What passed, and how long it took, as a dict: see struct sparsetrain_stats in sparsetrain.h."""
        found = _Stats()
        _lib().sparsetrain_get_stats(self._live(), ctypes.byref(found))
        named = {name: getattr(found, name) for name, _ in _Stats._fields_ if name != "seconds"}
        named["seconds"] = dict(zip(PHASES, found.seconds))
        return named

    def set_density(self, density):
        """Of the next steps: at most density_max, which register() was given. Collective, and refused where ranks differ."""
        _call("set_density", self._live(), density)

    def residual(self):
        """What has not left this rank yet, by parameter."""
        whole, found, at = torch.zeros(self._flat.numel()), {}, 0
        _call("residual", self._live(), 0, whole.numel(), ctypes.c_void_p(whole.data_ptr()))
        for name, count in self._layout:
            found[name] = whole[at : at + count].clone()
            at += count
        return found

    def state_dict(self):
        """Residual, thresholds and all else that the next steps depend on; of this rank."""
        handle = self._live()
        count = _lib().sparsetrain_save(handle, None, 0)
        saved = torch.zeros(count, dtype=torch.uint8)
        if count == 0 or _lib().sparsetrain_save(handle, ctypes.c_void_p(saved.data_ptr()), count) != count:
            raise self._broken or Error(2, "an exchange can be saved between two steps alone")
        return {"algo": self.algo, "parameters": list(self._layout), "bytes": saved}

    def load_state_dict(self, state):
        """Of a hook that was registered in the same way, on the same rank of as many. Collective."""
        handle, saved, wrong = self._live(), torch.zeros(0, dtype=torch.uint8), None
        try:
            saved = self._bytes_of(state)
        except Error as error:  # the ranks agree in restore whether all have what they need
            wrong = error
        try:
            _call("restore", handle, ctypes.c_void_p(saved.data_ptr()), saved.numel())
        except Error as error:
            raise wrong or error from None

    def _bytes_of(self, state):
        try:
            layout, saved = [tuple(of) for of in state["parameters"]], state["bytes"].cpu().contiguous()
        except (AttributeError, KeyError, TypeError):
            raise Error(2, "what was saved is no state_dict() of a hook") from None
        if saved.dtype != torch.uint8:
            raise Error(2, f"what was saved has been turned into {saved.dtype}: load it as it was")
        if layout != self._layout:
            raise Error(2, "what was saved is of a model with other parameters")
        return saved

    def close(self):
        """Collective. A model that is trained on after that fails, as do the other calls."""
        if not self._handle:
            return
        self._work.put(None)
        self._thread.join()
        self._end_turn()
        self._broken = self._broken or Error(2, "the exchange has been closed: register another, with a model of its own")
        _lib().sparsetrain_close(self._handle)
        self._handle = None
        _hooks.remove(self)


def _hook(hook, bucket):
    return hook.give(bucket)


def register(model, algo="oktopk", density=0.01, group_bytes=4 << 20, **options):
    """Exchanges the gradients of a DistributedDataParallel model by this algorithm. options: of sparsetrain.h, as select,
    wire, tau, tau_prime, density_max. Collective; returns the Hook."""
    if not isinstance(model, torch.nn.parallel.DistributedDataParallel):
        raise Error(2, f"register() was given a {type(model).__name__}: it takes a model in DistributedDataParallel")
    for name, value in {"density": density, **options}.items():
        if "," in str(value):  # would be where another option begins
            raise Error(2, f"{name}={value}: an option has no comma; give each by its name, and a list with + between")
    hook = Hook(model, algo, {"density": density, **options}, group_bytes)
    try:
        model.register_comm_hook(hook, _hook)
    except Exception:  # as where it has a hook already
        hook.close()
        raise
    return hook
