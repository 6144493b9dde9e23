"""The choice of graph, strength and what is coupled, at held-out rows of the nodes."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from nefele._checks import as_float_array, check_count, check_name, check_number
from nefele._ids import describe
from nefele._progress import check_verbose, progress
from nefele._torch.base import Module, torch
from nefele._words import Text
from nefele.estimators.design import graph_nodes
from nefele.estimators.packing import Rows
from nefele.graph import Graph
from nefele.graph_learning import LabelGraph, MomentsKNN
from nefele.graph_learning.builders import TrainingRows
from nefele.graph_learning.references import CliqueGraph
from nefele.graphs import as_graph
from nefele.networks.candidates import Candidate, Search, Trial, look_for, order_of
from nefele.networks.coupled import COUPLE
from nefele.networks.graphs import NetworkGraph
from nefele.networks.personal import PersonalBase
from nefele.networks.rows import Source
from nefele.networks.stack import Stack
from nefele.result import DataWarning
from nefele.selection import WithinNodeKFold, choose
from nefele.selection.choice import judged
from nefele.selection.folds import Fold
from nefele.selection.judge import Judge

_RATIOS = (4.0, 1.0)  # of alpha to `unit_of_alpha`
_SHOWN = ("common", "graph", "ratio", "couple")
_NEAREST = 4


@dataclass(eq=False, repr=False)
class NetCVBase(PersonalBase):
    """Choice of graph, alpha and what is coupled; a subclass gives target, loss and `predict`."""

    _: KW_ONLY
    graph: Any = None
    alphas: Any = None
    couple: Any = COUPLE
    common: Any = (0.25, 0.7)
    cv: int = 2
    held_out: float = 0.25
    share: float = 0.6
    one_se: bool = False
    verbose: bool | int = False

    candidate_: Candidate = field(init=False)

    # -- fit ----------------------------------------------------------------------------------

    def refit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, node_ids: Any = None
    ) -> Any:
        """Fit to other rows with the coupling that was chosen before; graphs are learnt anew.

        Parameters
        ----------
        X, y, sample_weight, node_ids
            See `fit`.
        """
        check_is_fitted(self, "candidate_")
        self._chosen = self.candidate_
        try:
            return self.fit(X, y, sample_weight, node_ids=node_ids)
        finally:
            del self._chosen

    def _make_graph(self, rows: Rows) -> Graph:
        """The nodes; graphs are learnt from the training rows of each split."""
        self._rows = rows
        return graph_nodes(rows.node_ids)

    def _trained(self, stack: Stack, source: Source, graph: Graph) -> Any:
        order = np.argsort(graph.positions(self._rows.node_ids), kind="stable")
        rows = _some(self.__dict__.pop("_rows"), order)  # in the order of the source
        builders = self._graphs(graph.n_nodes)
        trials = []
        fixed = hasattr(self, "_chosen")
        for train, test in () if fixed else self._splits(rows):
            search = self._search(stack, source, rows, train, builders, float(self.share))
            held = source.pick(test)
            ids, weight = rows.node_ids[test], rows.sample_weight[test]
            judge = Judge(ids, weight, np.ones(len(ids), dtype=bool))
            codes = np.arange(self._n_outputs) if self._labels else None
            trials.append(Trial(search, judge, held, codes))
        if fixed:
            self.candidate_ = self._chosen
        elif trials:
            self._choose(trials, list(builders))
        else:
            self._without_folds()
        search = self._search(stack, source, rows, np.arange(len(rows.y)), builders, 1.0)
        w = search.train(self.candidate_)
        steps = search.training
        done = steps.mark()
        chosen = self._chosen_graph(search)
        steps.go_back(done)
        return self._keep(steps, w, chosen)

    def _search(
        self,
        stack: Stack,
        source: Source,
        rows: Rows,
        at: NDArray[np.int64],
        builders: dict[str, Any],
        share: float,
    ) -> Search:
        """The candidates' start on some of the rows."""
        part, rounds = _some(rows, at), max(2, round(int(self.rounds) * share))
        nodes = graph_nodes(rows.node_ids)
        graphs = {
            name: _on_nodes(self._made(one, part, stack.module), nodes.ids, name)
            for name, one in builders.items()
        }
        return Search(self._steps(stack, source.pick(at), rounds), graphs)

    def _made(self, builder: Any, rows: Rows, module: Module) -> Graph:
        if isinstance(builder, Graph):
            return builder
        if not hasattr(builder, "fit_graph"):
            return as_graph(builder)
        builder = clone(builder)
        if isinstance(builder, NetworkGraph) and builder.network is None:
            builder.set_params(network=self._plain(module))
        seen = (rows.X, self._targets(rows.y), rows.node_ids, rows.sample_weight)
        names = self._names() if hasattr(self, "n_features_in_") else None
        graph: Graph = builder.fit_graph(TrainingRows(*seen, names, None, self.node))
        return graph

    def _plain(self, module: Module) -> Any:
        """The network of this estimator for a graph builder, which has rows in one line."""
        from nefele.networks.baselines import Local, PersonalClassifier, PersonalRegressor

        kind = PersonalClassifier if self._labels else PersonalRegressor
        names = ("loss", "lr", "batch_size", "dtype", "n_threads", "local_steps", "form")
        given = {name: getattr(self, name) for name in names}
        given["module"] = self.module
        if len(self._shape) > 1:
            given["module"] = torch.nn.Sequential(torch.nn.Unflatten(1, self._shape), module)
        rounds = max(1, round(int(self.rounds) * float(self.share) / 2))
        return kind(method=Local(), rounds=rounds, random_state=0, **given)

    def _chosen_graph(self, search: Search) -> Graph:
        """The graph of the choice with the final alpha; without edges where there is none."""
        candidate = self.candidate_
        if not candidate.ratio:
            self.alpha_ = np.inf if candidate.common == 1 else 0.0
            return Graph(next(iter(search.graphs.values())).ids, [], [])
        coupling = search.coupling(candidate)
        self.alpha_ = coupling.alpha
        return coupling.graph

    # -- choice -------------------------------------------------------------------------------

    def _choose(self, trials: list[Trial], graphs: list[str]) -> None:
        """Look for the best candidate, and record what was tried."""
        given = self.alphas is not None
        ratios = as_float_array(self.alphas, "alphas", ndim=1).tolist() if given else list(_RATIOS)

        with progress(self.verbose) as line:
            numbers = itertools.count(1)

            def tell(candidate: Candidate) -> float:
                line.show(f"candidate {next(numbers)}: {candidate}")
                return float(np.mean([trial.tell(candidate) for trial in trials]))

            tried = look_for(tell, graphs, ratios, self._couples(), self._commons(), given)
        order = order_of(tried)
        own, one = (tried.index(Candidate(share)) for share in (0.0, 1.0))
        folds = [trial.fold(order, own, one) for trial in trials]
        self._record(folds, [tried[k] for k in order])

    def _splits(self, rows: Rows) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Random splits; nodes of one row only train."""
        parts = max(2, round(1.0 / float(self.held_out)))
        if len(rows.y) < 2 * parts:
            return []
        splitter = WithinNodeKFold(parts, shuffle=True, random_state=0)
        found = []
        for train, test in splitter.split(rows.X, None, rows.node_ids):
            known = np.isin(rows.node_ids[test], rows.node_ids[train])
            if known.any():
                found.append((np.sort(np.append(train, test[~known])), test[known]))
        return found[: int(self.cv)]

    def _record(self, folds: list[Fold], tried: list[Candidate]) -> None:
        scores = np.stack([fold.scores for fold in folds])
        _, chosen = choose(scores, self.one_se)
        self.candidate_ = tried[chosen]
        self.coupling_ = str(self.candidate_)
        self.best_index_, self.best_score_ = chosen, float(scores[:, chosen].mean())
        self.verdict_ = judged(folds, self.one_se)
        self.gain_, self.gain_se_ = self.verdict_.gain.mean, self.verdict_.gain.error
        self.coupling_helps_ = self.verdict_.helps in ("yes", "probably")
        means = scores.mean(axis=0)
        self.baseline_scores_ = {
            name: float(np.mean([getattr(fold, name) for fold in folds]))
            for name in ("own", "pooled")
        }
        self.cv_results_ = {
            "coupling": [str(c) for c in tried],
            **{key: [getattr(c, key) for c in tried] for key in _SHOWN},
            **{f"split{k}_test_score": fold.scores for k, fold in enumerate(folds)},
            "mean_test_score": means,
            "rank_test_score": (means[None, :] > means[:, None]).sum(axis=1) + 1,
        }
        if self._labels:
            wrong = np.stack([f.errors.wrong[1:-1] for f in folds if f.errors is not None])
            self.cv_results_["mean_test_accuracy"] = 1.0 - wrong.mean(axis=0)

    def _without_folds(self) -> None:
        warnings.warn(
            "There are too few rows to hold some out: every network is trained on its own rows. "
            "Give a graph and alpha to GTVNetRegressor or GTVNetClassifier to couple them.",
            DataWarning,
            stacklevel=3,
        )
        self.candidate_ = Candidate(0.0)
        self.coupling_ = str(self.candidate_)
        self.coupling_helps_, self.gain_, self.gain_se_ = False, 0.0, float("nan")

    # -- checks -------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count(self.cv, "cv", low=1)
        check_verbose(self.verbose)
        check_count(self.rounds, "rounds", low=2)
        if not self._commons() or not all(0 < share < 1 for share in self._commons()):
            raise ValueError(f"common must be shares above 0 and below 1; got {self.common!r}.")
        for name in ("held_out", "share"):
            check_number(getattr(self, name), name, low=0.0, strict=True)
            if getattr(self, name) > (0.5 if name == "held_out" else 1.0):
                most = "1/2" if name == "held_out" else "1"
                raise ValueError(f"{name} must be at most {most}; got {getattr(self, name)}.")
        self._couples()
        if self.alphas is not None:
            alphas = as_float_array(self.alphas, "alphas", ndim=1)
            if not alphas.size or not (np.isfinite(alphas) & (alphas >= 0)).all():
                raise ValueError(
                    f"alphas must be finite numbers >= 0, one or more; got {self.alphas!r}."
                )

    def _commons(self) -> list[float]:
        given: Any = self.common
        return [float(one) for one in (given if np.iterable(given) else [given])]

    def _couples(self) -> list[str]:
        given = [self.couple] if isinstance(self.couple, str) else list(self.couple)
        if not given:
            raise ValueError(f"couple must be one or more of {', '.join(COUPLE)}; got none.")
        return [check_name(name, COUPLE, "couple") for name in given]

    def _graphs(self, n_nodes: int) -> dict[str, Any]:
        """Graphs and builders by name."""
        if self.graph is None:
            found: dict[str, Any] = {"complete": CliqueGraph(max_complete=10**9)}
            if n_nodes > _NEAREST + 1:
                near = LabelGraph(k=_NEAREST) if self._labels else MomentsKNN(k=_NEAREST)
                found["alike"] = near
            return found
        if isinstance(self.graph, Mapping):
            if not self.graph:
                raise ValueError("graph must have at least one candidate; got an empty dict.")
            return dict(self.graph)
        return {"given": self.graph}

    def summary(self) -> Text:
        """What was chosen, and whether coupling helps, in words."""
        check_is_fitted(self, "parameters_")
        many = "1 network" if len(self.nodes_) == 1 else f"{len(self.nodes_)} networks"
        lines = [f"{many}: {self.coupling_}."]
        if hasattr(self, "verdict_"):
            lines.append(self.verdict_.text())
        return Text("\n".join(lines))


def _some(rows: Rows, at: NDArray[np.int64]) -> Rows:
    return Rows(rows.X[at], rows.y[at], rows.node_ids[at], rows.sample_weight[at], None)


def _on_nodes(graph: Graph, ids: NDArray[Any], name: str) -> Graph:
    """The same edges between these nodes; those that the graph lacks have none."""
    place = Graph(ids, [], []).positions(graph.ids)
    if (place < 0).any():
        raise ValueError(
            f"Graph {name!r} has nodes without rows, such as {describe(graph.ids[place < 0])}; "
            "all nodes of a candidate must have rows. Leave them out, or give the graph to "
            "GTVNetRegressor or GTVNetClassifier."
        )
    return Graph(ids, place[graph.head], place[graph.tail], graph.weight)
