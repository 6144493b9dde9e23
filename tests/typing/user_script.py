"""A script as users write it; `mypy --strict` must know the types of all it gets back."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import nefele
from nefele.losses import Squared


def coefficients(folder: Path) -> NDArray[np.float64]:
    """Fit, save, read again and predict."""
    states = nefele.datasets.load_states()
    X, y, ids = states.X[:, :4], states.y, states.node_ids
    model = nefele.GTVRegressor(states.graph, alpha=0.1).fit(X, y, node_ids=ids)
    file = folder / "model.nefele"
    model.save(file)
    again = nefele.load(file)
    gap: float = model.dual_gap_
    status: str = model.status_
    print(model.summary(), gap, status, model.score(X, y, node_ids=ids))
    print(np.abs(again.predict(X, node_ids=ids) - model.predict(X, node_ids=ids)).max())
    return model.coef_


def chosen() -> nefele.GTVRegressor:
    """The coupling is chosen by rows that are left out."""
    states = nefele.datasets.load_states()
    search = nefele.GTVRegressorCV(states.graph)
    search.fit(states.X, states.y, node_ids=states.node_ids).predict(
        states.X, node_ids=states.node_ids
    )
    helps: bool = search.coupling_helps_
    print(helps, search.verdict_.text(), search.coef_.shape, search.coef_frame().columns)
    return search.best_estimator_


def classes() -> NDArray[np.float64]:
    rng = np.random.default_rng(0)
    X, ids = rng.normal(size=(60, 2)), np.repeat(np.arange(6), 10)
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, "warm", "cold")
    model = nefele.GTVClassifier(nefele.graphs.chain(6)).fit(X, y, node_ids=ids)
    labels = model.predict(X, node_ids=ids)
    print(labels[:3], model.classes_)
    return model.predict_proba(X, node_ids=ids)


def core() -> NDArray[np.float64]:
    data = nefele.LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    problem = nefele.Problem(nefele.Graph.from_edges([(0, 1)]), data, Squared(l2=0.1), lam=1.0)
    result = nefele.solve(problem)
    for point in nefele.path(problem).results:
        print(point.gap)
    print(result.gap_abs, result.clusters())
    return result.w


if __name__ == "__main__":
    print(coefficients(Path()), chosen(), classes(), core())
