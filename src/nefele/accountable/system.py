"""The optimum at one node as a sum over what it was made of.

At an optimum the model of node i is w_i = sum_j Z_j^T s_j + sum_e Z_e^T p_e, where Z holds the
columns of the inverse curvature that belong to node i, s_j = H_j w_j - grad L_j(w_j) is what the
rows of node j ask for and p_e what the penalty of edge e does beyond its curvature. For squared
losses s_j = 2 sum_r c_r y_r x_r does not depend on w, for squared penalties p_e = 0: the sum is
then exact for any change of the labels. Otherwise it is exact at the optimum, and its terms tell of
small changes. Models that a norm holds together move as one.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nefele._checks import Array
from nefele.accountable.active import (
    check_explicable,
    faces,
    fused_entries,
    largest_entries,
    least_solver,
    refined_solver,
    rooted,
    ties,
)
from nefele.accountable.basis import Basis, diagonal
from nefele.accountable.classes import Classes
from nefele.losses.rows import BoundRows
from nefele.penalties import Quadratic, SquaredL2
from nefele.problem import Problem

Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

_CLEAN = 1e-10  # residual up to which the plain basis is good enough


class System:
    """The curvature of a problem at its optimum w, seen from one node."""

    def __init__(self, problem: Problem, w: Array, u: Array, at: int) -> None:
        check_explicable(problem)
        self.problem, self.w, self.u, self.at = problem, w, u, at
        self.graph, self.d = problem.graph, problem.d
        if problem.undetermined[at]:
            raise ValueError(
                f"The node must be connected to data; {self.graph.ids[at]!r} is not. "
                "Add edges or rows."
            )
        hess = problem.loss.hess(w)
        if hess is None:
            raise ValueError("An explanation needs a loss with second derivatives; got none.")
        self.H = np.asarray(hess)
        self.v = self.graph.diff(w)
        self.fused = fused_entries(problem, w, self.v)
        self.largest = largest_entries(problem, w, self.v, self.fused)

    @property
    def exact(self) -> bool:
        """Whether weights do not depend on the labels: squared losses and penalties."""
        smooth = isinstance(self.problem.penalty, SquaredL2 | Quadratic)
        return bool(self.problem.loss.affine_grad) and (smooth or not self.problem.coupled)

    @cached_property
    def certified(self) -> bool:
        """Whether flows strictly inside their ball hold together all that is equal."""
        if not self.fused.any():
            return True
        held = self.fused & self.problem.penalty.fused(self.u, self.problem.scale)
        columns = np.flatnonzero(self.fused.any(axis=0))
        return all(
            (self.graph.joined(held[:, k]) == self.graph.joined(self.fused[:, k])).all()
            for k in columns
        )

    @cached_property
    def edge_curvature(self) -> Array:
        """Lam A_e phi''(v_e), shape (n_edges, d, d); zero when nothing is coupled."""
        if not (self.problem.coupled and self.problem.penalty.twice):  # linf is straight
            return np.zeros((self.graph.n_edges, self.d, self.d))
        bend = self.problem.penalty.curvature(self.v)
        return np.asarray(self.problem.scale[:, None, None] * bend)

    @cached_property
    def edge_force(self) -> Array:
        """Lam A_e phi'(v_e), what an edge takes from its head and gives to its tail."""
        if not self.problem.coupled:
            return np.zeros_like(self.v)
        if not self.problem.penalty.twice:  # linf: any point of the face pulls alike along it
            share = self.largest / np.maximum(self.largest.sum(axis=1, keepdims=True), 1)
            return np.asarray(self.problem.scale[:, None] * np.sign(self.v) * share)
        return np.asarray(self.problem.smooth_flow(self.w))

    @cached_property
    def edge_pull(self) -> Array:
        """What is left of the force beyond the curvature; zero for squared penalties."""
        bent = (self.edge_curvature @ self.v[..., None])[..., 0]
        return np.asarray(np.where(self.fused, 0.0, self.edge_force - bent))

    @cached_property
    def part(self) -> Mask:
        """Nodes of the same component."""
        return np.asarray(self.problem.parts == self.problem.parts[self.at])

    @cached_property
    def live(self) -> Mask:
        """Parameters that the data of the component know at all, shape (d,)."""
        return np.asarray(np.einsum("ijj->j", self.H[self.part]) > 0)

    @cached_property
    def Z(self) -> Array:
        """Columns of the inverse curvature of the node, shape (n_nodes, d, d): Z[j].T s_j."""
        n, d = self.graph.n_nodes, self.d
        right = np.zeros((n * d, d))
        right[self.at * d + np.arange(d), np.arange(d)] = 1.0
        found = self.solve(right)
        found[:, ~self.live] = 0.0
        return np.asarray(self.classes.told(found).reshape(n, d, d))

    def solve(self, right: Array) -> Array:
        """A solve with the curvature, on the set of models that stay equal."""
        basis = self._basis
        goal = basis.goal(right)
        found = basis.by(goal)
        if not basis.solves(found, goal):
            raise ValueError(
                "The data must fix the parameters for an explanation; they do not. Add a ridge "
                "term, such as Squared(l2=1e-6), couple all features, give more rows, or bring "
                "features to like sizes by standardize=True."
            )
        return basis.spread(found)

    def step(self) -> Array:
        """Newton's step to the optimum, shape (n_nodes, d)."""
        basis, force = self._basis, np.where(self.fused, 0.0, self.edge_force)
        goal = basis.goal(self.problem.loss.grad(self.w).reshape(-1, 1))
        goal = goal + (self._differences() @ basis.T).T[basis.keep] @ force.reshape(-1, 1)
        return -basis.spread(basis.by(goal)).reshape(self.w.shape)

    @cached_property
    def _basis(self) -> Basis:
        """In which to solve: that of the nodes, unless their coupling drowns what the data say."""
        plain = self._reduced(self.ties)
        unit = np.zeros((self.graph.n_nodes * self.d, self.d))
        unit[self.at * self.d + np.arange(self.d), np.arange(self.d)] = 1.0
        goal = plain.goal(unit)
        if self.largest.any() or plain.solves(plain.by(goal), goal, _CLEAN):
            return plain
        curved = np.einsum("ijj->ij", self.H).ravel()
        return self._reduced(rooted(self.ties, curved, self.part, self.d))

    def _reduced(self, T: sparse.csr_array) -> Basis:
        """The curvature along ties, of the component, and its solver."""
        keep = np.flatnonzero(abs(T).T @ np.repeat(self.part, self.d).astype(float) > 0)
        own, bent = self._matrices()
        away = self._differences() @ T
        small = sparse.csr_array(T.T @ own @ T + away.T @ bent @ away)[keep][:, keep]
        dead = np.tile(~self.live, self.graph.n_nodes).astype(float)
        mixed = abs(T).T @ dead > 0
        if not self.live.all() and self.largest.any():
            raise ValueError(
                "An explanation with linf needs features that vary; some are the same in all rows."
            )
        empty = (small.diagonal() <= 0) | mixed[keep]
        whole = sparse.csc_array(small + sparse.diags_array(empty.astype(float)))
        # On faces of linf what is alike in all classes may be free at any node.
        free = bool(len(self.classes.loose) and self.largest.any())
        return Basis(T, keep, whole, least_solver(whole) if free else refined_solver(whole))

    @cached_property
    def classes(self) -> Classes:
        """What is alike in all classes and costs nothing."""
        return Classes.of(self.problem)

    @cached_property
    def ties(self) -> sparse.csr_array:
        """From the parameters that are free to those of all nodes, shape (n d, m)."""
        part = self.part[self.graph.head][:, None]
        plain = ties(self.graph, self.d, self.fused)
        return faces(self.graph, self.v, self.largest & part, plain)

    def _matrices(self) -> tuple[sparse.csr_array, sparse.csr_array]:
        """blkdiag(H_i) of the nodes, and blkdiag(C_e) of the edges."""
        own = self.H + self.classes.curvature(self.H, self.at)
        return diagonal(own), diagonal(self.edge_curvature)

    def _differences(self) -> sparse.csr_array:
        """From parameters to differences over the edges, shape (n_edges d, n d)."""
        m, n, d = self.graph.n_edges, self.graph.n_nodes, self.d
        column = np.arange(d)
        ends = [(side[:, None] * d + column).ravel() for side in (self.graph.head, self.graph.tail)]
        sign = np.repeat([1.0, -1.0], m * d)
        place = np.tile(np.arange(m * d), 2)
        return sparse.csr_array((sign, (place, np.concatenate(ends))), shape=(m * d, n * d))

    # -- what the optimum is made of ----------------------------------------------------------

    @cached_property
    def asks(self) -> Array:
        """s_j of each node, shape (n_nodes, d)."""
        moved = (self.H @ self.w[..., None])[..., 0]
        return np.asarray(moved - self.problem.loss.grad(self.w))

    @cached_property
    def row_asks(self) -> Array | None:
        """The terms of s_j by row, shape (n_rows, d); None for losses that are no sums of rows."""
        loss = self.problem.loss
        if not isinstance(loss, BoundRows):
            return None
        z, data = loss.predict(self.w), loss.data
        ask = (loss.row_bend(z, z) - loss.row_slope(z)).reshape(len(z), -1)
        asks = (data.row_weight[:, None] * ask)[:, :, None] * data.X[:, None, :]
        return np.asarray(asks.reshape(len(z), -1))

    @cached_property
    def by_node(self) -> Array:
        """The part of each node's rows in the model, shape (n_nodes, d)."""
        rows, data = self.row_asks, self.problem.data
        asks = self.asks if rows is None or data is None else data.node_sum(rows)
        return np.einsum("jkl,jk->jl", self.Z, asks)

    @cached_property
    def by_edge(self) -> Array:
        """The part of each edge's pull, shape (n_edges, d); zero for squared penalties."""
        away = self.Z[self.graph.head] - self.Z[self.graph.tail]
        return -np.einsum("ekl,ek->el", away, self.edge_pull)

    @cached_property
    def edge_change(self) -> Array:
        """How the model moves when the edge's force goes, to first order, shape (n_edges, d)."""
        away = self.Z[self.graph.head] - self.Z[self.graph.tail]
        return np.einsum("ekl,ek->el", away, np.where(self.fused, 0.0, self.edge_force))

    @cached_property
    def shares(self) -> Array:
        """Part of the identity of each node's rows, shape (n_nodes,); see `ridge_share`."""
        on = self.live
        found = np.einsum("jkl,jkl->j", self.Z[:, :, on], self.grams[:, :, on])
        return np.asarray(found / self.n_told)

    @property
    def n_told(self) -> int:
        """How many parameters there are to tell."""
        return max(int(self.live.sum()) - len(self.classes.loose), 1)

    @cached_property
    def grams(self) -> Array:
        """Curvature of the rows, without ridge terms."""
        loss = self.problem.loss
        if not isinstance(loss, BoundRows):
            return self.H
        return np.asarray(loss.gram(loss.predict(self.w)))
