"""A run in stages: hold rows out, choose alpha, compare, fit. Finished stages are not repeated."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._ids import IdIndex, distinct
from nefele.estimators import GTVClassifier, GTVClassifierCV, GTVRegressor, GTVRegressorCV, load
from nefele.estimators._cv_base import cluster_table
from nefele.estimators._design import Design, Rows
from nefele.estimators._folds import follow, run_fold, take
from nefele.estimators.clearest import clearest
from nefele.losses import Logistic, Squared
from nefele.result import Result, relative_gap
from nefele.runs.candidates import KINDS, most_neighbours
from nefele.runs.config import RunConfig
from nefele.runs.folder import RunFolder
from nefele.runs.inputs import Inputs
from nefele.runs.proofs import Fit, drawn, examine
from nefele.runs.split import folds_inside, hold_out

_FARTHER = 1.5  # factor of the largest alpha
_AGAIN = 1e-9  # rounding of a gap that is computed again
_ROUNDING = 1e-12  # residual, relative to the largest target, that is none
Arrays = dict[str, NDArray[Any]]
Tick = Callable[[str, float], object]  # name of the stage, gap of the last solve


@dataclass(frozen=True, eq=False)
class Stages:
    """What the stages of a run found, as arrays; see the functions that fill them."""

    grid: Arrays
    folds: list[Arrays]
    held: Arrays
    path: Arrays
    seconds: dict[str, float]

    @property
    def alphas(self) -> Array:
        """Candidates, descending."""
        return self.grid["alphas"]

    @property
    def chosen(self) -> int:
        """Place of the alpha that is used."""
        return int(self.path["chosen"])


class Pipeline:
    """The stages of one run over the same rows.

    Parameters
    ----------
    config : RunConfig
    inputs : Inputs
    """

    folder: RunFolder
    tick: Tick

    def __init__(self, config: RunConfig, inputs: Inputs) -> None:
        self.config, self.inputs = config, inputs
        self.train, self.test = hold_out(inputs.ids, inputs.times, config.seed)
        self.splits: list[Any] = []
        if self.automatic:
            times = None if inputs.times is None else inputs.times[self.train]
            self.splits = folds_inside(inputs.ids[self.train], times, config.folds, config.seed)
        graph = self._learner() if inputs.graph is None else inputs.graph
        self.model = make_model(config, graph)
        self.rows: Rows = self.model._take_rows(
            inputs.frame(config.node), inputs.y, None, None, reset=True
        )

    def _learner(self) -> Any:
        """What learns the graph in each fit."""
        ids = self.inputs.ids[self.train]
        k = most_neighbours(self.config.k, [ids, *(ids[split[0]] for split in self.splits)])
        return KINDS[self.config.learner].make(k, {})

    @property
    def automatic(self) -> bool:
        """Whether alpha is chosen by cross-validation."""
        return self.config.alpha == "auto"

    @property
    def n_solves(self) -> int:
        """How often `tick` is called, at most."""
        return (len(self.splits) + 2) * (self.config.n_alphas + (not self.automatic))

    def run(self, folder: RunFolder, tick: Tick) -> Stages:
        """All stages, those that were finished before read from the folder.

        Parameters
        ----------
        folder : RunFolder
            Where finished stages are kept.
        tick : callable
            Told of each solve, for progress.
        """
        self.folder, self.tick = folder, tick
        seconds: dict[str, float] = {}

        def stage(
            name: str, phase: str, work: Callable[[], Arrays], holds: Any = lambda found: True
        ) -> Arrays:
            found = self.folder.load_stage(name)
            if found is None or not holds(found):
                start = time.perf_counter()
                found = work()
                found["seconds"] = np.array(time.perf_counter() - start)
                self.folder.save_stage(name, found)
            elif name != "grid":
                for _ in range(len(grid["alphas"])):
                    self.tick(name, float("nan"))
            seconds[phase] = seconds.get(phase, 0.0) + float(found["seconds"])
            return found

        grid = stage("grid", "alphas", self._grid)
        alphas, folds = grid["alphas"], []
        train = take(self.rows, self.train)
        for number, split in enumerate(self.splits):
            name = f"fold {number + 1}/{len(self.splits)}"
            work = partial(self._fold, train, split, alphas, name)
            folds.append(stage(f"fold-{number}", "cross-validation", work))
        held = stage("held-out", "held-out rows", lambda: self._compare(alphas))
        chosen = self._choose(alphas, folds)
        fit = partial(self._path, alphas, chosen)
        path = stage("path", "path and fit", fit, partial(self._proven, float(alphas[chosen])))
        return Stages(grid, folds, held, path, seconds)

    def _grid(self) -> Arrays:
        """Candidates for alpha, from one model per component down.

        From the training rows alone: held-out labels must not decide what is tried. A little
        farther than these need, so that the path over all rows mostly begins with one model too.
        """
        kind = GTVClassifierCV if self.config.task == "classification" else GTVRegressorCV
        search = kind(n_alphas=self.config.n_alphas, tol=self.config.tol)
        alphas = search._grid(self._design(take(self.rows, self.train)))
        if len(alphas) > 1:
            alphas = np.geomspace(_FARTHER * alphas[0], alphas[-1], len(alphas))
        if not self.automatic:
            alphas = np.unique(np.append(alphas, float(self.config.alpha)))[::-1]
        return {"alphas": np.array(alphas)}

    def _design(self, rows: Rows) -> Design:
        return self.model._make_design(rows, self.model._make_graph(rows))

    def _told(self, name: str) -> Callable[[Result], object]:
        return lambda result: self.tick(name, float(result.gap))

    def _fold(self, rows: Rows, split: Any, alphas: Array, name: str) -> Arrays:
        """Errors at the held-out rows of one fold, for each alpha."""
        judge = NodeErrors(rows.node_ids[split[1]])
        fold = run_fold(self.model, rows, split, alphas, judge, self._told(name))
        return {
            "error": -fold.scores,
            "own": np.array(-fold.own),
            "pooled": np.array(-fold.pooled),
            "missed": np.array(fold.n_missed),
        }

    def _compare(self, alphas: Array) -> Arrays:
        """Errors of each node at the outer held-out rows: pooled, along alpha, own."""
        judge = NodeErrors(self.rows.node_ids[self.test])
        told = self._told("held-out rows")
        fold = run_fold(self.model, self.rows, (self.train, self.test), alphas, judge, told)
        found = {
            "nodes": judge.nodes,
            "held_out": judge.count,
            "node_error": np.stack(judge.errors[1:-1]),
            "node_pooled": judge.errors[0],
            "node_own": judge.errors[-1],
            "error": -fold.scores,
            "own": np.array(-fold.own),
            "pooled": np.array(-fold.pooled),
            "missed": np.array(fold.n_missed),
        }
        if judge.wrong:
            found["wrong"] = np.array(judge.wrong)
        return found

    def _choose(self, alphas: Array, folds: list[Arrays]) -> int:
        """Place of the alpha with the least mean error; the largest one of equals."""
        if not self.automatic:
            return int(np.argmin(np.abs(alphas - float(self.config.alpha))))
        return int(np.argmin(np.mean([fold["error"] for fold in folds], axis=0)))

    def _path(self, alphas: Array, chosen: int) -> Arrays:
        """The path over all rows, its clusters, and the final model, which is saved."""
        model, tell = self.model, self._told("path over all rows")
        design = self._design(self.rows)
        points: list[Result] = []
        for result in follow(model, design, alphas):
            tell(result)
            points.append(result)
        model.set_params(alpha=float(alphas[chosen]))
        final = design.with_alpha(float(alphas[chosen]))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model._solve(self.rows, final)  # not from the path's point: the history is shown
        model.save(self.folder.file("model.nefele"))
        coef = np.stack([_parameters(model, design, point.w) for point in points])
        coef[chosen] = _stack(model.coef_, model.intercept_)
        clusters = cluster_table(model, design, points)
        graph = design.problem.graph
        owner = graph.positions(self.rows.node_ids)
        return {
            **self._proofs(final),
            "chosen": np.array(chosen),
            "nodes": np.array(graph.ids),
            "rows": np.bincount(owner, minlength=graph.n_nodes),
            "edges": np.column_stack([graph.head, graph.tail]),
            "weights": np.array(graph.weight),
            "coef": coef,
            "gaps": np.array([point.gap for point in points]),
            "missed": np.array(sum(not point.converged for point in points)),
            "clusters": clusters,
            "clearest": np.array(_clearest(alphas, clusters, design)),
            "gap": np.array(model.dual_gap_),
            "status": np.array(model.status_),
            "history": np.array([tuple(r)[:4] for r in model.history_], dtype=np.float64).reshape(
                -1, 4
            ),
            "warnings": np.array(sorted({str(c.message) for c in caught}), dtype=str),
            "classes": np.array(getattr(model, "classes_", []), dtype=str),
        }

    def _proven(self, alpha: float, found: Arrays) -> bool:
        """Whether the saved model has the gap that the stage claims, computed again."""
        try:
            model = load(self.folder.file("model.nefele"))
        except ValueError:
            return False
        design = self._design(self.rows).with_alpha(alpha)
        problem = design.problem
        if model.graph_ != problem.graph or model._flow.shape[1] != problem.d:
            return False
        proof = problem.certificate(design.from_units(*model._stacked()), model._flow)
        gap = relative_gap(problem, proof.objective, proof.gap_abs)
        return bool(gap <= float(found["gap"]) + _AGAIN)

    def _proofs(self, final: Design) -> Arrays:
        """What theory says about the final model, as rows of two texts; its pictures are saved."""
        model, nodes = self.model, final.problem.graph.ids
        w = final.from_units(*model._stacked())
        places = self.inputs.positions(nodes)
        fit = Fit.of(model, final.problem, w, places, self.inputs.geographic)
        found = examine(fit)
        names = []
        for name, picture in drawn(fit, found.draws):
            self.folder.write_bytes(f"pictures/{name}", picture.data)
            names.append(name)
        return {
            "diagnostics": np.array(found.diagnostics, dtype=str).reshape(-1, 2),
            "theory": np.array(found.theory, dtype=str).reshape(-1, 2),
            "pictures": np.array(names, dtype=str),
        }


def make_model(config: RunConfig, graph: Any) -> Any:
    """The estimator of a run, not yet fitted, with a graph or with what learns one."""
    options: dict[str, Any] = {
        "node": config.node,
        "penalty": config.penalty,
        "weighting": config.weighting,
        "standardize": config.standardize,
        "unseen": "pooled",
        "tol": config.tol,
    }
    if config.task == "classification":
        return GTVClassifier(graph, loss=Logistic(l2=config.ridge), **options)
    return GTVRegressor(graph, loss=Squared(l2=config.ridge), **options)


class NodeErrors:
    """A scorer that also keeps the mean error of each node, in the order of its calls.

    The error of a row is its squared error, for a classifier minus the log of the probability of
    the right class.
    """

    def __init__(self, node_ids: NDArray[Any]) -> None:
        self.nodes = distinct(node_ids)
        self._owner = IdIndex(self.nodes).positions(node_ids)
        self.count = np.bincount(self._owner, minlength=len(self.nodes))
        self.errors: list[Array] = []
        self.wrong: list[float] = []

    def __call__(self, model: Any, X: Any, y: NDArray[Any], sample_weight: Any = None) -> float:
        if hasattr(model, "classes_"):
            place = np.searchsorted(model.classes_, y)
            shares = model.predict_proba(X)
            right = shares[np.arange(len(y)), place]
            error = -np.log(np.maximum(right, np.finfo(np.float64).eps))
            self.wrong.append(float((shares.argmax(axis=1) != place).mean()))
        else:
            away = np.abs(model.predict(X) - y)
            away[away <= _ROUNDING * np.abs(y).max(initial=0.0)] = 0.0
            error = away**2
        self.errors.append(np.bincount(self._owner, error, len(self.nodes)) / self.count)
        return -float(error.mean())


def _parameters(model: Any, design: Design, w: Array) -> Array:
    """Parameters in the units of X, shape (n_nodes, p)."""
    return _stack(*model._shaped(*design.to_units(w)))


def _stack(coef: Array, intercept: Array) -> Array:
    """Coefficients, then the intercept, of each class in turn; shape (n_nodes, p)."""
    both = np.concatenate([coef, intercept[..., None]], axis=-1)
    return both.reshape(len(both), -1)


def _clearest(alphas: Array, clusters: NDArray[np.int64], design: Design) -> int:
    on = alphas > 0
    most = int(design.problem.loss.labelled.sum())
    stretch = clearest(alphas[on], clusters[on], most=most) if on.any() else None
    return -1 if stretch is None else sum(stretch) // 2
