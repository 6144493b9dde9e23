"""Small images of three nodes, and a network with convolutions."""

import numpy as np
from torch import nn

from nefele import Graph

PATH = Graph.from_edges([("a", "b"), ("b", "c")])
IDS = ["a"] * 9 + ["b"] * 14 + ["c"] * 11


def images(seed=0):
    """A bright spot says the class; nodes differ in what dark ones mean."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, len(IDS))
    X = 0.5 * rng.standard_normal((len(IDS), 1, 6, 6))
    X[np.arange(len(IDS)), 0, 2 * y, 2] += 2.0
    return X.astype(np.float32), y


class CONVOLUTION(nn.Module):
    """A convolution and a head."""

    def __init__(self, norm=False):
        super().__init__()
        self.first = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4) if norm else nn.Identity()
        self.head = nn.Linear(64, 3)

    def forward(self, x):
        return self.head(self.norm(self.first(x)).relu().flatten(1))
