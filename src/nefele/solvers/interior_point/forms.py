"""How edges are written in interior-point steps: which cones a penalty is, edge by edge."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.penalties import (
    ByEdge,
    HuberPenalty,
    L1Norm,
    L2Norm,
    LinfNorm,
    Lp,
    Partial,
    Penalty,
    Quadratic,
    SquaredL2,
)
from nefele.problem import Problem

_KINDS: dict[type[Penalty], str] = {
    L2Norm: "cones",
    L1Norm: "cones",
    HuberPenalty: "cones",
    LinfNorm: "faces",
    SquaredL2: "springs",
    Quadratic: "springs",
    Lp: "powers",
}
_EXACT: dict[float, Penalty] = {1.0: L1Norm(), 2.0: L2Norm(), np.inf: LinfNorm()}


class Form(NamedTuple):
    """How some edges are written: a kind of cones, the penalty of the entries `on` coupled there.

    The kinds: "cones" (l1, l2, Huber), "faces" (linf), "powers" (p-norms), "springs" (quadratic),
    "" for none of these.
    """

    kind: str
    penalty: Penalty
    on: tuple[int, ...]
    edges: NDArray[np.int64]  # by position

    @property
    def place(self) -> Any:
        """Index of the coupled entries in arrays of shape (n_edges, d)."""
        return np.ix_(self.edges, np.array(self.on))

    @property
    def blocks(self) -> Any:
        """The same for shape (n_edges, d, d)."""
        on = np.array(self.on)
        return np.ix_(self.edges, on, on)

    @property
    def cones(self) -> float:
        """Number of cones: half the number of barriers that their points have."""
        if self.kind == "springs":
            return 0.0
        if self.kind == "powers":
            return len(self.edges) * (3 * len(self.on) + 1) / 2
        single = self.kind == "faces" or isinstance(self.penalty, L1Norm)
        return float(len(self.edges) * (len(self.on) if single else 1))

    @property
    def singular(self) -> bool:
        """Whether it is a quadratic penalty of which some differences cost nothing."""
        if self.kind != "springs":
            return False
        return bool(np.linalg.matrix_rank(self.stiffness, hermitian=True) < len(self.on))

    @property
    def stiffness(self) -> Array:
        """Q of a quadratic penalty of the coupled entries, shape (k, k)."""
        Q = self.penalty.Q if isinstance(self.penalty, Quadratic) else np.eye(len(self.on))
        return np.asarray(Q)


def forms(problem: Problem) -> list[Form]:
    """How the penalty can be written: one form for all edges, or one for each kind of them."""
    penalty, graph = problem.penalty, problem.graph
    kinds = [(penalty, np.arange(graph.n_edges))]
    if type(penalty) is ByEdge:
        kinds = [(kind, edges) for kind, edges in penalty.groups if len(edges)]
    return [_form(kind, graph.width(problem.d), edges) for kind, edges in kinds]


def _form(penalty: Penalty, width: int, edges: NDArray[np.int64]) -> Form:
    """The form of one penalty; norms of one entry are all the same."""
    on = tuple(range(width))
    while isinstance(penalty, Partial):
        on = tuple(on[j] for j in penalty.on)
        penalty = penalty.penalty
    if type(penalty) is Lp:
        penalty = _EXACT.get(float(penalty.p), penalty)
    if len(on) == 1 and type(penalty) in (Lp, LinfNorm, L2Norm):
        penalty = L1Norm()
    return Form(_KINDS.get(type(penalty), ""), penalty, on, edges)


def edge_kind(problem: Problem) -> str:
    """The kind of cones that edges are; "several" where they differ."""
    found = forms(problem)
    return found[0].kind if len(found) == 1 else "several"


def norms(problem: Problem) -> NDArray[np.bool_]:
    """Edges whose penalty is a norm, shape (n_edges,)."""
    out = np.zeros(problem.graph.n_edges, dtype=bool)
    for form in forms(problem):
        out[form.edges] = form.penalty.is_norm
    return out


def nearly_equal(problem: Problem, w: Array, u: Array) -> NDArray[np.bool_]:
    """Entries of edges whose difference is nearer to zero than their flow to its boundary."""
    diff, out = problem.graph.diff(w), np.zeros(u.shape, dtype=bool)
    for form in forms(problem):
        if not form.penalty.is_norm:
            continue
        scale, flow, v = problem.scale[form.edges], u[form.place], diff[form.place]
        unit = float(np.ptp(w[:, form.on], axis=0).max())
        if form.penalty.entrywise:
            room, away = 1 - np.abs(flow) / scale[:, None], np.abs(v)
        else:
            room = 1 - form.penalty.domain_ratio(flow, scale)[:, None]
            away = form.penalty.value(v)[:, None]
        out[form.place] = away < room * unit
    return out
