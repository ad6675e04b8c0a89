#!/usr/bin/env python3
"""vgg16.py > vgg16.h: golden values for tests/nets/nets_golden_vgg16.c: three training steps of VGG-16 with batch
normalisation and one linear layer (images.py).

The rate is small: at larger ones so few images make the evaluated loss move by percents for what rounding does. The
decay is large, so as to be seen. Of two values of a pooling's window that are equal but for rounding either may be the
larger one, and get the gradient: losses after some steps then differ by some 1e-4 from one order of summation to
another, which single precision in one order does not show; hence the floor."""

from torch import nn
from torch.nn import functional

from images import golden


class Stage(nn.Module):
    def __init__(self, before, after, convolutions):
        super().__init__()
        self.convolutions = convolutions
        for i in range(1, convolutions + 1):
            self.add_module(f"conv{i}", nn.Conv2d(before, after, 3, 1, 1))
            self.add_module(f"bn{i}", nn.BatchNorm2d(after))
            before = after

    def forward(self, x):
        for i in range(1, self.convolutions + 1):
            x = functional.relu(getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(x)))
        return functional.max_pool2d(x, 2)


class VGG16(nn.Module):
    def __init__(self):
        super().__init__()
        before = 3
        for i, (convolutions, after) in enumerate(((2, 64), (2, 128), (3, 256), (3, 512), (3, 512))):
            self.add_module(f"stage{i + 1}", Stage(before, after, convolutions))
            before = after
        self.linear = nn.Linear(512, 10)

    def forward(self, x):
        for stage in (self.stage1, self.stage2, self.stage3, self.stage4, self.stage5):
            x = stage(x)
        return self.linear(x.mean(dim=(2, 3)))


if __name__ == "__main__":
    golden("vgg16", VGG16(), batch=4, steps=3, rate=0.0002, decay=0.5, floor=5e-4)
