"""The library without the packages of the command line: docs/install.md says that it works."""

import subprocess
import sys

CODE = """
import importlib.abc
import sys


class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("polars", "rich", "tomli_w", "typer"):
            raise ModuleNotFoundError(name, name=name)


sys.meta_path.insert(0, Missing())
import nefele

states = nefele.datasets.load_states()
X, y, ids = states.X, states.y, states.node_ids
model = nefele.GTVRegressor(states.graph, alpha=0.1).fit(X, y, node_ids=ids)
model.save("model.nefele")
again = nefele.load("model.nefele")
print((again.predict(X, node_ids=ids) == model.predict(X, node_ids=ids)).all())
data = nefele.LocalData.from_long(X, y, ids, states.graph.ids)
problem = nefele.Problem(states.graph, data, lam=0.1)
print(nefele.solve(problem).converged, len(nefele.path(problem, [1.0, 0.1])) == 2)
print(nefele.graph_learning.LossGraph(k=2).fit_graph is not None)
try:
    model.coef_frame()
except ModuleNotFoundError as error:
    print(error.name)
"""


def test_the_library_needs_no_package_of_the_command_line(tmp_path):
    command = [sys.executable, "-W", "error", "-c", CODE]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "True", "True", "True", "polars"]
