"""Attacks by optimisation: captured nodes that look for what moves the honest ones furthest.

Whatever a captured node says, an honest neighbour feels a force from the dual ball of its edge, and
since it may say something else to each neighbour, any such forces. So an attack is a choice of one
force for each edge to a captured node. With x(p) the honest optimum under forces p, a map that is
minus the gradient of a convex function, the gradient of ||x(p) - x(0)||^2 / 2 is its derivative in
the direction x(p) - x(0): one more solve, exact while the active set stays.
"""

import numpy as np

from nefele import Graph, LocalData, Problem, solve

_TOL = 1e-11
_STEP = 1e-4  # of the derivative, relative to the forces
_GAIN = 1e-4  # relative gain below which an ascent ends


class Honest:
    """The honest nodes of a problem with squared losses, as a function of the forces on them."""

    def __init__(self, problem, attackers):
        graph, self.problem = problem.graph, problem
        self.nodes = np.setdiff1d(np.arange(graph.n_nodes), attackers)
        bad = np.isin(np.arange(graph.n_nodes), attackers)
        place = np.cumsum(~bad) - 1
        kept = ~bad[graph.head] & ~bad[graph.tail]
        ends = place[graph.head[kept]], place[graph.tail[kept]]
        self.graph = Graph(np.arange(len(self.nodes)), *ends, graph.weight[kept])
        edges = [(i, a) if bad[j] else (j, a)
                 for i, j, a in zip(graph.head, graph.tail, graph.weight, strict=True)
                 if bad[i] != bad[j]]  # fmt: skip
        self.at = place[[i for i, _ in edges]] if edges else np.zeros(0, dtype=int)
        self.most = problem.lam * np.array([a for _, a in edges])
        self.data = problem.data.subset(self.nodes)
        self.base = self.optimum(np.zeros((len(self.nodes), problem.d)))

    def optimum(self, force):
        """argmin of the honest objective plus <force, w>: with squared losses, other labels."""
        data, y = self.data, self.data.y.copy()
        for i, push in enumerate(force):
            own = slice(data.ptr[i], data.ptr[i + 1])
            X = data.X[own]
            y[own] -= len(X) / 2 * X @ np.linalg.solve(X.T @ X, push)
        moved = LocalData(data.X, y, data.ptr)
        part = Problem(self.graph, moved, penalty=self.problem.penalty, lam=self.problem.lam)
        return solve(part, tol=_TOL).w

    def forces(self, flows):
        """What the flows of the edges to captured nodes come to at each honest node."""
        out = np.zeros((len(self.nodes), self.problem.d))
        np.add.at(out, self.at, flows)
        return out

    def best(self, way):
        """Of all flows that attackers can have, those that go furthest along -way."""
        return -extreme(self.problem.penalty, way[self.at]) * self.most[:, None]

    def change(self, flows):
        return self.optimum(self.forces(flows)) - self.base

    def spread(self, change):
        """A change of the honest nodes among all nodes."""
        out = np.zeros((self.problem.graph.n_nodes, self.problem.d))
        out[self.nodes] = change
        return out


def extreme(penalty, v):
    """The point of the dual unit ball that goes furthest along v."""
    name = type(penalty).__name__
    if name == "L1Norm":
        return np.where(v >= 0, 1.0, -1.0)
    if name == "LinfNorm":
        out = np.zeros_like(v)
        top = np.abs(v).argmax(axis=1)
        out[np.arange(len(v)), top] = np.where(v[np.arange(len(v)), top] >= 0, 1.0, -1.0)
        return out
    size = np.linalg.norm(v, axis=1, keepdims=True)
    return v / np.where(size > 0, size, 1.0)


def ascend(honest, rng, node=None, steps=6):
    """Changes of the honest nodes on the way up, from random forces.

    The aim is the distance of all honest nodes together, or of one. Each step goes to the extreme
    forces along the gradient, or back from there by halves until it is further away.
    """
    weight = np.ones(len(honest.nodes)) if node is None else np.eye(len(honest.nodes))[node]
    flows = honest.best(rng.standard_normal((len(honest.nodes), honest.problem.d)))
    change = honest.change(flows)
    found = [change]
    for _ in range(steps):
        aim = weight[:, None] * change
        size = np.linalg.norm(aim)
        if not size > 0:
            break
        force, unit = honest.forces(flows), _STEP * max(honest.most.max(), 1e-6) / size
        slope = (honest.optimum(force - unit * aim) - honest.base - change) / unit
        target = honest.best(slope)
        for share in (1.0, 0.5, 0.25):
            tried = flows + share * (target - flows)
            new = honest.change(tried)
            found.append(new)
            if np.linalg.norm(weight[:, None] * new) > (1 + _GAIN) * size:
                break
        else:
            break
        flows, change = tried, new
    return found
