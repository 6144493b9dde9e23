"""A run in stages: hold rows out, choose alpha, compare, fit. Finished stages are not repeated."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.estimators import GTVClassifier, GTVRegressor, load
from nefele.estimators.design import Design, Rows
from nefele.estimators.fitting import (
    clusters_along,
    fit_design,
    in_units,
    make_design,
    make_graph,
    parameters,
    path_points,
    run_fold,
    take_rows,
)
from nefele.estimators.reporting import stacked
from nefele.graph import Graph
from nefele.losses import Logistic, Squared
from nefele.penalties import as_penalty
from nefele.privacy import Spent
from nefele.report import Picture
from nefele.result import Result, relative_gap
from nefele.runs.candidates import KINDS, most_neighbours
from nefele.runs.config import RunConfig
from nefele.runs.drawing import accounts_drawn, drawn
from nefele.runs.folder import RunFolder
from nefele.runs.inputs import Inputs
from nefele.runs.proofs import FinalFit, examine
from nefele.runs.rivals import boosted_errors, n_steps
from nefele.runs.robustness import bounds_of
from nefele.runs.split import Index, folds_inside, hold_out
from nefele.runs.wording import METRICS
from nefele.selection import alpha_grid, choose
from nefele.selection.clearest import clearest_point
from nefele.selection.folds import Fold
from nefele.selection.widening import widen

_FARTHER = 1.5  # factor of the largest alpha
_AGAIN = 1e-9  # rounding of a gap that is computed again
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
    rivals: Arrays | None = None
    spent: Spent | None = None

    @property
    def alphas(self) -> Array:
        """Candidates, descending; those of the final model where it is chosen anew."""
        return self.path.get("alphas", self.grid["alphas"])

    @property
    def chosen(self) -> int:
        """Place of the alpha that is used."""
        return int(self.path["chosen"])


class Pipeline:
    """The stages of one run over the same rows."""

    folder: RunFolder
    tick: Tick
    _held: Arrays  # errors at held-out rows
    _place: int  # of the alpha that is used

    def __init__(self, config: RunConfig, inputs: Inputs) -> None:
        self.config, self.inputs = config, inputs
        self.train, self.test = self._held_out()
        self.splits: list[Any] = []
        if self.automatic:
            times = None if inputs.times is None else inputs.times[self.train]
            self.splits = folds_inside(inputs.ids[self.train], times, config.folds, config.seed)
        graph = self._network()
        self.model = make_model(config, graph)
        self.rows: Rows = take_rows(self.model, inputs.frame(config.node), inputs.y)

    def _held_out(self) -> tuple[Index, Index]:
        """Rows to learn from, and rows to compare methods at."""
        return hold_out(self.inputs.ids, self.inputs.times, self.config.seed)

    def _network(self) -> Any:
        """The graph, or what learns one."""
        return self._learner() if self.inputs.graph is None else self.inputs.graph

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
        """About how often `tick` is called: more often where the grid has to go on."""
        usual = (len(self.splits) + 2) * (self.config.n_alphas + (not self.automatic))
        return usual + self._n_more

    @property
    def _n_more(self) -> int:
        """Steps of the methods that are compared on demand."""
        return 0 if self.config.compare is None else n_steps()

    def run(self, folder: RunFolder, tick: Tick) -> Stages:
        """All stages, those that were finished before read from the folder.

        `tick` is told of each solve, for progress.
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
        train = self.rows.take(self.train)
        for number, split in enumerate(self.splits):
            name = f"fold {number + 1}/{len(self.splits)}"
            work = partial(self._fold, train, split, alphas, name)
            folds.append(stage(f"fold-{number}", "cross-validation", work))
        if self.automatic:
            alphas = self._widened(alphas, folds, train, stage)
            grid = {**grid, "alphas": alphas}
        held = self._held = stage("held-out", "held-out rows", lambda: self._compare(alphas))
        rivals = None
        if self.config.compare is not None:
            rivals = stage("rivals", self.config.compare, self._rivals)
        chosen = self._place = self._choose(alphas, folds)
        fit = partial(self._path, alphas, chosen)
        path = stage("path", "path and fit", fit, partial(self._proven, float(alphas[chosen])))
        return Stages(grid, folds, held, path, seconds, rivals)

    def _grid(self) -> Arrays:
        """Candidates for alpha, from one model per component down.

        From the training rows alone: held-out labels must not decide what is tried. A little
        farther than these need, so that the path over all rows mostly begins with one model too.
        """
        train = self.rows.take(self.train)
        design = make_design(self.model, train.filled_by(train))
        alphas = alpha_grid(design.problem, design.columns, n_alphas=self.config.n_alphas)
        if len(alphas) > 1:
            alphas = np.geomspace(_FARTHER * alphas[0], alphas[-1], len(alphas))
        if not self.automatic:
            alphas = np.unique(np.append(alphas, float(self.config.alpha)))[::-1]
        return {"alphas": np.array(alphas)}

    def _widened(self, alphas: Array, folds: list[Arrays], train: Rows, stage: Any) -> Array:
        """The alphas, and those by which the folds go on where the best one is the last."""

        def more(new: Array, front: bool) -> Array:
            for number, split in enumerate(self.splits):
                name = f"fold {number + 1}/{len(self.splits)}, further"
                work = partial(self._fold, train, split, new, name)
                key = f"fold-{number}-{len(folds[number]['error'])}"
                found = stage(key, "cross-validation", work)
                parts = [folds[number]["error"], found["error"]]
                missed = folds[number]["missed"] + found["missed"]
                error = np.concatenate(parts[::-1] if front else parts)
                folds[number] = {**folds[number], "error": error, "missed": missed}
            return -np.stack([fold["error"] for fold in folds])

        upward = not as_penalty(self.config.penalty).is_norm
        scores = -np.stack([fold["error"] for fold in folds])
        return widen(alphas, scores, more, upward=upward)

    def _told(self, name: str) -> Callable[[Result], object]:
        return lambda result: self.tick(name, float(result.gap))

    def _fold(self, rows: Rows, split: Any, alphas: Array, name: str) -> Arrays:
        """Errors at the held-out rows of one fold, for each alpha."""
        return _totals(run_fold(self.model, rows, split, alphas, told=self._told(name)))

    def _compare(self, alphas: Array) -> Arrays:
        """Errors of each node at the outer held-out rows: pooled, along alpha, own."""
        told = self._told("held-out rows")
        return self._compared(
            run_fold(self.model, self.rows, (self.train, self.test), alphas, told=told)
        )

    def _compared(self, fold: Fold) -> Arrays:
        errors = fold.errors
        assert errors is not None
        found = {
            "nodes": errors.nodes,
            "held_out": np.rint(errors.weight).astype(np.int64),
            "node_error": errors.coupled,
            "node_pooled": errors.pooled,
            "node_own": errors.own,
            **_totals(fold),
        }
        if errors.wrong:
            found["wrong"] = np.array(errors.wrong)
        return found

    def _rivals(self) -> Arrays:
        """Errors of other methods at the outer held-out rows."""
        train = self.rows.take(self.train)
        held, train = self.rows.take(self.test).filled_by(train), train.filled_by(train)

        def tell() -> None:
            self.tick("boosting", float("nan"))

        return boosted_errors(train, held, self._graph_of(train), self.config.task, tell)

    def _graph_of(self, train: Rows) -> Graph:
        """The graph that training rows have."""
        return make_graph(self.model, train)

    def _choose(self, alphas: Array, folds: list[Arrays]) -> int:
        """Place of the alpha with the least mean error; the largest one of equals."""
        if not self.automatic:
            return int(np.argmin(np.abs(alphas - float(self.config.alpha))))
        return choose(-np.stack([fold["error"] for fold in folds]))[1]

    def _path(self, alphas: Array, chosen: int) -> Arrays:
        """The path over all rows, its clusters, and the final model, which is saved."""
        model, tell = self.model, self._told("path over all rows")
        design = make_design(model, self.rows)
        points: list[Result] = []
        for result in path_points(model, design, alphas):
            tell(result)
            points.append(result)
        model.set_params(alpha=float(alphas[chosen]))
        final = design.with_alpha(float(alphas[chosen]))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit_design(model, self.rows, final)  # not from the path's point: the history is shown
        model.save(self.folder.file("model.nefele"))
        coef = np.stack([stacked(*in_units(model, design, point.w)) for point in points])
        coef[chosen] = stacked(model.coef_, model.intercept_)
        clusters = clusters_along(model, design, points)
        clearest = clearest_point(alphas, clusters, int(design.problem.loss.labelled.sum()))
        graph = design.graph
        owner = graph.positions(self.rows.node_ids)
        return {
            **self._proofs(final),
            "chosen": np.array(chosen),
            "nodes": np.array(graph.ids),
            "rows": np.rint(
                np.bincount(owner, self.rows.sample_weight, minlength=graph.n_nodes)
            ).astype(np.int64),
            "edges": np.column_stack([graph.head, graph.tail]),
            "weights": np.array(graph.weight),
            "coef": coef,
            "gaps": np.array([point.gap for point in points]),
            "missed": np.array(sum(not point.converged for point in points)),
            "clusters": clusters,
            "clearest": np.array(-1 if clearest is None else clearest),
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
        design = make_design(self.model, self.rows).with_alpha(alpha)
        problem = design.problem
        w, u = parameters(model, design)
        if model.graph_ != design.graph or u.shape[1] != problem.d:
            return False
        proof = problem.certificate(w, u)
        gap = relative_gap(problem, proof.objective, proof.gap_abs)
        return bool(gap <= float(found["gap"]) + _AGAIN)

    def _proofs(self, final: Design) -> Arrays:
        """What theory says about the final model, as rows of two texts; its pictures are saved."""
        model, nodes = self.model, final.problem.graph.ids
        places = self.inputs.positions(nodes)
        point = parameters(model, final)
        fit = FinalFit.of(model, final.problem, point, places, self.inputs.geographic)
        found = examine(fit)
        return {
            **self._robust(final),
            "diagnostics": np.array(found.diagnostics, dtype=str).reshape(-1, 2),
            "theory": np.array(found.theory, dtype=str).reshape(-1, 2),
            "pictures": self._saved(chain(drawn(fit, found.draws), self._accounts())),
        }

    def _robust(self, final: Design) -> Arrays:
        return bounds_of(final, parameters(self.model, final), self.config.standardize)

    def _accounts(self) -> Iterable[tuple[str, Picture]]:
        """Pictures of errors, of what a model is made of, and of residuals."""
        errors = {**self._held, "errors": self._held["node_error"][self._place]}
        return accounts_drawn(self.model, self.rows.node_ids, errors, METRICS[self.config.task])

    def _saved(self, pictures: Iterable[tuple[str, Picture]]) -> NDArray[Any]:
        """The names of pictures, once they are in the folder."""
        names = []
        for name, picture in pictures:
            self.folder.write_bytes(f"pictures/{name}", picture.data)
            names.append(name)
        return np.array(names, dtype=str)


def make_model(config: RunConfig, graph: Any) -> Any:
    """The estimator of a run, not yet fitted, with a graph or with what learns one."""
    kind = GTVClassifier if config.task == "classification" else GTVRegressor
    return kind(graph, engine=_engine(config), **model_options(config))


def _engine(config: RunConfig) -> dict[str, Any] | None:
    """Who solves the final fit; None for this process."""
    given = {name: getattr(config, name) for name in ("engine", "parts", "address")}
    return {k: v for k, v in given.items() if v is not None} or None


def model_options(config: RunConfig) -> dict[str, Any]:
    """What the estimators of a run have in common, with a given or a chosen alpha."""
    loss = Logistic if config.task == "classification" else Squared
    return {
        "node": config.node,
        "loss": loss(l2=config.ridge),
        "penalty": "l2" if config.chooses else config.penalty,
        "weighting": config.weighting,
        "standardize": config.standardize,
        "unseen": "pooled",
        "tol": config.tol,
    }


def _totals(fold: Fold) -> Arrays:
    return {
        "error": -fold.scores,
        "own": np.array(-fold.own),
        "pooled": np.array(-fold.pooled),
        "missed": np.array(fold.n_missed),
    }
