"""What is smooth in the losses, and what has kinks: rows and entries with a cone of their own.

With slopes in [low, high] (absolute: [-1, 1], hinge: [-y, 0] or [0, -y]) a row's loss is

    f(z, y) = (high - low) / 2 |z - y| + (high + low) / 2 (z - y).

The first term is a cone as for an entry of the l1 norm, the second is linear. The Huber loss is
such a cone that gives way: its second derivative jumps, so that Newton steps on it may go round
in circles. The weight of |w_ij| in a lasso is a cone as well.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.losses import HuberLoss, Poisson
from nefele.losses.base import BoundLoss
from nefele.losses.constrained import BoundConstrained
from nefele.losses.constraints import Box
from nefele.losses.mixed import BoundMixed
from nefele.losses.multinomial import BoundMultinomial
from nefele.losses.piecewise import BoundPiecewise
from nefele.losses.pointwise import BoundPointwise
from nefele.losses.rows import BoundRows
from nefele.problem import Problem
from nefele.solvers.interior_point.chances import entropic

Index = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Source(Protocol):
    """Some |z_r - y_r| with slopes of at most s_r, where z is linear in w."""

    s: Array  # largest slopes, shape (n,)
    soft: Array  # width of the kink over s; 0: sharp
    y: Array

    def predict(self, w: Array) -> Array:
        """Z, shape (n,)."""

    def to_nodes(self, values: Array) -> Array:
        """The adjoint of `predict`, shape (n_nodes, d)."""

    def gram(self, weight: Array) -> Array:
        """The adjoint of `predict` times weights times `predict`, shape (n_nodes, d, d)."""

    def as_duals(self, u: Array) -> tuple[BoundLoss, Array | None, Array | None]:
        """The loss, and these flows as duals of its rows or of its l1 terms."""


class Rows:
    """The rows of a loss with kinks, at nodes that are `on`; `nodes` are those of the loss."""

    def __init__(self, loss: Any, nodes: Index, n_nodes: int, on: Mask) -> None:
        self.loss, self.nodes, self.n_nodes = loss, nodes, n_nodes
        data, weight = loss.data, loss.data.row_weight
        if isinstance(loss, BoundPiecewise):
            s, delta = weight * (loss.high - loss.low) / 2, 0.0
        else:
            delta = loss.loss.delta
            s = weight * delta
        kinked = (s > 0) & on[nodes][data.row_node]
        self.rows: Any = slice(None) if kinked.all() else np.flatnonzero(kinked)
        self.s, self.y = s[self.rows], data.y[self.rows]
        self.soft = delta / self.s

    def predict(self, w: Array) -> Array:
        """X w, shape (n,)."""
        own = w if len(self.nodes) == self.n_nodes else w[self.nodes]
        return np.asarray(self.loss.predict(own)[self.rows])

    def to_nodes(self, values: Array) -> Array:
        """X^T values over each node."""
        return self._placed(self.loss.to_nodes(self._all(values)))

    def gram(self, weight: Array) -> Array:
        """X^T diag(weight) X of each node."""
        return self._placed(self.loss._weighted_gram(self._all(weight)))

    def as_duals(self, u: Array) -> tuple[BoundLoss, Array | None, Array | None]:
        """Row duals; rows without a cone have their slope."""
        loss, data = self.loss, self.loss.data
        middle = (loss.low + loss.high) / 2 if isinstance(loss, BoundPiecewise) else 0.0
        a = np.zeros(data.n_rows) + middle
        a[self.rows] += u / data.row_weight[self.rows]
        return loss, a, None

    def _all(self, values: Array) -> Array:
        if isinstance(self.rows, slice):
            return values
        out = np.zeros(self.loss.data.n_rows)
        out[self.rows] = values
        return out

    def _placed(self, found: Array) -> Array:
        if len(self.nodes) == self.n_nodes:
            return np.asarray(found)
        out = np.zeros((self.n_nodes, *found.shape[1:]))
        out[self.nodes] = found
        return out


class Entries:
    """Weights of |w_ij| in a lasso."""

    def __init__(self, loss: Any, nodes: Index, n_nodes: int, on: Mask) -> None:
        self.loss, lasso = loss, loss.lasso
        i, self.j = np.nonzero(np.where(on[nodes][:, None], lasso, 0.0))
        self._place = i
        self.i, self.shape = nodes[i], (n_nodes, lasso.shape[1])
        self.s, self.y = lasso[i, self.j], np.zeros(len(i))
        self.soft = np.zeros(len(i))

    def predict(self, w: Array) -> Array:
        """The entries of w."""
        return np.asarray(w[self.i, self.j])

    def to_nodes(self, values: Array) -> Array:
        """The values at their entries."""
        out = np.zeros(self.shape)
        out[self.i, self.j] = values
        return out

    def gram(self, weight: Array) -> Array:
        """Diagonal matrices."""
        out = np.zeros((*self.shape, self.shape[1]))
        out[self.i, self.j, self.j] = weight
        return out

    def as_duals(self, u: Array) -> tuple[BoundLoss, Array | None, Array | None]:
        """Duals of |w_ij|."""
        out = np.zeros_like(self.loss.lasso)
        out[self._place, self.j] = u
        return self.loss, None, out


class Smooth:
    """Gradient and Hessian of what has no kinks: whole losses, and ridges with linear terms.

    With `duals` losses whose conjugates are entropies are left out as well, see `chances`.
    """

    def __init__(self, problem: Problem, duals: bool = False) -> None:
        self.shape = problem.graph.n_nodes, problem.d
        self.parts = [
            (nodes, part, not (rowwise(part) or (duals and entropic(part))))
            for nodes, part in parts_of(problem)
        ]
        self.affine = all(not curved or part.affine_grad for _, part, curved in self.parts)
        whole = len(self.parts) == 1
        self._plain = whole and self.parts[0][2]
        self._linear = {k: _linear(part) for k, (_, part, on) in enumerate(self.parts) if not on}

    def grad(self, w: Array) -> Array:
        """Shape (n_nodes, d)."""
        if self._plain:
            return self.parts[0][1].grad(w)
        out = np.zeros(self.shape)
        for k, (nodes, part, curved) in enumerate(self.parts):
            if curved:
                out[nodes] = part.grad(w[nodes])
            else:
                ridge, linear = self._linear[k]
                out[nodes] = (ridge @ w[nodes][..., None])[..., 0] + linear
        return out

    def hess(self, w: Array) -> Array:
        """Shape (n_nodes, d, d)."""
        if self._plain:
            return np.asarray(self.parts[0][1].hess(w))
        out = np.zeros((*self.shape, self.shape[1]))
        for k, (nodes, part, curved) in enumerate(self.parts):
            out[nodes] = part.hess(w[nodes]) if curved else self._linear[k][0]
        return out


def parts_of(problem: Problem) -> list[tuple[Index, BoundLoss]]:
    """Losses of one kind each, without the sets they may be within, and the nodes they are at."""
    return [
        (nodes, part.inner if isinstance(part, BoundConstrained) else part)
        for nodes, part in _whole_parts(problem)
    ]


def sets(problem: Problem) -> list[tuple[Index, BoundConstrained]]:
    """Losses within sets, and the nodes they are at."""
    found = _whole_parts(problem)
    return [(nodes, part) for nodes, part in found if isinstance(part, BoundConstrained)]


def _whole_parts(problem: Problem) -> list[tuple[Index, BoundLoss]]:
    loss = problem.loss
    if isinstance(loss, BoundMixed):
        return loss.parts
    return [(np.arange(problem.graph.n_nodes), loss)]


def rowwise(loss: BoundLoss) -> bool:
    """Whether the rows of a loss are cones: piecewise linear ones, and Huber's."""
    return isinstance(loss, BoundPiecewise) or bent(loss)


