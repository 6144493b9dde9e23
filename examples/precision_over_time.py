"""Who depends on whom, over time: a graphical Lasso at every time, coupled along the chain.

Four sensors; after half of the time the tie between the first two breaks and another forms.
"""

from typing import Any

import numpy as np

from nefele import LocalData, Problem, solve
from nefele.graphs import chain
from nefele.losses import GraphicalLasso, matrices

rng = np.random.default_rng(0)
TIMES, ROWS = 10, 25
truth = []
for t in range(TIMES):
    W = 2.0 * np.eye(4)
    i, j = (0, 1) if t < TIMES // 2 else (2, 3)
    W[i, j] = W[j, i] = 1.0
    truth.append(W)
rows = [rng.multivariate_normal(np.zeros(4), np.linalg.inv(W), size=ROWS) for W in truth]
data = LocalData.from_list([(X, np.zeros(ROWS)) for X in rows])
loss = GraphicalLasso(l1=0.1)
fits = {}

for name, lam in (("each time alone", 0.0), ("coupled over time", 0.3)):
    result = solve(Problem(chain(TIMES), data, loss=loss, penalty="l2", lam=lam))
    found = fits[name] = matrices(result.w)
    error = np.sqrt(((found - truth) ** 2).sum(axis=(1, 2))).mean()
    print(f"{name:18} error {error:.3f}, gap {result.gap:.1e}")

steps = np.sqrt((np.diff(found, axis=0) ** 2).sum(axis=(1, 2)))
print(f"the largest change is after time {int(np.argmax(steps))}")
ties = [(i, j) for i in range(4) for j in range(i) if abs(found[-1][i, j]) > 0.1]
print("ties at the end:", ties)


def picture() -> Any:
    """The two ties over time, at each time alone and coupled; dotted: the truth."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.4), sharey=True, layout="constrained")
    for ax, (name, found) in zip(axes, fits.items(), strict=True):
        for (i, j), colour, marker in (((0, 1), "#0072B2", "o"), ((2, 3), "#D55E00", "s")):
            label = f"sensors {i} and {j}"
            ax.plot(found[:, i, j], color=colour, marker=marker, label=label)
            ax.plot(np.array(truth)[:, i, j], color=colour, ls=":", lw=1)
        ax.set(title=name, xlabel="time")
    axes[0].set_ylabel("entry of the precision matrix")
    axes[0].legend(frameon=False)
    return figure
