"""Local losses. Add one: its file, one line here, one in the contract tests' cases."""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele._checks import check_name
from nefele._ids import as_ids, unknown_ids_message
from nefele.data import LocalData
from nefele.graph import Graph
from nefele.losses.base import BoundLoss, DualPoint, Loss
from nefele.losses.constrained import Constrained
from nefele.losses.constraints import Box, Constraint, Nonnegative, Simplex
from nefele.losses.huber import HuberLoss
from nefele.losses.logistic import Logistic
from nefele.losses.mixed import BoundMixed
from nefele.losses.multinomial import Multinomial
from nefele.losses.piecewise import Absolute, Hinge, Quantile
from nefele.losses.pointwise import PointwiseLoss
from nefele.losses.poisson import Poisson
from nefele.losses.precision import GraphicalLasso, matrices
from nefele.losses.squared import Squared
from nefele.losses.squared_hinge import SquaredHinge
from nefele.losses.user import UserLoss
from nefele.losses.zero import BoundZero, Zero

__all__ = [
    "Absolute",
    "BoundLoss",
    "Box",
    "Constrained",
    "Constraint",
    "DualPoint",
    "GraphicalLasso",
    "Hinge",
    "HuberLoss",
    "Logistic",
    "Loss",
    "Multinomial",
    "Nonnegative",
    "PointwiseLoss",
    "Poisson",
    "Quantile",
    "Simplex",
    "Squared",
    "SquaredHinge",
    "Zero",
    "as_bound_loss",
    "as_loss",
    "matrices",
]

_BY_NAME: dict[str, type[Loss]] = {
    "absolute": Absolute,
    "hinge": Hinge,
    "huber": HuberLoss,
    "logistic": Logistic,
    "multinomial": Multinomial,
    "poisson": Poisson,
    "quantile": Quantile,
    "squared": Squared,
    "squared_hinge": SquaredHinge,
    "zero": Zero,
}


def as_loss(loss: Any) -> Loss:
    """The loss itself, or the one of this name.

    Parameters
    ----------
    loss : str or Loss
        A name such as "squared", "logistic" or "huber".

    Examples
    --------
    >>> as_loss("squared")
    Squared(l2=0.0, l1=0.0)
    """
    if isinstance(loss, str):
        return _BY_NAME[check_name(loss, _BY_NAME, "loss")]()
    if isinstance(loss, Loss):
        return loss
    raise ValueError(f"loss must be one of {', '.join(_BY_NAME)}, or a Loss; got {loss!r}.")


def as_bound_loss(loss: Any, data: LocalData | None, graph: Graph) -> BoundLoss:
    """Turn a name, a Loss, a dict by node id or a user's own object into bound losses.

    `data` is in graph order.

    Parameters
    ----------
    loss : str, Loss, dict by node id or object
        An object has `value` and `prox`, or `value` and `grad`.
    data : LocalData or None
        In graph order; None for an object that needs none.
    graph : Graph

    Examples
    --------
    >>> graph = Graph.from_edges([("a", "b")])
    >>> data = LocalData.from_list([([[1.0]], [2.0]), None], nodes=["a", "b"])
    >>> as_bound_loss("squared", data, graph).value(np.zeros((2, 1)))
    array([4., 0.])
    """
    if isinstance(loss, dict):
        return _per_node(loss, data, graph)
    return _bind(loss, data, graph.n_nodes)


def _bind(loss: Any, data: LocalData | None, n_nodes: int) -> BoundLoss:
    if isinstance(loss, str):
        loss = as_loss(loss)
    if isinstance(loss, type):
        raise ValueError(f"loss must be an object; got a class. Use {loss.__name__}().")
    if isinstance(loss, BoundLoss):
        if loss.n_nodes != n_nodes:
            raise ValueError(f"loss is bound to {loss.n_nodes} nodes; the graph has {n_nodes}.")
        return loss
    if isinstance(loss, Loss) or hasattr(loss, "bind"):
        if data is None:
            raise ValueError(f"{type(loss).__name__} needs data; got None.")
        return loss.bind(data)
    if hasattr(loss, "value") and (hasattr(loss, "prox") or hasattr(loss, "grad")):
        d = getattr(loss, "d", data.d if data is not None else None)
        if d is None:
            raise ValueError(f"{type(loss).__name__} must have an attribute d when data is None.")
        return UserLoss(loss, n_nodes, d)
    raise ValueError(
        f"loss must be one of {', '.join(_BY_NAME)}, a Loss, a dict by node id, or an object with "
        f"value and prox (or value and grad); got {loss!r}."
    )


def _per_node(losses: dict[Any, Any], data: LocalData | None, graph: Graph) -> BoundLoss:
    """Nodes with the same loss share one bound loss; nodes that are not named must have no data."""
    keys = as_ids(list(losses))
    where = graph.positions(keys)
    if (where < 0).any():
        raise ValueError(unknown_ids_message(graph.ids, keys[where < 0], "loss"))
    groups: dict[int, tuple[Any, list[int]]] = {}
    seen: list[Any] = []
    for position, loss in zip(where.tolist(), losses.values(), strict=True):
        slot = next((k for k, other in enumerate(seen) if other is loss or _same(other, loss)), -1)
        if slot < 0:
            slot = len(seen)
            seen.append(loss)
            groups[slot] = (loss, [])
        groups[slot][1].append(position)
    missing = np.ones(graph.n_nodes, dtype=bool)
    missing[where] = False
    if data is not None and (missing & data.labelled).any():
        node = graph.ids[missing & data.labelled][:1].tolist()[0]
        raise ValueError(f"loss must name every node with data; {node!r} is missing.")
    parts: list[tuple[Any, BoundLoss]] = []
    for loss, members in groups.values():
        nodes = np.sort(np.array(members))
        part = None if data is None else data.subset(nodes)
        parts.append((nodes, _bind(loss, part, len(nodes))))
    if missing.any():
        nodes = np.flatnonzero(missing)
        parts.append((nodes, BoundZero(len(nodes), parts[0][1].d)))
    return BoundMixed(graph.n_nodes, parts)


def _same(a: Any, b: Any) -> bool:
    return isinstance(a, str | Loss) and type(a) is type(b) and a == b
