"""The edge penalty phi of generalised total variation (NFL, Eq. (14)) and its dual update (33)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array

# A flow closer to its ball's boundary than this does not prove that the edge is fused.
_INSIDE = 0.99


class Penalty(ABC):
    """A convex penalty phi with phi(0) = 0 and phi(-v) = phi(v), applied to every edge.

    A subclass gives `value` and one of `prox` and `prox_conjugate` (Moreau's identity gives the
    other). A norm sets `is_norm = True` and gives `dual_norm`; any other penalty gives
    `conjugate`. All arguments are arrays over edges: v, u of shape (n_edges, d), scale = lam * A_e
    and step = sigma_e of shape (n_edges,).

    Examples
    --------
    >>> import numpy as np
    >>> from nefele.penalties import Penalty
    >>> class Weighted(Penalty):
    ...     is_norm = True
    ...     def value(self, v):
    ...         return np.abs(v * [1.0, 2.0]).sum(axis=1)
    ...     def dual_norm(self, u):
    ...         return np.abs(u / [1.0, 2.0]).max(axis=1)
    ...     def prox(self, v, step):
    ...         bound = step[:, None] * [1.0, 2.0]
    ...         return np.sign(v) * np.maximum(np.abs(v) - bound, 0.0)
    >>> Weighted().value(np.array([[1.0, -1.0]]))
    array([3.])
    """

    #: True when phi is a norm: its conjugate is the indicator of the dual norm's ball (NFL (26)).
    is_norm: bool = False
    #: True when entries of the parameters fuse one by one, not as a whole.
    entrywise: bool = False
    #: False when some parameters are not coupled at all, so that no lam makes all nodes equal.
    whole: bool = True
    #: True when `gradient` and `curvature` are given: differentiable away from zero.
    twice: bool = False
    #: Number of edges of a penalty that differs from edge to edge; None: any number.
    edges: int | None = None

    @property
    def bounded(self) -> bool:
        """Whether the conjugate's domain is bounded, so that a flow may be outside it."""
        return self.is_norm or type(self).domain_ratio is not Penalty.domain_ratio

    def personal(self, d: int) -> Array:
        """A basis of the directions of d parameters that are not coupled, shape (d, k).

        Parameters
        ----------
        d : int
            Number of parameters of a node.
        """
        return np.zeros((d, 0))

    def at(self, edges: Any) -> Penalty:
        """The penalty of some edges, given by position: itself, unless it differs by edge.

        Parameters
        ----------
        edges : int or bool array
        """
        return self

    @abstractmethod
    def value(self, v: Array) -> Array:
        """phi(v_e) for each edge, shape (n_edges,).

        Parameters
        ----------
        v : array of shape (n_edges, d)
            Differences over the edges.
        """

    def dual_norm(self, u: Array) -> Array:
        """Dual norm of u_e, shape (n_edges,); only for norms.

        Parameters
        ----------
        u : array of shape (n_edges, d)
            Flow.
        """
        raise ValueError(f"{type(self).__name__} must give dual_norm: is_norm is True.")

    def prox(self, v: Array, step: Array) -> Array:
        """argmin_z step * phi(z) + 1/2 ||z - v||^2 for each edge.

        Parameters
        ----------
        v : array of shape (n_edges, d)
        step : array of shape (n_edges,)
        """
        if type(self).prox_conjugate is Penalty.prox_conjugate:
            raise ValueError(f"{type(self).__name__} must give prox or prox_conjugate.")
        return v - self.prox_conjugate(v, step, np.ones(len(v)))

    def prox_conjugate(self, v: Array, scale: Array, step: Array) -> Array:
        """DU(v) = argmin_z scale * phi*(z / scale) + 1/(2 step) ||z - v||^2 (NFL, Eq. (33)).

        Parameters
        ----------
        v : array of shape (n_edges, d)
        scale : array of shape (n_edges,)
            lam A_e of each edge.
        step : array of shape (n_edges,)
        """
        if type(self).prox is Penalty.prox:
            raise ValueError(f"{type(self).__name__} must give prox or prox_conjugate.")
        return v - step[:, None] * self.prox(v / step[:, None], scale / step)

    def conjugate(self, u: Array, scale: Array) -> Array:
        """Scale * phi*(u_e / scale), inf outside the domain, shape (n_edges,) (NFL, Eq. (20)).

        Parameters
        ----------
        u : array of shape (n_edges, d)
            Flow.
        scale : array of shape (n_edges,)
            lam A_e of each edge.
        """
        if not self.is_norm:
            raise ValueError(f"{type(self).__name__} must give conjugate: it is not a norm.")
        return np.where(self.dual_norm(u) <= scale * (1 + 1e-12), 0.0, np.inf)

    def domain_ratio(self, u: Array, scale: Array) -> Array:
        """How far u_e is from the centre of the conjugate's domain: at most 1 means inside.

        Parameters
        ----------
        u : array of shape (n_edges, d)
            Flow.
        scale : array of shape (n_edges,)
            lam A_e of each edge.
        """
        return self.dual_norm(u) / scale if self.is_norm else np.zeros(len(u))

    def give(self, u: Array, scale: Array, unit: float, least: float) -> Array:
        """How readily each edge takes a correction of its flow, shape (n_edges, 1 or d).

        Norms: the room left in the ball (at least the share `least`) per `unit` of parameters.
        Smooth penalties: the curvature scale * phi''. It is used by the certificate and changes
        the quality of the bound, never its validity.

        Parameters
        ----------
        u : array of shape (n_edges, d)
            Flow.
        scale : array of shape (n_edges,)
            lam A_e of each edge.
        unit, least : float
        """
        if not self.is_norm:
            return scale[:, None]
        room = np.clip(1.0 - self.domain_ratio(u, scale), least, 1.0)
        return (scale * room / unit)[:, None]

    def mix(self, v: Array) -> Array:
        """Keep a flow correction inside the linear hull of the conjugate's domain.

        Parameters
        ----------
        v : array of shape (n_edges, d)
        """
        return v

    def within(self, u: Array) -> Array:
        """The flow without what rounding errors put outside that hull, shape (n_edges, d).

        Parameters
        ----------
        u : array of shape (n_edges, d)
            Flow.
        """
        return u

    @property
    def mixing(self) -> dict[str, Any]:
        """What `mix` does, as arguments of a linear system: nothing, unless it is overridden."""
        return {} if type(self).mix is Penalty.mix else {"mix": self.mix}

    def fused(self, u: Array, scale: Array) -> NDArray[np.bool_]:
        """Entries whose difference the flow holds at zero, shape (n_edges, d).

        Parameters
        ----------
        u : array of shape (n_edges, d)
            Flow.
        scale : array of shape (n_edges,)
            lam A_e of each edge.
        """
        inside = self.domain_ratio(u, scale) <= _INSIDE if self.is_norm else np.zeros(len(u), bool)
        return np.repeat(inside[:, None], u.shape[1], axis=1)

    def gradient(self, v: Array) -> Array:
        """Gradient of phi, zero at v = 0, shape (n_edges, d); only with `twice`.

        Parameters
        ----------
        v : array of shape (n_edges, d)
            Differences over the edges.
        """
        raise TypeError(f"{type(self).__name__} gives no gradient.")

    def curvature(self, v: Array) -> Array:
        """Second derivative of phi away from v = 0, shape (n_edges, d, d); only with `twice`.

        Parameters
        ----------
        v : array of shape (n_edges, d)
            Differences over the edges.
        """
        raise TypeError(f"{type(self).__name__} gives no curvature.")

    def probe(self, d: int) -> None:
        """Try every method a solver needs, so that a mistake shows before the work.

        Parameters
        ----------
        d : int
            Number of parameters of a node.
        """
        v, one = np.ones((2, d)), np.ones(2)
        found = {
            "value": (self.value(v), (2,)),
            "prox": (self.prox(v, one), (2, d)),
            "prox_conjugate": (self.prox_conjugate(v, one, one), (2, d)),
            "domain_ratio": (self.domain_ratio(v, one), (2,)),
            "conjugate": (self.conjugate(0 * v, one), (2,)),
        }
        for name, (values, shape) in found.items():
            if np.shape(values) != shape or not np.isfinite(np.asarray(values, dtype=float)).all():
                raise ValueError(
                    f"{name} of {type(self).__name__} must return finite numbers of shape {shape} "
                    f"for v of shape {v.shape}; got shape {np.shape(values)}."
                )

    def check_dimension(self, d: int) -> None:
        """Raise when the penalty does not fit parameters of length d.

        Parameters
        ----------
        d : int
            Number of parameters of a node.
        """
        return None
