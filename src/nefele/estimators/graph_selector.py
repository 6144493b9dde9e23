"""Which graph helps, by how much, and whether it is the graph or only shrinkage."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from nefele._checks import Array, check_count, type_name
from nefele._ids import distinct
from nefele._progress import check_verbose, progress
from nefele._words import Text
from nefele.estimators import fitting
from nefele.estimators._available import available_if
from nefele.estimators._cv_base import GTVBaseCV
from nefele.estimators.cv import GTVRegressorCV
from nefele.estimators.graph_trials import Trial, judged_rows, named_graphs, run_trial
from nefele.estimators.telling import Telling
from nefele.graph_learning.references import ALONE, CLIQUE, CliqueGraph, NoEdges, ShuffledGraph
from nefele.selection import Gain, Verdict

_Judged = tuple[Any, Any, Any]  # rows, splits and scoring


class GraphSelectorCV(BaseEstimator):
    """Compare graphs by the prediction of held-out rows, always with no edges and with one clique.

    Rows are held out inside each node; a builder learns its graph from the training rows of each
    fold; the strength of the coupling is chosen for each fold by the other folds. A graph helps
    when the verdict on its gain is "yes" (see `nefele.selection.Verdict`: two standard errors, and
    1% of the error), over the better of "no edges" and "one clique" and over its own shuffled
    copies. Without one that helps, the better of the two references is kept.

    Parameters
    ----------
    graphs : dict {name: graph or builder} or list, optional
        Candidates. Default: `LossGraph`, `WassersteinGraph` and `EmbeddingKNN`.
    estimator : GTVRegressorCV or GTVClassifierCV, optional
        Its model, candidates for alpha, folds and score are used; its `penalty="auto"` is "l2"
        here, as the graphs are compared, not couplings. Default: `GTVRegressorCV` with eight alphas
        and five folds.
    node : str or int, optional
        Column of X with the node ids; default that of the estimator.
    n_shuffles : int
        Shuffled copies of each candidate; 0: no such control.
    max_complete : int
        Nodes up to which "one clique" is a complete graph, see `CliqueGraph`.
    random_state : int
        Of the shuffles.
    verbose : bool or int
        Whether to show progress in one line, as `nefele.solve` does; with more than one process
        (`n_jobs` of the estimator) what is told of are graphs, not solves.

    Attributes
    ----------
    cv_results_ : dict
        For each graph: name, mean_test_score, std_test_score, rank_test_score,
        split0_test_score, ..., alpha, n_edges, gain and gain_se over the better reference,
        graph_part and graph_part_se over the shuffled copies, helps; and coupling, the verdict
        on coupling over this graph as `GTVRegressorCV` has it.
    best_name_ : str
    helps_ : bool
        Whether any candidate helps.
    best_estimator_ : GTVRegressor or GTVClassifier
        Fitted to all rows with the chosen graph and alpha.
    best_graph_ : Graph
    alpha_ : float
    gain_, gain_se_ : float
        Of the best candidate over the better reference, helping or not; of the standard errors
        over the nodes and over the folds the larger one.
    verdict_ : nefele.selection.Verdict
        Of the best candidate, over own data only and one model: that of `GTVRegressorCV` with
        this graph and the same folds. Coupling may help where the graph does not: by shrinkage.
    progress : callable or None
        Set before `fit`: told the name of the graph at each solve.
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

    progress: Callable[[str], object] | None = None

    def __init__(
        self,
        graphs: Any = None,
        *,
        estimator: Any = None,
        node: Any = None,
        n_shuffles: int = 2,
        max_complete: int = 60,
        random_state: int = 0,
        verbose: bool | int = False,
    ) -> None:
        self.graphs = graphs
        self.estimator = estimator
        self.node = node
        self.n_shuffles = n_shuffles
        self.max_complete = max_complete
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, node_ids: Any = None) -> Self:
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
        check_verbose(self.verbose)
        named = {**self._references(), **named_graphs(self.graphs)}
        search = self._search()
        model = search._template()
        model.graph = None
        if search.node is None and node_ids is None:
            raise ValueError("A graph needs the node of each row: give node= or node_ids=.")
        rows = fitting.take_rows(model, X, y, sample_weight, node_ids)
        if len(distinct(rows.node_ids)) < 2:
            raise ValueError("Graphs can be compared over 2 nodes or more; all rows are of one.")
        every = search._splits(X, y, sample_weight, node_ids, None, rows)
        splits = judged_rows(rows, every)
        if not splits:
            raise ValueError(
                "No held-out row is of a node with training rows: give each node 2 rows or more."
            )
        self.n_left_out_ = sum(len(b) for _, b in every) - sum(len(b) for _, b in splits)
        scoring = search._scoring(model, X, sample_weight)
        with progress(self.verbose) as line:
            told = Telling(line, self.progress, search.n_jobs)
            found = self._run(search, model, named, (rows, splits, scoring), told)
        self._judge(found)
        self.alpha_ = self.trials_[self.best_name_].alpha
        best = copy.copy(model).set_params(graph=named[self.best_name_], alpha=self.alpha_)
        self.best_estimator_ = fitting.fit_design(best, rows, fitting.make_design(best, rows))
        self.best_graph_ = self.best_estimator_.graph_
        return self

    def _run(
        self, search: Any, model: Any, named: dict[str, Any], judge: _Judged, told: Telling
    ) -> dict[str, list[Trial]]:
        """Fill `trials_`; returns the trials of the shuffled copies."""
        self.trials_: dict[str, Trial] = {}
        shuffled: dict[str, list[Trial]] = {}
        for name, graph in named.items():
            try:
                self.trials_[name] = run_trial(search, model, graph, *judge, told(name))
            except ValueError as error:
                raise ValueError(f'Candidate "{name}": {error}') from error
            if name in (ALONE, CLIQUE) or not self.n_shuffles:
                continue
            say = told(f"{name}, shuffled")
            shuffled[name] = [
                run_trial(search, model, ShuffledGraph(graph, seed), *judge, say)
                for seed in range(self.random_state, self.random_state + self.n_shuffles)
            ]
        return shuffled

    def _references(self) -> dict[str, Any]:
        return {ALONE: NoEdges(), CLIQUE: CliqueGraph(self.max_complete)}

    def _search(self) -> Any:
        base = self.estimator
        if base is None:
            base = GTVRegressorCV(penalty="l2", n_alphas=8, tol=1e-3)
        if not isinstance(base, GTVBaseCV):
            raise ValueError(
                "estimator must be a GTVRegressorCV or a GTVClassifierCV, which choose the "
                f"strength of the coupling; got {type_name(base)}."
            )
        if base.privacy is not None:
            raise ValueError(
                "privacy of the estimator must be None: graphs are compared on raw rows. Compare "
                "them on rows that may be shown, then fit with the chosen graph and privacy=...; "
                "GTVRegressor(privacy=...) also learns a graph from its noisy moments alone."
            )
        found: Any = clone(base)
        return found if self.node is None else found.set_params(node=self.node)

    def _judge(self, shuffled: dict[str, list[Trial]]) -> None:
        """Fill `cv_results_` and choose."""
        trials, names = self.trials_, list(self.trials_)
        self.reference_ = max((ALONE, CLIQUE), key=lambda name: trials[name].mean)
        rival = trials[self.reference_]
        self._gains = {name: _gain(trials[name], [rival]) for name in names}
        self._parts = {name: _gain(trials[name], copies) for name, copies in shuffled.items()}
        candidate = np.array([name not in (ALONE, CLIQUE) for name in names])
        clear = [
            self._gains[name].helps == "yes"
            and (name not in shuffled or self._parts[name].helps == "yes")
            for name in names
        ]
        helps = candidate & clear
        mean = np.array([trials[name].mean for name in names])
        table = np.stack([trials[name].scores for name in names])
        gain = np.array([(one.mean, one.error) for one in self._gains.values()])
        parts = [self._parts.get(name, _NONE) for name in names]
        part = np.array([(one.mean, one.error) for one in parts])
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
            "coupling": np.array([trials[name].verdict.helps for name in names]),
        }
        self.helps_ = bool(helps.any())
        place = int(np.argmax(np.where(helps if self.helps_ else candidate, mean, -np.inf)))
        self._lead = names[place]
        self.gain_, self.gain_se_ = (float(value) for value in gain[place])
        self.verdict_: Verdict = trials[self._lead].verdict
        self.best_name_ = self._lead if self.helps_ else self.reference_

    def summary(self) -> Text:
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
        lines += [f'With "{self._lead}": {self.verdict_.text()}', self._words()]
        return Text("\n".join(lines))

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

    def _words(self) -> str:
        gain, part = self._gains[self._lead], self._parts.get(self._lead, _NONE)
        if not self.helps_:
            why = f'the best, "{self._lead}", gains {gain} over {self.reference_}'
            if gain.mean > 0 and part.mean <= 0:
                why += ", and its shuffled copies do as well: that is shrinkage, not the graph"
            elif gain.mean > 2 * gain.error and not gain.worth:
                why += ", which is less than 1% of the error"
            elif gain.mean > 0 and part.mean > 0:
                why += f", and {part} over its shuffled copies; not both are clear"
            return f"No graph helps: {why}. Kept: {self.reference_}."
        text = f'"{self._lead}" helps: {gain} over {self.reference_}.'
        whole = self.trials_[self._lead].mean - self.trials_[ALONE].mean
        if np.isnan(part.mean) or not whole > 0:
            return text
        share = part.mean / whole
        if share > 0.995:
            return f"{text} All of its gain of {whole:.3g} over no edges is the graph."
        return (
            f"{text} Of its gain of {whole:.3g} over no edges {share:.0%} is the graph; the rest "
            "its shuffled copies reach as well: shrinkage."
        )

    def predict(self, X: Any, *, node_ids: Any = None) -> Any:
        """Predictions of the best estimator, see `GTVRegressor.predict`.

        Parameters
        ----------
        X : table or array of shape (n_rows, d), or with the node column (n_rows, d + 1)
        node_ids : array of shape (n_rows,), optional
            Node of each row, when X has no node column.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X, node_ids=node_ids)

    @available_if(lambda self: hasattr(self._search()._template(), "predict_proba"))
    def predict_proba(self, X: Any, *, node_ids: Any = None) -> Array:
        """Probabilities of the best estimator, see `GTVClassifier.predict_proba`.

        Parameters
        ----------
        X : table or array of shape (n_rows, d), or with the node column (n_rows, d + 1)
        node_ids : array of shape (n_rows,), optional
            Node of each row, when X has no node column.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X, node_ids=node_ids)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, node_ids: Any = None) -> float:
        """Score of the best estimator: R^2, or the share of right classes.

        Parameters
        ----------
        X : table or array of shape (n_rows, d), or with the node column (n_rows, d + 1)
        y : array of shape (n_rows,)
            Target or classes.
        sample_weight : array of shape (n_rows,), optional
            Row weights >= 0.
        node_ids : array of shape (n_rows,), optional
            Node of each row, when X has no node column.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.score(X, y, sample_weight, node_ids=node_ids)


_NONE = Gain(np.nan, np.nan, np.nan)  # over shuffled copies that were not asked for


def _gain(trial: Trial, rivals: list[Trial]) -> Gain:
    """What a graph gains over the mean of others, with the larger of two standard errors.

    Over the nodes alone the luck of a random graph would count as clear: it gains at the same
    nodes in each fold.
    """
    errors = np.mean([one.verdict.coupled for one in rivals], axis=0)
    found = Gain.over(errors, trial.verdict.coupled, trial.verdict.held_out)
    apart = trial.scores - np.mean([one.scores for one in rivals], axis=0)
    if len(apart) < 2:
        return found
    over_folds = apart.std(ddof=1) / np.sqrt(len(apart))
    return replace(found, error=float(np.fmax(found.error, over_folds)))
