"""Every exported loss, penalty and solver has a case: a new one without a case fails here."""

import inspect

import pytest

from nefele import losses, penalties, solvers
from nefele.solvers import choose
from tests.contracts.cases import LOSSES, PENALTIES, SOLVERS

COVERED = {
    losses: [case.loss for case in LOSSES],
    penalties: [make(2) for make in PENALTIES.values()],
    solvers: list(SOLVERS.values()),
}
BASES = {losses: losses.Loss, penalties: penalties.Penalty, solvers: solvers.Solver}


@pytest.mark.parametrize("package", [losses, penalties, solvers], ids=lambda p: p.__name__)
def test_every_export_has_a_case(package):
    exported = {
        thing
        for name in package.__all__
        if inspect.isclass(thing := getattr(package, name))
        and issubclass(thing, BASES[package])
        and not inspect.isabstract(thing)
    }
    assert exported
    missing = exported - {kind for case in COVERED[package] for kind in type(case).__mro__}
    assert not missing, f"Add to tests/contracts/cases.py: {missing}"


@pytest.mark.parametrize("package", [losses, penalties], ids=lambda p: p.__name__)
def test_every_name_has_a_case(package):
    covered = {type(case) for case in COVERED[package]}
    assert set(package._BY_NAME.values()) <= covered
    assert {thing.__name__ for thing in package._BY_NAME.values()} <= set(package.__all__)


def test_every_solver_name_has_a_case():
    built = {repr(make()) for make in choose._BY_NAME.values()}
    assert built <= {repr(solver) for solver in SOLVERS.values()}
