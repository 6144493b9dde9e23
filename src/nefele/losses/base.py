"""Local loss functions L_i: what a solver may ask of them (NFL, Sec. II-A and Appendix B)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._kernels.groups import group_sums
from nefele.data import LocalData
from nefele.losses.escape import Escape, runs_away, runs_together

_ROUNDING = 1e-12  # curvature, in units of the largest at zero, that is none
_FLAT = 0.1  # share of the curvature at zero below which a loss may run to infinity
_NEWTON_STEPS, _HALVINGS = 100, 40  # at most, of a pooled fit and of each of its steps
# Steps of the proximal point method that finds local minimisers, in units of 1 / curvature.
_LADDER = (1e2, 1e4, 1e6, 1e8, 1e8)


# Row duals a, shape (n_rows,), and duals of |w_ij|, shape (n_nodes, d); None where not known.
Duals = tuple[Array | None, Array | None]


class Loss(ABC):
    """A kind of loss with its hyper-parameters; `bind` it to data to get numbers."""

    @abstractmethod
    def bind(self, data: LocalData) -> BoundLoss:
        """The loss of these local datasets, one L_i per node.

        Parameters
        ----------
        data : LocalData
        """


class BoundLoss(ABC):
    """The local losses of all nodes at once; every array has the nodes as first axis.

    A user's own loss gives `value` and `prox`, or `value` and `grad`, in this form.

    Attributes
    ----------
    n_nodes, d : int
        Number of nodes and length of each parameter vector.
    labelled : bool array of shape (n_nodes,)
        Nodes whose loss is not identically zero.
    smooth : bool
        Whether `grad` is the gradient everywhere.
    affine_grad : bool
        Whether `grad` is affine: the losses are quadratic where they are smooth.
    """

    n_nodes: int
    d: int
    labelled: NDArray[np.bool_]
    smooth: bool = True
    affine_grad: bool = False

    @abstractmethod
    def value(self, w: Array) -> Array:
        """L_i(w_i), shape (n_nodes,).

        Parameters
        ----------
        w : array of shape (n_nodes, d)
        """

    @abstractmethod
    def grad(self, w: Array) -> Array:
        """Gradient of L_i at w_i, shape (n_nodes, d).

        Parameters
        ----------
        w : array of shape (n_nodes, d)
        """

    @abstractmethod
    def prox(self, v: Array, step: Array, start: Array | None = None) -> Array:
        """argmin_z L_i(z) + 1/(2 step_i) ||z - v_i||^2, shape (n_nodes, d) (NFL, Eq. (32)).

        `start` is a first guess for iterative forms; it does not change the result.

        Parameters
        ----------
        v : array of shape (n_nodes, d)
        step : array of shape (n_nodes,)
        start : array of shape (n_nodes, d), optional
        """

    def hess(self, w: Array) -> Array | None:
        """Hessian at w_i, shape (n_nodes, d, d); None when there is none.

        Parameters
        ----------
        w : array of shape (n_nodes, d)
        """
        return None

    def strong_convexity(self) -> Array:
        """A modulus mu_i >= 0 of strong convexity of each L_i, shape (n_nodes,)."""
        return np.zeros(self.n_nodes)

    def curvature(self) -> Array:
        """A typical curvature of each L_i, shape (n_nodes,); only a scale for step sizes."""
        return np.where(self.labelled, 1.0, 0.0)

    def dual_point(self, w: Array, target: Array) -> DualPoint | None:
        """A point of the dual near the gradient at w; None when no conjugate is known.

        `target` is what the gradients should become: -D^T u, shape (n_nodes, d).

        Parameters
        ----------
        w : array of shape (n_nodes, d)
        target : array of shape (n_nodes, d)
        """
        return None

    def minimise(self) -> Array:
        """A minimiser of each L_i, near zero where there are many, shape (n_nodes, d).

        Where the infimum is not attained, a point far out with nearly the least value.
        """
        curvature = np.where(self.curvature() > 0, self.curvature(), 1.0)
        w = np.zeros((self.n_nodes, self.d))
        for factor in _LADDER:
            w = self.prox(w, factor / curvature, start=w)
        return w

    def origin(self) -> Array:
        """Where a solve starts: zero, or the prox of zero where the loss is infinite at zero."""
        zero = np.zeros((self.n_nodes, self.d))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            far = np.isposinf(self.value(zero))
            if not far.any():
                return zero
            return np.where(far[:, None], self.prox(zero, self.steps()), zero)

    def start(self) -> Array:
        """Where steps by curvature begin: `origin`, or nearer the minimisers if that is too far."""
        return self.origin()

    def steps(self, length: float = 1.0) -> Array:
        """Steps of this length in units of 1 / curvature, or of 1 where a loss has none.

        Parameters
        ----------
        length : float
        """
        curvature = self.curvature()
        return np.asarray(length / np.where(curvature > 0, curvature, 1.0))

    def pooled(self, groups: NDArray[np.int64]) -> Array | None:
        """Minimiser of each group's summed loss, given to each of its nodes, shape (n_nodes, d).

        `groups` labels each node from 0. Damped Newton steps; None where there is no Hessian.

        Parameters
        ----------
        groups : int array of shape (n_nodes,)
        """
        w = np.zeros((self.n_nodes, self.d))
        with np.errstate(over="ignore", invalid="ignore"):
            value = group_sums(groups, self.value(w))
            for _ in range(_NEWTON_STEPS):
                hess = self.hess(w) if self.smooth else None
                if hess is None:
                    return None
                bend, slope = group_sums(groups, hess), group_sums(groups, self.grad(w))
                move = np.linalg.pinv(bend, rcond=1e-13, hermitian=True) @ -slope[..., None]
                w, after = self._fallen(groups, w, move[..., 0], value)
                done, value = value - after <= 1e-15 * np.abs(after), after
                if done.all():
                    break
        return w

    def _fallen(
        self, groups: NDArray[np.int64], w: Array, move: Array, value: Array
    ) -> tuple[Array, Array]:
        """The groups' common parameters moved where their sums fall, and these sums."""
        step = np.ones(len(move))
        for _ in range(_HALVINGS):
            trial = w + (step[:, None] * move)[groups]
            new = group_sums(groups, self.value(trial))
            ok = new <= value + 1e-14 * np.abs(value)
            if ok.all():
                break
            step = np.where(ok, step, 0.5 * step)
        return np.where(ok[groups, None], trial, w), np.where(ok, new, value)

    def restrict(self, nodes: NDArray[np.int64]) -> BoundLoss:
        """The losses of some nodes only, given by position: what a single site holds.

        Where the formula depends on the size of the problem, it stays that of all nodes, so that
        a part of a network rounds as one process does.

        Parameters
        ----------
        nodes : int array of shape (k,)
        """
        raise TypeError(f"{type(self).__name__} cannot be split by node: it gives no restrict.")

    def sized(self, n_nodes: int, n_rows: int) -> None:
        """Take the formulas of a network with so many nodes and rows, of which this is a part.

        Parameters
        ----------
        n_nodes, n_rows : int
            Of the whole network.
        """
        return None

    def forget(self) -> None:
        """Drop first guesses that earlier calls left, so that equal solves give equal bits."""
        return None

    def memory(self) -> dict[str, Array]:
        """These first guesses, by name, for `recall` in a solve that is resumed."""
        return {}

    def recall(self, memory: dict[str, Array]) -> None:
        """Go on with the first guesses of `memory`.

        Parameters
        ----------
        memory : dict of arrays
            What `memory` gave.
        """
        return None

    def escape_nodes(self, nodes: NDArray[np.bool_]) -> Escape:
        """Directions t of these nodes' common parameters that cost nothing, however far one goes.

        Here: no direction is free, as for losses with compact level sets.

        Parameters
        ----------
        nodes : bool array of shape (n_nodes,)
        """
        none, held = np.zeros((0, self.d)), self.d * int(self.labelled[nodes].any())
        return Escape(none, np.eye(self.d)[:held], none)

    def unbounded(
        self, groups: NDArray[np.int64], w: Array | None = None, basis: Array | None = None
    ) -> NDArray[np.bool_]:
        """Groups of nodes whose summed loss, with equal parameters, has no minimiser.

        `groups` labels each node, shape (n_nodes,); returns shape (n_groups,). A linear programme
        (Albert and Anderson 1984, for the logistic loss) for each group, or, given a nearly
        optimal w, for those whose curvature has nearly vanished there. With a `basis`, shape
        (d, k), only directions in its range count.

        Parameters
        ----------
        groups : int array of shape (n_nodes,)
        w : array of shape (n_nodes, d), optional
        basis : array of shape (d, k), optional
        """
        out = np.zeros(int(groups.max(initial=-1)) + 1, dtype=bool)
        basis = np.eye(self.d) if basis is None else basis
        if len(self.escape_nodes(self.labelled).free):
            for group in np.flatnonzero(self._flat(groups, w, basis)):
                out[group] = runs_away(self.escape_nodes(groups == group).along(basis))
        return out

    def unbounded_nodes(
        self, groups: NDArray[np.int64], personal: Array, w: Array | None = None
    ) -> NDArray[np.bool_]:
        """Nodes that may run away where only some directions are common to a group.

        The others, with the basis `personal` of shape (d, k), are each node's own. One linear
        programme for all; spared, given a nearly optimal w, when every node is curved there.

        Parameters
        ----------
        groups : int array of shape (n_nodes,)
        personal : array of shape (d, k)
        w : array of shape (n_nodes, d), optional
        """
        nodes = np.arange(self.n_nodes)
        if not len(self.escape_nodes(self.labelled).free):
            return np.zeros(self.n_nodes, dtype=bool)
        if w is not None and not self._flat(nodes, w, np.eye(self.d)).any():
            return np.zeros(self.n_nodes, dtype=bool)
        found = [self.escape_nodes(nodes == i) for i in range(self.n_nodes)]
        return runs_together(found, groups, personal)

    def bends(self) -> Array:
        """Second derivatives at zero, shape (n_nodes, d); without a Hessian the curvature."""
        hess = self.hess(np.zeros((self.n_nodes, self.d)))
        if hess is None:
            return np.repeat(self.curvature()[:, None], self.d, axis=1)
        return np.array(np.einsum("ijj->ij", hess))

    def held(self, ridge: Array) -> BoundLoss | None:
        """The same losses with sum_j ridge_ij w_ij^2 added, shape (n_nodes, d), if that is known.

        So are nodes held that would run away.

        Parameters
        ----------
        ridge : array of shape (n_nodes, d)
        """
        return None

    def _flat(self, groups: NDArray[np.int64], w: Array | None, basis: Array) -> NDArray[np.bool_]:
        """Groups with data whose curvature at w is in some direction far below the one at zero."""
        known = np.zeros(int(groups.max()) + 1, dtype=bool)
        known[groups[self.labelled]] = True
        now = None if w is None else self.hess(w)
        then = self.hess(np.zeros((self.n_nodes, self.d)))
        if now is None or then is None:
            return known
        now, then = (
            basis.T @ np.nan_to_num(group_sums(groups, blocks)) @ basis for blocks in (now, then)
        )
        values, vectors = np.linalg.eigh(then)
        seen = values > _ROUNDING * values[:, -1:]  # elsewhere nothing changes, whatever w is
        scaled = vectors * np.where(seen, 1 / np.sqrt(np.where(seen, values, 1.0)), 0.0)[:, None]
        ratio = np.swapaxes(scaled, 1, 2) @ now @ scaled + np.eye(then.shape[1]) * ~seen[:, None]
        return known & ~(np.linalg.eigvalsh(ratio)[:, 0] > _FLAT)


