"""What five processes are compared with: the same programs, and the whole problem, in one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.estimators.design import Rows
from nefele.estimators.loading import load
from nefele.result import relative_gap
from nefele.runtime import InProcess
from nefele.sites.federation import Federation
from nefele.sites.learning import Learner
from nefele.sites.learnt import Learnt
from nefele.sites.links import network
from nefele.sites.results import site_model
from nefele.sites.site import Site
from nefele.solvers import solve

_TIGHT = 1e-9  # gap of the one-process fit


@dataclass(frozen=True, eq=False)
class Reference:
    """What one process finds.

    Attributes
    ----------
    learners, learnt : dicts of member to Learner and Learnt
    requests : int
        Requests of each program until its end.
    optimum : float
        Objective of the whole problem, solved at once, at most `gap` above the least.
    w : array of shape (n_nodes, d)
        Its parameters.
    objective : float
        Objective of the members' parameters in that problem.
    apart : float
        How much higher that is, relative as a certified gap is.
    """

    learners: dict[str, Learner]
    learnt: dict[str, Learnt]
    requests: int
    optimum: float
    gap: float
    w: Array
    objective: float
    apart: float

    @property
    def parameters_apart(self) -> float:
        """Largest difference of a parameter, relative to the largest parameter."""
        found = np.vstack([one.part.w1 for one in self.learnt.values()])
        return float(np.abs(found - self.w).max() / np.abs(self.w).max())

    def same(self, name: str, run: Path, facts: dict[str, Any]) -> bool:
        """Whether a site's model and certificate are those found here, bit for bit."""
        here, fitted = site_model(self.learners[name], self.learnt[name]), self.learnt[name].fitted
        model = load(run / "model.nefele")
        assert fitted.certificate is not None
        certified = (fitted.gap, fitted.certificate.objective, fitted.rounds)
        return bool(
            np.array_equal(model.coef_, here.coef_)
            and np.array_equal(model.intercept_, here.intercept_)
            and (facts["gap"], facts["objective"], facts["rounds"]) == certified
        )


def reference(federation: Federation, folder: Path) -> Reference:
    """Run the programs of all members in one process, on the rows in their folders."""
    net = network(federation)
    rows = {name: Site(folder / name).rows() for name in net.members}
    learners = {name: Learner(federation, name, rows[name]) for name in net.members}
    driver = InProcess(net.links, {name: one.run() for name, one in learners.items()})
    learnt = driver.run()
    first = net.members[0]
    requests = driver.seats[first].steps - 1  # the last step ends the program
    one = learnt[first]
    problem = learners[first].problem(reduce(Rows.then, rows.values()), one.scales, one.alpha)
    best = solve(problem, tol=_TIGHT)
    found = problem.objective(np.vstack([one.part.w1 for one in learnt.values()]))
    apart = relative_gap(problem, found, abs(found - best.objective))
    numbers = (best.objective, best.gap, best.w, float(found), apart)
    return Reference(learners, learnt, requests, *numbers)
