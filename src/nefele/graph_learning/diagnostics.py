"""What a graph looks like, and whether a fit agrees with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import eigsh

from nefele._checks import Array, type_name
from nefele._ids import describe
from nefele.graph import Graph, Index
from nefele.graph_learning.structure import communities, modularity
from nefele.result import Result

_DENSE = 600
_EQUAL = 1e-6  # difference of parameters, relative to the largest, that is none
_FULL = 1 - 1e-3  # share of its bound from which a dual counts as saturated


@dataclass(frozen=True, eq=False)
class GraphDiagnostics:
    """Structure of a graph and, with a fit, how well the two agree.

    Attributes
    ----------
    graph : Graph
    n_components : int
    largest : int
        Nodes of the largest component.
    isolated : array of ids
        Nodes without edges.
    spectral_gap : float
        Second eigenvalue of the normalised Laplacian of the largest component, in [0, 2]: near 0
        it nearly falls apart. NaN when it is a single node.
    communities : int array of shape (n_nodes,)
        Groups of the largest modularity found.
    modularity : float
    homophily : float or None
        1 - (weighted mean of |w_i - w_j|^2 over edges) / (mean over all pairs): 1 when neighbours
        are equal, 0 when edges say nothing, negative when they join unlike nodes. NaN when all
        models are equal.
    saturated : float or None
        Share of edges whose dual is at its bound, that is, which the fit cuts. None without a fit
        or for penalties whose duals have no bound.
    apart : array of ids
        Nodes with two edges or more, all of which are cut: odd ones, or with a model of their own.
    suspicious : int array of shape (k,)
        Edges that are cut although at one of their ends all others hold, of which there is one at
        least, and whose other end is not `apart`: links that perhaps should not be there.

    Examples
    --------
    >>> found = graph_diagnostics(Graph(["a", "b", "c"], [0], [1]))
    >>> found.n_components, found.isolated.tolist()
    (2, ['c'])
    """

    graph: Graph = field(repr=False)
    n_components: int
    largest: int
    isolated: NDArray[Any] = field(repr=False)
    spectral_gap: float
    communities: Index = field(repr=False)
    modularity: float
    homophily: float | None = None
    saturated: float | None = None
    apart: NDArray[Any] = field(repr=False, default_factory=lambda: np.zeros(0, dtype=np.int64))
    suspicious: Index = field(repr=False, default_factory=lambda: np.zeros(0, dtype=np.int64))

    def rows(self) -> list[tuple[str, str]]:
        """The table as pairs of label and value.

        Examples
        --------
        >>> graph_diagnostics(Graph(["a", "b", "c"], [0], [1])).rows()[2]
        ('components', '2, the largest of 2')
        """
        graph = self.graph
        size = np.bincount(self.communities)
        lines = [
            ("nodes, edges", f"{graph.n_nodes}, {graph.n_edges}"),
            ("mean, least, largest degree", _three(graph.degree)),
            ("components", f"{self.n_components}, the largest of {self.largest}"),
            ("isolated", f"{len(self.isolated)}{_some(self.isolated)}"),
            ("spectral gap", f"{self.spectral_gap:.3g}"),
            ("communities", f"{len(size)}, modularity {self.modularity:.2f}"),
        ]
        if self.homophily is not None:
            equal = np.isnan(self.homophily)
            words = "all models are equal" if equal else f"{self.homophily:.2f}"
            lines.append(("homophily of the parameters", words))
        if self.saturated is not None:
            pairs = [graph.ids[[graph.head[e], graph.tail[e]]].tolist() for e in self.suspicious]
            named = ", ".join(f"{a!r} - {b!r}" for a, b in pairs[:5])
            more = f", ... ({len(pairs)} in all)" if len(pairs) > 5 else ""
            lines.append(("edges the fit cuts", f"{self.saturated:.0%}"))
            lines.append(("cut from all neighbours", f"{len(self.apart)}{_some(self.apart)}"))
            lines.append(("suspicious edges", f"{named}{more}" or "none"))
        return lines

    def __str__(self) -> str:
        return "\n".join(f"{name:28} {value}" for name, value in self.rows())

    def plot(self, positions: Any = None, ax: Any = None) -> Any:
        """The graph with its communities in colours and suspicious edges in orange dashes.

        Parameters
        ----------
        positions : array of shape (n_nodes, 2) or mapping of node id to (x, y), optional
            Where to draw the nodes; default: by forces along the edges.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        from nefele.graph_learning.drawing import draw_graph

        return draw_graph(self, positions, ax)


