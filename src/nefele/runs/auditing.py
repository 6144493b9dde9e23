"""What a finished run gives away: what would be sent, worked out of it, and read off its model."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from nefele._checks import Array
from nefele._ids import IdIndex
from nefele.data import LocalData
from nefele.estimators import load
from nefele.estimators.fitting import take_rows
from nefele.graph import Graph
from nefele.privacy.audit import (
    Information,
    Membership,
    loss_attack,
    membership,
    mutual_information,
    statistics_from_answers,
)
from nefele.problem import Problem
from nefele.runs.folder import RunFolder
from nefele.runs.inputs import Inputs, read_inputs
from nefele.runs.opening import check_inputs
from nefele.runs.results import finite
from nefele.runs.split import hold_out

_NODES = 200  # nodes that are asked, at most
_TRIALS = 30  # nodes from which their means and models say something about each other
_FAR = 10.0  # how far questions lie apart, in deviations of a feature


@dataclass(frozen=True, eq=False)
class Audit:
    """Sentences for a person, facts for a program, and what can be drawn.

    Examples
    --------
    >>> Audit([("sent", "Nothing.")], {}).text()
    'sent: Nothing.'
    """

    lines: list[tuple[str, str]]
    facts: dict[str, Any]
    pictures: dict[str, Any] = field(default_factory=dict)  # by name, with a method plot

    def text(self) -> str:
        """One line per finding."""
        return "\n".join(f"{what}: {line}" for what, line in self.lines)


@dataclass(frozen=True, eq=False)
class Fitted:
    """The final model of a run, its rows, and which of them were held out."""

    model: Any
    inputs: Inputs
    node: str
    train: NDArray[np.int64]
    test: NDArray[np.int64]

    @property
    def classes(self) -> bool:
        """Whether the target is a class."""
        return hasattr(self.model, "classes_")

    def losses(self, own: NDArray[np.int64]) -> Array:
        """Losses of all rows under a model like the final one that was fitted to some of them."""
        frame, y = self.inputs.frame(self.node), self.inputs.y
        twin = clone(self.model).set_params(graph=self.model.graph_)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # half of the rows is fewer than a model may ask for
            twin.fit(frame[own.tolist()], y[own])
            if not self.classes:
                return np.asarray((twin.predict(frame) - y) ** 2)
            shares = twin.predict_proba(frame)
        place = np.searchsorted(twin.classes_, y)
        known = twin.classes_[np.minimum(place, len(twin.classes_) - 1)] == y
        hit = shares[np.arange(len(y)), np.minimum(place, len(twin.classes_) - 1)]
        return np.asarray(-np.log(np.maximum(np.where(known, hit, 0.0), 1e-12)))


def audit_run(
    folder: RunFolder, *, models: int = 16, seed: int = 0, tell: Callable[[str], object] = str
) -> Audit:
    """Audit a finished run; a ValueError when it is none, or its rows are not what they were.

    Parameters
    ----------
    folder : RunFolder
    models : int
        Models of half of the rows that membership inference fits.
    seed : int
    tell : callable
        Given what is done next.
    """
    facts = folder.finished_facts()
    folder.check_results(facts)
    config = folder.read_config()
    check_inputs(facts, "the audit fits models to its rows")
    inputs = read_inputs(config)
    train, test = hold_out(inputs.ids, inputs.times, config.seed)
    model = load(folder.file("model.nefele"))
    if getattr(model, "privacy_", None) is not None:
        promised = private(model)
        where = {"kind": "run", "folder": str(folder.path), "rows": len(inputs.y)}
        return Audit(promised.lines, where | promised.facts)
    fitted = Fitted(model, inputs, config.node, train, test)
    tell(f"fitting {models + 1} models")
    parts = [
        _sent(facts, model),
        _reconstructed(fitted, seed),
        _members(fitted, models, seed),
        _information(fitted, seed),
    ]
    folder.check_steady(facts)
    lines = [line for part in parts for line in part.lines]
    found: dict[str, Any] = {"kind": "run", "folder": str(folder.path), "rows": len(inputs.y)}
    pictures: dict[str, Any] = {}
    for part in parts:
        found |= part.facts
        pictures |= part.pictures
    return Audit(lines, found, pictures)


def private(model: Any) -> Audit:
    """What is said of a model with a guarantee: it is not fitted again, which would be charged."""
    spent = model.privacy_
    why = (
        "not measured: it takes more fits, each of which would be charged to the budget. Audit the "
        "mechanism by nefele.privacy.audit.canary."
    )
    sent = {"guarantee": {"epsilon": spent.epsilon, "delta": spent.delta, "unit": spent.unit}}
    return Audit(
        [("sent", f"{spent.text()}."), ("membership", why)],
        {"sent": sent, "reconstruction": None, "membership": None, "information": []},
    )


def _sent(facts: dict[str, Any], model: Any) -> Audit:
    """What the same fit would send between sites."""
    edges = facts["graph"]["n_edges"]
    size = int(np.size(model.coef_[0]) + np.size(model.intercept_[0]))
    text = (
        "nothing, the run was one process. Between sites each iteration would send "
        f"{4 * edges} vectors of {size} numbers over {edges} edges, computed from the rows and "
        "without noise: no guarantee."
    )
    sent = {"messages": 0, "would_be_messages_per_iteration": 4 * edges, "numbers": size}
    return Audit([("sent", text)], {"sent": {**sent, "guarantee": None}})


def _reconstructed(fitted: Fitted, seed: int) -> Audit:
    """Ask every node d + 1 questions, and work out its statistics from the answers."""
    owner = IdIndex(fitted.model.nodes_).positions(fitted.inputs.ids)
    count = np.bincount(owner, minlength=len(fitted.model.nodes_))
    single = int((count == 1).sum())
    facts: dict[str, Any] = {"nodes": int((count > 0).sum()), "single_rows": single}
    alone = (
        f"; of {single} node{'s' * (single != 1)} with a single row one gradient gives that row"
        if single
        else ""
    )
    if fitted.classes:
        text = (
            "one answer of a node is a gradient of its loss: a sum over its rows, without noise"
            f"{alone}."
        )
        return Audit([("worked out", text)], {"reconstruction": facts})
    errors, d = _asked(fitted, owner, count)
    facts |= {"answers": d + 1, "asked": len(errors), "worst_error": finite(float(errors.max()))}
    facts |= {"median_error": finite(float(np.median(errors)))}
    text = (
        f"{d + 1} answers of FedRelax give X^T X and X^T y of a node, and so its own fit: at "
        f"{len(errors)} nodes up to a relative error of {errors.max():.0e} (median "
        f"{np.median(errors):.0e}){alone}."
    )
    return Audit([("worked out", text)], {"reconstruction": facts})


def _asked(fitted: Fitted, owner: NDArray[np.int64], count: NDArray[np.int64]) -> tuple[Array, int]:
    """Relative errors of the nodes' statistics as others can work them out, and d."""
    twin = clone(fitted.model).set_params(graph=fitted.model.graph_)
    rows = take_rows(twin, fitted.inputs.frame(fitted.node), fitted.inputs.y)
    spread = rows.X.std(axis=0)
    X = (rows.X - rows.X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    X = np.column_stack([X, np.ones(len(X))])
    nodes = np.flatnonzero(count)[:_NODES]
    used = np.isin(owner, nodes)
    data = LocalData.from_long(X[used], rows.y[used], owner[used], nodes)
    loss = Problem(Graph(nodes, [], []), data, lam=0.0).loss
    n, d = len(nodes), X.shape[1]
    asked = np.vstack([np.zeros(d), _FAR * np.eye(d)])
    answers = np.stack([loss.prox(np.tile(v, (n, 1)), np.ones(n)) for v in asked])
    errors = []
    for i, node in enumerate(nodes):
        own = owner == node
        Q, q = X[own].T @ X[own] / own.sum(), X[own].T @ rows.y[own] / own.sum()
        found = statistics_from_answers(asked, answers[:, i], 1.0, truth=(Q, q))
        errors.append(found.error)
    return np.array(errors, dtype=float), d


def _members(fitted: Fitted, models: int, seed: int) -> Audit:
    """Membership of rows: by likelihood ratio, and by the loss at held-out rows alone."""
    inputs = fitted.inputs
    own = fitted.losses(fitted.train)
    auc, error = loss_attack(own[fitted.train], own[fitted.test])
    found: Membership = membership(
        fitted.losses, len(inputs.y), models=models, groups=inputs.ids, seed=seed
    )
    verdict = "it leaks" if found.leaks else "not distinguishable from a coin"
    lines = [
        ("membership", f"{found} {verdict.capitalize()}."),
        (
            "held-out rows",
            f"by a small loss alone rows of the fit are told from {len(fitted.test)} held-out ones "
            f"with AUC {auc:.3f} (se {error:.3f}).",
        ),
    ]
    facts = {
        "auc": found.auc, "auc_error": found.auc_error, "caught": found.caught,
        "caught_error": found.caught_error, "alarms": found.alarms, "models": models,
        "leaks": found.leaks, "held_out_auc": auc, "held_out_error": error,
    }  # fmt: skip
    return Audit(lines, {"membership": facts}, {"membership": found})


def _information(fitted: Fitted, seed: int) -> Audit:
    """Of each feature: what the parameters of a node tell about its mean there."""
    model, frame = fitted.model, fitted.inputs.uses.frame
    owner = IdIndex(model.nodes_).positions(fitted.inputs.ids)
    count = np.bincount(owner, minlength=len(model.nodes_))
    on = count > 0
    if on.sum() < _TRIALS:
        why = (
            f"not measured: the nodes are the trials, and {int(on.sum())} are too few; it takes "
            f"{_TRIALS}."
        )
        return Audit([("information", why)], {"information": []})
    shared = np.column_stack(
        [np.reshape(a, (len(on), -1)) for a in (model.coef_, model.intercept_)]
    )
    names = [name for name in fitted.inputs.features if frame[name].dtype.is_numeric()]
    lines, facts, pictures = [], [], {}
    for name in names:
        values = frame[name].cast(float).fill_null(strategy="mean").to_numpy()
        mean = np.bincount(owner, values, len(on))[on] / count[on]
        found: Information = mutual_information(mean, shared[on], seed=seed)
        value, error = float(found.values[0]), float(found.errors[0])
        facts.append({"feature": name, "nats": value, "error": error, "p_value": found.p_value})
        text = (
            f"a node's parameters hold {value:.3f} nats (se {error:.3f}, p = {found.p_value:.2g}) "
            f"about its mean of {name}."
        )
        lines.append(("information", text))
        pictures[f"information_{name}"] = found
    return Audit(lines, {"information": facts}, pictures)
