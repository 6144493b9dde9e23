"""What a run leaves at a site: its model, its errors, the books of what was sent and heard."""

from __future__ import annotations

import json
import time
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from nefele._files import write_whole
from nefele.estimators import GTVClassifier, GTVRegressor
from nefele.estimators.design import Design, Rows, make_problem
from nefele.estimators.fitting import store, take_rows
from nefele.graph import Graph
from nefele.result import Record, Result, Status
from nefele.robust import influence_bound
from nefele.runs.inputs import feature_frame
from nefele.runs.spreadsheets import write_csv
from nefele.runtime.messages import Ledger
from nefele.selection.verdict import COUPLED, OWN, POOLED
from nefele.sites.driver import Driver
from nefele.sites.federation import Federation
from nefele.sites.learning import Learner
from nefele.sites.learnt import Learnt
from nefele.sites.members import plain
from nefele.sites.models import keep
from nefele.sites.page import verdict, write_page
from nefele.sites.predicting import Networked, Predicted
from nefele.sites.trust import site_requirements

NODE = "node"  # column of the node ids in the model


def write_results(
    folder: Path, run: str, learner: Learner, learnt: Learnt | Predicted, driver: Driver
) -> dict[str, Any]:
    """Write all files of a run into its folder, and return the facts of run.json."""
    models = "stored as model.nefele"
    if isinstance(learnt, Networked):
        models = "networks, stored as networks.npz"
        learnt.model.save(folder / "networks.npz")
    elif isinstance(learnt, Predicted):
        models = keep(folder, learnt.models, learnt.scales.shift, learnt.scales.scale)
        _write_table(folder / "predictions.csv", answers(learnt))
    else:
        site_model(learner, learnt).save(folder / "model.nefele")
    _write_table(folder / "metrics.csv", metrics(learnt))
    _write_table(folder / "ledger.csv", ledger(driver))
    facts = facts_of(run, learner, learnt, driver) | {"models": models}
    text = json.dumps(facts, indent=2, allow_nan=False)
    write_whole(folder / "run.json", lambda part: part.write_text(text, encoding="utf-8"))
    write_page(folder, facts, learnt, driver, site_requirements(folder, facts))
    return facts


def _write_table(path: Path, table: Any) -> None:
    write_whole(path, partial(write_csv, table))


def site_model(learner: Learner, learnt: Learnt) -> Any:
    """The estimator with the models of the own nodes, for rows in the units of the data."""
    federation, rows, scales = learner.federation, learnt.rows, learnt.scales
    classes = federation.target.classes
    whole, nodes = learner.graph, learner.own
    inside = np.isin(whole.head, nodes) & np.isin(whole.tail, nodes)
    head, tail = (np.searchsorted(nodes, end[inside]) for end in (whole.head, whole.tail))
    graph = Graph(whole.ids[nodes], head, tail, whole.weight[inside])
    kind = GTVRegressor if classes is None else GTVClassifier
    loss = learner.loss
    model: Any = kind(
        graph, node=NODE, alpha=learnt.alpha, penalty=federation.penalty, loss=loss,
        weighting=federation.weighting, tol=federation.tol,
    )  # fmt: skip
    names = tuple(feature.name for feature in federation.features)
    taken = _taken(model, learner, rows)
    problem = learner.problem(rows, scales, learnt.alpha)
    data = problem.data
    assert data is not None
    coupled = np.ones(len(names) + 1, dtype=bool)
    own = make_problem(
        graph, data.subset(nodes), loss, federation.penalty, learnt.alpha, coupled,
        learner.n_outputs,
    )  # fmt: skip
    design = Design(own, scales.shift, scales.scale, coupled, learner.n_outputs)
    part, fitted = learnt.part, learnt.fitted
    w = _sorted_classes(part.w1[np.isin(learner.nodes, nodes)], classes)
    w[:, -1] += scales.offset  # at once: a node without rows here is determined by others
    mine = np.isin(part.graph.ids[part.graph.head], graph.ids) & np.isin(
        part.graph.ids[part.graph.tail], graph.ids
    )
    found = fitted.certificate
    bound = (np.nan, np.inf, np.inf, "none", 0.0)
    if found is not None:
        bound = (found.objective, fitted.gap, found.gap_abs, found.form, found.leak)
    proven = Status.UNCERTIFIED if found is None else Status.OPTIMAL
    result = Result(
        own, w, part.u1[mine], *bound,
        status=proven if fitted.converged(federation.tol) else Status.MAX_ITER,
        n_iter=fitted.rounds,
        history=[Record(k, value, gap, 0.0) for k, value, gap in fitted.history],
        undetermined=np.zeros(len(nodes), dtype=bool), unbounded=np.zeros(len(nodes), dtype=bool),
    )  # fmt: skip
    return store(model, taken, design, result)


