"""The flavours of federated learning as special cases of GTV minimisation (lecture notes, 8).

Each function sets up one of them: all but `vertical` return a `Problem` for `nefele.solve`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nefele._checks import as_float_array, check_number
from nefele._ids import as_ids
from nefele.data import LocalData
from nefele.graph import Graph
from nefele.paths.critical import lam_max
from nefele.problem import Problem

if TYPE_CHECKING:
    from nefele.agnostic import FedRelaxRegressor

__all__ = ["centralised", "clustered", "decentralised", "horizontal", "personalised", "vertical"]

_ABOVE = 1.01  # lam over the critical one, above which all models are equal


def centralised(data: LocalData, *, loss: Any = "squared", centre: Any = "server") -> Problem:
    """One model for all, kept by a server without data in the middle of a star.

    lam is above the critical one, so that the solution is the pooled fit, exactly.

    Parameters
    ----------
    data : LocalData
    loss : str or Loss
    centre : id
        Name of the server; must not be a node of the data.

    Returns
    -------
    Problem
        Over a star; its solution has the server's model at `centre`.

    Examples
    --------
    >>> from nefele import solve
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])], nodes=["a", "b"])
    >>> solve(centralised(data))["server"].round(3)
    array([2.])
    """
    ids = data.ids.tolist()
    if centre in ids:
        raise ValueError(f"centre must not be a node of the data; got {centre!r}.")
    star = Graph.from_edges([(centre, i) for i in ids], nodes=[centre, *ids])
    return _consensus(star, data, loss)


def decentralised(data: LocalData, graph: Graph, *, loss: Any = "squared") -> Problem:
    """One model for all without a server: any connected graph will do.

    Parameters
    ----------
    data : LocalData
    graph : Graph
        Each component gets one model.
    loss : str or Loss

    Returns
    -------
    Problem

    Examples
    --------
    >>> from nefele import graphs, solve
    >>> data = LocalData.from_list([([[1.0]], [y]) for y in (0.0, 4.0, 5.0)])
    >>> solve(decentralised(data, graphs.chain(3))).w.round(3).ravel().tolist()
    [3.0, 3.0, 3.0]
    """
    return _consensus(graph, data, loss)


def clustered(
    data: LocalData, graph: Graph, lam: float, *, loss: Any = "squared", penalty: Any = "l2"
) -> Problem:
    """One model per group of nodes, the groups found by the fit: `result.clusters()`.

    Parameters
    ----------
    data : LocalData
    graph : Graph
        Dense inside the groups, sparse between them.
    lam : float
        Between that of many groups and that of one; `nefele.path` shows all.
    loss : str or Loss
    penalty : str or Penalty
        A norm: only norms make models equal.

    Returns
    -------
    Problem

    Examples
    --------
    >>> from nefele import graphs, solve
    >>> data = LocalData.from_list([([[1.0]], [y]) for y in (0.0, 0.2, 4.0, 4.2)])
    >>> solve(clustered(data, graphs.chain(4), lam=1.0)).clusters().tolist()
    [0, 0, 1, 1]
    """
    problem = Problem(graph, data, loss=loss, penalty=penalty, lam=lam)
    if not problem.penalty.is_norm:
        raise ValueError(
            f"clustered needs a norm as penalty, which makes models equal; got "
            f'{problem.penalty!r}. Use "l2", or personalised().'
        )
    return problem


def personalised(
    data: LocalData,
    graph: Graph,
    lam: float,
    *,
    loss: Any = "squared",
    penalty: Any = "squared_l2",
) -> Problem:
    """A model of its own for every node, pulled towards those of its neighbours.

    Parameters
    ----------
    data : LocalData
    graph : Graph
    lam : float
        Small: the less, the more personal.
    loss : str or Loss
    penalty : str or Penalty
        The squared norm (MOCHA) never makes models equal.

    Returns
    -------
    Problem

    Examples
    --------
    >>> from nefele import graphs, solve
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> solve(personalised(data, graphs.chain(2), lam=0.1)).w.round(3).ravel().tolist()
    [0.182, 3.818]
    """
    return Problem(graph, data, loss=loss, penalty=penalty, lam=lam)


def horizontal(
    X: Any, y: Any, sites: Any, *, loss: Any = "squared", graph: Graph | None = None
) -> Problem:
    """One table cut by rows: every site holds the same features of its own rows.

    Every row counts once, so that the solution at every site is the fit to the whole table.

    Parameters
    ----------
    X : array of shape (n_rows, d)
    y : array of shape (n_rows,)
    sites : array of shape (n_rows,)
        Site of each row.
    loss : str or Loss
    graph : Graph, optional
        Who talks with whom, connected; default a chain of the sites.

    Returns
    -------
    Problem

    Examples
    --------
    >>> from nefele import solve
    >>> problem = horizontal([[1.0], [1.0], [1.0]], [0.0, 3.0, 6.0], ["a", "a", "b"])
    >>> solve(problem).w.round(3).ravel().tolist()
    [3.0, 3.0]
    """
    data = LocalData.from_long(X, y, sites)
    counts = data.counts
    data = LocalData(
        data.X,
        data.y,
        data.ptr,
        data.ids,
        feature_names=data.feature_names,
        node_weight=counts / counts.mean(),
    )
    if graph is None:
        ids = data.ids.tolist()
        graph = Graph.from_edges(list(zip(ids[:-1], ids[1:], strict=True)), nodes=ids)
    return _consensus(graph, data, loss)


def vertical(
    X: Any,
    y: Any,
    columns: Mapping[Any, Sequence[int]],
    *,
    estimator: Any = None,
    graph: Any = None,
    alpha: float = 1.0,
    labelled: Sequence[Any] | None = None,
    **options: Any,
) -> FedRelaxRegressor:
    """One table cut by columns: every site holds some features of the same rows.

    Each site fits a model of its own columns; neighbours are to predict alike on the common rows,
    and only these predictions are exchanged (FedRelax). Sites without labels learn from the
    predictions of the others.

    Parameters
    ----------
    X : array of shape (n_rows, d)
    y : array of shape (n_rows,)
    columns : mapping of site id to the positions of its columns, or to a mask
    estimator : estimator, optional
        Model of each site; default LinearRegression().
    graph : any graph that `as_graph` takes, optional
        Default: every pair of sites.
    alpha : float
        Strength of the agreement.
    labelled : sequence of site ids, optional
        Sites that know y; default all.
    **options :
        Further parameters of `FedRelaxRegressor`, such as rounds and tol.

    Returns
    -------
    FedRelaxRegressor
        Fitted; `predict(X, node_ids=...)` takes all columns, and each site uses its own.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 2))
    >>> model = vertical(X, X @ [1.0, 2.0], {"bank": [0], "shop": [1]}, alpha=0.5)
    >>> model.predict(X[:1], node_ids=["bank"]).shape, sorted(model.ledger_.by_content)
    ((1,), ['predictions'])
    """
    from sklearn.linear_model import LinearRegression

    from nefele.agnostic import FedRelaxRegressor

    table, target = as_float_array(X, "X", 2), as_float_array(y, "y", 1)
    alpha = check_number(alpha, "alpha", low=0.0)
    sites = list(columns)
    models = {
        site: _on_columns(
            LinearRegression() if estimator is None else estimator,
            site,
            columns[site],
            table.shape[1],
        )
        for site in sites
    }
    known = sites if labelled is None else list(labelled)
    unknown = [site for site in known if site not in columns]
    if unknown or not known:
        raise ValueError(f"labelled must name sites of columns, at least one; got {known!r}.")
    if graph is None:
        pairs = [(a, b) for k, a in enumerate(sites) for b in sites[k + 1 :]]
        graph = Graph.from_edges(pairs, nodes=sites)
    model = FedRelaxRegressor(models, graph=graph, alpha=alpha, X_shared=table, **options)
    ids = np.repeat(as_ids(known), len(target))
    model.fit(np.tile(table, (len(known), 1)), np.tile(target, len(known)), node_ids=ids)
    return model


def _consensus(graph: Graph, data: LocalData, loss: Any) -> Problem:
    problem = Problem(graph, data, loss=loss, penalty="l2", lam=1.0)
    top = lam_max(problem)
    return problem.with_lam(_ABOVE * top if top > 0 else 1.0)


def _on_columns(estimator: Any, site: Any, columns: Any, d: int) -> Any:
    from sklearn.base import clone
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline

    given = np.asarray(columns)
    if given.dtype == bool and given.shape == (d,):
        given = np.flatnonzero(given)
    whole = given.ndim == 1 and given.dtype.kind in "iu"
    places = given.tolist() if whole else []
    if not places or min(places) < 0 or max(places) >= d:
        raise ValueError(f"columns of site {site!r} must be positions 0..{d - 1}; got {columns!r}.")
    only = ColumnTransformer([("own", "passthrough", places)])
    return make_pipeline(only, clone(estimator))
