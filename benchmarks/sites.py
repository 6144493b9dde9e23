"""Milliseconds per round between sites, beside NVFlare's p2p and p2pfl.

`make bench-sites` writes benchmarks/results/sites.md; `make bench-sites-peers` builds the
environments of the peers before that. Each site is a process of its own, as in a real run: keys
and certificates, mutual TLS and access rights by name, sealed messages, a journal on disk.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

for name in ("OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402
from report import Report  # noqa: E402

from nefele.estimators.design import Rows  # noqa: E402
from nefele.runtime.drivers import InProcess  # noqa: E402
from nefele.runtime.programs import algorithm1  # noqa: E402
from nefele.sites.carriers.zenoh_session import use_one_thread  # noqa: E402
from nefele.sites.driver import Driver  # noqa: E402
from nefele.sites.federation import Federation  # noqa: E402
from nefele.sites.journal import Journal  # noqa: E402
from nefele.sites.learning import Learner  # noqa: E402
from nefele.sites.learnt import Scales  # noqa: E402
from nefele.sites.links import network  # noqa: E402
from nefele.sites.members import Edge, Feature, Member, Target  # noqa: E402
from nefele.sites.pilot import make_pilot  # noqa: E402
from nefele.sites.sealing import Seal, run_key  # noqa: E402
from nefele.sites.signing import Identity  # noqa: E402
from nefele.sites.site import Site  # noqa: E402
from nefele.solvers import PrimalDual  # noqa: E402

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parent / ".bench"
ROUNDS, FIRST = 300, 50  # all, and those before the clock starts: sites come up one by one
D = 10  # numbers that a site tells each neighbour in a round
RING, DENSE = (1,), (1, 2)  # who is linked: places apart on a circle
CASES = ((5, RING), (20, DENSE))
PEERS = {"nvflare": "NVFlare p2p, ring of 5, simulator", "p2pfl": "p2pfl, 5 nodes"}
LIMIT = 300.0  # seconds for a peer
COLUMNS = (
    "sites",
    "links",
    "way",
    "p50, ms",
    "p90, ms",
    "p50 of all runs",
    "CPU ms per round and site",
    "bytes per message",
    "over the least",
    "said again",
    "load before",
    "cores used by others",
)
PEER_COLUMNS = (
    "peer",
    "version",
    "timed, all clients",
    "p50, ms",
    "p90, ms",
    "p50 of all runs",
    "over direct",
    "load before",
)


@dataclass(frozen=True)
class Measured:
    """What one run of all sites gave."""

    p50: float
    p90: float
    cpu: float  # ms per round and site, all threads
    size: float  # bytes per round, link and direction, all that a site sends to its carrier
    again: int  # messages that were said again
    load: float  # of the machine, before
    others: float  # cores that other processes used meanwhile


# -- our side -----------------------------------------------------------------------------------


def federation(n: int, apart: tuple[int, ...], relayed: bool) -> Federation:
    """`n` sites with a node each on a circle, linked to those so many places apart."""
    names = [f"s{i:02d}" for i in range(n)]
    pairs = {tuple(sorted((names[i], names[(i + k) % n]))) for i in range(n) for k in apart}
    return Federation(
        name="bench",
        features=tuple(Feature(f"x{j}", -5, 5) for j in range(D - 1)),
        target=Target("y", low=-50, high=50),
        members=tuple(Member(m, (m,), kind="relay" if relayed else "direct") for m in names),
        edges=tuple(Edge(*pair) for pair in sorted(pairs)),
        alpha=0.1,
        relay="relay.example:7447" if relayed else None,  # the trial takes a free port here
    )


def part_of(federation: Federation, name: str):
    """The part of one site, with rows of its own."""
    draw = np.random.default_rng(int(name[1:]))
    X, y = draw.normal(size=(20, D - 1)), draw.normal(size=20)
    rows = Rows(X, y, np.repeat(np.array([name]), 20), np.ones(20))
    scales = Scales(np.zeros(D - 1), np.ones(D - 1), 0.0, 20.0)
    return Learner(federation, name, rows).part(rows, scales, 0.1)


def program(part):
    return algorithm1(part, PrimalDual.as_printed(), ROUNDS)


def run_site(folder: Path, out: multiprocessing.SimpleQueue) -> None:
    """One site, in a process of its own."""
    use_one_thread()  # as the command does
    site = Site(folder)
    part, links = part_of(site.federation, site.name), site.network.of(site.name)
    carrier = site.make_carrier()
    key = run_key(folder / "run.key")
    seal = Seal(Identity(folder), site.federation.hash, "1", links.peers, key)
    ends, spent = np.zeros(ROUNDS + 1), {}

    def told(driver: Driver) -> None:
        if driver.number and not driver.waiting:
            ends[driver.number] = time.perf_counter()
            if driver.number in (FIRST, ROUNDS):
                spent[driver.number] = time.process_time()

    with Journal(folder / "journal", b"") as journal:
        driver = Driver(links, carrier, seal, journal, told=told)
        carrier.open(driver.receive)
        driver.run(program(part))
        sent = driver.wire_bytes / ROUNDS / len(links.peers)
        driver.linger(5.0)
    carrier.close()
    ms = 1e3 * np.diff(ends[FIRST:])
    cpu = 1e3 * (spent[ROUNDS] - spent[FIRST]) / (ROUNDS - FIRST)
    out.put((site.name, ms, cpu, sent, driver.again, part.w1))


def together(n: int, apart: tuple[int, ...], relayed: bool, want: dict) -> Measured:
    """All sites at once on this machine; each must end exactly where one process does."""
    context = multiprocessing.get_context("fork")
    load, busy, own = os.getloadavg()[0], _busy(), _children()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        folder, relay = Path(place) / "trial", None
        trial, _ = make_pilot(federation(n, apart, relayed), folder, port=0)
        if relayed:
            command = [sys.executable, "-m", "nefele", "relay", "run", str(folder / "relay")]
            relay = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        out = context.SimpleQueue()
        sites = [
            context.Process(target=run_site, args=(folder / member.name, out))
            for member in trial.members
        ]
        try:
            for one in sites:
                one.start()
            found = [out.get() for _ in sites]
        finally:
            for one in sites:
                one.join(30.0)
            if relay is not None:
                relay.terminate()
                relay.wait()
    seconds = time.perf_counter() - started
    others = (_busy() - busy - (_children() - own)) / seconds
    for name, *_, w in found:
        assert np.array_equal(w, want[name]), f"{name} differs from one process"
    ms = np.array([one[1] for one in found])
    cpu, size = (float(np.mean([one[k] for one in found])) for k in (2, 3))
    again = sum(one[4] for one in found)
    p50, p90 = np.percentile(ms, (50, 90))
    return Measured(float(p50), float(p90), cpu, size, again, load, max(others, 0.0))


def in_one_process(n: int, apart: tuple[int, ...]) -> dict:
    """Where all sites must end."""
    made = federation(n, apart, relayed=False)
    parts = {member.name: part_of(made, member.name) for member in made.members}
    InProcess(network(made).links, {name: program(part) for name, part in parts.items()}).run()
    return {name: part.w1 for name, part in parts.items()}


def _busy() -> float:
    """Seconds that all cores have worked so far."""
    ticks = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
    user, nice, system, _idle, _waiting, irq, soft, _stolen = map(int, ticks)
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


def _children() -> float:
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime + time.process_time()


# -- peers --------------------------------------------------------------------------------------


def peer(name: str) -> dict | None:
    """What a peer's script prints, run by the peer's interpreter; None without one."""
    python = ENVIRONMENTS / name / "bin" / "python"
    script = HERE / f"peer_{name}.py"
    if not python.exists() or not script.exists():
        return None
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run(
            [python, script], cwd=place, capture_output=True, text=True, timeout=LIMIT
        )
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"version"')]
    if not lines:
        raise RuntimeError(
            f"{name} has printed no figures:\n{done.stdout[-500:]}{done.stderr[-1500:]}"
        )
    return json.loads(lines[-1])


# -- the report ---------------------------------------------------------------------------------


def sites(report: Report, repeats: int) -> None:
    """All cases, each several times: the run with the least p50 is shown, and all p50."""
    report.table("Sites on loopback", COLUMNS)
    for n, apart in CASES:
        want = in_one_process(n, apart)
        for relayed in (False, True):
            runs = [together(n, apart, relayed, want) for _ in range(repeats)]
            best = min(runs, key=lambda run: run.p50)
            way = "relayed" if relayed else "direct"
            report.row(
                n,
                n * len(apart),
                way,
                f"{best.p50:.2f}",
                f"{best.p90:.2f}",
                ", ".join(f"{run.p50:.2f}" for run in runs),
                f"{best.cpu:.2f}",
                f"{best.size:.0f}",
                f"{best.size / (8 * D):.2f}",
                best.again,
                f"{best.load:.1f}",
                f"{best.others:.2f}",
            )
            report.figure(f"sites {n} {way}", best.p50)
    report.note(
        f"Algorithm 1 in lockstep, {ROUNDS} rounds, d = {D}; the clock runs from round {FIRST} on. "
        "A message is what goes over a link in one direction in one round; the least possible is "
        f"8 bytes for each of its {D} numbers. Hellos and what was said again are counted in; "
        "what TLS and TCP add is not. Every site ended bit for bit where one process does. "
        "Of several runs the one with the least p50 is shown."
    )


def peers(report: Report, repeats: int) -> None:
    """The peers in the same run, over our 5 sites: of several runs each the least p50, as ours."""
    report.table("Peers, 5 sites", PEER_COLUMNS)
    for name, what in PEERS.items():
        load = os.getloadavg()[0]
        runs = [peer(name) for _ in range(repeats)]
        if runs[0] is None:
            report.note(f"{what}: no environment. Build it by: make bench-sites-peers")
            continue
        best = min(runs, key=lambda run: np.median(run["ms"]))
        p50, p90 = np.percentile(best["ms"], (50, 90))
        ratio = p50 / report.figures["sites 5 direct"]
        report.row(
            what,
            best["version"],
            len(best["ms"]),
            f"{p50:.1f}",
            f"{p90:.1f}",
            ", ".join(f"{np.median(run['ms']):.1f}" for run in runs),
            f"{ratio:.0f}",
            f"{load:.1f}",
        )
        report.figure(f"sites {name}", ratio)
    report.note(
        "The peers run as their scripts say: NVFlare's clients in its simulator, without "
        "certificates; p2pfl's nodes in one process, each linked to all others."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--alone", action="store_true", help="Without the other frameworks.")
    args = parser.parse_args()
    report = Report(args.out / "sites.md")
    sites(report, args.repeats)
    if not args.alone:
        peers(report, args.repeats)
    report.write()
    report.say(f"\nWritten to {report.target}")


if __name__ == "__main__":
    main()
