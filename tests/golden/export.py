#!/usr/bin/env python3
"""export.py DIR > export.h: golden values for tests/files/cli_export.c: the losses that PyTorch computes with models that
`sparsetrain export` wrote.

DIR holds MODEL.safetensors and MODEL.npz of every model: GOLDEN_EXPORT=DIR build/tests/cli_export leaves them there. They
are read without sparsetrain and without the library of safetensors (where that is installed, it must agree), loaded into
the modules that the other golden values come from, every name of which must be met, and evaluated in double precision on a
batch of the project's random numbers (common.py). Last run with PyTorch 1.13.0 and safetensors 0.8.0."""

import json
import struct
import sys

import numpy
import torch
from torch.nn import functional

import lstm
from common import SEED, TEST, words
from gpt import GPT
from images import EVALUATED, batch_of
from resnet20 import ResNet20
from vgg16 import VGG16

BATCH, SEQUENCE, STEPS, LAYERS, HEADS, MAGNIFIED = 4, 6, 3, 2, 2, 10


def read_safetensors(path):
    """{name: array} and the metadata."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    about = header.pop("__metadata__")
    arrays = {}
    for name, entry in header.items():
        assert entry["dtype"] == "F32"
        begin, end = entry["data_offsets"]
        arrays[name] = numpy.frombuffer(data[begin:end], dtype="<f4").reshape(entry["shape"])
    return arrays, about


def read(base):
    """The state of a model as both formats have it."""
    arrays, about = read_safetensors(f"{base}.safetensors")
    others = [dict(numpy.load(f"{base}.npz", allow_pickle=False))]
    try:
        from safetensors.numpy import load_file

        others.append(load_file(f"{base}.safetensors"))
    except ImportError:
        print("the library of safetensors is not installed: not asked", file=sys.stderr)
    for other in others:
        assert list(sorted(other)) == list(sorted(arrays))
        for name, array in arrays.items():
            assert other[name].dtype == numpy.float32 and other[name].shape == array.shape
            assert (other[name] == array).all()
    return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}, about


def window(vocabulary, *shape):
    """Tokens and labels, each of this shape: of the LSTM [SEQUENCE][BATCH], of gpt [BATCH][SEQUENCE]."""
    w = words(TEST, EVALUATED, 2 * BATCH * SEQUENCE) % numpy.uint64(vocabulary)
    w = torch.from_numpy(w.astype(numpy.int64)).reshape(2, *shape)
    return w[0], w[1]


def lstm_of(state):
    lstm.VOCABULARY, features = state["embedding.weight"].shape
    return lstm.Model(features, state["lstm1.weight_hh_l0"].shape[1], state["lstm2.weight_hh_l0"].shape[1], 0.0)


def gpt_of(state, about):
    """Of the preset char-cpu: without biases, exact GELU. What the shapes do not say, the metadata do."""
    (vocabulary, features), context = state["embedding.weight"].shape, state["position.weight"].shape[0]
    blocks = len([name for name in state if name.endswith(".norm1.weight")])
    assert (about["preset"], context, blocks, about["heads"]) == ("char-cpu", SEQUENCE, LAYERS, str(HEADS))
    return GPT(context, vocabulary, blocks, int(about["heads"]), features, False, False, 0.0)


def loss_of(name, directory):
    state, about = read(f"{directory}/{name}")
    assert about["model"] == name and about["format"] == "pt" and about["step"] == str(STEPS)
    if name == "gpt":
        model = gpt_of(state, about)
    else:
        model = {"resnet20": lambda _: ResNet20(), "vgg16": lambda _: VGG16(), "lstm": lstm_of}[name](state)
    model.load_state_dict(state, strict=True)
    model = model.double().eval()
    for p in model.parameters() if name == "gpt" else ():  # so that attention shows in the loss
        p.data *= MAGNIFIED if p.dim() > 1 else 1
    with torch.no_grad():
        if name == "lstm":
            token, y = window(int(about["classes"]), SEQUENCE, BATCH)
            hidden = state["lstm1.weight_hh_l0"].shape[1]
            zeros = [tuple(torch.zeros(1, BATCH, hidden, dtype=torch.float64) for _ in range(2)) for _ in range(2)]
            z, y = model(token, zeros, None)[0].reshape(BATCH * SEQUENCE, -1), y.reshape(-1)
        elif name == "gpt":
            token, y = window(int(about["classes"]), BATCH, SEQUENCE)
            z, y = model(token, None).reshape(BATCH * SEQUENCE, -1), y.reshape(-1)
        else:
            x, y = batch_of(EVALUATED, BATCH)
            z = model(x.double())
    return functional.cross_entropy(z, y).item()


def main():
    torch.set_num_threads(1)
    print("/* export.h: made by tests/golden/export.py with PyTorch; see there. */")
    print("#ifndef ST_TESTS_GOLDEN_EXPORT_H\n#define ST_TESTS_GOLDEN_EXPORT_H\n")
    print(f"enum {{ GOLDEN_SEED = {SEED}, GOLDEN_BATCH = {BATCH}, GOLDEN_SEQUENCE = {SEQUENCE}, GOLDEN_STEPS = {STEPS}, "
          f"GOLDEN_LAYERS = {LAYERS}, GOLDEN_HEADS = {HEADS}, "
          f"GOLDEN_MAGNIFIED = {MAGNIFIED}, GOLDEN_EVALUATED = {EVALUATED} }};\n")
    print("/* Mean losses of a batch. */")
    print("static const struct golden_export {\n    const char *model;\n    double loss;\n} golden_exports[] = {")
    for name in ("resnet20", "vgg16", "lstm", "gpt"):
        print(f'    {{"{name}", {loss_of(name, sys.argv[1]):.17g}}},')
    print("};\n\n#endif")


if __name__ == "__main__":
    main()
