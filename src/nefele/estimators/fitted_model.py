"""What a fitted model shows of itself: tables, a summary, a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from nefele._checks import Array
from nefele._words import Text
from nefele.encoding.encoder import TableEncoder
from nefele.estimators import saving
from nefele.estimators.coefficients import table_of_common, table_of_models
from nefele.estimators.reporting import Reported, view_of
from nefele.graph import Graph
from nefele.privacy import Spent
from nefele.report import View
from nefele.result import Record

if TYPE_CHECKING:
    import polars as pl


class FittedModel(Reported):
    """The part of `GTVRegressor` and `GTVClassifier` that is asked after the fit."""

    alpha: float

    candidates_: list[dict[str, Any]]
    centre_coef_: Array
    centre_intercept_: Any
    clusters_: NDArray[np.int64]
    coef_: Array
    coupling_: str
    dual_gap_: float
    encoder_: TableEncoder
    feature_names_in_: NDArray[Any]
    graph_: Graph
    group_level_: list[Any]
    history_: list[Record]
    intercept_: Array
    n_features_in_: int
    n_iter_: int
    nodes_: NDArray[Any]
    pooled_coef_: Array
    pooled_intercept_: Any
    privacy_: Spent
    status_: str

    def save(self, path: Any, *, rows: bool = False) -> None:
        """Write the fitted model to one file of plain arrays and JSON; read it by `nefele.load`.

        Parameters
        ----------
        path : str or Path
            The file is replaced as a whole, or left as it was.
        rows : bool
            Whether to store the training rows as well: `partial_fit` needs them. Without them
            the file holds parameters only.
        """
        check_is_fitted(self, "coef_")
        saving.save(self, path, rows=rows)

    def coef_frame(self, level: float | None = None) -> pl.DataFrame:
        """The models of all nodes as a table, to read, sort, join and write to a file.

        Parameters
        ----------
        level : float, optional
            Adds the standard error of every coefficient and the ends of the interval that covers
            the true one with this probability, such as 0.9: columns `x_se`, `x_low`, `x_high` of
            a feature x. Needs a squared penalty (`"squared_l2"`, `"auto"`), the squared, logistic
            or Poisson loss with at most two classes, and the training rows; for all else there is
            `nefele.bootstrap_intervals`.

        Returns
        -------
        polars.DataFrame
            One row per node, with more than two classes one per node and class: `node`, its id as
            text, `class` in the second case, the coefficient of each feature, `intercept`, and
            `rows`, how many the node was fitted to, or the sum of their weights; missing for a
            model that was saved without rows. With `hub` > 0 the last row is the centre's,
            "(centre)". A feature whose name is taken by another column gets an underscore. Common
            curves (`features="spline"`) come on top of these models.

        Notes
        -----
        Standard errors are those of the posterior: of a node's coefficients the conditional
        variance of the best linear prediction with that of the common part, of the centre's those
        of the fixed effects. The variances over the nodes count as known, up to the noise, which
        is estimated at their ratio to it by restricted likelihood; so intervals are a little
        short where there are few nodes. For classes and counts the curvature of the likelihood
        at the fit takes the place of its exact form (Laplace), and counts may vary more than
        Poisson's. With `weighting="nodes"` the noise of a row is taken to grow with the rows of its
        node. Not a number: what the data do not determine, and coefficients that are left out.
        With edges between nodes at most 6,000 unknowns (nodes times personal coefficients).

        Examples
        --------
        >>> import nefele
        >>> X, y = [[0.0], [1.0], [0.0], [1.0]], [1.0, 3.0, 2.0, 4.0]
        >>> model = nefele.GTVRegressor(penalty="squared_l2", hub=1.0, alpha=0.01)
        >>> table = model.fit(X, y, node_ids=list("aabb")).coef_frame()
        >>> table.columns, table["node"].to_list(), table["rows"].to_list()
        (['node', 'x0', 'intercept', 'rows'], ['a', 'b', '(centre)'], [2, 2, 0])
        >>> table["intercept"].round(2).to_list()
        [1.0, 2.0, 1.5]
        """
        check_is_fitted(self, "coef_")
        return table_of_models(self, level)

    def common_frame(self, level: float = 0.9) -> pl.DataFrame:
        """The common coefficients with standard errors and tests, as a mixed model has them.

        Parameters
        ----------
        level : float
            Probability with which an interval covers the true coefficient.

        Returns
        -------
        polars.DataFrame
            One row per coefficient of the centre (the fixed effects), or without a centre of those
            that are common to all nodes: `coefficient`, `estimate`, `se`, `z` = estimate / se, `p`
            of the two-sided normal test that it is zero, `low` and `high`. See `coef_frame` for
            what they need and mean.

        Examples
        --------
        >>> import nefele
        >>> rng = np.random.default_rng(0)
        >>> ids, X = np.repeat(np.arange(30), 10), rng.normal(size=(300, 1))
        >>> y = 2.0 * X[:, 0] + rng.normal(size=30)[ids] + rng.normal(size=300)
        >>> table = nefele.GTVRegressorCV().fit(X, y, node_ids=ids).common_frame()
        >>> table["coefficient"].to_list(), table["estimate"].round(1).to_list()
        (['x0', 'intercept'], [2.0, -0.1])
        >>> (table["p"] < 0.05).to_list()
        [True, False]
        """
        check_is_fitted(self, "coef_")
        return table_of_common(self, level)

    def summary(self) -> Text:
        """The fit in words: its nodes, whether it is certified, and what it cost in privacy.

        Returns
        -------
        str
        """
        check_is_fitted(self, "coef_")
        lines = [f"{len(self.nodes_)} nodes, {self.graph_.n_edges} edges, alpha {self.alpha:.4g}"]
        if hasattr(self, "coupling_"):
            tried = len(self.candidates_)
            lines.append(f"coupling: {self.coupling_}, chosen among {tried} (candidates_)")
        known = np.isfinite(self.dual_gap_)
        lines.append(f"{self.status_}, gap {self.dual_gap_:.1e}" if known else self.status_)
        if hasattr(self, "privacy_"):
            lines.append(self.privacy_.text())
        return Text("\n".join(lines))

    def _view(self, **how: Any) -> View:
        return view_of(self, **how)

    @property
    def clipped_share_(self) -> dict[Any, float]:
        """Share of rows outside the declared bounds, by node id.

        It is computed from raw rows, stays at the node, and is not saved or pickled with the model.
        """
        if not hasattr(self, "_clipped"):
            raise AttributeError("Only a model fitted with privacy, in this process, has it.")
        return dict(self._clipped)

    def __getstate__(self) -> dict[str, Any]:
        """All but what stays at the node, for pickle and joblib."""
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_clipped"}
