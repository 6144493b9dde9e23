"""What privacy costs, before anybody pays it, and an audit of what was sent.

Many clinics with few patients each. With noise that hides any single patient, sharing is worth it
only from some epsilon on; `price` says from which. Then one fit is paid for from a budget, and an
attacker who knows everything but one patient tries to tell whether that patient was there.

Run it: python examples/private_clinics.py
"""

from typing import Any

import numpy as np

import nefele
from nefele.privacy import Bounds, Budget, Privacy, calibrate, price
from nefele.privacy.audit import canary
from nefele.privacy.statistics import release

N_CLINICS, N_PATIENTS = 150, 30
BOUNDS = Bounds(x=[(-1, 1)] * 3, y=(-4, 4))  # declared: nobody looked at the rows for them


def patients(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Clinics that differ little from each other."""
    ids = np.repeat(np.arange(N_CLINICS), N_PATIENTS)
    X = rng.uniform(-1, 1, (len(ids), 3))
    slopes = np.array([1.0, -1.5, 0.5]) + 0.05 * rng.normal(size=(N_CLINICS, 3))
    return X, (X * slopes[ids]).sum(axis=1) + rng.normal(size=len(ids)), ids


def main() -> None:
    X, y, ids = patients(np.random.default_rng(0))
    graph = nefele.graphs.star(N_CLINICS)
    budget = Budget(epsilon=3.0, delta=1e-6)
    promise = Privacy(3.0, 1e-6, bounds=BOUNDS, budget=budget)
    model = nefele.GTVRegressor(graph, penalty="squared_l2", alpha=300.0, privacy=promise)

    free = nefele.GTVRegressor(graph, penalty="squared_l2", alpha=300.0)
    free.set_params(privacy=Privacy(1.0, 1e-6, bounds=BOUNDS))
    print(price(free, X, y, [1.0, 3.0, 10.0], node_ids=ids, repeats=3).text())

    model.fit(X, y, node_ids=ids)
    print(model.privacy_.text())
    print(f"spent: {budget.spent:.2f} of {budget.epsilon:g}")
    print(attacked(X[ids == 0], y[ids == 0]))


def attacked(X: np.ndarray, y: np.ndarray) -> str:
    """Whether somebody can tell which of two patients was in one clinic's release."""
    box = BOUNDS.fixed(3)
    there = X.copy(), np.append(4.0, y[1:])
    other = X.copy(), np.append(-4.0, y[1:])
    there[0][0] = other[0][0] = 1.0

    def sent(rows: tuple[np.ndarray, np.ndarray], rng: np.random.Generator) -> np.ndarray:
        return release(*rows, box, calibrate(3.0, 1e-6), "record", rng)

    found = canary(sent, there, other, delta=1e-6, runs=1000, family="gaussian", claimed=3.0)
    return str(found)


def picture() -> Any:
    """What sharing with a guarantee is worth, by epsilon."""
    import matplotlib.pyplot as plt

    X, y, ids = patients(np.random.default_rng(0))
    model = nefele.GTVRegressor(nefele.graphs.star(N_CLINICS), penalty="squared_l2", alpha=300.0)
    model.set_params(privacy=Privacy(1.0, 1e-6, bounds=BOUNDS))
    found = price(model, X, y, [0.5, 1.0, 2.0, 4.0, 8.0], node_ids=ids, repeats=2)
    figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    ax.semilogx(
        found.epsilons, found.private.mean(axis=1), marker="o", label="coupled, with the guarantee"
    )
    ax.axhline(
        found.own.mean(), color="#999999", ls="--", label="own data only, no guarantee needed"
    )
    ax.set(xlabel="epsilon", ylabel="error at held-out rows")
    ax.legend(frameon=False)
    return figure


if __name__ == "__main__":
    main()
