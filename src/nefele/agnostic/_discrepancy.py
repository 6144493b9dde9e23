"""How far apart the predictions of neighbours are, and the rows that pull them together.

The sum over neighbours collapses into one block of rows: sum_j a_j (h - p_j)^2 is
(sum_j a_j) (h - pbar)^2 plus a constant, pbar the weighted mean, and likewise for the
cross-entropy, which is linear in p_j. For the absolute and Huber discrepancies this holds row by
row once they are replaced by squares with weights a_j / max(|h - p_j|, eps), h the node's last
predictions. A function of the user's own does not collapse: it goes as a `Pull` to models of torch,
which can differentiate it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, check_name, check_number

Index = NDArray[np.int64]

_TINY = 1e-12  # probabilities below are as good as zero
# Differences below count as this, in units of the target's spread. With 1e-6 rows that nearly
# agree weigh so much that 1000 rounds of constant models still were 0.9% above the optimum.
_ABSOLUTE = 1e-2


@dataclass(frozen=True, eq=False)
class Pull:
    """What a node has heard, as it is: for a discrepancy of the user's own.

    `call` takes two tensors of predictions on the shared rows and gives one number per row;
    `weights` has shape (n_neighbours,), `news` (n_neighbours, m') or (n_neighbours, m', n_classes).
    """

    call: Callable[..., Any]
    weights: Array
    news: Array


@dataclass(frozen=True)
class Discrepancy:
    """Loss of two predictions h and p at a shared row, in units of alpha.

    squared: (h - p)^2. absolute: 2 |h - p|. huber: (h - p)^2 / delta up to delta, then
    2 |h - p| - delta. cross-entropy: -sum_k p_k log h_k, and the other way round. free: `call`,
    the mean of both ways round.
    """

    kind: str
    floor: float = 0.0
    call: Callable[..., Any] | None = None

    def block(self, weights: Array, news: list[Array], own: Array | None) -> Any:
        """Targets and weights of the shared rows, shapes (m',) or (m', n_classes), and (m',).

        `weights` are those of the edges the news came along, `own` the node's last predictions.
        A free discrepancy gives a `Pull` instead.
        """
        stack = np.stack(news)
        if self.call is not None:
            return Pull(self.call, weights, stack)
        pull = np.broadcast_to(weights[:, None], stack.shape[:2])
        if self.kind in ("absolute", "huber") and own is not None:
            pull = pull / np.maximum(np.abs(own - stack), self.floor)
        total = pull.sum(axis=0)
        share = pull / total
        return (share.reshape(*share.shape, *[1] * (stack.ndim - 2)) * stack).sum(axis=0), total

    def value(self, h: Array, p: Array) -> float:
        """Mean over the shared rows (AGN, Eq. (5)), symmetric in both."""
        if self.call is not None:
            from nefele.agnostic._torch_discrepancy import free_value

            return free_value(self.call, h, p)
        if self.kind == "cross-entropy":
            logs = np.log(np.maximum(h, _TINY)), np.log(np.maximum(p, _TINY))
            return float(-(p * logs[0] + h * logs[1]).sum(axis=1).mean())
        v = np.abs(h - p)
        if self.kind == "squared":
            return float((v**2).mean())
        inside = v <= self.floor
        return float(np.where(inside, v**2 / self.floor, 2 * v - self.floor).mean())


def as_discrepancy(given: Any, names: tuple[str, ...], spread: float) -> Discrepancy:
    """From a name, ("huber", delta), or a function of two tensors."""
    if callable(given):
        return Discrepancy("free", call=given)
    pair = isinstance(given, tuple) and len(given) == 2 and given[0] == "huber"
    name, delta = given if pair else (given, 1.0)
    check_name(name, names, "discrepancy")
    if name == "huber":
        return Discrepancy(name, check_number(delta, "delta", low=0.0, strict=True))
    return Discrepancy(name, _ABSOLUTE * spread)


def soft_rows(target: Array, weight: Array) -> tuple[Index, Index, Array]:
    """Soft labels as weighted rows: row numbers, class numbers and weights."""
    share = target * weight[:, None]
    row, label = np.nonzero(target > _TINY)
    return row, label, share[row, label]