def _taken(model: Any, learner: Learner, rows: Rows) -> Rows:
    """The rows as the estimator takes them; without any it learns just names and classes."""
    federation, classes, some = learner.federation, learner.federation.target.classes, rows
    if not len(rows.y):
        middle = [(feature.low + feature.high) / 2 for feature in federation.features]
        node = learner.graph.ids[learner.own[:1]]
        some = Rows(np.array([middle]), np.zeros(1), node, np.ones(1))
    names = tuple(feature.name for feature in federation.features)
    y: Any = some.y
    if classes is not None:
        code = (some.y > 0).astype(int) if len(classes) == 2 else some.y.astype(int)
        y = np.array(classes)[code]
    frame = feature_frame(some.X, names, some.node_ids, NODE)
    taken = take_rows(model, frame, y, classes=classes)
    return taken if some is rows else taken.take(np.zeros(0, dtype=np.int64))


def _sorted_classes(w: Any, classes: tuple[str, ...] | None) -> Any:
    """Parameters for classes in the order of their names, as estimators have them."""
    if classes is None or list(classes) == sorted(classes):
        return w.copy()
    order = np.argsort(classes)
    if len(classes) == 2:
        return -w
    return w.reshape(len(w), len(classes), -1)[:, order].reshape(len(w), -1)


def answers(learnt: Predicted) -> Any:
    """Predictions, or probabilities, of each node at the shared rows."""
    import polars as pl

    n, m = learnt.shared.shape[:2]
    names = ["prediction"] if learnt.classes is None else learnt.classes.tolist()
    columns = learnt.shared.reshape(n * m, len(names)).T
    return pl.DataFrame(
        {
            "row": np.tile(np.arange(1, m + 1), n),
            "node": np.repeat(learnt.nodes, m).tolist(),
            **{
                f"p({name})" if learnt.classes is not None else name: column
                for name, column in zip(names, columns, strict=True)
            },
        }
    )


def metrics(learnt: Learnt | Predicted) -> Any:
    """Mean errors of each node at its held-out rows."""
    import polars as pl

    scores = learnt.scores
    with np.errstate(invalid="ignore", divide="ignore"):
        means = scores.error / scores.count
    columns = dict(zip((OWN, POOLED, COUPLED), means, strict=True))
    return pl.DataFrame(
        {"node": scores.nodes.tolist(), "held_out": scores.count, **columns}, nan_to_null=True
    )


def ledger(driver: Driver) -> Any:
    """Messages sent and heard, by peer and content."""
    import polars as pl

    rows = []
    for direction, books in (("sent", driver.ledger), ("heard", driver.heard)):
        rows += [(direction, *line) for line in _lines(books, driver.me)]
    names = ["direction", "peer", "content", "messages", "numbers", "bytes"]
    return pl.DataFrame(rows, schema=names, orient="row")


def _lines(books: Ledger, me: str) -> list[tuple[str, str, int, int, int]]:
    return [
        (receiver if sender == me else sender, content, sums.messages, sums.floats, sums.bytes)
        for (sender, receiver, content), sums in sorted(books.by_way.items())
    ]