class DualPoint(ABC):
    """A candidate for the loss part of the dual problem: s_i with a known L_i*(s_i).

    The certificate moves it until s_i = -(D^T u)_i for every node.
    """

    @abstractmethod
    def flow(self) -> Array:
        """s_i, shape (n_nodes, d)."""

    @abstractmethod
    def size(self) -> Array:
        """Sizes of the terms that s_i sums, before they cancel, shape (n_nodes, d)."""

    @abstractmethod
    def metric(self) -> Array:
        """ds_i/dx_i of `move`, a psd matrix for each node, shape (n_nodes, d, d)."""

    @abstractmethod
    def move(self, x: Array, target: Array) -> None:
        """Change s_i by about -metric_i x_i, staying in the conjugate's domain.

        Parameters
        ----------
        x : array of shape (n_nodes, d)
        target : array of shape (n_nodes, d)
            What s is to become.
        """

    @abstractmethod
    def settle(self, x: Array) -> None:
        """Change s_i by exactly -metric_i x_i; the domain may be left, see `domain_ratio`.

        Parameters
        ----------
        x : array of shape (n_nodes, d)
        """

    def tidy(self) -> None:
        """Bring back into the domain what is outside by no more than rounding errors."""
        return None

    def adopt(self, duals: Sequence[Duals], w: Array) -> None:
        """Take duals of rows and of l1 terms that a solver has, at w, one pair for each kind.

        Parameters
        ----------
        duals : sequence of pairs of arrays
        w : array of shape (n_nodes, d)
        """
        return None

    @abstractmethod
    def domain_ratio(self) -> Array:
        """Largest factor by which a node is outside the domain, shape (n_nodes,); 1 = boundary."""

    @abstractmethod
    def conjugate(self, theta: Array) -> Array:
        """L_i*(theta_i s_i), or an upper bound of it, shape (n_nodes,).

        Parameters
        ----------
        theta : array of shape (n_nodes,)
        """


