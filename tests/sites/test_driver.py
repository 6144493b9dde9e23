"""The driver of sites: the same end as in one process, whatever happens on the way."""

import numpy as np
import pytest

from nefele.losses import Logistic
from nefele.program import Exchange, Sum, Work
from nefele.runtime import InProcess, pass_messages
from nefele.runtime.programs import algorithm1, certificate
from nefele.sites.carriers.memory import Hub
from nefele.sites.journal import HEARD, SAID, Journal, Record
from nefele.sites.relaxing import fit_relaxed
from nefele.solvers import PrimalDual
from tests.runtime.networks import network
from tests.sites.parties import Kills, Parties, run_sites

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


@pytest.mark.slow
@pytest.mark.parametrize("parts", [EIGHT, FIVE], ids=["nodes", "parts"])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_three_hundred_rounds(tmp_path, loss, penalty, solver, parts):
    problem = problem_of(parts, penalty, loss)
    ends = run_sites(tmp_path, problem, parts, certified(SOLVERS[solver], 300))
    check_same(ends, problem, parts, SOLVERS[solver], 300)
    check_books(ends)


def test_links_that_lose_repeat_reorder_and_delay_cost_time_only(tmp_path):
    problem, rounds, solver = problem_of(), 8, SOLVERS["scaled"]
    ends = run_sites(
        tmp_path, problem, EIGHT, lambda part: algorithm1(part, solver, rounds),
        hub=Hub(**BAD_LINKS, seed=1),
    )  # fmt: skip
    alone = pass_messages(problem, rounds, solver, parts=EIGHT)
    assert np.array_equal(ends.w, alone.w) and np.array_equal(ends.u, alone.u)
    check_books(ends)
    assert sum(driver.again for driver in ends.drivers.values()) > 0


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_three_hundred_rounds_over_bad_links(tmp_path, loss, penalty, solver):
    problem, solver = problem_of(EIGHT, penalty, loss), SOLVERS[solver]
    links = BAD_LINKS | {"jitter": 0.1 if penalty == "l2" else 0.01}
    ends = run_sites(
        tmp_path, problem, EIGHT, lambda part: algorithm1(part, solver, 300),
        hub=Hub(**links, seed=2),
    )  # fmt: skip
    alone = pass_messages(problem, 300, solver, parts=EIGHT)
    assert np.array_equal(ends.w, alone.w) and np.array_equal(ends.u, alone.u)
    check_books(ends)


# -- a small program with all kinds of requests -----------------------------------------------

LINE = {"a": {"b": 1}, "b": {"a": 1, "c": 1}, "c": {"b": 1}}
FORK = {"a": {"b": 1, "d": 2}, "b": {"a": 1, "c": 1}, "c": {"b": 1}, "d": {"a": 1}}


def mixed(links, rounds=6):
    """Programs of exchanges, sums, largest values and work, each depending on all before."""

    def program(name):
        x = float(ord(name))
        for k in range(rounds):
            rows = {q: np.full((links[q][name], 2), x + k) for q in links[name]}
            heard = yield Exchange("parameters", rows)
            x += 0.1 * sum(float(theirs.sum()) for theirs in heard.rows.values())
            x += 0.01 * (yield Sum(np.array([x, 1.0])))[0]
            x = (yield Work(np.sqrt, (abs(x),))) + 1 / 3
            x -= 0.5 * (yield Sum(np.array([x]), largest=True))[0]
        return x

    return program


def alone(links, rounds=6):
    program = mixed(links, rounds)
    near = {name: list(others) for name, others in links.items()}
    return InProcess(near, {name: program(name) for name in links}).run()


def test_a_crash_at_any_event_and_a_restart_give_the_same_end(tmp_path):
    kills = {"b": Kills(range(5, 2000, 11))}
    ends = Parties(tmp_path, LINE, mixed(LINE), kills=kills).run()
    assert ends.values == alone(LINE)
    assert ends.starts["b"] > 5
    check_books(ends)


@pytest.mark.parametrize("seed", [0, 1])
def test_thirty_random_kills(tmp_path, seed):
    rng = np.random.default_rng(seed)
    points = {name: np.cumsum(rng.integers(7, 21, 8)).tolist() for name in FORK}
    kills = {name: Kills(found) for name, found in points.items()}
    links = {"loss": 0.05, "duplicate": 0.2, "reorder": 0.1, "jitter": 0.005}
    parties = Parties(tmp_path, FORK, mixed(FORK, 12), kills=kills, hub=Hub(**links, seed=seed))
    ends = parties.run()
    assert ends.values == alone(FORK, 12)
    assert sum(ends.starts.values()) >= 30 + len(FORK)
    check_books(ends)


