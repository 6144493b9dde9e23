"""Which graph helps, by how much, and whether it is the graph or only shrinkage."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student_t
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import check_scoring
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from nefele._checks import Array, check_count, check_number, type_name
from nefele._ids import distinct
from nefele.estimators._cv_base import GTVBaseCV
from nefele.estimators._design import Rows
from nefele.estimators._folds import Scorer
from nefele.estimators.cv import GTVRegressorCV
from nefele.graph_learning._compare import (
    ALONE,
    CLIQUE,
    CliqueGraph,
    NoEdges,
    ShuffledGraph,
    Trial,
    judged_rows,
    mean_and_error,
    named_graphs,
    run_trial,
)

__all__ = ["GraphSelectorCV"]


class GraphSelectorCV(BaseEstimator):
    """Compare graphs by the prediction of held-out rows, always with no edges and with one clique.

    Rows are held out inside each node; a builder learns its graph from the training rows of each
    fold; the strength of the coupling is chosen for each fold by the other folds. A graph helps
    when it beats the better of "no edges" and "one clique", and its own shuffled copies, in
    one-sided paired t-tests over the folds. Without one that helps, the better of the two
    references is kept.

    Parameters
    ----------
    graphs : dict {name: graph or builder} or list, optional
        Candidates. Default: `LossGraph`, `WassersteinGraph` and `EmbeddingKNN`.
    estimator : GTVRegressorCV or GTVClassifierCV, optional
        Its model, candidates for alpha, folds and score are used. Default: `GTVRegressorCV` with
        eight alphas and five folds.
    node : str or int, optional
        Column of X with the node ids; default that of the estimator.
    n_shuffles : int
        Shuffled copies of each candidate; 0: no such control.
    level : float in (0, 1)
        Of the tests. With five folds 0.05 asks for a gain above 2.1 standard errors, with three
        above 2.9. Take a lower one when there are many candidates.
    max_complete : int
        Nodes up to which "one clique" is a complete graph, see `CliqueGraph`.
    random_state : int
        Of the shuffles.

    Attributes
    ----------
    cv_results_ : dict
        For each graph: name, mean_test_score, std_test_score, rank_test_score,
        split0_test_score, ..., alpha, n_edges, gain and gain_se over the better reference,
        graph_part and graph_part_se over the shuffled copies, helps.
    best_name_ : str
    helps_ : bool
        Whether any candidate helps.
    best_estimator_ : GTVRegressor or GTVClassifier
        Fitted to all rows with the chosen graph and alpha.
    best_graph_ : Graph
    alpha_ : float
    gain_, gain_se_ : float
        Of the best candidate over the better reference, helping or not.
    n_left_out_ : int
        Held-out rows that were not judged, as their node had no training row in the fold.

    Examples
    --------
    >>> from nefele.graph_learning import LossGraph
    >>> rng = np.random.default_rng(0)
    >>> node = np.repeat(np.arange(12), 12)
    >>> X = rng.normal(size=(144, 2))
    >>> y = np.where(node % 2, X[:, 0], X[:, 1]) * 2 + rng.normal(size=144)
    >>> found = GraphSelectorCV({"loss": LossGraph(k=3)}).fit(X, y, node_ids=node)
    >>> found.best_name_, found.helps_
    ('loss', True)
    """

    _tick: Callable[[str], object] | None = None  # for progress: told of each model judged

    def __init__(
        self,
        graphs: Any = None,
        *,
        estimator: Any = None,
        node: Any = None,
        n_shuffles: int = 2,
        level: float = 0.05,
        max_complete: int = 60,
        random_state: int = 0,
    ) -> None:
        self.graphs = graphs
        self.estimator = estimator
        self.node = node
        self.n_shuffles = n_shuffles
        self.level = level
        self.max_complete = max_complete
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, node_ids: Any = None) -> Any:
        """Compare the graphs, then fit with the best one to all rows.

        Parameters
        ----------
        X, y, sample_weight, node_ids
            See `GTVRegressor.fit`.

        Returns
        -------
        self
        """
        check_count(self.n_shuffles, "n_shuffles")
        if not 0 < check_number(self.level, "level", low=0.0) < 1:
            raise ValueError(f"level must lie in (0, 1); got {self.level!r}.")
        named = {**self._references(), **named_graphs(self.graphs)}
        search = self._search()
        model = search._template()
        model.graph = None
        if search.node is None and node_ids is None:
            raise ValueError("A graph needs the node of each row: give node= or node_ids=.")
        rows = model._take_rows(X, y, sample_weight, node_ids, reset=True)
        if len(distinct(rows.node_ids)) < 2:
            raise ValueError("Graphs can be compared over 2 nodes or more; all rows are of one.")
        every = search._splits(X, y, sample_weight, node_ids, None, rows)
        splits = judged_rows(rows, every)
        if not splits:
            raise ValueError(
                "No held-out row is of a node with training rows: give each node 2 rows or more."
            )
        self.n_left_out_ = sum(len(b) for _, b in every) - sum(len(b) for _, b in splits)
        self._judge(self._run(search, model, named, rows, splits))
        self.alpha_ = self.trials_[self.best_name_].alpha
        best = copy.copy(model).set_params(graph=named[self.best_name_], alpha=self.alpha_)
        design = best._make_design(rows, best._make_graph(rows))
        self.best_estimator_ = best._solve(rows, design)
        self.best_graph_ = self.best_estimator_.graph_
        return self

    def _run(
        self, search: Any, model: Any, named: dict[str, Any], rows: Rows, splits: Any
    ) -> dict[str, Array]:
        """Fill `trials_`; returns the mean scores of the shuffled copies, fold by fold."""
        if search.scoring is None:
            score = search._default_scorer(model)
        else:
            score = check_scoring(model, search.scoring)
        self.trials_: dict[str, Trial] = {}
        shuffled: dict[str, Array] = {}
        for name, graph in named.items():
            told = self._told(score, name)
            try:
                self.trials_[name] = run_trial(search, model, graph, rows, splits, told)
            except ValueError as error:
                raise ValueError(f'Candidate "{name}": {error}') from error
            if name in (ALONE, CLIQUE) or not self.n_shuffles:
                continue
            told = self._told(score, f"{name}, shuffled")
            copies = [
                run_trial(search, model, ShuffledGraph(graph, seed), rows, splits, told)
                for seed in range(self.random_state, self.random_state + self.n_shuffles)
            ]
            shuffled[name] = np.mean([one.scores for one in copies], axis=0)
        return shuffled

    def _told(self, score: Scorer, name: str) -> Scorer:
        """The same score, with a call of `_tick` for each model that is judged."""
        tick = self._tick
        if tick is None:
            return score

        def counted(*args: Any, **kwargs: Any) -> float:
            tick(name)
            return score(*args, **kwargs)

        return counted

    def _references(self) -> dict[str, Any]:
        return {ALONE: NoEdges(), CLIQUE: CliqueGraph(self.max_complete)}

    def _search(self) -> Any:
        base = GTVRegressorCV(n_alphas=8, tol=1e-3) if self.estimator is None else self.estimator
        if not isinstance(base, GTVBaseCV):
            raise ValueError(
                "estimator must be a GTVRegressorCV or a GTVClassifierCV, which choose the "
                f"strength of the coupling; got {type_name(base)}."
            )
        found: Any = clone(base)
        return found if self.node is None else found.set_params(node=self.node)

    def _judge(self, shuffled: dict[str, Array]) -> None:
        """Fill `cv_results_` and choose."""
        trials = self.trials_
        self.reference_ = max((ALONE, CLIQUE), key=lambda name: trials[name].mean)
        rival = trials[self.reference_].scores
        names = list(trials)
        gain = np.array([mean_and_error(trials[name].scores - rival) for name in names])
        part = np.full((len(names), 2), np.nan)
        for name, scores in shuffled.items():
            part[names.index(name)] = mean_and_error(trials[name].scores - scores)
        candidate = np.array([name not in (ALONE, CLIQUE) for name in names])
        helps = candidate & self._clear(gain, len(rival))
        if shuffled:
            helps &= self._clear(part, len(rival))
        mean = np.array([trials[name].mean for name in names])
        table = np.stack([trials[name].scores for name in names])
        self.cv_results_ = {
            "name": np.array(names, dtype=object),
            **{f"split{f}_test_score": table[:, f] for f in range(table.shape[1])},
            "mean_test_score": mean,
            "std_test_score": table.std(axis=1),
            "rank_test_score": (mean[None, :] > mean[:, None]).sum(axis=1) + 1,
            "alpha": np.array([trials[name].alpha for name in names]),
            "n_edges": np.array([trials[name].n_edges for name in names]),
            "gain": gain[:, 0],
            "gain_se": gain[:, 1],
            "graph_part": part[:, 0],
            "graph_part_se": part[:, 1],
            "helps": helps,
        }
        self.helps_ = bool(helps.any())
        place = int(np.argmax(np.where(helps if self.helps_ else candidate, mean, -np.inf)))
        self.gain_, self.gain_se_ = (float(value) for value in gain[place])
        self._lead = names[place]
        self.best_name_ = names[place] if self.helps_ else self.reference_

    def _clear(self, gain: Array, n_folds: int) -> NDArray[np.bool_]:
        """Whether gains (mean, standard error) are above zero; with one fold, any gain is."""
        if n_folds < 2:
            return gain[:, 0] > 0
        return gain[:, 0] > student_t.ppf(1 - self.level, n_folds - 1) * gain[:, 1]

    def summary(self) -> str:
        """The comparison in words: a line for each graph, then what it means.

        Returns
        -------
        str
        """
        check_is_fitted(self, "cv_results_")
        table = self.cv_results_
        order = np.argsort(-table["mean_test_score"], kind="stable")
        wide = max(len(str(name)) for name in table["name"])
        lines = [
            f"{'graph':{wide}}  {'score':>10}  {'gain':>9}  {'±':>8}  {'over shuffled':>13}  edges"
        ]
        for k in order:
            part = table["graph_part"][k]
            lines.append(
                f"{table['name'][k]:{wide}}  {table['mean_test_score'][k]:10.4g}  "
                f"{table['gain'][k]:9.3g}  {table['gain_se'][k]:8.2g}  "
                f"{'-' if np.isnan(part) else f'{part:.3g}':>13}  {table['n_edges'][k]}"
            )
        return "\n".join([*lines, self._verdict()])

    def plot(self, ax: Any = None) -> Any:
        """Gains of the candidates over the reference and over their shuffled copies.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        from nefele.graph_learning.drawing import draw_comparison

        check_is_fitted(self, "cv_results_")
        return draw_comparison(self, ax)

    def _verdict(self) -> str:
        lead = list(self.cv_results_["name"]).index(self._lead)
        part = self.cv_results_["graph_part"][lead]
        words = f"{self.gain_:.3g} ± {self.gain_se_:.2g}"
        if not self.helps_:
            why = f'the best, "{self._lead}", gains {words} over {self.reference_}'
            if self.gain_ > 0 and part <= 0:
                why += ", and its shuffled copies do as well: that is shrinkage, not the graph"
            return f"No graph helps: {why}. Kept: {self.reference_}."
        text = f'"{self._lead}" helps: {words} over {self.reference_}.'
        whole = self.trials_[self._lead].mean - self.trials_[ALONE].mean
        if np.isnan(part) or not whole > 0:
            return text
        share = part / whole
        if share > 0.995:
            return f"{text} All of its gain of {whole:.3g} over no edges is the graph."
        return (
            f"{text} Of its gain of {whole:.3g} over no edges {share:.0%} is the graph; the rest "
            "its shuffled copies reach as well: shrinkage."
        )

    def predict(self, X: Any, *, node_ids: Any = None) -> Any:
        """Predictions of the best estimator, see `GTVRegressor.predict`."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X, node_ids=node_ids)

    @available_if(lambda self: hasattr(self._search()._template(), "predict_proba"))
    def predict_proba(self, X: Any, *, node_ids: Any = None) -> Array:
        """Probabilities of the best estimator, see `GTVClassifier.predict_proba`."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X, node_ids=node_ids)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, node_ids: Any = None) -> float:
        """Score of the best estimator: R^2, or the share of right classes."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.score(X, y, sample_weight, node_ids=node_ids)
