#!/usr/bin/env python3
"""adam.py > adam.h: golden values for tests/nets/nets_optimise.c from PyTorch's torch.optim.Adam and AdamW, which share no
code with this project.

Parameters and gradients are the project's random numbers (base/rng.h), written again in common.py; the gradient of
parameter i is scaled by 2^(6 i - 36), so that epsilon counts for nothing, for a little and for everything. Without and
with weight decay, in double precision, and in single precision to see what rounding does (golden_range: the largest
difference, in units of the rate times the steps that were made). Last run with PyTorch 1.13.0."""

import numpy
import torch

from common import SEED, TEST, normals, numbers

N, BIASES, RATE, BETA1, BETA2, EPSILON = 8, 2, 1e-2, 0.9, 0.999, 1e-8
DECAYS, LOOKS = (0.0, 0.01), (1, 2, 10, 100)


def train(method, dtype, decay):
    """Parameters [N] after each of LOOKS steps. AdamW does not let the last BIASES of them decay."""
    start = torch.from_numpy(normals(TEST, 0, N).astype(numpy.float32)).to(dtype)
    parts = [start[: N - BIASES].clone().requires_grad_(), start[N - BIASES :].clone().requires_grad_()]
    groups = [{"params": parts[:1]}, {"params": parts[1:]}]
    if method is torch.optim.AdamW:
        groups[1]["weight_decay"] = 0.0
    optimiser = method(groups, lr=RATE, betas=(BETA1, BETA2), eps=EPSILON, weight_decay=decay)
    seen = []
    for step in range(1, LOOKS[-1] + 1):
        gradient = numpy.ldexp(normals(TEST, step, N).astype(numpy.float32), 6 * numpy.arange(N) - 36)
        gradient = torch.from_numpy(gradient).to(dtype)
        parts[0].grad, parts[1].grad = gradient[: N - BIASES].clone(), gradient[N - BIASES :].clone()
        optimiser.step()
        if step in LOOKS:
            seen.append(torch.cat(parts).detach().double().tolist())
    return seen


def main():
    methods = (torch.optim.Adam, torch.optim.AdamW)
    golden = [[train(method, torch.float64, decay) for decay in DECAYS] for method in methods]
    single = [[train(method, torch.float32, decay) for decay in DECAYS] for method in methods]
    apart = max(
        abs(a - b) / (RATE * LOOKS[k])
        for m in range(len(methods))
        for d in range(len(DECAYS))
        for k in range(len(LOOKS))
        for a, b in zip(golden[m][d][k], single[m][d][k])
    )
    print("/* adam.h: made by tests/golden/adam.py with PyTorch; see there. */")
    print("#ifndef ST_TESTS_GOLDEN_ADAM_H\n#define ST_TESTS_GOLDEN_ADAM_H\n")
    print(f"enum {{ GOLDEN_SEED = {SEED}, GOLDEN_N = {N}, GOLDEN_DECAYS = {len(DECAYS)}, GOLDEN_LOOKS = {len(LOOKS)} }};")
    print(f"#define GOLDEN_RATE {RATE}\n#define GOLDEN_BETA1 {BETA1}\n#define GOLDEN_BETA2 {BETA2}")
    print(f"#define GOLDEN_EPSILON {EPSILON}\n")
    print("/* Largest difference between single and double precision in PyTorch itself, over rate times steps. */")
    print(f"static const double golden_range = {apart:.17g};\n")
    print(f"static const double golden_decay[] = {{{numbers(DECAYS)}}};")
    print(f"static const int golden_look[] = {{{', '.join(map(str, LOOKS))}}};\n")
    for name, decays in zip(("adam", "adamw"), golden):
        print(f"/* {name}: parameters after so many steps with such a decay. */")
        print(f"static const double golden_{name}[GOLDEN_DECAYS][GOLDEN_LOOKS][GOLDEN_N] = {{")
        for looks in decays:
            print("    {" + ",\n     ".join("{" + numbers(values) + "}" for values in looks) + "},")
        print("};\n")
    print("#endif")


if __name__ == "__main__":
    main()
