"""Whether the coupling that is chosen is ever worse than own images only: random partitions.

`python -m nefele.experiments.pfl_safety FOLDER` prints ten of them, on MNIST in the folder, or on
the digits of scikit-learn without one.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from nefele.experiments.base import Cell
from nefele.experiments.pfl_data import DIGITS, dirichlet_counts, load_images
from nefele.experiments.pfl_methods import BATCH, LR, network

PARTITIONS = 10
_CLIENTS = 8
_LIMITS = {"concentration": (0.05, 100.0), "per_node": (20, 2000)}


def setting(number: int) -> tuple[float, int]:
    """Concentration and images per node of a partition, spread evenly on log scales.

    The sizes go through their range in another order than the concentrations.

    Examples
    --------
    >>> [round(setting(k)[0], 2) for k in (0, 9)], sorted(setting(k)[1] for k in range(10))[::9]
    ([0.05, 100.0], [20, 2000])
    """
    spots = np.linspace(0.0, 1.0, PARTITIONS)
    low, high = _LIMITS["concentration"]
    few, many = _LIMITS["per_node"]
    concentration = low * (high / low) ** spots[number]
    return float(concentration), round(few * (many / few) ** spots[7 * number % PARTITIONS])


def compared(number: int, folder: Path | None, rounds: int = 30) -> Cell:
    """Test accuracy of the chosen coupling and of own images only on one partition.

    Examples
    --------
    >>> found = compared(0, None, rounds=2)
    >>> found["per_node"], found["nodes"]
    (20, 8)
    """
    from nefele.networks import GTVNetClassifierCV
    from nefele.networks.baselines import Local, PersonalClassifier

    name = DIGITS if folder is None else "MNIST"
    X, y = load_images(name, folder)
    concentration, per_node = setting(number)
    rng = np.random.default_rng(number)
    most = len(y) // _CLIENTS // 2
    size = min(per_node, most)
    train, test, ids, test_ids = _dealt(y, concentration, size, most, rng)
    options: dict[str, Any] = {
        "rounds": rounds,
        "lr": LR,
        "batch_size": BATCH,
        "random_state": number,
    }
    chosen = GTVNetClassifierCV(network, **options).fit(X[train], y[train], node_ids=ids)
    own = PersonalClassifier(network, method=Local(), **options).fit(
        X[train], y[train], node_ids=ids
    )
    return {
        "concentration": concentration,
        "per_node": size,
        "nodes": _CLIENTS,
        "nefele": chosen.score(X[test], y[test], node_ids=test_ids),
        "own": own.score(X[test], y[test], node_ids=test_ids),
        "coupling": chosen.coupling_,
        "helps": chosen.verdict_.helps,
    }


def _dealt(
    y: np.ndarray, concentration: float, size: int, most: int, rng: np.random.Generator
) -> tuple[np.ndarray, ...]:
    """Rows to train and to test on, and their nodes; shares of classes differ by node."""
    total = np.bincount(y, minlength=10)
    shares = dirichlet_counts(total, _CLIENTS, concentration, int(rng.integers(2**31)), least=2)
    share = shares / shares.sum(axis=1, keepdims=True)
    pools = [rng.permutation(np.flatnonzero(y == c)) for c in range(10)]
    half = [len(pool) // 2 for pool in pools]  # one half to train on, the other to test
    parts: list[list[np.ndarray]] = [[], []]
    owners: list[list[np.ndarray]] = [[], []]
    for i in range(_CLIENTS):
        for k, count in enumerate((size, min(most, 400))):
            draws = rng.multinomial(count, share[i])
            rows = [
                rng.choice(pool[:cut] if k == 0 else pool[cut:], n, replace=n > cut)
                for pool, cut, n in zip(pools, half, draws, strict=True)
                if n
            ]
            parts[k].append(np.concatenate(rows))
            owners[k].append(np.full(count, i))
    train, test = (np.concatenate(part) for part in parts)
    ids, test_ids = (np.concatenate(part) for part in owners)
    return train, test, ids, test_ids


def main() -> None:
    """Print all partitions, and the largest loss against own images only."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    worst = -1.0
    for number in range(PARTITIONS):
        one = compared(number, folder)
        worst = max(worst, one["own"] - one["nefele"])
        print(
            f"Dirichlet {one['concentration']:8.3g}  {one['per_node']:5d} per node  own "
            f"{one['own']:.4f}  nefele {one['nefele']:.4f}  {one['coupling']} ({one['helps']})",
            flush=True,
        )
    print(f"largest loss against own images only: {100 * worst:.2f} points")


if __name__ == "__main__":
    main()