def graph_diagnostics(graph: Any, result_or_model: Any = None) -> GraphDiagnostics:
    """Components, communities and, with a fit, edges that the fit contradicts.

    Parameters
    ----------
    graph : Graph
    result_or_model : Result or fitted GTV estimator, optional
        A fit over this graph.

    Returns
    -------
    GraphDiagnostics

    Examples
    --------
    >>> from nefele import GTVRegressor
    >>> links = Graph(["a", "b", "c", "d"], [0, 0, 1, 2], [1, 2, 2, 3])
    >>> X, ids = np.tile([[0.0], [1.0], [2.0]], (4, 1)), np.repeat(["a", "b", "c", "d"], 3)
    >>> y = X[:, 0] * np.repeat([1.0, 1.1, 1.2, -5.0], 3)
    >>> model = GTVRegressor(links, alpha=1.0, fit_intercept=False).fit(X, y, node_ids=ids)
    >>> print(graph_diagnostics(links, model))  # doctest: +ELLIPSIS
    nodes, edges                 4, 4
    mean, least, largest degree  2, 1, 3
    components                   1, the largest of 4
    isolated                     0
    spectral gap                 ...
    communities                  ...
    homophily of the parameters  ...
    edges the fit cuts           25%
    cut from all neighbours      0
    suspicious edges             'c' - 'd'
    """
    if not isinstance(graph, Graph):
        raise ValueError(f"graph must be a Graph; got {type_name(graph)}. Use nefele.as_graph.")
    size = np.bincount(graph.components)
    label = communities(graph)
    extra: dict[str, Any] = {}
    if result_or_model is not None:
        problem, w, u, over = _fit_of(result_or_model)
        if over != graph:
            raise ValueError(
                f"The fit must be over this graph ({graph!r}); it is over {over!r}. "
                "Use model.graph_."
            )
        n = graph.n_nodes
        w = w[:n]  # a centre, the last, is no node of the graph
        own = np.maximum(problem.graph.head, problem.graph.tail) < n
        extra["homophily"] = _homophily(graph, w)
        if problem.penalty.is_norm and problem.coupled and own.any():
            apart = np.abs(graph.diff(w)).max(axis=1) > _EQUAL * np.abs(w).max(initial=0.0)
            cut = apart & (problem.penalty.domain_ratio(u, problem.scale) >= _FULL)[own]
            extra["saturated"] = float(cut.mean())
            alone, extra["suspicious"] = _cut_edges(graph, cut)
            extra["apart"] = graph.ids[alone]
    return GraphDiagnostics(
        graph,
        len(size),
        int(size.max()),
        graph.ids[graph.degree == 0],
        _spectral_gap(graph, graph.components == int(size.argmax())),
        label,
        modularity(graph, label),
        **extra,
    )


def _fit_of(fit: Any) -> Any:
    """Problem, parameters, duals and graph of a result, an estimator or its form with a choice."""
    if isinstance(fit, Result):
        return fit.problem, fit.w, fit.u, fit.problem.graph
    fit = getattr(fit, "best_estimator_", fit)
    found = fit.solution() if hasattr(fit, "solution") else None
    if found is None:
        raise ValueError(
            "result_or_model must be a Result or a fitted GTV estimator with its rows; got "
            f"{type_name(fit)}."
        )
    return *found, fit.graph_


def _homophily(graph: Graph, w: Array) -> float:
    n = graph.n_nodes
    spread = 2 * n / max(n - 1, 1) * float(w.var(axis=0).sum())  # mean |w_i - w_j|^2 over pairs
    if not graph.n_edges or np.sqrt(spread) <= _EQUAL * np.abs(w).max(initial=0.0):
        return float("nan")
    apart = (graph.diff(w) ** 2).sum(axis=1)
    return 1.0 - float(np.average(apart, weights=graph.weight)) / spread


def _cut_edges(graph: Graph, cut: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], Index]:
    """Nodes with two edges or more that are all cut, and the suspicious edges."""
    count = np.bincount(graph.head[cut], minlength=graph.n_nodes)
    count = count + np.bincount(graph.tail[cut], minlength=graph.n_nodes)
    apart = (count == graph.degree) & (graph.degree >= 2)
    held = (count == 1) & (graph.degree >= 2)  # all others of the node hold
    odd = (held[graph.head] & ~apart[graph.tail]) | (held[graph.tail] & ~apart[graph.head])
    return apart, np.flatnonzero(cut & odd)


def _spectral_gap(graph: Graph, inside: NDArray[np.bool_]) -> float:
    place = np.flatnonzero(inside)
    n = len(place)
    if n < 2:
        return float("nan")
    A = graph.adjacency[place][:, place]
    root = sparse.diags_array(1.0 / np.sqrt(graph.weighted_degree[place]))
    scaled = root @ A @ root
    if n <= _DENSE:
        return float(1.0 - np.linalg.eigvalsh(scaled.toarray())[-2])
    start = np.random.default_rng(0).random(n)  # a start as symmetric as the graph misses some
    top = eigsh(scaled.tocsc(), k=2, which="LA", v0=start, return_eigenvectors=False)
    return float(1.0 - top.min())


def _three(degree: Index) -> str:
    return f"{degree.mean():.3g}, {degree.min()}, {degree.max()}"


def _some(ids: NDArray[Any]) -> str:
    return f": {describe(ids)}" if len(ids) else ""
