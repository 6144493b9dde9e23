"""The same iteration with Dask actors, as a user would write it: rows go by way of the client."""

from __future__ import annotations

import time
from contextlib import suppress

import numpy as np
from dask.distributed import Client, LocalCluster

from nefele.program import Heard, run_alone
from nefele.runtime.cutting import cut
from nefele.runtime.halves import halves
from nefele.runtime.job import Packed
from nefele.solvers.steps import first_steps


class Half:
    """A part, and the two halves of its iterations."""

    def __init__(self, packed, steps) -> None:
        part = packed.open()
        self.at = halves(part, np.broadcast_to(steps["size"], part.graph.n_edges), part.compiled)
        tau = steps["tau"][part.nodes]
        self.at.set_steps(steps["gamma"], tau, np.full(part.graph.n_edges, steps["sigma"]))

    def nodes(self):
        """What neighbouring parts are told, once nodes have moved."""
        self.going = self.at.step(1.9)
        return next(self.going).arrays

    def edges(self, heard) -> None:
        """The rest of the iteration, by what they have told."""
        with suppress(StopIteration):
            self.going.send(Heard(heard, frozenset(heard)))


def dask_iterations(problem, parts: int, n_iter: int) -> str:
    """Seconds of an iteration, measured after a warm-up; unit weights only."""
    made = cut(problem, parts)
    found = run_alone(first_steps(problem, False, None))
    steps = {"size": found.size[0], "tau": found.tau, "gamma": found.gamma, "sigma": found.sigma[0]}
    with (
        LocalCluster(
            n_workers=parts, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        actors = [client.submit(Half, Packed.of(part), steps, actor=True).result() for part in made]
        walls = []
        for _ in range(n_iter):
            began = time.perf_counter()
            said = [call.result() for call in [actor.nodes() for actor in actors]]
            heard = [{q: said[q][part.name] for q in part.says} for part in made]
            done = [actor.edges(rows) for actor, rows in zip(actors, heard, strict=True)]
            for call in done:
                call.result()
            walls.append(time.perf_counter() - began)
    return f"{1e3 * np.median(walls[5:]):.1f} ms an iteration"
