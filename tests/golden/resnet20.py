#!/usr/bin/env python3
"""resnet20.py > resnet20.h: golden values for tests/nets/nets_golden.c: ten training steps of ResNet-20 (images.py)."""

from torch import nn
from torch.nn import functional

from images import golden


class Block(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.stride, self.pad = stride, (after - before) // 2

    def forward(self, x):
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        if self.stride != 1:
            x = functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.pad, self.pad))
        return functional.relu(y + x)


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        before = 16
        for stage in range(3):
            blocks = nn.Module()
            for i in range(3):
                after = 16 << stage
                blocks.add_module(f"block{i}", Block(before, after, 2 if after != before else 1))
                before = after
            self.add_module(f"stage{stage + 1}", blocks)
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)))
        for stage in (self.stage1, self.stage2, self.stage3):
            for block in stage.children():
                x = block(x)
        return self.linear(x.mean(dim=(2, 3)))


if __name__ == "__main__":
    golden("resnet20", ResNet20(), batch=16, steps=10, rate=0.005, decay=0.01, floor=1e-5)
