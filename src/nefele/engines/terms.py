"""What is minimised over the parts of a folder, agreed before any of them is opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nefele._checks import Array, check_flag, check_number, type_name
from nefele.data import LocalData
from nefele.engines.tables import PartsIndex
from nefele.losses import Constrained, Loss, Multinomial, as_loss
from nefele.penalties import Penalty, as_penalty
from nefele.solvers.loop.fingerprint import digest

INTERCEPT = "intercept"  # column of the parameters


@dataclass(frozen=True)
class Terms:
    """Loss, penalty, lam, and an intercept or not: the same in all parts.

    Attributes
    ----------
    loss : Loss
    penalty : Penalty
    lam : float
    intercept : bool
    classes : int
        Parameters of a node for each column; 1 but for losses of several classes.
    """

    loss: Any
    penalty: Any
    lam: float
    intercept: bool
    classes: int = 1

    def names(self, index: PartsIndex) -> list[str]:
        """Names of a node's parameters: with several classes those of each class in turn."""
        names = [*index.features, *([INTERCEPT] if self.intercept else [])]
        if self.classes == 1:
            return names
        return [f"{name} [{k}]" for k in range(self.classes) for name in names]

    def shrink(self, columns: int) -> Array | None:
        """The intercept is spared by regularisers of the loss."""
        return np.append(np.ones(columns - 1), 0.0) if self.intercept else None


def terms_of(loss: Any, penalty: Any, lam: Any, intercept: Any, index: PartsIndex) -> Terms:
    """The terms of a solve of these parts; a ValueError where they do not fit them."""
    lam = check_number(lam, "lam", low=0.0, strict=True)
    found = Terms(as_loss(loss), _one_penalty(penalty), lam, check_flag(intercept, INTERCEPT))
    if found.intercept and INTERCEPT in (index.node, *index.features):
        raise ValueError(
            f"No column may be called {INTERCEPT!r} when each node has an intercept; its "
            "parameters would be lost. Rename it, or leave the intercept out."
        )
    found = replace(found, loss=_with_classes(found.loss, index))
    found = replace(found, classes=_classes(found.loss))
    names = found.names(index)
    if index.node in names:
        raise ValueError(
            f"The parameters need a column {index.node!r} of their own, but that is the column of "
            "the nodes. Rename it."
        )
    _check_size(found, len(index.features) + found.intercept, len(names))
    return found


def mark(index: PartsIndex, terms: Terms) -> str:
    """What tells this problem from others: the parts of another cut of it are the same problem."""
    facts = [index.total(name) for name in ("nodes", "edges", "rows")]
    of_all = [index.features, index.target, index.total("content") % 2**64]
    d = len(terms.names(index))
    steps = np.linspace(0.5, 2.0, 3 * d).reshape(3, d)
    return digest([*facts, *of_all, *vars(terms).values()], [terms.penalty.value(steps)])


def _one_penalty(penalty: Any) -> Penalty:
    """The penalty, if it is the same for all edges: edges have no common order over the parts."""
    if isinstance(penalty, Mapping) or getattr(penalty, "edges", None) is not None:
        raise ValueError(
            "penalty must be the same for all edges of data by parts; got one by edge "
            f"({type_name(penalty)}). Give the edges weights instead, or solve in one process by "
            "nefele.solve."
        )
    return as_penalty(penalty)


def _with_classes(loss: Loss, index: PartsIndex) -> Loss:
    """The loss with as many classes as all parts together have."""
    if isinstance(loss, Constrained):
        return replace(loss, loss=_with_classes(loss.loss, index))
    if not isinstance(loss, Multinomial) or loss.n_classes is not None:
        return loss
    tops = [part.top for part in index.parts if part.rows]
    if any(top != top for top in tops):
        raise ValueError(
            "Multinomial must know the largest label of all parts, which this index does not say. "
            "Partition the data again, or pass n_classes."
        )
    return replace(loss, n_classes=loss.classes_of(max(tops, default=0.0), index.total("rows")))


def _classes(loss: Loss) -> int:
    inner = loss.loss if isinstance(loss, Constrained) else loss
    return int(inner.n_classes or 1) if isinstance(inner, Multinomial) else 1


def _check_size(terms: Terms, columns: int, names: int) -> None:
    """Each parameter must belong to a column, and the penalty fit as many."""
    none = LocalData(
        np.zeros((0, columns)),
        np.zeros(0),
        np.zeros(2, dtype=np.int64),
        shrink=terms.shrink(columns),
    )
    d = terms.loss.bind(none).d
    if d != names:
        raise ValueError(
            f"The loss must have one parameter for each of the {names} columns of data by parts; "
            f"{type(terms.loss).__name__} has {d}. Solve in one process by nefele.solve."
        )
    terms.penalty.check_dimension(d)
