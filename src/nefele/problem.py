"""Generalised total variation minimisation over a graph (NFL, Eq. (16)) and its dual (24)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, as_float_array, check_number, type_name
from nefele._html import count, facts
from nefele.certificate import Certificate, Origin, certify
from nefele.certificate.correction import smooth_flow, variation
from nefele.certificate.posed import inside
from nefele.data import LocalData
from nefele.graph import Graph
from nefele.losses import as_bound_loss
from nefele.losses.base import BoundLoss, Duals
from nefele.losses.escape import Escape, falling, joined
from nefele.penalties import penalty_of
from nefele.program import Program, run_alone

_MOST_DIRECTIONS = 2000  # parameters, where edges differ, up to which runaways are looked for
_SAME = 1e-9  # difference of projections up to which they are the same


class Problem:
    """min_w sum_i L_i(w_i) + lam * sum_e A_e phi(w_head(e) - w_tail(e)).

    Parameters
    ----------
    graph : Graph
    data : LocalData or None
        Matched to the graph by node id; graph nodes that the data does not name have no rows.
        None when `loss` is a user's own object that needs none.
    loss : str, Loss, dict or object
        A name such as "squared", a Loss such as `Squared(l2=0.1)`, one of these per node id, or
        a user's own object (see `nefele.losses.BoundLoss`).
    penalty : str, Penalty or dict
        A name such as "l2", an object such as `HuberPenalty(delta=0.1)`, or one of these per edge
        by pairs of node ids, with the key None for all other edges.
    lam : float
        Strength lam >= 0 of the coupling; 0 gives the local fits.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> graph = Graph.from_edges([("a", "b")])
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])], nodes=["a", "b"])
    >>> problem = Problem(graph, data, penalty="l2", lam=1.0)
    >>> problem.objective([[0.5], [3.5]])
    3.5
    """

    # As a part of a network it is all of it: see `nefele.certificate.posed`.
    own = counted = slice(None)
    whole = steady = True

    def __init__(
        self,
        graph: Graph,
        data: LocalData | None,
        loss: Any = "squared",
        penalty: Any = "l2",
        *,
        lam: float,
    ) -> None:
        if not isinstance(graph, Graph):
            raise ValueError(
                f"graph must be a nefele Graph; got {type_name(graph)}. "
                "Convert it by nefele.as_graph(...)."
            )
        if data is not None and not isinstance(data, LocalData):
            raise ValueError(
                f"data must be LocalData; got {type_name(data)}. "
                "Build it by LocalData.from_frame, from_long or from_list."
            )
        self.graph = graph
        self.lam = check_number(lam, "lam", low=0.0, advice="Use lam=0 for local fits.")
        self.penalty = penalty_of(penalty, graph)
        self.data = None if data is None else data.align(graph.ids)
        self.loss: BoundLoss = as_bound_loss(loss, self.data, graph)
        graph.check_dimension(self.d)
        self.penalty.check_dimension(graph.width(self.d))
        self.penalty.probe(graph.width(self.d))
        self.known: dict[str, Any] = {}  # what solvers found that holds for every lam

    def __repr__(self) -> str:
        return (
            f"Problem(n_nodes={self.graph.n_nodes}, n_edges={self.graph.n_edges}, d={self.d}, "
            f"penalty={self.penalty!r}, lam={self.lam:g})"
        )

    def _repr_html_(self) -> str:
        graph, loss = self.graph, self.loss
        return facts(
            f"Problem: {count(graph.n_nodes, 'node')}, {count(self.d, 'parameter')} each",
            {
                "edges": f"{graph.n_edges:,}",
                "nodes without data": int((~loss.labelled).sum()),
                "loss": type(loss).__name__,
                "penalty": repr(self.penalty),
                "lam": f"{self.lam:g}",
            },
        )

    def with_lam(self, lam: float) -> Problem:
        """The same problem with another lam; the loss and what it has computed are shared.

        Parameters
        ----------
        lam : float
            Not negative.

        Examples
        --------
        >>> from nefele import Graph, LocalData, Problem
        >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
        >>> problem = Problem(Graph.from_edges([(0, 1)]), data, lam=1.0)
        >>> problem.with_lam(2.0).lam, problem.with_lam(2.0).loss is problem.loss
        (2.0, True)
        """
        other = object.__new__(type(self))
        for name in ("graph", "data", "loss", "penalty", "known"):
            setattr(other, name, getattr(self, name))
        other.lam = check_number(lam, "lam", low=0.0, advice="Use lam=0 for local fits.")
        return other

    @property
    def d(self) -> int:
        """Length of each node's parameter vector."""
        return self.loss.d

    @cached_property
    def scale(self) -> Array:
        """Lam * A_e of each edge, shape (n_edges,)."""
        return self.lam * self.graph.weight

    @cached_property
    def coupled(self) -> bool:
        """Whether the nodes are coupled at all: lam > 0 and at least one edge."""
        return self.lam > 0 and self.graph.n_edges > 0

    @cached_property
    def parts(self) -> NDArray[np.int64]:
        """Group of each node, shape (n_nodes,): the components, or each node when uncoupled."""
        return self.graph.components if self.coupled else np.arange(self.graph.n_nodes)

    @cached_property
    def n_parts(self) -> int:
        """Number of these groups."""
        return int(self.parts.max()) + 1

    def outflow(self, u: Array) -> Array:
        """(D^T u)_i of each node, shape (n_nodes, d).

        Parameters
        ----------
        u : array of shape (n_edges, d)
            Flow.
        """
        return self.graph.div(u)

    def placed(self, rows: Array) -> Array:
        """The rows themselves: all nodes are here.

        Parameters
        ----------
        rows : array of shape (n_nodes, ...)
        """
        return rows

    def seen(self, rows: Array, content: str) -> Program[Array]:
        """The rows themselves, without asking anybody.

        Parameters
        ----------
        rows : array of shape (n_nodes, ...)
        content : str
            What they are, for the books of messages.
        """
        return rows
        yield

    def fill(self, rows: Array) -> Program[None]:
        """Nothing: all nodes are here.

        Parameters
        ----------
        rows : array of shape (n_nodes, ...)
        """
        yield from ()

    @cached_property
    def undetermined(self) -> np.ndarray:
        """Nodes that no data reach, shape (n_nodes,): their parameters stay zero."""
        has_data = np.bincount(self.parts, self.loss.labelled, self.n_parts) > 0
        return ~has_data[self.parts]

    @cached_property
    def origin(self) -> Array:
        """Where a solve starts, shape (n_nodes, d): zero, if the losses are finite there."""
        return self.loss.origin()

    @property
    def start(self) -> Array:
        """Where solves by curvature start, shape (n_nodes, d): `origin`, or nearer local fits."""
        return self.loss.start()

    @cached_property
    def objective_at_zero(self) -> float:
        """objective(0), or the losses at `origin`: the scale of the relative gap."""
        with np.errstate(over="ignore", invalid="ignore"):
            return float(self.loss.value(self.origin).sum())

    def objective(self, w: Any) -> float:
        """Value of (NFL 16) at w, shape (n_nodes, d).

        Parameters
        ----------
        w : array of shape (n_nodes, d)
        """
        w = self.check_w(w)
        with np.errstate(over="ignore", invalid="ignore"):
            total = self.loss.value(w).sum()
            if self.coupled:
                total += variation(self, w)
        return float(total)

    def certificate(
        self,
        w: Any,
        u: Any,
        *,
        firm: bool = False,
        tol: float = 0.0,
        direct: bool = False,
        duals: Sequence[Duals] | None = None,
        spend: bool = False,
    ) -> Certificate:
        """Bound on objective(w) - optimum, from the flow u of shape (n_edges, d).

        `firm` says that w is exactly fused where it should be (after a reduced solve). A bound
        that proves a relative gap of `tol` is not improved further. `direct` solves small systems
        by factors, not by conjugate gradients; `duals` are the losses' duals that a solver knows.
        With `spend` the array u may change, which saves memory. With either of them the
        certificate does not say what it was computed from.

        Parameters
        ----------
        w : array of shape (n_nodes, d)
        u : array of shape (n_edges, d)
            Flow.
        firm, direct, spend : bool
            See above.
        tol : float
            A relative gap; 0: the best bound that is found.
        duals : sequence of pairs of arrays, optional
        """
        w, u = self.check_w(w), self.check_u(u)
        options: dict[str, Any] = {"firm": firm, "tol": tol, "direct": direct}
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            found = run_alone(certify(self, w, u, **options, duals=duals, spend=spend))
        again = not spend and duals is None  # what it takes to compute it once more is at hand
        return replace(found, origin=Origin(w, u, firm, tol, direct)) if again else found

    def inside(self, u: Array) -> Array:
        """The flow with each edge scaled back into the domain of its conjugate, such as a ball.

        Parameters
        ----------
        u : array of shape (n_edges, d)
            Flow.
        """
        found = inside(self, u)
        return u.copy() if found is u else found

    def unbounded(self, w: Array | None = None) -> NDArray[np.bool_]:
        """Nodes that run away for want of a minimiser, alone or with all of their component.

        Shape (n_nodes,). A node alone may where the penalty leaves it directions of its own.
        A nearly optimal w saves time: components that are curved there need no closer look.

        Parameters
        ----------
        w : array of shape (n_nodes, d), optional
        """
        if self.coupled and not (self.graph.plain and self._alike()):
            return self._runs_away()
        out = self.loss.unbounded(self.parts, w)[self.parts]
        personal = self.penalty.personal(self.d)
        if self.coupled and personal.shape[1]:
            out |= self.loss.unbounded_nodes(self.parts, personal, w)
        return out

    def _alike(self) -> bool:
        """Whether all edges leave the same directions free."""
        if self.penalty.edges is None:
            return True
        shape = self.graph.n_edges, self.d
        held = (self.penalty.within(np.broadcast_to(unit, shape)) for unit in np.eye(self.d))
        return all(np.allclose(rows, rows[0], rtol=0.0, atol=_SAME) for rows in held)

    def _runs_away(self) -> NDArray[np.bool_]:
        """The same where edges differ: nodes that fall along directions that their rows allow.

        Over linear maps, and with penalties that leave other directions free at other edges.
        """
        out = np.zeros(self.graph.n_nodes, dtype=bool)
        escapes = len(self.loss.escape_nodes(self.loss.labelled).free) > 0
        if not escapes or out.size * self.d > _MOST_DIRECTIONS:
            return out
        for part in range(self.n_parts):
            nodes = np.flatnonzero(self.parts == part)
            found, owner = [], list[int]()
            for place, i in enumerate(nodes.tolist()):
                alone = np.arange(self.graph.n_nodes) == i
                unit = np.kron(np.eye(len(nodes))[place], np.eye(self.d))
                found.append(self.loss.escape_nodes(alone).along(unit))
                owner += len(found[-1].free) * [i]
            move = np.zeros((len(nodes) * self.d, self.graph.n_nodes, self.d))
            move[:, nodes] = np.eye(len(nodes) * self.d).reshape(-1, len(nodes), self.d)
            held = [self.penalty.within(self.graph.diff(one)).ravel() for one in move]
            rows = np.stack(held, axis=1)
            none = rows[:0]
            found.append(Escape(none, rows[np.abs(rows).max(axis=1) > 0], none))
            matrices = joined(found)
            size = (np.linalg.norm(matrix, axis=1, keepdims=True) for matrix in matrices)
            units = (m / np.where(s > 0, s, 1.0) for m, s in zip(matrices, size, strict=True))
            out[np.array(owner, dtype=np.int64)[falling(*units)]] = True
        return out

    def hold(
        self, nodes: NDArray[np.bool_], strength: float = 1e-6
    ) -> tuple[Problem, Array] | None:
        """The problem with a tiny ridge at some nodes, so that they cannot run away.

        Returns it with the weights of w_ij^2, shape (n_nodes, d): `strength` times the curvature
        of each loss at zero. None when a loss does not know how.

        Parameters
        ----------
        nodes : bool array of shape (n_nodes,)
        strength : float

        Examples
        --------
        >>> from nefele import Graph, LocalData, Problem
        >>> data = LocalData.from_list([([[1.0]], [1.0]), ([[1.0], [1.0]], [1.0, -1.0])])
        >>> problem = Problem(Graph.from_edges([(0, 1)]), data, "logistic", lam=0.1)
        >>> problem.hold(np.array([True, False]))[1].tolist()
        [[2.5e-07], [0.0]]
        """
        size = self.loss.bends()
        most = size.max(axis=1, keepdims=True)
        size = np.where(most > 0, np.maximum(size, 1e-6 * most), 1.0)
        ridge = np.where((nodes & self.loss.labelled)[:, None], strength * size, 0.0)
        loss = self.loss.held(ridge)
        if loss is None:
            return None
        other = self.with_lam(self.lam)
        other.loss = loss
        return other, ridge

    def gap(self, w: Any, u: Any) -> float:
        """Certified upper bound on objective(w) - optimum.

        Parameters
        ----------
        w : array of shape (n_nodes, d)
        u : array of shape (n_edges, d)
            Flow.
        """
        return self.certificate(w, u).gap_abs

    def dual_value(self, u: Any) -> float:
        """A lower bound on the optimum from the flow u, made feasible (NFL, Eq. (24)).

        Parameters
        ----------
        u : array of shape (n_edges, d)
            Flow.
        """
        u = self.check_u(u)
        flow, curvature = self.graph.div(u), self.loss.curvature()
        step = np.where(curvature > 0, 100.0 / np.where(curvature > 0, curvature, 1.0), 1.0)
        w = np.zeros_like(flow)
        for _ in range(10):  # the proximal point method for argmin_w L_i(w) + <flow_i, w>
            moved = self.loss.prox(w - step[:, None] * flow, step, start=w)
            w = np.where(self.loss.labelled[:, None], moved, 0.0)
        return self.certificate(w, u).lower

    def residual(self, w: Any, u: Any) -> tuple[float, float]:
        """Violation of the optimality conditions (NFL, Eq. (25)), both zero at a solution.

        Returns the norms of the stationarity residual at the nodes and of the fixed-point
        residual of the dual update at the edges, relative to the sizes of their terms.

        Parameters
        ----------
        w : array of shape (n_nodes, d)
        u : array of shape (n_edges, d)
            Flow.
        """
        w, u = self.check_w(w), self.check_u(u)
        flow, step = self.graph.div(u), self.loss.steps()
        node = (w - self.loss.prox(w - step[:, None] * flow, step, start=w)) / step[:, None]
        if not self.coupled:
            return float(np.linalg.norm(node)), 0.0
        sigma = self.scale / (float(np.abs(w).max()) or 1.0)
        moved = u + sigma[:, None] * self.graph.diff(w)
        edge = u - self.penalty.prox_conjugate(moved, self.scale, sigma)
        return _relative(node, flow), _relative(edge, u)

    def smooth_flow(self, w: Array) -> Array:
        """Lam A_e phi'(D w): the flow that w fixes when the penalty is differentiable.

        Parameters
        ----------
        w : array of shape (n_nodes, d)
        """
        return smooth_flow(self, w)

    def check_w(self, w: Any, name: str = "w") -> Array:
        """W as a float array of shape (n_nodes, d).

        Parameters
        ----------
        w : array-like of shape (n_nodes, d)
        name : str
            For the message.
        """
        return _shaped(w, name, (self.graph.n_nodes, self.d))

    def check_u(self, u: Any, name: str = "u") -> Array:
        """U as a float array of shape (n_edges, d), or with the rows' length for mapped graphs.

        Parameters
        ----------
        u : array-like of shape (n_edges, d)
        name : str
            For the message.
        """
        return _shaped(u, name, (self.graph.n_edges, self.graph.width(self.d)))


def _shaped(value: Any, name: str, shape: tuple[int, int]) -> Array:
    array = as_float_array(value, name, None)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}; got {array.shape}.")
    return array


def _relative(residual: Array, term: Array) -> float:
    return float(np.linalg.norm(residual)) / (float(np.linalg.norm(term)) or 1.0)
