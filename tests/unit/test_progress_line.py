"""Progress with `verbose`: one line on a terminal and in a notebook, now and then elsewhere."""

import sys
import types

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone

import nefele
from nefele import _progress
from nefele._progress import Line, check_verbose, progress

GRAPH = nefele.graphs.chain(6)
IDS = np.repeat(np.arange(6), 8)
X = np.random.default_rng(0).normal(size=(48, 2))
Y = X[:, 0] + np.sin(IDS) + 0.3 * np.random.default_rng(1).normal(size=48)
DATA = nefele.LocalData.from_long(X, Y, IDS, GRAPH.ids)
PROBLEM = nefele.Problem(GRAPH, DATA, lam=0.1)


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self, monkeypatch):
        self.at = 0.0
        monkeypatch.setattr(_progress.time, "monotonic", lambda: self.at)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


@pytest.fixture
def terminal(monkeypatch, capsys):
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda self: True)
    monkeypatch.setenv("COLUMNS", "60")


@pytest.fixture
def notebook(monkeypatch):
    """IPython with a kernel, which notes what is displayed and updated."""
    shown = []

    class Handle:
        def update(self, bundle, raw):
            assert raw
            shown.append(("update", bundle["text/plain"]))

    def display(bundle, raw, display_id):
        assert raw and display_id
        shown.append(("display", bundle["text/plain"]))
        return Handle()

    shell = types.SimpleNamespace(kernel=object())
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: shell
    ipython.display = types.ModuleType("IPython.display")
    ipython.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    return shown


def work(clock, seconds, count=5):
    with progress(True) as line:
        for k in range(1, count + 1):
            clock.at += seconds
            line.show(f"round {k}")


def test_a_pipe_gets_a_line_now_and_then_and_the_last(clock, capsys):
    work(clock, 4.0)
    assert capsys.readouterr().err == "round 3, 12.0 s\nround 5, 20.0 s\n"
    work(clock, 0.01)
    assert capsys.readouterr().err == "round 5, 0.1 s\n"


def test_a_terminal_has_one_line_that_is_rewritten_and_fits(clock, capsys, terminal):
    work(clock, 0.04)
    text = capsys.readouterr().err
    assert (
        text
        == "".join(f"\r\x1b[2Kround {k}, {s:.1f} s" for k, s in [(1, 0.04), (4, 0.16), (5, 0.2)])
        + "\n"
    )
    with progress(1) as line:
        line.show("x" * 500)
    assert len(capsys.readouterr().err) == len("\r\x1b[2K") + 59 + 1


def test_a_notebook_has_one_output_that_is_updated(clock, capsys, notebook):
    work(clock, 1.0, count=3)
    assert notebook == [
        ("display", "round 1, 1.0 s"),
        ("update", "round 2, 2.0 s"),
        ("update", "round 3, 3.0 s"),
    ]
    work(clock, 0.001, count=1000)
    assert len(notebook) < 20
    assert capsys.readouterr() == ("", "")


def test_ipython_on_a_terminal_is_a_terminal(clock, capsys, notebook, terminal):
    sys.modules["IPython"].get_ipython().kernel = None
    work(clock, 1.0, count=1)
    assert not notebook and capsys.readouterr().err.startswith("\r")


def test_nothing_is_shown_unless_it_is_asked_for(clock, capsys, notebook):
    for off in (False, 0, np.False_):
        with progress(off) as line:
            line.show("nothing")
    nefele.solve(PROBLEM)
    nefele.GTVRegressor(GRAPH).fit(X, Y, node_ids=IDS)
    assert capsys.readouterr() == ("", "") and not notebook


def test_the_line_is_left_whole_after_an_error_and_before_other_text(clock, capsys, terminal):
    def fails():
        with progress(True) as line:
            line.show("round 1")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert capsys.readouterr().err == "\r\x1b[2Kround 1, 0.0 s\n"
    line = Line(timed=False)
    line.show("one")
    line.leave()
    line.close()
    assert capsys.readouterr().err == "\r\x1b[2Kone\n"


