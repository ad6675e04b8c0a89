"""peer_models.py: the networks of sparsetrain, in PyTorch, for the scripts that measure against it. Imported, not run."""

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut without parameters (option A)."""

    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.stride, self.pad = stride, (after - before) // 2

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        if self.stride != 1:
            x = functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.pad, self.pad))
        return functional.relu(y + x, inplace=True)


class ResNet20(nn.Module):
    parameters_expected = 269722

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        widths = [16] * 4 + [32] * 3 + [64] * 3
        self.blocks = nn.Sequential(*(Block(a, b, 1 if a == b else 2) for a, b in zip(widths, widths[1:])))
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        x = self.blocks(x)
        return self.linear(functional.adaptive_avg_pool2d(x, 1).flatten(1))


class VGG16(nn.Module):
    """For 32x32 images: thirteen convolutions with batch normalisation, five poolings, one linear layer."""

    parameters_expected = 14728266

    def __init__(self):
        super().__init__()
        layers, before = [], 3
        for width in (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0):
            if width == 0:
                layers.append(nn.MaxPool2d(2))
                continue
            layers += [nn.Conv2d(before, width, 3, 1, 1), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
            before = width
        self.features = nn.Sequential(*layers)
        self.linear = nn.Linear(512, 10)

    def forward(self, x):
        return self.linear(self.features(x).flatten(1))


MODELS = {"resnet20": ResNet20, "vgg16": VGG16}


def open_model(name):
    """The network with fresh parameters, as many as sparsetrain's has."""
    torch.manual_seed(1)
    model = MODELS[name]()
    count = sum(p.numel() for p in model.parameters())
    assert count == model.parameters_expected, (name, count)
    return model


def magnitudes(n, device="cpu"):
    """[n]: normal numbers whose scale wanders from layer to layer, as in `sparsetrain bench select`."""
    torch.manual_seed(1)
    layer = torch.exp(2.0 * ((torch.arange(n, device=device) // 16384) % 64) / 64.0)
    return (torch.randn(n, device=device) * layer * 3e-3).abs()
