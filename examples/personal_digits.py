"""Personal networks for people who write few digits: which coupling helps, and whom.

Ten people have pictures of a few digits each (scikit-learn's 8 x 8 digits). Each wants a network of
its own, trained on few pictures. GTVNetClassifierCV finds out at held-out pictures who should be
coupled with whom, how strongly, and whether at all; a federated method with a server and own
pictures only stand beside it.

Run it: python examples/personal_digits.py [picture.png]
"""

import sys
from functools import cache
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from torch import nn

from nefele.networks import GTVNetClassifierCV
from nefele.networks.baselines import FedAvg, Local, PersonalClassifier

N_PEOPLE, PICTURES, TESTS = 10, 24, 60
OPTIONS = {"rounds": 20, "lr": 0.2, "batch_size": 12, "random_state": 0}


def network(n_features: int, n_outputs: int) -> nn.Module:
    """One hidden layer."""
    return nn.Sequential(nn.Linear(n_features, 32), nn.ReLU(), nn.Linear(32, n_outputs))


def deal(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pictures, digits, owner of each, and whether it is for training."""
    digits = load_digits()
    rng = np.random.default_rng(seed)
    X, y = digits.data / 16.0, digits.target
    rows, owner, train = [], [], []
    for person in range(N_PEOPLE):
        share = rng.dirichlet(np.full(10, 0.2))
        for count, training in ((PICTURES, True), (TESTS, False)):
            for digit, n in enumerate(rng.multinomial(count, share)):
                pool = np.flatnonzero((y == digit) & (np.arange(len(y)) % 2 == training))
                rows.append(rng.choice(pool, n, replace=False))
                owner.append(np.full(n, person))
                train.append(np.full(n, training))
    at = np.concatenate(rows)
    return X[at], y[at], np.concatenate(owner), np.concatenate(train)


@cache
def fitted() -> dict[str, Any]:
    """The three, each fitted to the same pictures."""
    X, y, owner, train = deal()
    models: dict[str, Any] = {
        "own pictures only": PersonalClassifier(network, method=Local(), **OPTIONS),
        "FedAvg, then own": PersonalClassifier(network, method=FedAvg(finetune=0.25), **OPTIONS),
        "coupling chosen": GTVNetClassifierCV(network, **OPTIONS),
    }
    for model in models.values():
        model.fit(X[train], y[train], node_ids=owner[train])
    return models


def main() -> None:
    """Say how often each of the three is wrong."""
    X, y, owner, train = deal()
    test = ~train
    for name, model in fitted().items():
        wrong = 1.0 - model.score(X[test], y[test], node_ids=owner[test])
        print(f"{name:18} {wrong:.3f} wrong")
    print(fitted()["coupling chosen"].summary())


def picture() -> Any:
    """Pictures that own networks get wrong and the coupled ones right, with both answers."""
    import matplotlib.pyplot as plt

    X, y, owner, train = deal()
    X, y, owner = X[~train], y[~train], owner[~train]
    own = fitted()["own pictures only"].predict(X, node_ids=owner)
    coupled = fitted()["coupling chosen"].predict(X, node_ids=owner)
    saved = np.flatnonzero((own != y) & (coupled == y))[:12]
    figure, axes = plt.subplots(2, 6, figsize=(7.2, 3.6), layout="constrained")
    for ax, k in zip(axes.flat, saved, strict=False):
        ax.imshow(X[k].reshape(8, 8), cmap="gray_r")
        ax.set_title(f"person {owner[k]}\nalone {own[k]}\ncoupled {coupled[k]}", fontsize=9)
    for ax in axes.flat:
        ax.set_axis_off()
    return figure


if __name__ == "__main__":
    main()
    if len(sys.argv) > 1:
        picture().savefig(sys.argv[1], dpi=120)