def test_names_of_users_do_not_steer_the_terminal(clock, capsys):
    with progress(True) as line:
        line.show("a\x1b[2Jb")
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize("bad", ["yes", -1, 0.5, None])
def test_verbose_is_a_flag_or_a_number(bad):
    with pytest.raises(ValueError, match="verbose must be True, False or an integer >= 0"):
        check_verbose(bad)
    with pytest.raises(ValueError, match="verbose must be"):
        nefele.solve(PROBLEM, verbose=bad)
    with pytest.raises(ValueError, match="verbose must be"):
        nefele.GTVRegressor(GRAPH, verbose=bad).fit(X, Y, node_ids=IDS)


@pytest.mark.parametrize("options", [{}, {"engine": "in_process", "parts": 2}])
def test_a_solve_tells_iterations_gap_and_seconds(options, capsys):
    plain = nefele.solve(PROBLEM, "primal_dual", **options)
    seen = []
    result = nefele.solve(PROBLEM, "primal_dual", verbose=True, callback=seen.append, **options)
    text = capsys.readouterr().err
    assert text.startswith(f"iteration {result.n_iter}: gap {result.gap:.1e} (until 1.0e-06)")
    assert text.endswith(" s\n") and text.count("\n") == 1
    assert seen and np.array_equal(result.w, plain.w)


def test_a_solve_on_a_terminal_ends_with_its_last_point(capsys, terminal):
    result = nefele.solve(PROBLEM, "primal_dual", verbose=True)
    *_, last = capsys.readouterr().err.split("\r\x1b[2K")
    assert last.startswith(f"iteration {result.n_iter}: gap")


def test_a_path_tells_its_points(capsys):
    nefele.path(PROBLEM, [1.0, 0.1], verbose=True)
    assert "point 2 of 2: lam 0.1, gap" in capsys.readouterr().err


def told(model, capsys, **ids):
    """What a fit says, and that its models are those of a silent one."""
    silent = clone(model).fit(X, Y, **ids)
    assert capsys.readouterr().err == ""
    loud = clone(model).set_params(verbose=True).fit(X, Y, **ids)
    assert clone(loud).get_params()["verbose"] is True
    assert np.array_equal(silent.predict(X, **ids), loud.predict(X, **ids))
    return capsys.readouterr().err


def test_estimators_tell_their_solve(capsys):
    assert "iteration" in told(nefele.GTVRegressor(GRAPH), capsys, node_ids=IDS)


def test_searches_tell_folds_and_couplings(capsys):
    search = nefele.GTVRegressorCV(GRAPH, penalty="l2", n_alphas=3, cv=2, alphas=[1.0, 0.1])
    text = told(search, capsys, node_ids=IDS)
    assert "fold 2 of 2, alpha 2 of 2: gap" in text and "all rows, alpha 2 of 2" in text
    with parallel_config("threading"):
        text = told(search.set_params(n_jobs=2), capsys, node_ids=IDS)
    assert "fold 2 of 2, " in text and "fold 2 of 2, alpha" not in text
    model = nefele.GTVRegressorCV(GRAPH, features="linear", cv=2)
    text = told(model, capsys, node_ids=IDS)
    assert "coupling" in text and "fold 2 of 2" in text and text.count("\n") == 3


def test_relaxation_tells_its_rounds(capsys):
    model = nefele.FedRelaxRegressor(graph=GRAPH, rounds=3, tol=None, random_state=0)
    assert "round 3 of 3: change" in told(model, capsys, node_ids=IDS)


def test_graphs_tell_their_names(capsys):
    quick = nefele.GTVRegressorCV(penalty="l2", alphas=[1.0, 0.1], cv=2)
    model = nefele.GraphSelectorCV({"chain": GRAPH}, estimator=quick, n_shuffles=1)
    assert "graph chain, shuffled, solve 16, " in told(model, capsys, node_ids=IDS)


def test_clusters_and_signals_tell_their_paths(capsys):
    nefele.ConvexClustering(n_alphas=5, verbose=True).fit(X[:12])
    assert " of 5: lam" in capsys.readouterr().err
    smoother = nefele.GraphSignalSmoother(GRAPH, n_alphas=3, cv=2, verbose=True)
    smoother.fit(GRAPH.ids, np.arange(6.0))
    text = capsys.readouterr().err
    assert "fold 2 of 2" in text and "iteration" in text