def bent(loss: BoundLoss) -> bool:
    """Whether the loss is Huber's: its Hessian jumps."""
    return isinstance(loss, BoundPointwise) and type(loss.loss) is HuberLoss


def curved_parts(problem: Problem) -> list[tuple[Index, BoundLoss]]:
    """Losses whose rows may have duals of their own, see `chances`."""
    return [(nodes, part) for nodes, part in parts_of(problem) if entropic(part)]


def chances(loss: Any, nodes: Index, on: Mask) -> int:
    """Numbers of chances in the rows."""
    rows = (loss.data.row_weight > 0) & on[nodes][loss.data.row_node]
    if isinstance(loss, BoundMultinomial):
        return int(rows.sum()) * loss.n_classes
    return int(rows.sum()) * (1 if type(loss.loss) is Poisson else 2)


def sources(problem: Problem, on: Mask) -> list[Source]:
    """All kinks of the losses at nodes that are `on`."""
    found: list[Source] = []
    for nodes, part in parts_of(problem):
        if rowwise(part):
            found.append(Rows(part, nodes, problem.graph.n_nodes, on))
        if isinstance(part, BoundRows) and part.lasso.any():
            found.append(Entries(part, nodes, problem.graph.n_nodes, on))
    return [source for source in found if len(source.s)]


