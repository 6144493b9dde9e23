"""The driver of sites: the same end as in one process, whatever happens on the way."""

import numpy as np
import pytest

from nefele.losses import Logistic
from nefele.runtime import pass_messages
from nefele.runtime.programs import algorithm1, certificate
from nefele.solvers import PrimalDual
from tests.runtime.networks import network
from tests.sites.parties import run_sites

LOSSES = {"squared": "squared", "logistic": Logistic()}
PENALTIES = ("l2", "l1", "squared_l2")
SOLVERS = {"printed": PrimalDual.as_printed(), "scaled": PrimalDual()}
BAD_LINKS = {"loss": 0.05, "duplicate": 0.2, "reorder": 0.2, "jitter": 0.1}
EIGHT = {i: f"s{i}" for i in range(8)}  # each node a site
FIVE = {i: f"s{i * 5 // 12}" for i in range(12)}  # sites of two or three nodes


def problem_of(parts=EIGHT, penalty="l2", loss="squared", **kwargs):
    return network(n=len(parts), penalty=penalty, loss=LOSSES[loss], **kwargs)


def certified(solver, rounds):
    """A program of Algorithm 1 and the certificate of where it ends."""

    def program(part):
        yield from algorithm1(part, solver, rounds)
        return (yield from certificate(part))

    return program


def check_same(ends, problem, parts, solver, rounds):
    """W and u as in one process bit for bit, and the same certificate at all sites."""
    alone = pass_messages(problem, rounds, solver, parts=parts)
    assert np.array_equal(ends.w, alone.w) and np.array_equal(ends.u, alone.u)
    expected = problem.certificate(alone.w, alone.u)
    for found in ends.values.values():
        assert found.objective == pytest.approx(expected.objective, rel=1e-9)
        assert found.gap_abs == pytest.approx(expected.gap_abs, rel=1e-9, abs=1e-9)


def check_books(ends):
    """What one says another hears, each message once."""
    for name, driver in ends.drivers.items():
        for (sender, receiver, content), sums in driver.ledger.by_way.items():
            assert sender == name
            heard = ends.drivers[receiver].heard.by_way[sender, receiver, content]
            assert (heard.messages, heard.floats) == (sums.messages, sums.floats)


@pytest.mark.parametrize("parts", [EIGHT, FIVE], ids=["nodes", "parts"])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_sites_end_where_one_process_does(tmp_path, loss, penalty, solver, parts):
    problem, rounds = problem_of(parts, penalty, loss), 60
    make = certified(SOLVERS[solver], rounds)
    ends = run_sites(tmp_path, problem, parts, make)
    check_same(ends, problem, parts, SOLVERS[solver], rounds)
    check_books(ends)
