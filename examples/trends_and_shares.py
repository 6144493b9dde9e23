"""Trends over a graph instead of steps, and parameters that are shares of a whole."""

from typing import Any

import numpy as np

from nefele import LocalData, Problem, solve
from nefele.graphs import chain, grid, trend
from nefele.losses import Constrained, Squared

rng = np.random.default_rng(0)

# A tent over a grid: flat pieces fit it badly, linear ones well.
side = 12
x, y = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
tent = (6.0 - np.maximum(np.abs(x - 5.5), np.abs(y - 5.5))).ravel()
seen = tent + rng.normal(size=tent.size)
data = LocalData.from_list([([[1.0]], [v]) for v in seen])
fields = {"the truth": tent, "what was seen": seen}
for order, name in ((1, "flat pieces"), (2, "linear pieces")):
    best = np.inf
    for lam in np.geomspace(0.1, 3.0, 8):
        problem = Problem(trend(grid(side, side), order), data, penalty="l1", lam=lam)
        result = solve(problem, tol=1e-5)
        error = float(np.sqrt(np.mean((result.w[:, 0] - tent) ** 2)))
        if error < best:
            best, fields[name] = error, result.w[:, 0]
    print(f"{name:14} error {best:.3f}")

# Shares of three materials in ten mixtures along a belt, from noisy measurements.
shares = np.array([[0.7, 0.3, 0.0]] * 5 + [[0.1, 0.2, 0.7]] * 5)
rows = [(X := rng.normal(size=(4, 3)), X @ w + 0.3 * rng.normal(size=4)) for w in shares]
data = LocalData.from_list(rows)
for name, loss in (("any numbers", Squared()), ("shares", Constrained(Squared(), "simplex"))):
    result = solve(Problem(chain(10), data, loss=loss, lam=0.05))
    error = np.abs(result.w - shares).mean()
    print(f"{name:14} off by {error:.3f}, sums {result.w.sum(axis=1).min():.2f} to "
          f"{result.w.sum(axis=1).max():.2f}")  # fmt: skip


def picture() -> Any:
    """The tent, what was seen of it, and the best fit by flat and by linear pieces."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(6.0, 5.0), layout="constrained")
    for ax, (name, values) in zip(axes.flat, fields.items(), strict=True):
        shown = ax.imshow(values.reshape(side, side), vmin=0, vmax=6, cmap="cividis")
        ax.set(title=name, xticks=[], yticks=[])
    figure.colorbar(shown, ax=axes, shrink=0.8)
    return figure
