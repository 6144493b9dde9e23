"""Systems (M + D^T C D) x = r with one small block per node, by conjugate gradients.

Two forms of the same three passes: NumPy, and compiled for large graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.graph import Graph
from nefele.program import Program, Sum, run_alone, total

Mix = Callable[[Array], Array]
Fill = Callable[[Array], Program[None]]

COMPILED = 20_000  # numbers in x from which compiled loops pay off
MOST_STEPS = 500


def laplacian(
    graph: Graph,
    give: Array,
    metric: Array | None = None,
    mix: Mix | None = None,
    stretch: Array | None = None,
    halo: NDArray[np.bool_] | None = None,
    columns: int | None = None,
) -> BlockLaplacian:
    """M + D^T C D with C one weight per edge or entry, `give` of shape (n_edges, 1 or d).

    `metric` has shape (n_nodes, d, d), None for M = 0. `mix` acts on the entries of C D x, such as
    a matrix Q; `stretch`, of shape (d,), is its diagonal, 1 where it is not known. `halo` marks
    nodes that belong to others: their rows of a product are not known here, and count as zero.
    `columns` is the length of a node's row of x where M does not tell.
    """
    size = graph.n_nodes * (columns or (give if metric is None else metric).shape[1])
    large = mix is None and size >= COMPILED and graph.plain
    kind = CompiledLaplacian if large else BlockLaplacian
    return kind(graph, give, metric, mix, stretch if graph.plain else None, halo)


@dataclass(eq=False)
class BlockLaplacian:
    """The NumPy form."""

    graph: Graph
    give: Array
    metric: Array | None
    mix: Mix | None
    stretch: Array | None
    halo: NDArray[np.bool_] | None

    def __call__(self, x: Array) -> Array:
        flow = self.give * self.graph.diff(x)
        out = self.graph.div(flow if self.mix is None else self.mix(flow))
        if self.metric is not None:
            out = out + (self.metric @ x[..., None])[..., 0]
        if self.halo is not None:
            out[self.halo] = 0.0
        return out

    def share(self, other: BlockLaplacian) -> None:
        """Use what another system with the same metric has computed.

        Its inverse as well: on a little other flow it takes as many steps, and no time.
        """
        self.inverse = other.inverse

    @cached_property
    def inverse(self) -> Array:
        """Inverse diagonal blocks, a little regularised; without a metric, diagonals."""
        bend = self.graph.at_ends(self.give)
        if self.metric is None:
            return np.asarray(1 / np.maximum(bend, np.finfo(float).tiny))
        d = self.metric.shape[1]
        if self.stretch is not None:
            bend = bend * self.stretch
        blocks = self.metric + np.broadcast_to(bend, self.metric.shape[:2])[:, :, None] * np.eye(d)
        size = np.einsum("ijj->i", blocks)
        floor = np.where(size > 0, 1e-14 * size, 1.0)
        inverse = np.linalg.inv(blocks + floor[:, None, None] * np.eye(d))
        return np.asarray(inverse, dtype=float)

    def product(self, p: Array, z: Array) -> float:
        """Z = (M + D^T C D) p, z zero before; returns p^T z."""
        z[:] = self(p)
        return float(np.vdot(p, z))

    def advance(self, alpha: float, x: Array, r: Array, p: Array, z: Array) -> tuple[float, float]:
        """X += alpha p, r -= alpha z and z = P r; returns r^T r and r^T z."""
        x += alpha * p
        r -= alpha * z
        z[:] = self.inverse * r if self.inverse.ndim == 2 else (self.inverse @ r[..., None])[..., 0]
        return float(np.vdot(r, r)), float(np.vdot(r, z))

    def turn(self, factor: float, p: Array, z: Array) -> None:
        """P = z + factor p and z = 0."""
        p *= factor
        p += z
        z[:] = 0.0


class CompiledLaplacian(BlockLaplacian):
    """The compiled form, with the blocks' upper triangles."""

    @cached_property
    def _packed(self) -> Array:
        from nefele._kernels import laplacian

        return np.empty((0, 1)) if self.metric is None else laplacian.pack(self.metric)

    def __call__(self, x: Array) -> Array:
        out = np.zeros_like(x)
        self.product(x, out)
        return out

    def share(self, other: BlockLaplacian) -> None:
        super().share(other)
        if isinstance(other, CompiledLaplacian):
            self._packed = other._packed

    @cached_property
    def inverse(self) -> Array:
        if self.metric is None:
            return super().inverse
        from nefele._kernels import laplacian

        return np.asarray(laplacian.block_inverse(self._packed, self.graph.at_ends(self.give)))

    def product(self, p: Array, z: Array) -> float:
        from nefele._kernels import laplacian
        from nefele._kernels.rows import as_dims

        graph, give = self.graph, self.give
        dims = as_dims(p.shape[1], give.shape[1])
        inner = float(laplacian.product(dims, graph.ptr, graph.tail, give, self._packed, p, z))
        if self.halo is not None:
            inner -= float(np.vdot(p[self.halo], z[self.halo]))
            z[self.halo] = 0.0
        return inner

    def advance(self, alpha: float, x: Array, r: Array, p: Array, z: Array) -> tuple[float, float]:
        from nefele._kernels import laplacian
        from nefele._kernels.rows import as_dims

        dims = as_dims(x.shape[1])
        square, inner = laplacian.advance(dims, alpha, self.inverse, x, r, p, z)
        return float(square), float(inner)

    def turn(self, factor: float, p: Array, z: Array) -> None:
        from nefele._kernels import laplacian
        from nefele._kernels.rows import as_dims

        laplacian.turn(as_dims(p.shape[1]), factor, p, z)


def conjugate_gradients(
    system: BlockLaplacian,
    right: Array,
    rtol: float,
    start: Array | None = None,
    most: int = MOST_STEPS,
) -> tuple[Array, bool]:
    """Preconditioned conjugate gradients; whether the residual fell to rtol times `right`."""
    return run_alone(gradients_program(system, right.copy(), rtol, start, most))


def gradients_program(
    system: BlockLaplacian,
    right: Array,
    rtol: float,
    start: Array | None = None,
    most: int = MOST_STEPS,
    fill: Fill | None = None,
    room: tuple[Array, Array, Array] | None = None,
) -> Program[tuple[Array, bool]]:
    """The same on one part of a system: two sums in each step, and what `fill` exchanges.

    `right` is used up, and `room` is three more arrays of its shape to work in; without a `start`
    the last of them becomes x.
    """
    p, z, x = room or (np.empty_like(right), np.empty_like(right), np.empty_like(right))
    if start is None:
        x[:] = 0.0
    else:
        x = start.copy()
    p[:], z[:], whole, r = 0.0, 0.0, float(np.vdot(right, right)), right
    if start is not None:
        r -= system(start)
    first = system.advance(0.0, x, r, p, z)
    size, square, rz = (yield Sum(np.array([whole, *first]))).tolist()
    goal = rtol * float(np.sqrt(size))
    system.turn(0.0, p, z)
    for _ in range(most):
        if square <= goal**2 or not rz > 0:
            return x, True
        if fill is not None:
            yield from fill(p)
        bend = yield from total(system.product(p, z))
        if not bend > 0:
            return x, False
        before = rz
        square, rz = (yield Sum(np.array(system.advance(rz / bend, x, r, p, z)))).tolist()
        system.turn(rz / before, p, z)
    return x, False
