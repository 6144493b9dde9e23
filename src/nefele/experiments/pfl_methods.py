"""The methods of the comparison, what is tried of each, and how one of these is chosen."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.experiments.base import Cell
from nefele.experiments.pfl_data import Dealt
from nefele.selection import WithinNodeKFold
from nefele.selection.judge import Judge

NEFELE = "nefele, chosen"
SPLITS, PARTS, SHARE = 2, 4, 0.5  # of the choice: splits, held-out part, share of the rounds
HIDDEN = 64
BATCH = 20
LR = 0.2


def names() -> list[str]:
    """The methods, nefele's first.

    Examples
    --------
    >>> names()[:3]
    ['nefele, chosen', 'own images only', 'one network, pooled']
    """
    return [NEFELE, *_strengths()]


def splits_of(method: str) -> dict[str, int]:
    """Splits of the choice, of a method that has one."""
    alone = ("own images only", "one network, pooled", "FedAvg", "FedPer")
    return {} if method in alone else {"splits": SPLITS}


def _strengths() -> dict[str, Callable[[], list[Any]]]:
    """What is tried of each method; made when it is asked for, since torch is an extra."""

    def of(name: str, *settings: dict[str, Any]) -> Callable[[], list[Any]]:
        def made() -> list[Any]:
            from nefele.networks import baselines

            return [getattr(baselines, name)(**setting) for setting in settings or ({},)]

        return made

    def each(name: str, key: str, *values: float) -> Callable[[], list[Any]]:
        return of(name, *({key: value} for value in values))

    return {
        "own images only": of("Local"),
        "one network, pooled": of("Pooled"),
        "FedAvg": of("FedAvg"),
        "FedAvg, then own": each("FedAvg", "finetune", 0.25, 0.5, 0.75),
        "FedProx, then own": of(
            "FedProx", *({"mu": mu, "finetune": 0.25} for mu in (0.01, 0.1, 1.0))
        ),
        "Ditto": each("Ditto", "lam", 0.03, 0.15, 0.75),
        "pFedMe": each("PFedMe", "lam", 0.3, 1.5, 7.5),
        "Per-FedAvg": of(
            "PerFedAvg",
            *({"inner": a, "finetune": f} for a, f in ((0.03, 0.1), (0.1, 0.1), (0.1, 0.4))),
        ),
        "APFL": of("APFL", {"mix": 0.5}, {"mix": 0.8}, {"adaptive": True}),
        "FedPer": of("FedPer"),
        "FedRep": each("FedRep", "of_head", 0.25, 0.5, 0.75),
        "FedAMP": each("FedAMP", "lam", 0.03, 0.15, 0.75),
    }


def network(n_features: int, n_outputs: int) -> Any:
    """One hidden layer of 64 units."""
    from torch import nn

    return nn.Sequential(nn.Linear(n_features, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, n_outputs))


def measured(deals: list[Dealt], method: str, rounds: int) -> Cell:
    """What a method gives on each deal, with the strength that it chooses on the first.

    Choices see training images only. Seconds are those of the processor.
    """
    found: dict[str, list[Any]] = {}
    model: Any = None
    for seed, dealt in enumerate(deals):
        X, y, ids = dealt.X[dealt.train], dealt.y[dealt.train], dealt.train_ids
        began = time.process_time()
        if model is None:
            model, chosen = _chosen(method, rounds, X, y, ids)
            found["choosing"] = [time.process_time() - began]
            found["chosen"] = [" ".join(chosen.split())]
            began = time.process_time()
        model.set_params(random_state=seed)
        if method == NEFELE:
            model.refit(X, y, node_ids=ids)
        else:
            model.fit(X, y, node_ids=ids)
        seconds = time.process_time() - began
        for name, value in {**_at_test(model, dealt), "seconds": seconds}.items():
            found.setdefault(name, []).append(value)
    return {**found, "train": len(deals[0].train), "test": len(deals[0].test)}


def _chosen(
    method: str, rounds: int, X: Array, y: NDArray[np.int64], ids: NDArray[np.int64]
) -> tuple[Any, str]:
    """A model with the choice made at held-out rows, and this in words."""
    from nefele.networks import GTVNetClassifierCV
    from nefele.networks.baselines import PersonalClassifier

    options: dict[str, Any] = {"rounds": rounds, "lr": LR, "batch_size": BATCH, "random_state": 0}
    if method == NEFELE:
        splits: dict[str, Any] = {"cv": SPLITS, "held_out": 1 / PARTS, "share": SHARE}
        model: Any = GTVNetClassifierCV(network, **options, **splits).fit(X, y, node_ids=ids)
        return model, f"{model.coupling_} (coupling helps: {model.verdict_.helps})"
    model = PersonalClassifier(network, **options)
    best = choose_method(model, _strengths()[method](), X, y, ids)
    return model.set_params(method=best), str(best)


def _at_test(model: Any, dealt: Dealt) -> Cell:
    right = model.predict(dealt.X[dealt.test], node_ids=dealt.test_ids) == dealt.y[dealt.test]
    client = np.bincount(dealt.test_ids, right) / np.bincount(dealt.test_ids)
    worst = np.sort(client)[: max(1, round(len(client) / 10))]
    return {
        "accuracy": float(right.mean()),
        "worst": float(worst.mean()),
        "bytes": 4.0 * float(model.traffic_),  # float32
        "clients": client.tolist(),
    }


def choose_method(
    model: Any, methods: list[Any], X: Array, y: NDArray[np.int64], ids: NDArray[np.int64]
) -> Any:
    """The method of least log loss at held-out rows, by the splits that nefele's choice takes."""
    if len(methods) == 1:
        return methods[0]
    rounds = max(2, round(model.rounds * SHARE))
    splitter = WithinNodeKFold(PARTS, shuffle=True, random_state=0)
    scores = np.zeros(len(methods))
    for train, test in list(splitter.split(X, None, ids))[:SPLITS]:
        known = np.isin(ids[test], ids[train]) & np.isin(y[test], y[train])
        test = test[known]
        for k, method in enumerate(methods):
            trial = type(model)(**{**model.get_params(deep=False), "method": method})
            trial.set_params(rounds=rounds).fit(X[train], y[train], node_ids=ids[train])
            judge = Judge(ids[test], np.ones(len(test)), np.ones(len(test), dtype=bool))
            scores[k] += judge(_At(trial, ids[test]), X[test], y[test])
    return methods[int(np.argmax(scores))]


class _At:
    """A fitted model that knows the nodes of the rows it is asked about."""

    def __init__(self, model: Any, ids: NDArray[np.int64]) -> None:
        self.model, self.ids, self.classes_ = model, ids, model.classes_

    def predict_proba(self, X: Array) -> Array:
        found: Array = self.model.predict_proba(X, node_ids=self.ids)
        return found
