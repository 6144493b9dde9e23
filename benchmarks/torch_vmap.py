"""Forty small networks trained at once (vmap) against a loop over modules, in the same run.

Both do the same Adam steps on the same rows with one thread; CPU seconds of this process. Run it
by `python benchmarks/torch_vmap.py`.
"""

from __future__ import annotations

import copy
import time

import numpy as np
import torch

from nefele._torch.building import plain_network
from nefele._torch.losses import values_of
from nefele.networks.features import ArrayFeatures
from nefele.networks.rows import Source
from nefele.networks.stack import Stack

NODES, ROWS, D, STEPS, REPEATS = 40, 50, 5, 100, 3
TARGET = 5.0


def squared(z, y):
    return (z - y) ** 2


def at_once(stack: Stack, source: Source) -> np.ndarray:
    """Losses of all nodes after the steps, by one tensor of parameters."""
    w = torch.nn.Parameter(stack.start(NODES))
    adam, rows = torch.optim.Adam([w], lr=0.01), next(source.chunks())  # all of them
    for _ in range(STEPS):
        w.grad = stack.gradients(w, rows)
        adam.step()
    with torch.no_grad():
        return stack.losses(w, rows).numpy()


def in_a_loop(module: torch.nn.Module, source: Source) -> np.ndarray:
    """The same, one module after the other."""
    losses = []
    for _, X, y, _ in next(source.chunks()).each():
        net = copy.deepcopy(module)
        adam = torch.optim.Adam(net.parameters(), lr=0.01)
        for _ in range(STEPS):
            adam.zero_grad()
            squared(net(X)[:, 0], y).mean().backward()
            adam.step()
        with torch.no_grad():
            losses.append(float(squared(net(X)[:, 0], y).mean()))
    return np.array(losses)


def seconds(run, *args) -> tuple[float, np.ndarray]:
    """Least CPU seconds of some repeats, after one to warm up, and the losses."""
    run(*args)
    times = []
    for _ in range(REPEATS):
        started = time.process_time()
        losses = run(*args)
        times.append(time.process_time() - started)
    return min(times), losses


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((NODES, ROWS, D))
    y = np.sin(X[:, :, 0]) + 0.1 * rng.standard_normal((NODES, ROWS))
    features = ArrayFeatures(X.reshape(-1, D), torch.float32)
    at, ptr = np.arange(NODES * ROWS), np.arange(NODES + 1) * ROWS
    source = Source(features, at, ptr, y.ravel(), np.ones(len(at)), "float32")
    module = plain_network(D)
    together, one = seconds(at_once, Stack(module, values_of, squared), source)
    apart, two = seconds(in_a_loop, module, source)
    print(f"{NODES} networks of 5-32-1 units, {ROWS} rows each, {STEPS} Adam steps, one thread")
    print(f"at once {together:.3f} s, loop over modules {apart:.3f} s (CPU)")
    print(f"largest relative difference of the losses {np.abs(one / two - 1).max():.1e}")
    print(f"ratio {apart / together:.1f} (target {TARGET:g})")


if __name__ == "__main__":
    main()