def test_a_crash_in_algorithm_1_and_in_its_certificate(tmp_path):
    problem, rounds, solver = problem_of(FIVE), 10, SOLVERS["scaled"]
    kills = {"s0": Kills([40, 90, 200]), "s2": Kills([61, 62, 100]), "s4": Kills([33])}
    ends = run_sites(tmp_path, problem, FIVE, certified(solver, rounds), kills=kills)
    check_same(ends, problem, FIVE, solver, rounds)
    assert sum(ends.starts.values()) == len(ends.starts) + 7
    check_books(ends)


@pytest.mark.parametrize("with_key", [False, True])
@pytest.mark.parametrize("name", LINE)
def test_a_lost_journal_is_heard_again_from_the_others(tmp_path, name, with_key):
    def lose(parties, who):
        parties.journal(who).unlink()
        if with_key:
            (parties.folder / who / "run.key").unlink()

    ends = Parties(tmp_path, LINE, mixed(LINE), kills={name: Kills([60])}, crashed=lose).run()
    assert ends.values == alone(LINE) and ends.starts[name] == 2
    check_books(ends)


@pytest.mark.parametrize("name", LINE)
def test_a_journal_that_is_torn_far_back_is_heard_again(tmp_path, name):
    def tear(parties, who):
        content = parties.journal(who).read_bytes()
        parties.journal(who).write_bytes(content[: len(content) // 3])

    ends = Parties(tmp_path, LINE, mixed(LINE), kills={name: Kills([60])}, crashed=tear).run()
    assert ends.values == alone(LINE)


def cut_and_restart(folder, name, offsets):
    """Run to the end, then cut the journal of one site at each offset and run it again."""
    Parties(folder, LINE, mixed(LINE, 3)).run()
    files = {who: folder / who / "journal" for who in LINE}
    whole = {who: file.read_bytes() for who, file in files.items()}
    expected = alone(LINE, 3)
    for offset in offsets:
        for who, file in files.items():
            file.write_bytes(whole[who][: len(whole[who]) - offset] if who == name else whole[who])
        assert Parties(folder, LINE, mixed(LINE, 3)).run().values == expected, offset


@pytest.mark.parametrize("name", LINE)
def test_a_torn_end_of_a_journal(tmp_path, name):
    cut_and_restart(tmp_path, name, [0, 1, 30, 70, 71, 250])


@pytest.mark.slow
@pytest.mark.parametrize("name", LINE)
def test_a_journal_cut_at_every_byte_of_its_last_records(tmp_path, name):
    cut_and_restart(tmp_path, name, range(260))


def test_a_journal_cut_anywhere_holds_the_records_before(tmp_path):
    path = tmp_path / "journal"
    records = [Record(SAID if k % 2 else HEARD, 1 + k // 2, k % 3, b"x" * k) for k in range(8)]
    with Journal(path, b"run 1") as journal:
        journal.add(*records)
    whole = path.read_bytes()
    for end in range(len(whole) + 1):
        path.write_bytes(whole[:end])
        with Journal(path, b"run 1") as journal:
            found = list(journal.records())
            assert found == records[: len(found)]
            journal.add(Record(SAID, 9, 0, b"more"))
            assert journal.said(9, 0) == [b"more"]
        with Journal(path, b"run 1") as journal:
            assert [record.payload for record in journal.records()][-1] == b"more"


def test_a_journal_that_is_spoilt_anywhere_holds_the_records_before(tmp_path):
    path = tmp_path / "journal"
    records = [Record(SAID, 1 + k, k % 3, b"x" * k) for k in range(8)]
    with Journal(path, b"run 1"):
        head = path.stat().st_size
    with Journal(path, b"run 1") as journal:
        journal.add(*records)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        if place < head:
            with pytest.raises(ValueError, match="must belong to this run"):
                Journal(path, b"run 1")
            continue
        with Journal(path, b"run 1") as journal:
            found = list(journal.records())
        assert found == records[: len(found)] and len(found) < len(records)


def test_a_journal_of_something_else_is_left_alone(tmp_path):
    path = tmp_path / "journal"
    path.write_bytes(b"a letter to a friend")
    with pytest.raises(ValueError, match="must belong to this run"):
        Journal(path, b"run 1")
    assert path.read_bytes() == b"a letter to a friend"


def test_a_program_that_does_something_else_after_a_restart(tmp_path):
    times = []

    def program(name):
        times.append(name)
        yield Exchange("parameters", {q: np.full((1, 2), float(len(times))) for q in LINE[name]})
        yield Sum(np.ones(1))

    with pytest.raises(ValueError, match="must do what it did before it was stopped"):
        Parties(tmp_path, LINE, program, kills={"b": Kills([20])}).run()


# -- sums --------------------------------------------------------------------------------------


def summing(values, largest=False):
    def program(name):
        return (yield Sum(np.array(values[name]), largest)).tolist()

    return program


@pytest.mark.parametrize(
    ("largest", "expected"), [(False, [6.0, np.inf, -3.0]), (True, [3.0, np.inf, -1.0])]
)
def test_sums_and_largest_values_may_be_infinite(tmp_path, largest, expected):
    values = {"a": [1.0, 0.0, -1.0], "b": [2.0, np.inf, -1.0], "c": [3.0, 1.0, -1.0]}
    ends = Parties(tmp_path, LINE, summing(values, largest)).run()
    assert all(found == expected for found in ends.values.values())


@pytest.mark.parametrize("values", [([np.nan],) * 3, ([np.inf], [-np.inf], [0.0])])
def test_no_site_says_nan(tmp_path, values):
    values = dict(zip(LINE, values, strict=True))
    with pytest.raises(ValueError, match="must not send sums that are not finite"):
        Parties(tmp_path, LINE, summing(values)).run()


def test_no_site_says_rows_that_are_not_finite(tmp_path):
    def program(name):
        yield Exchange("parameters", {q: np.full((1, 2), np.inf) for q in LINE[name]})

    with pytest.raises(ValueError, match="must not send parameters that are not finite"):
        Parties(tmp_path, LINE, program).run()


def test_a_site_alone(tmp_path):
    assert Parties(tmp_path, {"a": {}}, mixed({"a": {}})).run().values == alone({"a": {}})


# -- without waiting ---------------------------------------------------------------------------


def relaxing(part):
    return fit_relaxed(part, 1e-4, 5000, 25, False, lambda *seen: None)


@pytest.mark.parametrize("kills", [{}, {"s1": Kills([100, 160]), "s4": Kills([77])}])
def test_sites_that_do_not_wait_converge_and_certify(tmp_path, kills):
    problem = network(n=8, penalty="squared_l2", empty=False)
    hub = Hub(loss=0.01, duplicate=0.2, seed=3)
    ends = run_sites(tmp_path, problem, EIGHT, relaxing, hub=hub, kills=kills)
    gaps = {fitted.gap for fitted in ends.values.values()}
    assert len(gaps) == 1 and gaps.pop() <= 1e-4
    found = problem.certificate(ends.w, problem.smooth_flow(ends.w))
    fitted = ends.values["s0"].certificate
    assert fitted.objective == pytest.approx(found.objective, rel=1e-9)
    for name in kills:  # how many events there are depends on who is faster: one kill is sure
        assert ends.starts[name] > 1


def test_posts_are_replayed_as_they_were(tmp_path):
    """What depends on time is in the journal: a restart says the same, and counts the same."""
    heard = []

    def program(name):
        seen = []
        for k in range(12):
            rows = {q: np.full((1, 2), float(k)) for q in LINE[name]}
            answer = yield Exchange("parameters", rows, wait=False)
            seen.append({q: (theirs[0, 0], q in answer.fresh) for q, theirs in answer.rows.items()})
            if name == "b":
                heard.append(seen.copy())
            yield Sum(np.array([sum(theirs.sum() for theirs in answer.rows.values())]))
        return seen

    ends = Parties(tmp_path, LINE, program, kills={"b": Kills(range(30, 200, 23))}).run()
    assert ends.starts["b"] > 2
    for earlier in heard:
        assert ends.values["b"][: len(earlier)] == earlier
    sent = ends.drivers["b"].ledger.by_way["b", "a", "parameters"]
    assert sent.messages == 12
