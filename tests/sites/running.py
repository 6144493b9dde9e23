"""Sites as real processes on this machine, with their own keys and real TLS."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from unittest.mock import patch

import numpy as np

from nefele.estimators import load
from nefele.runtime import InProcess
from nefele.sites.config import SiteConfig
from nefele.sites.example import coast
from nefele.sites.learning import Learner
from nefele.sites.links import network
from nefele.sites.members import Edge, Member
from nefele.sites.pilot import make_pilot
from nefele.sites.results import site_model
from nefele.sites.rows import read_rows
from tests.waiting import LONG, wait_until

QUICK = {"alpha": 0.5, "rounds": 120, "check_every": 60, "tol": 1e-9}


def write_data(path, federation, rows=12, seed=0):
    """Rows of all nodes, within the bounds; one relation for each half of them."""
    rng = np.random.default_rng(seed)
    names = [feature.name for feature in federation.features]
    lines = [",".join(["node", *names, federation.target.name])]
    nodes = [node for member in federation.members for node in member.nodes]
    classes = federation.target.classes
    low = np.array([feature.low for feature in federation.features])
    high = np.array([feature.high for feature in federation.features])
    for i, node in enumerate(nodes):
        for _ in range(rows):
            z = rng.uniform(-1, 1, len(names))
            value = (2 * z[0] if i < len(nodes) / 2 else -z[0]) + 0.3 * rng.standard_normal()
            x = (low + high) / 2 + z * (high - low) / 2
            y = f"{3 * value:.6f}" if classes is None else classes[int(value > 0)]
            lines.append(",".join([node, *(f"{v:.6f}" for v in x), y]))
    path.write_text("\n".join(lines) + "\n")


def ring(n, kind="direct", **changes):
    """Members in a ring with chords, each with one node."""
    names = [f"s{i:02d}" for i in range(n)]
    at = {name: f"{name}.example:7447" if kind == "direct" else None for name in names}
    members = tuple(Member(name, (name,), at[name], kind=kind) for name in names)
    pairs = [(i, (i + 1) % n) for i in range(n)]
    pairs += [(i, i + n // 2) for i in range(0, n // 2, 3) if n > 5]
    edges = tuple(Edge(names[a], names[b]) for a, b in pairs)
    relay = {"relay": "relay.example:7447"} if kind == "relay" else {}
    return coast(**{"members": members, "edges": edges, **relay, **QUICK, **changes})


def pilot(folder, federation, rows=12, moved=True):
    """Folders of all sites with their rows; the federation of the trial.

    Its addresses are moved to this machine, unless they are of namespaces on it.
    """
    write_data(folder / "all.csv", federation, rows)
    args = (federation, folder / "sites", folder / "all.csv", "node")
    if moved:
        return make_pilot(*args, port=0)[0]
    with patch("nefele.sites.pilot.local", lambda federation, port: federation):
        return make_pilot(*args)[0]


def learners(trial, folder, members=None):
    names = members or [member.name for member in trial.members]
    rows = {name: read_rows(trial, SiteConfig.read(folder / "sites" / name)) for name in names}
    gone = [member.name for member in trial.members if member.name not in names]
    return {name: Learner(trial, name, rows[name], gone) for name in names}


def expected(trial, folder, members=None):
    """The models of the same programs in one process, and their certified gaps."""
    found = learners(trial, folder, members)
    gone = frozenset(member.name for member in trial.members) - found.keys()
    net = network(trial, gone)
    ends = InProcess(net.links, {name: one.run() for name, one in found.items()}).run()
    models = {name: site_model(one, ends[name]) for name, one in found.items()}
    return {name: (model, ends[name].fitted.gap) for name, model in models.items()}


def check_models(trial, folder, members=None):
    """All sites have the models of one process, bit for bit, and its gap to 1e-9."""
    for name, (model, gap) in expected(trial, folder, members).items():
        found = load(folder / "sites" / name / "run-1" / "model.nefele")
        assert np.array_equal(found.coef_, model.coef_), name
        assert np.array_equal(found.intercept_, model.intercept_), name
        facts = json.loads((folder / "sites" / name / "run-1" / "run.json").read_bytes())
        assert abs(facts["gap"] - gap) <= 1e-9, name


def _starting(first):
    return ["-c", f"{first}\nfrom nefele.cli import main\nmain()"] if first else ["-m", "nefele"]


class Process:
    """`nefele ...` in a process of its own; what it prints is kept in files."""

    def __init__(self, place, *args, prefix=(), first=""):
        """`first`: code that runs before nefele does."""
        place.mkdir(parents=True, exist_ok=True)
        self.name = f"{place.name}-{len(list(place.glob('*.out')))}"
        self.out, self.err = (place / f"{self.name}.{end}" for end in ("out", "err"))
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(
                [*prefix, sys.executable, *_starting(first), *map(str, args)],
                stdout=out, stderr=err, stdin=subprocess.DEVNULL,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"},
            )  # fmt: skip

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(LONG)

    def end(self):
        if self.process.poll() is None:
            self.kill()

    def wait(self, codes=(0, 1)):
        code = self.process.wait(LONG)
        assert code in codes, (code, self.out.read_text(), self.err.read_text())
        return code


class Sites:
    """The processes of a trial."""

    def __init__(self, folder, trial):
        self.folder, self.trial, self.running, self.all = folder, trial, {}, []
        self.accept = {member.name: trial.hash for member in trial.members}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for process in self.all:
            process.end()

    def site(self, name):
        return self.folder / "sites" / name

    def start(self, *names, more=(), **how):
        for name in names or [member.name for member in self.trial.members]:
            args = ("site", "run", self.site(name), "--accept", self.accept[name], *more)
            self._add(name, Process(self.folder / "printed" / name, *args, **how))

    def start_relay(self, *more, prefix=()):
        place = self.folder / "printed" / "relay"
        args = ("relay", "run", self.site("relay"), *(more or ("--listen", self.trial.relay)))
        self._add("relay", Process(place, *args, prefix=prefix))

    def _add(self, name, process):
        self.running[name] = process
        self.all.append(process)

    def journal(self, name):
        with contextlib.suppress(OSError):
            return (self.site(name) / "run-1" / "journal-0").stat().st_size
        return 0

    def ended(self, name):
        return (self.site(name) / "run-1" / "run.json").exists()

    def wait_for(self, name, size):
        """Until a site has come so far."""

        def there():
            for who, one in self.running.items():
                code = one.process.poll()
                assert code is None or who == "relay", (who, code, one.err.read_text())
            return self.journal(name) > size

        wait_until(there, f"{name} in the middle")

    def finish(self):
        for name, process in self.running.items():
            if name != "relay":
                process.wait()
