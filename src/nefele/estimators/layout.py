"""How columns enter a problem: in which metric, what is common to all nodes, and a centre."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.graph import Graph
from nefele.mixed.coupling import Index, mean_degree
from nefele.mixed.smooth import Smooth

# Deviation over the nodes of the weight of the common part, where no target can be shifted by it.
CARRIED = 0.01


@dataclass(frozen=True, eq=False)
class Layout:
    """The columns of a problem in terms of the standardised columns of X and the constant.

    The model of node i is x^T (shared + F v_i) + s(x), where F acts on the personal columns and
    v_i are the parameters of the problem: neighbours are coupled by phi(v_i - v_j), which is
    phi(F^-1 (w_i - w_j)), a metric that is the same for all edges. A change of coordinates does
    it: solvers, certificate and kernels see a problem as any other.

    Attributes
    ----------
    shift, scale : arrays of shape (d,)
        Columns are (X - shift) / scale.
    fit_intercept : bool
    personal : int array of shape (p,)
        Columns with a personal part, the constant being column d.
    F : array of shape (p, p)
    shared : array of shape (d,) or, with an intercept, (d + 1,)
        Coefficients that are common to all nodes, zero for personal columns.
    hub : float
        Share of the centre in the coupling, see `with_centre`.
    smooth : Smooth or None
        Common curves.
    ridge : array or None
        By how much common coefficients are shrunk, in units of the noise: those of `shared`, then
        the functions of the curves. None: not at all.
    """

    shift: Array
    scale: Array
    fit_intercept: bool
    personal: Index
    F: Array
    shared: Array
    hub: float
    smooth: Smooth | None = None
    ridge: Array | None = None

    @property
    def has_common(self) -> bool:
        """Whether anything is common to all nodes."""
        return self.smooth is not None or bool(self.shared.any())

    def clip(self, X: Array) -> Array:
        """Features within the outermost values that curves know."""
        return X if self.smooth is None else self.smooth.clip(X)

    def standard(self, X: Array) -> Array:
        """Standardised columns and the constant, shape (n_rows, d) or (n_rows, d + 1)."""
        columns = (self.clip(X) - self.shift) / self.scale
        return np.hstack([columns, np.ones((len(X), 1))]) if self.fit_intercept else columns

    def common(self, X: Array) -> Array:
        """The common part of the prediction of each row, shape (n_rows,)."""
        found = self.standard(X) @ self.shared
        return np.asarray(found if self.smooth is None else found + self.smooth(X))

    def columns(self, X: Array, carried: bool) -> Array:
        """The problem's X; its last column is the common part where this is `carried`."""
        own = self.standard(X)[:, self.personal] @ self.F
        return np.column_stack([own, CARRIED * self.common(X)]) if carried else own

    def to_units(self, blocks: Array, carried: bool) -> tuple[Array, Array, Array]:
        """Coefficients, intercepts and weights of the common part, for parameters (n, k, columns).

        Shapes (n, k, d), (n, k) and (n, k); the intercept is for X as given.
        """
        n, k, _ = blocks.shape
        p, d = len(self.personal), len(self.shift)
        weight = CARRIED * blocks[:, :, p] if carried else np.ones((n, k))
        whole = weight[:, :, None] * self.shared
        whole[:, :, self.personal] += blocks[:, :, :p] @ self.F.T
        coef = whole[:, :, :d] / self.scale
        constant = whole[:, :, d] if self.fit_intercept else np.zeros((n, k))
        return coef, constant - coef @ self.shift, weight

    def to_parts(self) -> dict[str, Any]:
        """Plain arrays and numbers, for a file."""
        parts = {name: value for name, value in vars(self).items() if name != "smooth"}
        smooth = self.smooth
        if smooth is not None:
            curves = [dict(vars(curve)) for curve in smooth.curves]
            parts["smooth"] = {
                "low": smooth.low,
                "high": smooth.high,
                "weights": smooth.weights,
                "curves": curves,
            }
        return parts


def centre_id(ids: NDArray[Any]) -> Any:
    """An id for the centre, like the others and none of them."""
    if ids.dtype.kind in "iu":
        return int(ids.max(initial=0)) + 1
    taken, name = set(ids.tolist()), "(centre)"
    while name in taken:
        name = f"({name})"
    return name


def with_centre(graph: Graph, hub: float) -> Graph:
    """The graph with one more node, the last, that is joined to all others.

    Edges keep the share 1 - hub of their weight, and the edges of the centre have the weight hub
    times the mean degree of the graph (1 for a graph without edges): 0 is the graph alone, 1 the
    centre alone.

    Examples
    --------
    >>> found = with_centre(Graph.from_edges([("a", "b")], weight=[2.0]), 0.25)
    >>> found.ids.tolist(), found.weight.tolist()
    (['a', 'b', '(centre)'], [1.5, 0.5, 0.5])
    """
    if not hub:
        return graph
    n = graph.n_nodes
    name = centre_id(graph.ids)
    if graph.ids.dtype.kind in "iuU":
        ids = np.concatenate([graph.ids, np.array([name])])
    else:
        ids = np.empty(n + 1, dtype=object)
        ids[:n], ids[n] = graph.ids, name
    own = (1 - hub) * graph.weight
    on = own > 0
    spokes = np.full(n, hub * (mean_degree(graph) or 1.0))
    return Graph(
        ids,
        np.concatenate([graph.head[on], np.arange(n)]),
        np.concatenate([graph.tail[on], np.full(n, n)]),
        np.concatenate([own[on], spokes]),
    )