def facts_of(
    run: str, learner: Learner, learnt: Learnt | Predicted, driver: Driver
) -> dict[str, Any]:
    """What run.json holds."""
    federation, gone = learner.federation, list(learner.gone)
    fitted, scores = learnt.fitted, learnt.scores
    found = fitted.certificate
    with np.errstate(invalid="ignore", divide="ignore"):
        own = scores.error.sum(axis=1) / scores.count.sum()
    names = (OWN, POOLED, COUPLED)
    return {
        "federation": federation.name,
        "hash": federation.hash,
        "name": learner.name,
        "run": run,
        "finished": time.strftime("%Y-%m-%d %H:%M:%S"),
        "gone": gone,
        "held": federation.absent == "freeze" and bool(gone),
        "alpha": learnt.alpha,
        "gap": _number(fitted.gap),
        "tol": federation.tol,
        "change": _number(fitted.change),
        "converged": fitted.converged(federation.tol),
        "objective": None if found is None else found.objective,
        "certificate": fitted.reason if found is None else found.form,
        "rounds": fitted.rounds,
        "drift": fitted.drift,
        "kappa": _number(fitted.kappa),
        "rows": round(float(learnt.rows.sample_weight.sum())),
        "privacy": federation.privacy.text(),
        "robustness": robustness(learner, learnt),
        "verdict": verdict(learnt),
        "task": federation.task,
        "promise": plain(federation.privacy),
        "nodes": learner.graph.ids[learner.own].tolist(),
        "edges": _own_edges(learner),
        "target": federation.target.name,
        "penalty": federation.penalty,
        "method": federation.method,
        "version": version("nefele"),
        "held_out": int(scores.count.sum()),
        "features": [feature.name for feature in federation.features],
        "classes": list(federation.target.classes or ()),
        "metric": "mean squared error" if federation.task == "regression" else "log loss",
        "errors": {name: _number(error) for name, error in zip(names, own, strict=True)},
        "errors_everywhere": {
            name: _number(error) for name, error in zip(names, learnt.everywhere[0], strict=True)
        },
        "one_model": _one_model(federation),
        "alphas": learnt.alphas.tolist(),
        "cv_errors": [_number(error) for error in learnt.errors],
        "messages_sent": driver.ledger.messages,
        "numbers_sent": driver.ledger.floats,
        "bytes_sent": driver.wire_bytes,
        "cpu_seconds": driver.books.cpu_seconds,
        "said_again": driver.again,
        "resumed": driver.resumed,
        "refused": {f"{who}: {why}": n for (who, why), n in sorted(driver.refused.items())},
    }


def _own_edges(learner: Learner) -> int:
    """Edges with an end at this site."""
    graph = learner.graph
    return int((np.isin(graph.head, learner.own) | np.isin(graph.tail, learner.own)).sum())


def robustness(learner: Learner, learnt: Learnt | Predicted) -> dict[str, Any]:
    """How far all other sites together can move the models of this one, whatever they do."""
    if isinstance(learnt, Networked):
        return {"number": None, "why": "no bound is known for networks"}
    if isinstance(learnt, Predicted):
        return {"number": None, "why": "models of any kind have no common parameters"}
    problem = learner.problem(learnt.rows, learnt.scales, learnt.alpha)
    others = np.setdiff1d(np.arange(problem.graph.n_nodes), learner.own)
    if not len(others):
        return {"number": None, "why": "there is no other site"}
    bound = influence_bound(problem, problem.graph.ids[others])
    if not bound.certified:
        return {"number": None, "why": bound.reason.removeprefix("None: ")}
    covered = int(bound.covered.sum())
    return {"number": float(bound.total), "covered": covered, "honest": len(learner.own)}


def _one_model(federation: Federation) -> str:
    """Whether one model for all is compared, too."""
    if federation.method == "predictions":
        return "not available: models of any kind are not added up"
    if federation.method == "networks":
        return "not computed: it would take rounds of its own"
    return (
        "not computed: its sums would reveal what masks hide" if federation.masked else "compared"
    )


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
