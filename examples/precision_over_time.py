"""Who depends on whom, over time: a graphical Lasso at every time, coupled along the chain.

Four sensors; after half of the time the tie between the first two breaks and another forms.
"""

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

for name, lam in (("each time alone", 0.0), ("coupled over time", 0.3)):
    result = solve(Problem(chain(TIMES), data, loss=loss, penalty="l2", lam=lam))
    found = matrices(result.w)
    error = np.sqrt(((found - truth) ** 2).sum(axis=(1, 2))).mean()
    print(f"{name:18} error {error:.3f}, gap {result.gap:.1e}")

steps = np.sqrt((np.diff(found, axis=0) ** 2).sum(axis=(1, 2)))
print(f"the largest change is after time {int(np.argmax(steps))}")
ties = [(i, j) for i in range(4) for j in range(i) if abs(found[-1][i, j]) > 0.1]
print("ties at the end:", ties)
