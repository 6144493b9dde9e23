"""Members that stay away: waited for, or left out, as was agreed."""

import json
import threading

import numpy as np
import pytest

from nefele.cli._site_words import line
from nefele.program import Exchange, Sum
from nefele.sites.carriers.memory import Hub
from nefele.sites.members import Edge
from nefele.sites.peers import AbsentError
from nefele.sites.presence import Presence, part_of
from nefele.sites.site import Site
from tests.sites.parties import Kills, Parties
from tests.sites.running import check_models, pilot, ring
from tests.waiting import LONG, wait_until

FIVE = {"absent": "drop", "absent_after": 3.0}


class Crew:
    """Sites of a trial in threads, over a hub; what they tell and how they end."""

    def __init__(self, folder, trial, hub=None):
        self.folder, self.trial, self.hub = folder, trial, hub or Hub()
        self.threads, self.ends, self.errors, self.told = {}, {}, {}, {}

    def start(self, *names):
        for name in names:
            self.told.setdefault(name, [])
            self.threads[name] = threading.Thread(target=self._run, args=(name,))
            self.threads[name].start()

    def _run(self, name):
        carrier = self.hub.carrier(name)
        site = Site(self.folder / "sites" / name, accept=self.trial.hash, carrier=carrier)
        try:
            self.ends[name] = site.run(self.told[name].append)
        except Exception as error:
            self.errors[name] = error

    def join(self, *names):
        for name in names or list(self.threads):
            self.threads[name].join(LONG)
            assert not self.threads[name].is_alive(), name

    def status(self, name):
        file = self.folder / "sites" / name / "run-1" / "status.json"
        return json.loads(file.read_bytes()) if file.exists() else {}


def test_the_others_end_with_the_fit_without_the_one_that_stays_away(tmp_path):
    trial = pilot(tmp_path, ring(5, **FIVE | {"rounds": 40, "check_every": 20}))
    crew = Crew(tmp_path, trial)
    rest = ["s00", "s01", "s03", "s04"]
    crew.start(*rest)
    crew.join()
    assert not crew.errors
    check_models(trial, tmp_path, rest)
    for name in rest:
        facts = json.loads((tmp_path / "sites" / name / "run-1" / "run.json").read_bytes())
        assert facts["gone"] == ["s02"] and crew.ends[name].gone == ["s02"]
        assert any("go on without: s02" in text for text in crew.told[name])


def test_one_that_goes_in_the_middle_and_comes_back_too_late(tmp_path):
    changes = FIVE | {"rounds": 3000, "check_every": 1500, "tol": 1e-12}
    trial = pilot(tmp_path, ring(5, **changes))
    crew = Crew(tmp_path, trial)
    rest = ["s00", "s01", "s03", "s04"]
    gone = crew.hub.carrier("s02")
    send = gone.send
    cut = threading.Event()
    gone.send = lambda to, blob: None if cut.is_set() else send(to, blob)
    crew.hub.carrier = lambda name, make=crew.hub.carrier: gone if name == "s02" else make(name)
    crew.start(*rest, "s02")
    wait_until(lambda: crew.status("s00").get("requests", 0) > 20, "some rounds")
    cut.set()
    wait_until(lambda: crew.status("s00").get("gone") == ["s02"], "left out")
    cut.clear()
    crew.join()
    assert list(crew.errors) == ["s02"]
    assert "s02 has been away for longer than agreed" in str(crew.errors["s02"])
    assert "Ask them for a new run" in str(crew.errors["s02"])
    for name in ("s01", "s03"):  # what was sent before it left is in the books, too
        books = crew.ends[name].driver.ledger.by_way
        assert sum(sums.messages for way, sums in books.items() if way[1] == "s02") > 10
    check_models(trial, tmp_path, rest)


