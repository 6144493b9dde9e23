"""Boosted trees beside the methods of a run: the same rows to learn from, the same held out."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.estimators.design import Rows
from nefele.graph import Graph
from nefele.selection.judge import Judge
from nefele.selection.verdict import COUPLED, Gain, Verdict

Arrays = dict[str, NDArray[Any]]
Tell = Callable[[], object]


def n_steps() -> int:
    """How often `boosted_errors` calls `tell`, at most."""
    from nefele.agnostic.boosted import N_FITS

    return N_FITS + 1


def boosted_errors(train: Rows, held: Rows, graph: Graph, task: str, tell: Tell) -> Arrays:
    """Errors of each node at held-out rows by each method, and what is left out.

    Returns
    -------
    dict
        `names` of the methods, `node_error` (n_methods, n_nodes), `wrong` (n_methods,) for
        classes, and `notes`.
    """
    from nefele.agnostic.boosted import ONE, RELAXED, boosting  # its trees take long to import

    methods = boosting(graph if graph.n_edges else None, task=task)
    classes = np.unique(np.concatenate([train.y, held.y]))
    notes = _left_out(graph, len(classes) if task == "classification" else 0)
    if notes:
        del methods[RELAXED]
    judge = Judge(held.node_ids, held.sample_weight, np.ones(len(held.y), dtype=bool))
    for name, model in methods.items():
        more = {"told": tell} if name == RELAXED else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as classes that a fold lacks
            model.fit(train.X, train.y, train.sample_weight, node_ids=train.node_ids, **more)
        judge(_Shown(model, held.node_ids, classes, task), held.X, held.y)
        if name == ONE:
            tell()
    return {
        "names": np.array(list(methods), dtype=str),
        "node_error": np.stack(judge.errors),
        "wrong": np.array(judge.wrong),
        "notes": np.array(notes, dtype=str),
    }


def _left_out(graph: Graph, n_classes: int) -> list[str]:
    """Why FedRelax is not among the methods; empty if it is."""
    from nefele.agnostic.boosted import MOST_NODES, RELAXED

    if graph.n_nodes > MOST_NODES:
        return [
            f"{RELAXED}, was left out: it fits every node several times, which is for at most "
            f"{MOST_NODES:,} nodes; there are {graph.n_nodes:,}."
        ]
    if n_classes > 2:
        return [f"{RELAXED}, was left out: it takes at most two classes; there are {n_classes}."]
    return []


class _Shown:
    """A fitted model as the judge asks it: without node ids, and with all classes."""

    def __init__(self, model: Any, ids: NDArray[Any], classes: Array, task: str) -> None:
        self._model, self._ids = model, ids
        if task == "classification":
            self.classes_ = classes
            self.predict_proba = self._shares

    def predict(self, X: Array) -> Array:
        return np.asarray(self._model.predict(X, node_ids=self._ids))

    def _shares(self, X: Array) -> Array:
        out = np.zeros((len(X), len(self.classes_)))
        known = np.searchsorted(self.classes_, self._model.classes_)
        out[:, known] = self._model.predict_proba(X, node_ids=self._ids)
        return out


def column_of(name: str) -> str:
    """The column of a method in metrics.csv.

    Examples
    --------
    >>> column_of("boosting, one model")
    'boosting_one_model_error'
    """
    return re.sub(r"\W+", "_", name.lower()) + "_error"


def rivals_in(found: Arrays) -> dict[str, Array]:
    """Errors of the nodes by method, those with held-out rows, from the arrays of a run."""
    names = found.get("rivals", np.array([], dtype=str)).tolist()
    on = found["held_out"] > 0
    return {name: found["rival_error"][k][on] for k, name in enumerate(names)}


def rivals_text(verdict: Verdict, rivals: dict[str, Array]) -> str:
    """One sentence: whether the best of the others does better than the coupled models.

    Examples
    --------
    >>> own, ours = np.array([4.0, 4.0, 4.0]), np.array([2.0, 2.1, 1.9])
    >>> verdict = Verdict(own, own, ours, np.full(3, 5))
    >>> rivals_text(verdict, {"boosting, one model": ours / 2})
    'But boosting, one model, does better than nefele: its error is 50% smaller (1 ± 0.029).'
    """
    name = min(rivals, key=lambda one: verdict.total(rivals[one]))
    theirs, ours = verdict.total(rivals[name]), verdict.total(verdict.coupled)
    gain = Gain.over(verdict.coupled, rivals[name], verdict.held_out)
    loss = Gain.over(rivals[name], verdict.coupled, verdict.held_out)
    for better, words in (("yes", "does better"), ("probably", "probably does better")):
        if gain.helps == better:
            return (
                f"But {name}, {words} than {COUPLED}: its error is {_less(theirs, ours)} ({gain})."
            )
        if loss.helps == better:
            return f"{COUPLED} {words} than {name}: its error is {_less(ours, theirs)} ({loss})."
    return (
        f"Between {COUPLED} and {name}, there is no clear difference ({ours:.4g} against "
        f"{theirs:.4g})."
    )


def _less(value: float, base: float) -> str:
    return f"{1 - value / base:.0%} smaller" if base > 0 else "smaller"
