"""VGG16 with torchvision's parameter names, a sixteenth of its channels and random weights: the perceptual network of both
trainers in the benchmark. The published weights are half a gigabyte, and the full network would take most of a step's time.

usage: vgg.py FILE      writes the state_dict
"""
import sys

import torch
from torch import nn

WIDTHS = [4, 4, "M", 8, 8, "M", 16, 16, 16, "M", 32, 32, 32, "M", 32, 32, 32, "M"]


def build():
    features, inputs = [], 3
    for width in WIDTHS:
        if width == "M":
            features.append(nn.MaxPool2d(2, 2))
        else:
            features += [nn.Conv2d(inputs, width, 3, padding=1), nn.ReLU(True)]
            inputs = width
    net = nn.Sequential()
    net.features = nn.Sequential(*features)
    net.avgpool = nn.AdaptiveAvgPool2d(7)
    net.flatten = nn.Flatten()
    net.classifier = nn.Sequential(nn.Linear(32 * 49, 256), nn.ReLU(True), nn.Dropout(), nn.Linear(256, 256), nn.ReLU(True),
                                   nn.Dropout(), nn.Linear(256, 10))
    return net


def load(path):
    """The network up to the last hidden layer, frozen and without dropout."""
    net = build()
    net.load_state_dict(torch.load(path, weights_only=True))
    net.classifier = nn.Sequential(*list(net.classifier)[:-2])
    net.requires_grad_(False)
    for module in net.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return net


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.save(build().state_dict(), sys.argv[1])
