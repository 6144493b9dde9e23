"""What both forms share: folds, scores, baselines, the choice of alpha, the final fit."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from joblib import delayed
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_sample_weight

from nefele._checks import Array, check_count
from nefele.estimators import choosing, fitting, private, private_search
from nefele.estimators._base import GTVBase, GTVParameters
from nefele.estimators.design import Design, Rows
from nefele.estimators.fitted_search import FittedSearch
from nefele.estimators.nodes import split_nodes
from nefele.estimators.telling import along, run_folds
from nefele.result import ConvergenceWarning, DataWarning, Result
from nefele.selection import WithinNodeKFold, alpha_grid, choose
from nefele.selection.choice import judged
from nefele.selection.clearest import clearest_stretch
from nefele.selection.folds import Fold, Told
from nefele.selection.judge import Scorer
from nefele.selection.verdict import Verdict
from nefele.selection.widening import joined, widen

_BASELINES = ("own", "pooled")
_OWN = ("alphas", "n_alphas", "cv", "scoring", "one_se", "n_jobs")


def _scores(folds: list[Fold]) -> Array:
    """Scores of the folds that have any, shape (n_folds, n_alphas)."""
    found = [fold.scores for fold in folds if np.isfinite(fold.scores).all()]
    return np.stack(found) if found else np.zeros((0, len(folds[0].scores)))


@dataclass(eq=False, repr=False)
class GTVBaseCV(FittedSearch, GTVParameters):
    """Choice of alpha; a subclass names the estimator and its default score."""

    _estimator: ClassVar[type[GTVBase]]
    _shuffle = False
    _advice = ""

    _: KW_ONLY
    penalty: Any = "auto"
    features: str = "auto"
    explainable: float = 1.0
    alphas: Any = None
    n_alphas: int = 30
    cv: Any = None
    scoring: Any = None
    one_se: bool = False
    n_jobs: int | None = None

    def _template(self) -> Any:
        params = {k: v for k, v in self.get_params(deep=False).items() if k not in _OWN}
        if params["loss"] is None:
            del params["loss"]
        if isinstance(params["penalty"], str) and params["penalty"] == "auto":
            params["penalty"] = "l2"
        if params["features"] == "auto":
            params["features"] = "linear"
        return self._estimator(**params)

    @property
    def _automatic(self) -> bool:
        return isinstance(self.penalty, str) and self.penalty == "auto"

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        node_ids: Any = None,
        groups: Any = None,
        signal: Any = None,
    ) -> Self:
        """Choose alpha by cross-validation, then fit with it to all rows.

        Parameters
        ----------
        X : table or array of shape (n_rows, d), or with the node column (n_rows, d + 1)
        y : array of shape (n_rows,)
        sample_weight : array of shape (n_rows,), optional
            Row weights >= 0, in the fits and in the scores.
        node_ids : array of shape (n_rows,), optional
            Node of each row, when X has no node column.
        groups : array of shape (n_rows,), optional
            For the splitter `cv`, such as `GroupKFold()`; default the node ids.
        signal : array of shape (n_rows,) or (n_rows, n_classes), optional
            What a user would expect of each row, see the estimator with a fixed alpha; with a
            penalty by name. Fits see the signals of their rows, scores the labels only.

        Returns
        -------
        self
        """
        model = self._template()
        rows = fitting.take_rows(model, X, y, sample_weight, node_ids)
        if signal is not None:
            if self._automatic:
                choosing.refuse_signals()
            rows = model._with_signals(rows, signal, sample_weight)
        self._forget()
        if self.privacy is not None:
            return private_search.fit(self, model, rows, (X, y, sample_weight, node_ids, groups))
        private.forget(self)
        if self._automatic:
            choosing.check(self)
            given = (X, y, sample_weight, node_ids, groups)
            if choosing.fit(self, model, rows, given):
                return self
        splits = self._splits(X, y, sample_weight, node_ids, groups, rows)
        scoring = self._scoring(model, X, sample_weight)
        points = self._search(model, rows, splits, scoring, rows)
        self._finish(model, rows, *points)
        return self

    def _search(
        self,
        model: Any,
        rows: Rows,
        splits: list[tuple[fitting.Index, fitting.Index]],
        scoring: tuple[Scorer | None, Any],
        final: Rows,
    ) -> tuple[Design, list[Result]]:
        """Choose alpha by the splits of rows; the design and the path of the final ones."""
        design = fitting.make_design(model, final)
        self.alphas_ = self._grid(design)
        folds = self._folds(model, rows, splits, self.alphas_, scoring)
        if self.alphas is None:

            def more(alphas: Array, front: bool) -> Array:
                found = self._folds(model, rows, splits, alphas, scoring)
                pairs = zip(folds, found, strict=True)
                folds[:] = [joined(fold, other, front) for fold, other in pairs]
                return _scores(folds)

            upward = not design.problem.penalty.is_norm
            self.alphas_ = widen(self.alphas_, _scores(folds), more, upward=upward)
        self._record([fold for fold in folds if np.isfinite(fold.scores).all()], folds)
        path = fitting.path_points(model, design, self.alphas_)
        points = along(path, len(self.alphas_), self.verbose)
        self._mark_clusters(model, design, points)
        return design, points

    def _forget(self) -> None:
        for name in ("scale_", "hub_"):
            self.__dict__.pop(name, None)

    def _take_verdict(self, verdict: Verdict) -> None:
        self.verdict_ = verdict
        self.gain_, self.gain_se_ = verdict.gain.mean, verdict.gain.error
        self.coupling_helps_ = verdict.helps in ("yes", "probably")

    def _folds(
        self,
        model: Any,
        rows: Rows,
        splits: list[tuple[fitting.Index, fitting.Index]],
        alphas: Array,
        scoring: tuple[Scorer | None, Any],
        told: Told | None = None,
    ) -> list[Fold]:
        scorer, table = scoring

        def tasks(shown: Told | None) -> Iterator[Any]:
            one = shown if told is None else told
            for split in splits:
                yield delayed(fitting.run_fold)(model, rows, split, alphas, scorer, one, table)

        verbose = self.verbose if told is None else False
        return run_folds(tasks, len(splits), verbose, self.n_jobs, len(alphas))

    def _scoring(self, model: Any, X: Any, sample_weight: Any) -> tuple[Scorer | None, Any]:
        """The user's scorer and the rows it sees, as the user gave them; None for the default."""
        if self.scoring is None:
            return None, None
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        table = _safe_indexing(X, np.flatnonzero(weight > 0))
        return self._scorer(model, sample_weight), table

    def _scorer(self, model: Any, sample_weight: Any) -> Scorer:
        if isinstance(self.scoring, list | tuple | set | dict):
            raise ValueError(
                f"scoring must be one scorer, by which alpha is chosen; got {self.scoring!r}."
            )
        scorer = check_scoring(model, self.scoring)
        if sample_weight is not None and inspect.isfunction(scorer):
            takes = inspect.signature(scorer).parameters
            if "sample_weight" not in takes and not any(
                p.kind == p.VAR_KEYWORD for p in takes.values()
            ):
                raise ValueError(
                    "scoring must take sample_weight when rows have weights; this function does "
                    "not. Add sample_weight=None to its parameters."
                )
        return scorer

    def _splits(
        self, X: Any, y: Any, sample_weight: Any, node_ids: Any, groups: Any, rows: Rows
    ) -> list[tuple[fitting.Index, fitting.Index]]:
        """Training and held-out rows of each fold, counted without rows of weight zero."""
        count = len(rows.y)
        if self.cv is None or isinstance(self.cv, int | np.integer):
            if groups is not None:
                raise ValueError(
                    f"groups must come with a splitter that uses them; got cv={self.cv!r}, which "
                    "splits the rows inside each node. Use cv=GroupKFold(), or leave out groups."
                )
            if count < 2:
                raise ValueError(f"Cross-validation needs at least 2 rows; got n_samples={count}.")
            asked = min(5, count) if self.cv is None else check_count(self.cv, "cv", low=2)
            if asked > count:
                raise ValueError(f"cv must be at most the number of rows ({count}); got {asked}.")
            splitter = WithinNodeKFold(
                asked,
                shuffle=self._shuffle,
                random_state=0 if self._shuffle else None,
            )
            return list(splitter.split(rows.X, None, rows.node_ids))
        ids = split_nodes(X, self.node, node_ids)[1] if groups is None else groups
        with warnings.catch_warnings():
            if groups is None:  # the ids are offered, not asked for
                warnings.filterwarnings("ignore", "The groups parameter is ignored", UserWarning)
            found = [
                (np.asarray(train), np.asarray(test))
                for train, test in check_cv(self.cv).split(X, y, ids)
            ]
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        on = weight > 0
        place = np.cumsum(on) - 1
        return [(place[a[on[a]]], place[b[on[b]]]) for a, b in found]

    def _grid(self, design: Design) -> Array:
        """Candidates for alpha, descending."""
        return alpha_grid(design.problem, design.columns, self.alphas, self.n_alphas)

    def _record(self, folds: list[Fold], tried: list[Fold]) -> None:
        left_out = sum(fold.n_left_out for fold in tried)
        if not folds:
            if any(fold.n_judged for fold in tried):
                raise ValueError(
                    f"scoring={self.scoring!r} gave no number in any fold; such as R^2 of one row, "
                    "or an AUC of one class. Use fewer folds, or another score."
                )
            raise ValueError(
                f"No held-out row has a model: the graphs of the folds lack the nodes of all "
                f'{left_out} rows. Give a graph with all nodes, or use unseen="pooled".'
            )
        silent = sum(fold.n_judged > 0 for fold in tried) - len(folds)
        if silent:
            warnings.warn(
                f"{silent} of {len(tried)} folds are left out: their score is not a number, such "
                "as R^2 of one row, or an AUC of one class.",
                DataWarning,
                stacklevel=4,
            )
        scores = np.stack([fold.scores for fold in folds])
        mean = scores.mean(axis=0)
        best, chosen = choose(scores, self.one_se)
        self.best_alpha_, self.alpha_ = float(self.alphas_[best]), float(self.alphas_[chosen])
        self.best_index_, self.best_score_ = chosen, float(mean[chosen])
        self.cv_results_ = {
            "alpha": self.alphas_.copy(),
            **{f"split{k}_test_score": fold.scores for k, fold in enumerate(folds)},
            "mean_test_score": mean,
            "std_test_score": scores.std(axis=0),
            "rank_test_score": (mean[None, :] > mean[:, None]).sum(axis=1) + 1,
        }
        self._compare(folds)
        self.n_left_out_ = left_out
        missed = sum(fold.n_missed for fold in folds)
        if missed:
            warnings.warn(
                f"{missed} of {scores.size} fits of the cross-validation did not reach tol "
                f"{self.tol:.1e}; their scores are those of the points reached. Increase tol or "
                f"max_iter{self._advice}.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _compare(self, folds: list[Fold]) -> None:
        """Both baselines, and the verdict on what the coupling gains over them."""
        own, pooled = (float(np.mean([getattr(f, name) for f in folds])) for name in _BASELINES)
        self._n_judged = sum(fold.n_judged for fold in folds)
        self._n_own = sum(fold.n_own for fold in folds)
        if not self._n_own:  # whole nodes are held out: there are no own rows to learn from
            own = float("nan")
        self.baseline_scores_ = {"own": own, "pooled": pooled}
        self._take_verdict(judged(folds, self.one_se))

    def _mark_clusters(self, model: Any, design: Design, points: list[Result]) -> None:
        """Clusters along the path of all rows, and the alpha where they are clearest."""
        table = fitting.clusters_along(model, design, points)
        self.cv_results_["n_clusters"] = table.max(axis=1) + 1
        labelled = int(design.problem.loss.labelled.sum())
        stretch = clearest_stretch(self.alphas_, table, labelled)
        k = None if stretch is None else sum(stretch) // 2
        self._steady = None if stretch is None else [float(self.alphas_[j]) for j in stretch]
        self.clearest_alpha_ = None if k is None else float(self.alphas_[k])
        self.clearest_clusters_ = None if k is None else table[k]

    def _finish(self, model: Any, rows: Rows, design: Design, points: list[Result]) -> None:
        """The final fit: the path's point at alpha_, examined once more so that it may warn."""
        start = points[self.best_index_]
        model.set_params(alpha=self.alpha_)
        final = design.with_alpha(self.alpha_)
        self.best_estimator_ = fitting.fit_design(model, rows, final, start.w, start.u)
        self._copy(model)
