"""A part among others in processes of their own: what it does in which order."""

import numpy as np
import pytest

from nefele.program import Exchange, Heard
from nefele.runtime.cutting import cut
from nefele.runtime.drivers.line import Line
from nefele.runtime.halves import halves
from nefele.runtime.tree import Tree
from nefele.solvers.base import settled
from tests.engines.problems import posed


class Recorded:
    """A post whose messages are there at once; it remembers what was done."""

    def __init__(self):
        self.done = []

    def send(self, to, kind, array):
        self.done.append("send")

    def receive(self, sender, kind):
        self.done.append("receive")
        return np.array([1.0, 2.0])


def test_a_part_works_while_its_rows_are_on_their_way():
    post = Recorded()
    line = Line("a", Tree({"a": ["b"], "b": ["a"]}), post)

    def program():
        heard = yield Exchange(
            "rows", {"b": np.zeros((3, 2))}, meanwhile=lambda: post.done.append("work")
        )
        return heard.rows["b"].shape

    assert line.drive(program()) == (1, 2)
    assert post.done == ["send", "work", "receive"]


@pytest.mark.parametrize("calls", [0, 1, 3])
def test_an_iteration_is_the_same_however_often_a_driver_calls_the_work(calls):
    """None at all included: then the part does it when the rows have come."""
    found = []
    for now in (1, calls):
        parts = cut(posed(), 2)
        steps = [at_work(part) for part in parts]
        for _ in range(3):
            one_iteration(steps, now)
        found.append(np.concatenate([at.w[at.own] for at in steps]))
    assert np.array_equal(*found) and np.abs(found[0]).max() > 0


def at_work(part):
    part.w = settled(part, part.w, part.graph.degree[part.own] == 0)
    made = halves(part, np.ones(len(part.scale)), True)
    n = len(part.nodes)
    made.set_steps(0.5, np.full(n, 0.1), np.full(len(part.scale), 1.0))
    return made


def one_iteration(steps, calls):
    programs = [at.step(1.9) for at in steps]
    asked = [next(program) for program in programs]
    for request in asked:
        for _ in range(calls):
            request.meanwhile()
    names = [next(iter(request.arrays)) for request in asked]
    for program, request, name in zip(programs, reversed(asked), names, strict=True):
        rows = next(iter(request.arrays.values()))
        with pytest.raises(StopIteration):
            program.send(Heard({name: rows}, frozenset()))
