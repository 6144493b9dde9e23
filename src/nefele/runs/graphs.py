"""Candidate graphs for a data file, compared at held-out rows; the best one becomes an edge file.

`GraphSelectorCV` is the judge; here are the candidates that a file allows for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nefele.estimators import GraphSelectorCV, GTVClassifierCV, GTVRegressorCV
from nefele.estimators.fitting import make_graph, take_rows
from nefele.graph import Graph
from nefele.graph_learning import CliqueGraph
from nefele.graph_learning.references import ALONE, CLIQUE
from nefele.runs.candidates import GIVEN, KINDS, Remembered, choose_kinds, most_neighbours
from nefele.runs.config import RunConfig
from nefele.runs.edges import edge_graph
from nefele.runs.inputs import Inputs, read_rows
from nefele.runs.pipeline import make_model, model_options
from nefele.runs.results import finite
from nefele.runs.run import Progress, _warnings_as_notes, silent
from nefele.runs.sizes import print_nothing
from nefele.runs.split import folds_inside
from nefele.runs.wording import METRICS, missed_notes
from nefele.solvers import PrimalDual

_MOST_PAIRED = 5_000  # nodes up to which all pairs are compared: one matrix of 200 MB
_MOST_WORK = 5e8  # squared nodes x columns: a Wasserstein graph then takes about 40 seconds
_FEW_UNKNOWNS = 300  # up to which Newton steps at each certified point are cheap; at 1000, dear
_FEW_ALPHAS = 6
_FEW_NODES = 500  # up to which one shuffled copy is too much a matter of chance


@dataclass(frozen=True, eq=False)
class Compared:
    """What a comparison of graphs found: the fitted selector, and plain data for JSON.

    `graph_of` gives the graph of a candidate by its name, learnt from all rows.
    """

    selector: GraphSelectorCV
    facts: dict[str, Any]
    graph_of: Callable[[str], Graph]


def compare_graphs(
    config: RunConfig,
    names: Iterable[str] | None = None,
    keep: str | None = None,
    progress: Progress = silent,
    tell: Callable[[str], object] = print_nothing,
) -> Compared:
    """Judge candidate graphs at held-out rows, against no edges and one clique.

    Parameters
    ----------
    config : RunConfig
        Which rows, which model; `graph` is an edge file or None.
    names : iterable of str, optional
        Of `KINDS`; default: the usual ones whose needs are met.
    keep : str, optional
        A candidate that must not be left out.
    progress : callable
        See `nefele.runs.run.execute`; steps without a solve have the gap NaN.
    tell : callable
        Given what a user should know before the work begins.
    """
    kinds, left_out = choose_kinds(config, names, keep)
    with _warnings_as_notes() as warned:
        inputs = read_rows(config, tell)
        notes = list(inputs.notes)
        given: Graph | None = None
        if config.edge_file is not None and GIVEN in kinds:
            path = Path(config.edge_file)
            given, more = edge_graph(path, inputs.ids, config.allow_isolates, config.drop_missing)
            notes += more
        trial = _Comparison(config, inputs, given)
        left_out |= trial.too_large(kinds, named=names is not None)
        kinds = [name for name in kinds if name not in left_out]
        with progress(trial.n_steps(len(kinds))) as tick:

            def told(name: str) -> None:
                tick(name, math.nan)

            graphs = trial.build(kinds, left_out, told)
            if keep in left_out:
                raise ValueError(f"--keep {keep} is not possible: {left_out[keep]}")
            selector = trial.judge(graphs, told)
    notes += trial.remarks()
    notes += [note for note in warned() if note not in notes]
    missed = sum(trial.n_missed for trial in selector.trials_.values())
    notes += missed_notes({"comparison": missed}, config.tol)
    facts = trial.facts(selector) | {"left_out": left_out, "notes": notes}
    return Compared(selector, facts, lambda name: trial.graph_of(name, graphs))


class _Comparison:
    """The rows, the folds and the model of one comparison."""

    def __init__(self, config: RunConfig, inputs: Inputs, given: Graph | None) -> None:
        self.config, self.inputs, self.given = config, inputs, given
        self.nodes, count = np.unique(inputs.ids, return_counts=True)
        if len(self.nodes) < 2 or count.max() < 2:
            raise ValueError(
                "Graphs can be compared over 2 nodes or more, of which some have 2 rows; got "
                f"{len(self.nodes)} node(s) with at most {count.max()} row(s). Use another --node."
            )
        try:
            self.splits = folds_inside(inputs.ids, inputs.times, config.folds, config.seed)
        except ValueError as error:
            raise ValueError(str(error).replace(", or give --alpha", "")) from None
        self.frame = inputs.frame(config.node)
        unknowns = len(self.nodes) * (len(inputs.parameters) + 1)
        self.search = _search(config, self.splits, polish=unknowns <= _FEW_UNKNOWNS)
        self.model = make_model(config, None)
        rows = take_rows(self.model, self.frame, inputs.y)
        self.parts = [rows, *(rows.take(train) for train, _ in self.splits)]
        self.n_shuffles = 2 if len(self.nodes) <= _FEW_NODES else 1

    def remarks(self) -> list[str]:
        """What a reader of the comparison must know."""
        found, n = [], len(self.nodes)
        k, n_alphas = self.config.k, self.config.n_alphas
        if n_alphas < _FEW_ALPHAS:
            found.append(
                f"Only {n_alphas} strengths of the coupling were tried: the references may be "
                f"better than they look here. Use --n-alphas {_FEW_ALPHAS} or more."
            )
        if k >= n:
            found.append(f"Each of {n} nodes has {n - 1} others: --k {k} is taken as {n - 1}.")
        if n > CliqueGraph().max_complete:
            found.append(
                f'"{CLIQUE}" of so many nodes is a star: each of them is joined to one more node '
                "without rows, which pulls them together as all the edges between them would."
            )
        return found

    def n_steps(self, count: int) -> int:
        """How often `tick` is called for so many candidates, at most."""
        rounds = 1 + count * (1 + self.n_shuffles)
        solves = 1 + rounds * self.config.n_alphas  # without edges there is one alpha
        return count * len(self.parts) + len(self.splits) * solves

    def too_large(self, kinds: list[str], named: bool) -> dict[str, str]:
        """Candidates that would take too long, and why; who is named is waited for."""
        n = len(self.nodes)
        columns = len(self.inputs.parameters) + len(getattr(self.model, "classes_", [0]))
        if named:
            return {}
        found = {}
        for name in kinds:
            if KINDS[name].pairs and n > _MOST_PAIRED:
                found[name] = f"compares all pairs, and {n} nodes are more than {_MOST_PAIRED}."
            elif name == "wasserstein" and (n * columns) ** 2 > _MOST_WORK:
                found[name] = f"takes long with {n} nodes and {columns} columns."
        return {name: f"{why} Name it by --try to wait for it." for name, why in found.items()}

    def build(
        self, kinds: list[str], left_out: dict[str, str], tick: Callable[[str], object]
    ) -> dict[str, Any]:
        """Candidates whose graphs can be made of all rows and of each fold's training rows."""
        k = most_neighbours(self.config.k, [part.node_ids for part in self.parts])
        metric = "haversine" if self.inputs.geographic else "euclidean"
        at = {"coords": self.inputs.places, "metric": metric}
        found: dict[str, Any] = {}
        for name in kinds:
            if name == GIVEN:
                found[name] = self.given
                continue
            self.model.graph = Remembered(KINDS[name].make(k, at))
            try:
                for part in self.parts:
                    tick(f"{name}: edges")
                    make_graph(self.model, part)
            except ValueError as error:
                left_out[name] = f"cannot be made of these rows: {error}"
            else:
                found[name] = self.model.graph
        if not found:
            why = " ".join(f'"{name}" {text}' for name, text in left_out.items())
            raise ValueError(f"There must be a graph to judge; none is left. {why}")
        return found

    def judge(self, graphs: dict[str, Any], tick: Callable[[str], object]) -> GraphSelectorCV:
        """The fitted selector."""
        selector = GraphSelectorCV(
            graphs,
            estimator=self.search,
            n_shuffles=self.n_shuffles,
            random_state=self.config.seed,
        )
        selector.progress = tick
        return selector.fit(self.frame, self.inputs.y)

    def graph_of(self, name: str, graphs: dict[str, Any]) -> Graph:
        """The graph of a candidate, from all rows."""
        self.model.graph = CliqueGraph() if name == CLIQUE else graphs[name]
        return make_graph(self.model, self.parts[0])

    def facts(self, selector: GraphSelectorCV) -> dict[str, Any]:
        """The comparison as plain data."""
        *_, coupling, words = selector.summary().splitlines()
        return {
            "data": self.config.data,
            "rows": len(self.inputs.y),
            "nodes": len(self.nodes),
            "features": list(self.inputs.uses.names),
            "metric": METRICS[self.config.task],
            "folds": len(selector.trials_[ALONE].scores),
            "time": self.config.time,
            "shuffles": self.n_shuffles,
            "rows_not_judged": selector.n_left_out_,
            "reference": selector.reference_,
            "graphs": _graph_rows(selector),
            "helps": selector.helps_,
            "best": selector.best_name_ if selector.helps_ else None,
            "verdict": words.split(" Kept:")[0],  # nothing is kept where nothing is written
            "coupling": coupling,
        }