def nodes(problem: Problem) -> Mask:
    """Nodes whose losses have kinks or bounds, shape (n_nodes,)."""
    out = np.zeros(problem.graph.n_nodes, dtype=bool)
    for where, part in parts_of(problem):
        out[where] = part.labelled & (rowwise(part) or not part.smooth)
    for where, _ in sets(problem):
        out[where] = ~problem.undetermined[where]
    return out


def present(problem: Problem) -> bool:
    """Whether there are any kinks or sets, or losses of different kinds."""
    found = parts_of(problem)
    kinks = any(rowwise(part) or not part.smooth for _, part in found)
    return kinks or len(found) > 1 or bool(sets(problem))


def fits(problem: Problem) -> bool:
    """Whether the losses are smooth with Hessians, but for kinks that are cones, and bounds."""
    if not all(_open(part) for _, part in sets(problem)):
        return False
    for _, part in parts_of(problem):
        if rowwise(part):
            continue
        if not (part.smooth or isinstance(part, BoundRows)):
            return False
        if part.hess(np.zeros((part.n_nodes, part.d))) is None:
            return False
    return True


def _open(loss: BoundConstrained) -> bool:
    """Whether the set is a box with a point strictly inside."""
    return isinstance(loss.within, Box) and bool(np.less(*loss.within.ends).all())


def force(problem: Problem) -> float:
    """What all losses together can pull: steepest slopes of rows with kinks, gradients at zero.

    Curved losses may pull harder elsewhere, though hardly much harder where they are less.
    """
    total = 0.0
    for _, part in parts_of(problem):
        if isinstance(part, BoundPiecewise):
            steepest = np.maximum(-part.low, part.high)
        elif bent(part):
            steepest = np.full(part.data.n_rows, part.loss.delta)  # type: ignore[attr-defined]
        else:
            total += float(np.abs(part.grad(np.zeros((part.n_nodes, part.d)))).sum())
            continue
        data = part.data  # type: ignore[attr-defined]
        total += float(data.row_weight @ (steepest * np.abs(data.X).sum(axis=1)))
    return total


def units(problem: Problem) -> Array:
    """What a parameter of each column is worth, shape (d,): features and units of any size.

    Where a column is multiplied by c its parameters are divided by c, and so is its unit.
    """
    square = np.zeros(problem.d)
    for _, part in parts_of(problem):
        if isinstance(part, BoundRows):
            square += squares(part)
        elif (bend := part.hess(np.zeros((part.n_nodes, part.d)))) is not None:
            square += np.einsum("ijj->j", bend)
    square = np.where(square > 0, square, square.max(initial=0.0) or 1.0)
    return np.asarray(1 / np.sqrt(square))


def squares(loss: BoundRows) -> Array:
    """Sum of the weighted squares of the features of each parameter, shape (d,)."""
    found = loss.data.row_weight @ loss.data.X**2
    return np.tile(found, loss.d // len(found))


def _linear(loss: Any) -> tuple[Array, Array]:
    """Hessian and constant gradient of what has no kinks."""
    ridge = loss.ridged(np.zeros((loss.n_nodes, loss.d, loss.d)))
    if isinstance(loss, BoundPiecewise):
        return ridge, loss.pull((loss.low + loss.high) / 2)
    return ridge, np.zeros((loss.n_nodes, loss.d))
