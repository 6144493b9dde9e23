"""Members that stay away, frozen or dropped: what is solved then."""

import numpy as np
import pytest

from nefele.runtime import InProcess
from nefele.sites.example import coast, some_rows
from nefele.sites.federation import Federation
from nefele.sites.frozen import held_name
from nefele.sites.learning import Learner
from nefele.sites.links import network
from nefele.sites.terms import Terms
from nefele.sites.together import learn_together

FEDERATION = coast(alpha=20.0, tol=1e-8, absent="freeze")
ROWS = some_rows(FEDERATION)


def without_inari(held):
    net = network(FEDERATION, frozenset(["inari"]))
    learners = {n: Learner(FEDERATION, n, ROWS[n], ["inari"], held.get(n, {})) for n in net.members}
    found = InProcess(net.links, {n: learner.run() for n, learner in learners.items()}).run()
    return learners, found


def test_a_model_that_is_held_at_its_optimum_leaves_the_others_at_theirs():
    whole = learn_together(FEDERATION, ROWS)
    model = whole["inari"].part.w1[0].tolist()
    _, found = without_inari({"kemi": {held_name("inari", "kemi"): model}})
    for name in ("oulu", "kemi"):
        own = whole[name].part.w1
        assert np.allclose(found[name].part.w1[: len(own)], own, rtol=1e-4, atol=1e-4)
        assert found[name].fitted.gap <= FEDERATION.tol


def test_a_model_that_is_held_elsewhere_stays_there_and_pulls_its_neighbour():
    whole = learn_together(FEDERATION, ROWS)
    far = whole["inari"].part.w1[0] + 30.0
    _, found = without_inari({"kemi": {held_name("inari", "kemi"): far.tolist()}})
    assert np.allclose(found["kemi"].part.w1[1], far, rtol=1e-4)
    assert (found["kemi"].part.w1[0] > whole["kemi"].part.w1[0]).any()


def test_of_a_member_that_was_never_heard_nothing_is_held():
    _, found = without_inari({})
    dropped = coast(alpha=20.0, tol=1e-8, absent="drop")
    rest = learn_together(dropped, ROWS, gone=("inari",))
    assert np.allclose(found["kemi"].part.w1[0], rest["kemi"].part.w1[0], rtol=1e-4, atol=1e-4)


def test_a_dropped_member_leaves_the_fit_of_the_federation_without_it():
    dropped = coast(alpha=20.0, tol=1e-8, absent="drop")
    rest = learn_together(dropped, ROWS, gone=("inari",))
    members = tuple(m for m in dropped.members if m.name != "inari")
    small = Federation(
        name="coast",
        features=dropped.features,
        target=dropped.target,
        members=members,
        edges=tuple(e for e in dropped.edges if "inari" not in (e.source, e.target)),
        alpha=20.0,
        tol=1e-8,
        absent="drop",
    )
    alone = learn_together(small, {name: ROWS[name] for name in ("oulu", "kemi")})
    for name in alone:
        assert np.array_equal(alone[name].part.w1, rest[name].part.w1)


def test_held_nodes_are_no_nodes_of_the_site_in_its_results():
    learners, found = without_inari({"kemi": {held_name("inari", "kemi"): [0.0, 0.0, 0.0]}})
    assert learners["kemi"].graph.ids[learners["kemi"].own].tolist() == ["kemi"]
    assert found["kemi"].scores.nodes.tolist() == ["kemi"]


def test_freezing_needs_parameters_that_keep_their_meaning():
    with pytest.raises(ValueError, match='absent = "freeze" needs parameters'):
        Terms(absent="freeze", standardize="sums")
