"""The member of the family that is taken: the simplest that is not clearly worse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nefele._checks import Array
from nefele.mixed.columns import Columns, Table
from nefele.mixed.coupling import Coupling
from nefele.mixed.fitting import Fit
from nefele.mixed.response import Response

ONE, INTERCEPTS, SLOPES, CORRELATED = "one model", "intercepts", "slopes", "correlated slopes"
_NOT_WORSE = 0.5  # standard errors of the difference within which a simpler model is taken
_NOT_CLEARLY_WORSE = 1.0  # the same where no likelihood speaks beside it
_MANY = 10  # nodes of which one is no good part
_NO_SUPPORT = 10.0  # difference of Akaike's criterion that leaves a model without support


@dataclass(frozen=True, eq=False)
class Tried:
    """A member of the family, fitted.

    Attributes
    ----------
    name : str
        One of the names of this module: what is personal.
    columns : Columns
    fit : Fit
    coupling : Coupling
    left_out : array of shape (n_rows,)
        Linear predictor of each row by a fit without it, in the order of the table; NaN where
        that cannot be had.
    errors : array of shape (n_rows,)
        What these predictions cost; infinite where there are none.
    """

    name: str
    columns: Columns
    fit: Fit
    coupling: Coupling
    left_out: Array
    errors: Array

    @property
    def rho(self) -> float:
        """Share of the graph in the coupling."""
        return getattr(self.coupling, "rho", 0.0)

    @property
    def words(self) -> str:
        """The member in words."""
        if self.name == ONE:
            return f"{ONE}{self._curved}"
        by = "the centre" if not self.rho else f"graph {self.rho:.0%}, centre {1 - self.rho:.0%}"
        return f"personal {self.name} by {by}{self._curved}"

    @property
    def _curved(self) -> str:
        return "" if self.columns.smooth is None else ", common curves"


def choose(tried: list[Tried], table: Table, response: Response) -> Tried:
    """The one that `likeliest` takes of those whose gain is not that of one node.

    `tried` is in order of simplicity. Where the noise of nodes differs, one noisy node may speak
    for personal slopes of all, by its likelihood and its errors at left-out rows. A member with
    more that is personal, but better by the errors of one node only, is left out, and the
    question asked again.
    """
    rest = list(tried)
    while True:
        found = likeliest(rest, table, response)
        simpler = [t for t in rest[: rest.index(found)] if _same_but_personal(t, found)]
        gains = [t.errors - found.errors for t in simpler if response.direct]
        if not any(_of_one(gain, table) for gain in gains):
            return found
        rest.remove(found)


def likeliest(tried: list[Tried], table: Table, response: Response) -> Tried:
    """The simplest that predicts as well as the best or is likelier, by Akaike's criterion.

    `tried` is in order of simplicity. One that the criterion leaves without support is not taken
    for its simplicity, and one that is less simple than the best is not taken for its likelihood
    alone: unequal noise looks like personal slopes to it. Where a target is linearised at each fit
    anew, likelihoods do not compare; there the errors at left-out rows, which are log-likelihoods,
    rise by one for each component, as in the criterion: the components have seen these rows.
    """
    if not all(np.isfinite(t.errors).all() for t in tried):
        return tried[-1]
    costs = response.costs([t.left_out for t in tried], table.y, table.weight)
    sizes = np.array([0.0 if response.direct else t.fit.found.n_free for t in tried])
    at = int(np.argmin([table.weight @ cost for cost in costs] + sizes))
    best, least = tried[at], min(t.fit.found.aic for t in tried)
    allowed = _NOT_WORSE if response.direct else _NOT_CLEARLY_WORSE
    for place, (t, cost) in enumerate(zip(tried, costs, strict=True)):
        supported, likelier, more = True, False, sizes[place] - sizes[at]
        if response.direct:
            supported = t.fit.found.aic <= least + _NO_SUPPORT
            likelier = place <= at and t.fit.found.aic <= best.fit.found.aic
        if supported and (likelier or _worse_by(cost - costs[at], more, table) <= allowed):
            return t
    return best


def _same_but_personal(simple: Tried, other: Tried) -> bool:
    return simple.columns is other.columns and simple.rho == other.rho == 0


def _of_one(gain: Array, table: Table) -> bool:
    """Whether all nodes together gain, but nothing without the one that gains most."""
    by_node = np.bincount(table.owner, table.weight * gain, table.n_nodes)
    total = float(by_node.sum())
    return len(by_node) >= _MANY and bool(total - by_node.max() <= 0 < total)


def _worse_by(extra: Array, more: float, table: Table) -> float:
    """What rows cost more, in standard errors: rows of a node are not independent.

    `more` is added to the sum over the rows.
    """
    by_node = np.bincount(table.owner, table.weight * extra, table.n_nodes)
    n = len(by_node)
    error = float(np.sqrt(n / max(n - 1, 1) * ((by_node - by_node.mean()) ** 2).sum()))
    total = float(by_node.sum()) + more
    if error:
        return total / error
    return 0.0 if total <= 0 else np.inf