def block_product(blocks: Array, x: Array, compiled: bool) -> Array:
    """blocks_i x_i for each node, shape (n_nodes, d)."""
    if not compiled:
        return np.asarray((blocks @ x[..., None])[..., 0])
    from nefele._kernels import laplacian

    out = np.empty_like(x)
    laplacian.block_product(blocks, x, out)
    return out


def shifted_solve(H: Array, step: Array, right: Array, compiled: bool) -> Array:
    """(I + step_i H_i)^-1 right_i for each node, shape (n_nodes, d)."""
    if not compiled:
        blocks = np.eye(right.shape[1]) + step[:, None, None] * H
        return np.asarray(np.linalg.solve(blocks, right[..., None])[..., 0])
    from nefele._kernels import laplacian

    out = np.empty_like(right)
    laplacian.shifted_solve(H, step, right, out)
    return out


def check_signs(data: LocalData, loss: str) -> None:
    """Raise unless every label is -1 or 1, with advice for labels 0 and 1."""
    advice = " Use 2*y - 1." if np.isin(data.y, (0.0, 1.0)).all() else ""
    check_labels(
        np.abs(data.y) == 1, data, f"Labels of the {loss} loss must be -1 or 1", advice=advice
    )


def check_labels(ok: NDArray[np.bool_], data: LocalData, rule: str, *, advice: str = "") -> None:
    """Raise with the node and the value of the first label that breaks the rule."""
    if not ok.all():
        r = int(np.argmin(ok))
        node: Any = data.ids[data.row_node[r] : data.row_node[r] + 1].tolist()[0]
        raise ValueError(f"{rule}; got {data.y[r]:g} at node {node!r}.{advice}")