def test_others_are_waited_for_by_default(tmp_path):
    """However short the agreed silence is: it is for the other policies."""
    trial = pilot(tmp_path, ring(3, rounds=20, check_every=20, absent_after=0.5))
    crew = Crew(tmp_path, trial)
    crew.start("s00", "s01")
    wait_until(lambda: crew.status("s00").get("late", {}).get("s02", 0) > 1.5, "s00 waits")
    assert crew.status("s00")["gone"] == [] and not crew.errors
    crew.start("s02")
    crew.join()
    assert not crew.errors
    check_models(trial, tmp_path)


# -- networks that are cut, and sites that start at other times --------------------------------


class CutHub(Hub):
    """A hub that can be cut into parts; who is stopped cannot even send."""

    parts, stopped = (), False

    def _send(self, sender, to, blob):
        if self.stopped:
            raise RuntimeError("stopped by the test")
        if all((sender in part) == (to in part) for part in self.parts):
            super()._send(sender, to, blob)


ALL_FOUR = [("s00", "s01"), ("s02", "s03")]


@pytest.mark.parametrize("absent", ["drop", "freeze"])
def test_of_two_halves_of_a_network_only_one_goes_on(tmp_path, absent):
    """Each could do without the other, and they would end with two results."""
    names = [*ALL_FOUR[0], *ALL_FOUR[1]]
    edges = tuple(Edge(a, b) for k, a in enumerate(names) for b in names[k + 1 :])
    changes = {"absent": absent, "absent_after": 3.0, "rounds": 1500, "check_every": 1500}
    trial = pilot(tmp_path, ring(4, edges=edges, tol=1e-12, **changes))
    crew = Crew(tmp_path, trial, CutHub())
    crew.start(*names)
    wait_until(lambda: crew.status("s00").get("requests", 0) > 20, "some rounds")
    crew.hub.parts = ALL_FOUR
    crew.join("s00", "s01")
    assert not crew.errors
    assert [sorted(crew.ends[name].gone) for name in ("s00", "s01")] == [["s02", "s03"]] * 2
    said = "this part has 2 of 4 members; it waits, since the others may go on"
    for name in ("s02", "s03"):
        wait_until(lambda name=name: said in crew.status(name).get("why", ""), f"{name} waits")
        assert crew.status(name)["gone"] == [] and name not in crew.ends
        assert said in line(crew.status(name))
    crew.hub.stopped = True
    crew.join()
    assert list(crew.ends) == ["s00", "s01"] or list(crew.ends) == ["s01", "s00"]
    if absent == "drop":
        check_models(trial, tmp_path, ["s00", "s01"])


def test_a_site_that_starts_long_before_the_others_misses_nobody(tmp_path):
    changes = {"absent": "drop", "absent_after": 4.0, "rounds": 20, "check_every": 20}
    trial = pilot(tmp_path, ring(5, **changes))
    crew = Crew(tmp_path, trial)
    crew.start("s00", "s01")
    said = "of 5 members are known to have begun; nobody is missed before more than half have"
    for name in ("s00", "s01"):
        wait_until(lambda name=name: said in crew.status(name).get("why", ""), f"{name} waits")
    crew.start("s02", "s03", "s04")
    crew.join()
    assert not crew.errors and all(end.gone == [] for end in crew.ends.values())
    check_models(trial, tmp_path)


def presence(me="b", peers="ac", members="abcde", **kwargs):
    return Presence(list(members), me, list(peers), patience=10.0, **kwargs)


def test_silence_counts_from_the_last_word():
    one = presence(begun=True)
    one.listened = 8.0
    one.heard("a")
    one.listened = 11.0
    assert one.missed(["a", "c"]) == ["c"]
    one.listened = 17.0
    one.heard("c")
    assert one.missed(["a", "c"]) == [] and one.doubts(["a"]) and not one.doubts(["c"])
    one.listened = 18.5  # c has said something since
    assert one.missed(["a"]) == ["a"]