def _graph_rows(selector: GraphSelectorCV) -> list[dict[str, Any]]:
    """One entry for each graph, the best first; errors are scores with the sign turned."""
    table = selector.cv_results_
    found = []
    for place in np.argsort(-table["mean_test_score"], kind="stable"):
        name = str(table["name"][place])
        found.append(
            {
                "graph": name,
                "reference": name in (ALONE, CLIQUE),
                "edges": int(table["n_edges"][place]),
                "error": 0.0 - float(table["mean_test_score"][place]),
                "fold_errors": (0.0 - selector.trials_[name].scores).tolist(),
                "alpha": float(table["alpha"][place]),
                "gain": finite(table["gain"][place]),
                "gain_se": finite(table["gain_se"][place]),
                "over_shuffled": finite(table["graph_part"][place]),
                "over_shuffled_se": finite(table["graph_part_se"][place]),
                "helps": bool(table["helps"][place]),
                "coupling": str(table["coupling"][place]),
            }
        )
    return found


def _search(config: RunConfig, splits: Any, polish: bool) -> Any:
    """The models of `nefele fit`, with the strength of the coupling chosen in these folds."""
    options = model_options(config) | {"cv": splits, "n_alphas": config.n_alphas}
    if config.task == "classification":
        return GTVClassifierCV(**options)
    if config.penalty in ("l2", "l1", "linf") and not polish:
        options["solver"] = PrimalDual(polish=False)
    return GTVRegressorCV(**options)
