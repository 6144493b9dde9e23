"""One linear regression model per node, coupled over a graph (NFL, Eq. (16))."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from nefele._checks import Array
from nefele.estimators._base import GTVBase, as_loss
from nefele.estimators.rows_base import RowsRegressor
from nefele.losses import (
    Absolute,
    Constrained,
    GraphicalLasso,
    Hinge,
    HuberLoss,
    Logistic,
    Loss,
    Multinomial,
    Poisson,
    Quantile,
    Squared,
    SquaredHinge,
)

_LOSSES: dict[str, type[Loss]] = {
    "absolute": Absolute,
    "huber": HuberLoss,
    "poisson": Poisson,
    "quantile": Quantile,
    "squared": Squared,
}


class GTVRegressor(RowsRegressor, GTVBase):
    """One regression model per node, the models of neighbours coupled over a graph.

    Minimises sum_i L_i(w_i) + alpha * sum_e A_e phi(w_head(e) - w_tail(e)) (NFL, Eq. (16)), where
    w_i holds the coefficients and the intercept of node i.

    Parameters
    ----------
    graph : Graph, object that `as_graph` takes, graph builder or None
        Which nodes are neighbours, by node id. A builder (`SpatialKNN`, `MomentsKNN`, or an
        estimator with `fit_graph`) learns the graph inside `fit`. None: `MomentsKNN()`, or a
        single node when there are no node ids.
    node : str, int or None
        Column of X with the node ids, by name or position; it is no feature. None: the ids come
        by `node_ids=`, or all rows belong to one pooled node.
    alpha : float
        Strength of the coupling, the core's lam: 0 fits each node by itself, a large value fits
        one model per connected component.
    penalty : str or Penalty
        phi: "l2", "l1", "linf", "squared_l2", "huber" or an object of `nefele.penalties`.
    loss : str or Loss
        "squared", "huber", "absolute", "poisson" (which predicts exp(x^T w + b)) or an object of
        `nefele.losses`, such as `Squared(l2=0.1)`.
    fit_intercept : bool
        Whether each model has an intercept.
    couple : list of str or int, optional
        Features whose coefficients the graph couples; default all. The others stay personal: a
        node without rows gets their mean over the nodes with rows of its component (of the graph,
        if the component has no rows), in the units of X.
    couple_intercept : bool
        Whether the graph couples the intercepts; otherwise they are personal in the same way.
    weighting : {"rows", "nodes"}
        "rows", the default: each row counts once, L_i is multiplied by m_i / mean(m), m_i being
        the node's number (or total weight) of rows. Rows are what is predicted, and mixed models
        count them too. "nodes": the mean loss of each node counts once, as in the papers. Both
        agree when all nodes have equally many rows.
    standardize : bool
        Whether to solve with features of mean 0 and standard deviation 1 over all training rows.
        Default True: one alpha should treat features alike, whatever their units. Coefficients
        are reported for X as given. False couples coefficients as they are, as in the papers.
    scale : None, "auto", array of shape (d + 1,) or matrix of shape (d + 1, d + 1)
        How far the coefficients of nodes may be from each other, the last entry for the intercept,
        measured at the mean of X; without an intercept d entries. An array has standard
        deviations, in the units of the coefficients, and 0 makes a coefficient common to all
        nodes. A matrix is a covariance. Neighbours are coupled by phi(F^-1 (w_i - w_j)), with
        F F^T the covariance. "auto" estimates a deviation for each by the likelihood of a mixed
        model. None: alike, see `standardize`.
    hub : float
        Share of a centre in the coupling, a node without rows that is joined to all others: 0 is
        the graph only, 1 the centre only. The centre's edges have the weight of `hub` times the
        mean degree of the graph.
    features : {"linear", "spline"}
        "spline" adds smooth curves of the features, common to all nodes, to the personal linear
        models. Beyond the outermost training values features count as these.
    coords : dict or table, optional
        Coordinates by node id, for `unseen="nearest"` and `SpatialKNN`.
    unseen : {"raise", "pooled", "nearest", "centre"}
        What to predict for ids that the graph does not know: an error, the model fitted to all
        rows with the same weighting, the model of the nearest node, or that of the centre, which
        needs `hub` > 0.
    explainable : float
        How much a signal counts against a label where `fit` is given signals, what a user would
        expect of some rows: explainable empirical risk minimisation. 0 leaves them out.
    solver, tol, max_iter
        See `nefele.solve`; tol is the certified relative gap.
    verbose : bool or int
        Whether to show progress in one line, as `nefele.solve` does.
    engine : None, str or dict
        Who solves: None, this process; a name of `nefele.solve`, such as "ray"; or a dict of its
        options, such as {"engine": "ray", "parts": 8, "address": "auto"}.
    privacy : nefele.privacy.Privacy, optional
        A guarantee of differential privacy for all that leaves the nodes, and for the models:
        with the squared loss these are fitted to noisy moments, otherwise by noisy updates.

    Attributes
    ----------
    nodes_ : array of shape (n_nodes,)
        Node ids, those of the graph without training rows included.
    coef_ : array of shape (n_nodes, d)
    intercept_ : array of shape (n_nodes,)
    clusters_ : int array of shape (n_nodes,)
        Groups of connected nodes whose coupled parameters are equal.
    graph_ : Graph
    dual_gap_ : float
        Certified relative gap.
    status_ : str
    n_iter_ : int
    history_ : list of Record
    pooled_coef_, pooled_intercept_ : array of shape (d,), float
        Only with `unseen="pooled"`.
    centre_coef_, centre_intercept_ : array of shape (d,), float
        The model of the centre; only with `hub` > 0.
    n_features_in_, feature_names_in_
        Without the node column: they go with the columns of `coef_`.
    group_level_ : list of str or int
        Features that never change inside a node, by name or position.
    encoder_ : TableEncoder
        Only for tables with text, dates or missing values, which it turns into numbers.
    coupling_, candidates_ : str, list of dict
        The coupling that was chosen for this model and those it was compared with, see
        `GTVRegressorCV`; only for one that a search with `penalty="auto"` or a run has fitted.
        They are saved with it.
    privacy_ : nefele.privacy.Spent
        What the fit cost; only with `privacy`.
    clipped_share_ : dict
        Share of rows outside the declared bounds, by node id; only with `privacy`. Computed from
        raw rows: it stays here.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"town": list("aabbcc"), "t": [0.0, 1.0, 0.0, 1.0, 0.0, 1.0]})
    >>> y = [1.0, 3.0, 1.1, 3.1, 8.0, 4.0]
    >>> roads = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"]})
    >>> model = GTVRegressor(roads, node="town", alpha=0.3).fit(X, y)
    >>> model.coef_.ravel().round(2).tolist(), model.clusters_.tolist()
    ([1.91, 1.91, -3.82], [0, 0, 1])
    >>> model.predict(pd.DataFrame({"town": ["c", "a"], "t": [0.5, 0.5]})).round(1).tolist()
    [5.9, 2.1]
    """

    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        node_ids: Any = None,
        forget: float = 1.0,
    ) -> Self:
        """Fit again with new rows added, starting from the model so far.

        The result is that of `fit` on all rows up to the tolerance; the estimator keeps the rows
        it has seen. The graph stays that of the first call. `nefele.Stream` keeps no rows.

        Parameters
        ----------
        X, y, sample_weight, node_ids
            See `fit`.
        forget : float in (0, 1]
            What is left of the weight of all earlier rows; those below 1e-6 are dropped.
        """
        self._partial_fit(X, y, sample_weight, node_ids, forget)
        return self

    def predict(self, X: Any, *, node_ids: Any = None) -> Array:
        """Predictions of each row's own model, shape (n_rows,).

        Parameters
        ----------
        X : table or array of shape (n_rows, d), or with the node column (n_rows, d + 1)
        node_ids : array of shape (n_rows,), optional
        """
        z = self._raw(X, node_ids)
        return np.exp(z) if isinstance(self._core_loss(), Poisson) else z

    def _core_loss(self) -> Loss:
        loss = as_loss(self.loss, _LOSSES)
        if isinstance(loss, Logistic | Hinge | SquaredHinge | Multinomial):
            raise ValueError(f"{type(loss).__name__} is for classes. Use GTVClassifier.")
        if isinstance(loss, GraphicalLasso):
            raise ValueError(
                "GraphicalLasso predicts nothing: use nefele.Problem and nefele.solve."
            )
        linear = self.features == "linear" and self.scale is None
        if isinstance(loss, Constrained) and (self.fit_intercept or self.standardize or not linear):
            raise ValueError(
                "Constrained bounds all parameters as they are: use fit_intercept=False and "
                "standardize=False, without scale or splines, or nefele.Problem."
            )
        return loss