def test_who_was_never_heard_is_missed_from_when_more_than_half_have_begun():
    one = presence()
    one.listened = 100.0
    one.heard("a")
    assert one.missed(["c"]) == [] and "2 of 5 members" in one.why
    one.told(["e"])
    one.listened = 109.0
    assert one.missed(["c"]) == [] and not one.why
    one.listened = 111.0
    one.heard("a")
    assert one.missed(["c"]) == ["c"]


def test_those_behind_a_cut_are_missed_together():
    """One after the other each would be the one that leaves a majority."""
    links = {name: [q for q in "abcd" if q != name] for name in "abcd"}
    for me, others, left in (("a", "cd", ["c", "d"]), ("c", "ab", [])):
        found = Presence(
            list("abcd"), me, links[me], 10.0, lambda gone, me=me: part_of(links, me, gone), True
        )
        found.listened = 2.0
        found.heard(others[1])
        found.listened = 11.0
        found.heard("b" if me == "a" else "d")
        assert found.missed([others[0]]) == left
    assert "without a, b this part has 2 of 4 members" in found.why


def test_with_one_that_is_missed_go_all_to_whom_only_it_leads():
    links = {"a": ["b"], "b": ["a", "c"], "c": ["b", "d"], "d": ["c", "e"], "e": ["d"]}
    found = Presence(list("abcde"), "b", "ac", 10.0, lambda gone: part_of(links, "b", gone), True)
    found.listened = 20.0
    found.heard("a")
    assert found.missed(["c"]) == [] and "this part has 2 of 5 members" in found.why
    found = Presence(list("abcde"), "c", "bd", 10.0, lambda gone: part_of(links, "c", gone), True)
    found.listened = 20.0
    found.heard("d")
    assert found.missed(["b"]) == ["a", "b"]


# -- who is absent, and who only waits for one that is ----------------------------------------

CHAIN = {"a": {"b": 1}, "b": {"a": 1, "c": 1}, "c": {"b": 1, "d": 1}, "d": {"c": 1}}
STAR = {"a": {"b": 1, "c": 1, "d": 1}, "b": {"a": 1}, "c": {"a": 1}, "d": {"a": 1}}


def summing(name):
    yield Sum(np.ones(1))


def exchanging(links):
    def program(name):
        for _ in range(3):
            yield Exchange("parameters", {q: np.ones((1, 1)) for q in links[name]})

    return program


@pytest.mark.parametrize("links", [CHAIN, STAR], ids=["chain", "star"])
@pytest.mark.parametrize("make", [lambda links: summing, exchanging], ids=["sums", "rows"])
def test_only_the_silent_one_is_called_absent(tmp_path, links, make):
    """Those that wait for it are alive, and say so to those that wait for them."""
    parties = Parties(tmp_path, links, make(links), driving={"patience": 5.0})
    with pytest.raises(AbsentError):
        parties.run(["a", "b", "c"])
    found = [error.names for error in parties.errors.values() if isinstance(error, AbsentError)]
    assert found and all(names == ["d"] for names in found)


def test_a_long_replay_or_pause_is_not_the_silence_of_others(tmp_path):
    """A site that was busy for longer than the others may be silent calls none of them absent."""
    from tests.sites import parties as module

    busy = threading.Event()

    def program(name):
        for k in range(6):
            yield Exchange("parameters", {q: np.ones((1, 1)) for q in CHAIN[name]})
            if name == "b" and k in (1, 3):
                busy.wait(1.5)  # never set
        return "end"

    found = Parties(tmp_path, CHAIN, program, kills={"b": Kills([44])}, driving={"patience": None})
    attempt = module.Driver

    class Impatient(attempt):
        def __init__(self, links, *args, **kwargs):
            patience = 1.0 if links.me == "b" else None
            super().__init__(links, *args, **kwargs | {"patience": patience})

    module.Driver = Impatient
    try:
        assert set(found.run().values.values()) == {"end"}
    finally:
        module.Driver = attempt
    assert found.starts["b"] == 2
