"""What a search for the coupling shows of itself: its choice, tables, a summary, a file."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from nefele._checks import Array
from nefele._draw.pictures import draw_candidates, draw_scores
from nefele._words import Text
from nefele.encoding.encoder import TableEncoder
from nefele.estimators import fitting
from nefele.estimators._base import GTVBase
from nefele.estimators.reporting import Reported, view_of
from nefele.graph import Graph
from nefele.privacy import Spent
from nefele.report import View
from nefele.result import Record
from nefele.selection.verdict import Verdict

if TYPE_CHECKING:
    import polars as pl

_COPIED = (
    "nodes_",
    "coef_",
    "intercept_",
    "centre_coef_",
    "centre_intercept_",
    "clusters_",
    "graph_",
    "dual_gap_",
    "status_",
    "n_iter_",
    "history_",
    "n_features_in_",
    "feature_names_in_",
    "group_level_",
    "encoder_",
    "classes_",
    "coupling_",
    "candidates_",
    "privacy_",
)


class FittedSearch(Reported):
    """The part of `GTVRegressorCV` and `GTVClassifierCV` that is asked after the fit."""

    one_se: bool
    _steady: list[float] | None

    alphas_: Array
    alpha_: float
    baseline_scores_: dict[str, float]
    best_alpha_: float
    best_estimator_: GTVBase
    best_index_: int
    best_score_: float
    candidates_: list[dict[str, Any]]
    centre_coef_: Array
    centre_intercept_: Any
    clearest_alpha_: float | None
    clearest_clusters_: NDArray[np.int64] | None
    clusters_: NDArray[np.int64]
    coef_: Array
    coupling_: str
    coupling_helps_: bool
    cv_results_: dict[str, Array]
    dual_gap_: float
    encoder_: TableEncoder
    feature_names_in_: NDArray[Any]
    gain_: float
    gain_se_: float
    graph_: Graph
    group_level_: list[Any]
    history_: list[Record]
    hub_: float
    intercept_: Array
    n_features_in_: int
    n_iter_: int
    n_left_out_: int
    nodes_: NDArray[Any]
    privacy_: Spent
    scale_: Array
    status_: str
    verdict_: Verdict

    _n_judged: int
    _n_own: int

    def _copy(self, model: Any) -> None:
        for name in _COPIED:
            if hasattr(model, name):
                setattr(self, name, copy.copy(getattr(model, name)))
            elif hasattr(self, name):
                delattr(self, name)

    def coef_frame(self, level: float | None = None) -> pl.DataFrame:
        """The models of all nodes as a table, see the same of the estimator with a fixed alpha.

        Parameters
        ----------
        level : float, optional
            Adds standard errors and intervals that cover with this probability, such as 0.9.
        """
        check_is_fitted(self)
        return self.best_estimator_.coef_frame(level)

    def common_frame(self, level: float = 0.9) -> pl.DataFrame:
        """The common coefficients and their tests, see the estimator with a fixed alpha.

        Parameters
        ----------
        level : float
            Probability with which an interval covers the true coefficient.
        """
        check_is_fitted(self)
        return self.best_estimator_.common_frame(level)

    def plot(self, ax: Any = None) -> Any:
        """Scores along alpha beside own data and one model, or the couplings compared.

        Needs matplotlib. With `penalty="auto"` the errors of all couplings that were compared.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes

        Examples
        --------
        >>> import matplotlib; matplotlib.use("agg")
        >>> import nefele
        >>> states = nefele.datasets.load_states()
        >>> model = nefele.GTVRegressorCV(states.graph)
        >>> model.fit(states.X[:, :1], states.y, node_ids=states.node_ids).plot().get_xlabel()[:25]
        'error at left-out rows; t'
        """
        check_is_fitted(self)
        if hasattr(self, "candidates_"):
            names = [str(one["coupling"]) for one in self.candidates_]
            errors = np.array([one["error"] for one in self.candidates_])
            return draw_candidates(names, errors, self.coupling_, ax)
        rivals = {
            "own data only": self.baseline_scores_["own"],
            "one model": self.baseline_scores_["pooled"],
        }
        found = self.cv_results_
        mean, spread = found["mean_test_score"], found["std_test_score"]
        return draw_scores(found["alpha"], mean, spread, self.alpha_, rivals, ax)

    def _view(self, **how: Any) -> View:
        check_is_fitted(self)
        model, track = self.best_estimator_, None
        if len(self.alphas_) > 1 and hasattr(model, "_rows") and not hasattr(self, "privacy_"):
            track = fitting.track_along(model, self.alphas_, self.best_index_)
        return view_of(model, self, track, **how)

    def save(self, path: Any, *, rows: bool = False) -> None:
        """Write `best_estimator_` to a file, see the `save` of the estimator with a fixed alpha.

        Parameters
        ----------
        path : str or Path
            The file is replaced as a whole, or left as it was.
        rows : bool
            Whether to store the training rows as well: `partial_fit` needs them.
        """
        check_is_fitted(self)
        self.best_estimator_.save(path, rows=rows)

    def summary(self) -> Text:
        """The choice in words: scores, baselines, whether coupling helps, the clearest clusters.

        Returns
        -------
        str
        """
        check_is_fitted(self)
        results, k = self.cv_results_, self.best_index_
        count = results["n_clusters"][k]
        rule = " (one standard error from the best)" if self.one_se else ""
        if hasattr(self, "coupling_"):
            return Text(
                "\n".join(
                    [
                        f"coupling: {self.coupling_}",
                        f"score {self.best_score_:.3g} at left-out rows; own data only: "
                        f"{self._own_words(3)}; one model: {self.baseline_scores_['pooled']:.3g}",
                        self.verdict_.text(),
                    ]
                )
            )
        lines = [
            f"alpha {self.alpha_:.4g}{rule}: score {results['mean_test_score'][k]:.4g} at "
            f"held-out rows, {count} cluster{'s' if count != 1 else ''}",
            f"own data only: {self._own_words()}; one model: {self.baseline_scores_['pooled']:.4g}",
            self.verdict_.text(),
        ]
        if self.clearest_clusters_ is None:
            lines.append("No clear clusters: no partition lasts along the path.")
        else:
            count = int(self.clearest_clusters_.max()) + 1
            high, low = self._steady or (self.clearest_alpha_, self.clearest_alpha_)
            lines.append(
                f"clearest clusters: {count}, at alpha {self.clearest_alpha_:.4g}; nearly the same "
                f"from {high:.3g} down to {low:.3g}"
            )
        if self.n_left_out_:
            lines.append(
                f"{self.n_left_out_} held-out rows were not judged: the graph of their fold does "
                "not know their node."
            )
        if hasattr(self, "privacy_"):
            lines.append(self.privacy_.text())
        return Text("\n".join(lines))

    def _own_words(self, digits: int = 4) -> str:
        if not self._n_own:
            return "not possible, the nodes of held-out rows have no training rows"
        bare = self._n_judged - self._n_own
        rest = f" ({bare} of {self._n_judged} held-out rows, of nodes without training rows, by "
        words = f"{self.baseline_scores_['own']:.{digits}g}"
        return f"{words}{rest}the pooled model)" if bare else words
