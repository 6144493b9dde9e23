"""What a type checker knows of nefele in a user's script: `mypy --strict`, and no Any."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SCRIPT = HERE / "user_script.py"

# An expression of a user, and what mypy must know it to be.
KNOWN = {
    "reg.fit(X, y, node_ids=ids)": "nefele.GTVRegressor",
    "reg.partial_fit(X, y, node_ids=ids)": "nefele.GTVRegressor",
    "reg.predict(X, node_ids=ids)": "NDArray[np.float64]",
    "reg.score(X, y, node_ids=ids)": "float",
    "reg.coef_": "NDArray[np.float64]",
    "reg.graph_": "nefele.Graph",
    "cla.fit(X, y, node_ids=ids)": "nefele.GTVClassifier",
    "cla.predict(X, node_ids=ids)": "NDArray[Any]",  # labels may be of any dtype
    "cla.predict_proba(X, node_ids=ids)": "NDArray[np.float64]",
    "cv.fit(X, y, node_ids=ids)": "nefele.GTVRegressorCV",
    "cv.predict(X, node_ids=ids)": "NDArray[np.float64]",
    "cv.best_estimator_": "nefele.GTVRegressor",
    "cv.verdict_": "nefele.selection.Verdict",
    "ccv.fit(X, y, node_ids=ids)": "nefele.GTVClassifierCV",
    "ccv.predict_proba(X, node_ids=ids)": "NDArray[np.float64]",
    "ccv.best_estimator_": "nefele.GTVClassifier",
    "nefele.load('model.nefele')": "nefele.GTVRegressor | nefele.GTVClassifier",
    "nefele.FedRelaxRegressor().fit(X, y)": "nefele.FedRelaxRegressor",
    "nefele.GraphSelectorCV().fit(X, y)": "nefele.GraphSelectorCV",
    "nefele.GraphSignalSmoother().fit(X)": "nefele.GraphSignalSmoother",
    "nefele.ConvexClustering().fit(X)": "nefele.ConvexClustering",
    "nefele.TableEncoder().fit(X)": "nefele.TableEncoder",
    "nefele.solve(problem)": "nefele.Result",
    "nefele.solve(problem).w": "NDArray[np.float64]",
    "nefele.path(problem)": "nefele.PathResult",
}
START = """
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import nefele

X, y, ids = np.ones((4, 2)), np.ones(4), np.zeros(4)
reg, cla = nefele.GTVRegressor(), nefele.GTVClassifier()
cv, ccv = nefele.GTVRegressorCV(), nefele.GTVClassifierCV()
data = nefele.LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
problem = nefele.Problem(nefele.graphs.chain(2), data, lam=1.0)
"""


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """What mypy says of the user's script and of the expressions, in one run."""
    folder = tmp_path_factory.mktemp("typing")
    lines = [f"assert_type({expression}, {kind})" for expression, kind in KNOWN.items()]
    lines.append("assert_type(reg.fit(X, y), int)")  # so that a checker that sees nothing is seen
    (folder / "told.py").write_text(START + "\n".join(lines) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    command += ["--config-file=", f"--cache-dir={os.devnull}", "--no-color-output"]
    done = subprocess.run(
        [*command, SCRIPT, folder / "told.py"],
        env={**os.environ, "MYPYPATH": str(HERE.parents[1] / "src")},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


def errors(checked, file):
    return [line for line in checked.splitlines() if file in line and " error: " in line]


def test_a_users_script_passes_the_strict_checker(checked):
    assert errors(checked, "user_script.py") == []


def test_fits_predictions_and_files_have_types(checked):
    (planted,) = errors(checked, "told.py")
    assert 'Expression is of type "GTVRegressor", not "int"' in planted


def test_the_package_says_that_it_has_types():
    assert (HERE.parents[1] / "src" / "nefele" / "py.typed").is_file()


def test_the_script_runs(tmp_path):
    command = [sys.executable, "-W", "error", SCRIPT]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
