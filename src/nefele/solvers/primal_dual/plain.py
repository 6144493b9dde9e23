"""The primal-dual iteration in NumPy: any loss, any penalty. Its compiled twin is in `fused`."""

from __future__ import annotations

from nefele._checks import Array
from nefele.problem import Problem
from nefele.solvers.updates import ahead, dual, primal, relaxed


class Plain:
    """Where the iteration is, and the last unrelaxed iterate, whose flow is inside its balls."""

    tau: Array
    sigma: Array

    def __init__(self, problem: Problem, w: Array, u: Array) -> None:
        self.problem = problem
        self.w, self.u = self.w1, self.u1 = w, u

    def set_steps(self, gamma: float, tau: Array, sigma: Array) -> None:
        """Go on with these steps."""
        self.tau, self.sigma = tau, sigma

    def set_w(self, w: Array) -> None:
        """Go on from other parameters."""
        self.w = w

    def set_flow(self, u: Array, out: Array) -> None:
        """Go on from another flow; what leaves each node by it is not needed here."""
        self.u = u

    def step(self, relax: float) -> None:
        """One over-relaxed iteration."""
        self.w1, self.u1 = self.next()
        self.w, self.u = relaxed(self.w, self.w1, relax), relaxed(self.u, self.u1, relax)

    def next(self) -> tuple[Array, Array]:
        """The unrelaxed iteration (NFL, Algorithm 1, steps 3-4 and 7-8)."""
        problem, graph = self.problem, self.problem.graph
        w1 = primal(problem.loss, self.w, graph.div(self.u), self.tau)
        diff = graph.diff(ahead(self.w, w1))
        return w1, dual(problem.penalty, self.u, diff, problem.scale, self.sigma)

    def unrelaxed(self, last: float | None = None) -> tuple[Array, Array]:
        """The last unrelaxed iterate; `last` makes no difference here."""
        return self.w1, self.u1

    def current(self) -> tuple[Array, Array]:
        """The relaxed iterate."""
        return self.w, self.u

    def arrays(self) -> dict[str, Array]:
        """What a resumed solve needs beside the relaxed iterate."""
        return {"w1": self.w1, "u1": self.u1}

    def take(self, arrays: dict[str, Array]) -> None:
        """Go on from `arrays` and the relaxed iterate, its "w" and "u"."""
        for name in ("w", "u", "w1", "u1"):
            setattr(self, name, arrays[name].reshape(getattr(self, name).shape))
