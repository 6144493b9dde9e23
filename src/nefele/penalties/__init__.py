"""Edge penalties. Add one: its file, one line here, one in the contract tests' cases."""

from typing import Any

from nefele._checks import check_name, is_frame, type_name
from nefele.graph import Graph
from nefele.penalties.base import Penalty
from nefele.penalties.by_edge import ByEdge
from nefele.penalties.huber import HuberPenalty
from nefele.penalties.l1 import L1Norm
from nefele.penalties.l2 import L2Norm
from nefele.penalties.linf import LinfNorm
from nefele.penalties.lp import Lp
from nefele.penalties.partial import Partial
from nefele.penalties.quadratic import Quadratic
from nefele.penalties.squared_l2 import SquaredL2

__all__ = [
    "ByEdge",
    "HuberPenalty",
    "L1Norm",
    "L2Norm",
    "LinfNorm",
    "Lp",
    "Partial",
    "Penalty",
    "Quadratic",
    "SquaredL2",
    "as_penalty",
    "edge_penalties",
    "penalty_of",
]

_BY_NAME = {
    "huber": HuberPenalty,
    "l1": L1Norm,
    "l2": L2Norm,
    "linf": LinfNorm,
    "squared_l2": SquaredL2,
}


def as_penalty(penalty: Any) -> Penalty:
    """The penalty itself, or the one of this name.

    Parameters
    ----------
    penalty : str or Penalty
        A name such as "l2", "l1", "linf", "squared_l2" or "huber".

    Examples
    --------
    >>> as_penalty("l1")
    L1Norm()
    """
    if isinstance(penalty, str):
        return _BY_NAME[check_name(penalty, _BY_NAME, "penalty")]()
    if isinstance(penalty, type) and issubclass(penalty, Penalty):
        raise ValueError(f"penalty must be an object; got a class. Use {penalty.__name__}().")
    if not isinstance(penalty, Penalty):
        raise ValueError(
            f"penalty must be one of {', '.join(_BY_NAME)} or a Penalty object; got {penalty!r}."
        )
    return penalty


def edge_penalties(edges: Any, column: str = "penalty", rest: Any = "l2") -> dict[Any, Any]:
    """Penalties by edge from a column of an edge table, as `Problem` and the estimators take them.

    Parameters
    ----------
    edges : pandas or polars DataFrame
        With the columns `source`, `target` and `column`.
    column : str
        Names such as "l1", or objects; what is missing is left to `rest`.
    rest : str or Penalty
        The penalty of all other edges.

    Examples
    --------
    >>> import pandas as pd
    >>> roads = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"], "penalty": ["l1", None]})
    >>> edge_penalties(roads)
    {('a', 'b'): L1Norm(), None: L2Norm()}
    """
    if not is_frame(edges):
        raise ValueError(f"edges must be a pandas or polars DataFrame; got {type_name(edges)}.")
    for name in ("source", "target", column):
        check_name(name, [str(c) for c in edges.columns], "column")
    listed = (edges[name].to_numpy().tolist() for name in ("source", "target", column))
    found: dict[Any, Penalty] = {}
    for source, target, kind in zip(*listed, strict=True):
        if _missing(kind):
            continue
        if (source, target) in found:
            raise ValueError(f"edges names {(source, target)!r} twice. Drop one of the rows.")
        found[source, target] = as_penalty(kind)
    return {**found, None: as_penalty(rest)}


def _missing(kind: Any) -> bool:
    """An empty cell of a table: none, not a number, or empty text."""
    if isinstance(kind, Penalty):
        return False
    return kind is None or kind == "" or bool(kind != kind) or type(kind).__name__ == "NAType"


def penalty_of(penalty: Any, graph: Graph) -> Penalty:
    """A penalty for the edges of a graph: one for all, or a dict by pairs of node ids.

    Parameters
    ----------
    penalty : str, Penalty or dict
        With pairs of node ids as keys; the key None is for all other edges.
    graph : Graph

    Examples
    --------
    >>> penalty_of({(0, 1): "l1", None: "l2"}, Graph.from_edges([(0, 1), (1, 2)]))
    ByEdge(L2Norm(): 1 edges, L1Norm(): 1 edges)
    """
    if isinstance(penalty, dict):
        return ByEdge.of({pair: as_penalty(kind) for pair, kind in penalty.items()}, graph)
    found = as_penalty(penalty)
    if found.edges not in (None, graph.n_edges):
        raise ValueError(
            f"penalty is for {found.edges} edges; the graph has {graph.n_edges}. Edges are sorted "
            "by their ends: give a dict by pairs of node ids."
        )
    return found
