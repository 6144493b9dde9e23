"""A penalty on some of the parameters: the graph couples these, the others stay personal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.penalties.base import Penalty
from nefele.penalties.quadratic import Quadratic
from nefele.penalties.squared_l2 import SquaredL2

# Share of the coupled entries' give that personal ones get: the certificate's linear systems
# stay regular, and `mix` takes the flow away again.
_HARDLY = 1e-9


@dataclass(frozen=True)
class Partial(Penalty):
    """phi(v) = penalty(v restricted to the entries `on`): the other parameters stay personal.

    Its conjugate is that of the penalty for flows that vanish outside `on`, infinite for others.

    Parameters
    ----------
    penalty : Penalty
        The penalty of the coupled entries.
    on : sequence of int
        Positions of the coupled entries, at least one.

    Examples
    --------
    >>> from nefele.penalties import L2Norm, Partial
    >>> Partial(L2Norm(), on=[0, 2]).value(np.array([[3.0, 100.0, 4.0]]))
    array([5.])
    """

    penalty: Penalty
    on: Any

    whole = False
    entrywise = True

    def __post_init__(self) -> None:
        if not isinstance(self.penalty, Penalty):
            raise ValueError(f"penalty must be a Penalty object; got {self.penalty!r}.")
        named = np.asarray(self.on)
        if named.ndim != 1 or named.dtype.kind not in "iu" or not named.size or named.min() < 0:
            raise ValueError(
                f"on must name at least one entry, by integer positions >= 0; got {self.on!r}."
            )
        object.__setattr__(self, "on", tuple(np.unique(named).tolist()))

    @property
    def is_norm(self) -> bool:  # type: ignore[override]
        """A norm of the coupled entries: its conjugate is an indicator as well."""
        return self.penalty.is_norm

    @property
    def twice(self) -> bool:  # type: ignore[override]
        """As the penalty of the coupled entries."""
        return self.penalty.twice

    def personal(self, d: int) -> Array:
        on = np.array(self.on)
        within = self._embed(self.penalty.personal(len(on)).T, d).T
        return np.hstack([within, np.delete(np.eye(d), on, axis=1)])

    def value(self, v: Array) -> Array:
        return self.penalty.value(self._of(v))

    def dual_norm(self, u: Array) -> Array:
        return np.where(self._leaves(u), np.inf, self.penalty.dual_norm(self._of(u)))

    def prox(self, v: Array, step: Array) -> Array:
        out = np.array(v)
        out[:, self.on] = self.penalty.prox(self._of(v), step)
        return out

    def prox_conjugate(self, v: Array, scale: Array, step: Array) -> Array:
        return self._embed(self.penalty.prox_conjugate(self._of(v), scale, step), v.shape[1])

    def conjugate(self, u: Array, scale: Array) -> Array:
        return np.where(self._leaves(u), np.inf, self.penalty.conjugate(self._of(u), scale))

    def domain_ratio(self, u: Array, scale: Array) -> Array:
        return np.where(self._leaves(u), np.inf, self.penalty.domain_ratio(self._of(u), scale))

    def give(self, u: Array, scale: Array, unit: float, least: float) -> Array:
        give = self.penalty.give(self._of(u), scale, unit, least)
        out = np.repeat(_HARDLY * give.max(axis=1, keepdims=True), u.shape[1], axis=1)
        out[:, self.on] = give
        return out

    def mix(self, v: Array) -> Array:
        return self._embed(self.penalty.mix(self._of(v)), v.shape[1])

    def within(self, u: Array) -> Array:
        return self._embed(self.penalty.within(self._of(u)), u.shape[1])

    def fused(self, u: Array, scale: Array) -> NDArray[np.bool_]:
        out = np.zeros(u.shape, dtype=bool)
        out[:, self.on] = self.penalty.fused(self._of(u), scale)
        return out

    def gradient(self, v: Array) -> Array:
        return self._embed(self.penalty.gradient(self._of(v)), v.shape[1])

    def curvature(self, v: Array) -> Array:
        out = np.zeros((*v.shape, v.shape[1]))
        place = np.array(self.on)
        out[:, place[:, None], place[None, :]] = self.penalty.curvature(self._of(v))
        return out

    def probe(self, d: int) -> None:
        self.penalty.probe(len(self.on))

    def check_dimension(self, d: int) -> None:
        if self.on[-1] >= d:
            raise ValueError(f"on must name entries 0..{d - 1}; got {self.on[-1]}.")
        self.penalty.check_dimension(len(self.on))

    def _of(self, v: Array) -> Array:
        return np.ascontiguousarray(v[:, self.on])

    def _embed(self, values: Array, d: int) -> Array:
        out = np.zeros((len(values), d))
        out[:, self.on] = values
        return out

    def _leaves(self, u: Array) -> NDArray[np.bool_]:
        """Edges with a flow of personal entries."""
        off = np.ones(u.shape[1], dtype=bool)
        off[list(self.on)] = False
        return np.asarray((u[:, off] != 0).any(axis=1))


def couple_only(penalty: Penalty, on: Any, d: int) -> Penalty:
    """The penalty on the entries `on` of d parameters, in the form that solvers know best.

    Examples
    --------
    >>> couple_only(SquaredL2(), [0], 2)
    Quadratic(Q=array([[1., 0.],
           [0., 0.]]))
    """
    on = np.flatnonzero(np.isin(np.arange(d), list(on)))
    penalty.check_dimension(len(on))
    if len(on) == d:
        return penalty
    if isinstance(penalty, SquaredL2 | Quadratic):
        Q = np.zeros((d, d))
        Q[np.ix_(on, on)] = penalty.Q if isinstance(penalty, Quadratic) else np.eye(len(on))
        return Quadratic(Q)
    return Partial(penalty, on.tolist())
