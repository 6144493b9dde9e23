"""One verdict: whoever asks whether coupling helps on the same rows gets the same answer.

`nefele fit`, the estimators with cross-validation and the selector over graphs are asked with the
same graph, splits and alphas; `nefele graph` with its own folds, as the estimators get them too.
"""

import numpy as np
import polars as pl
import pytest

import nefele
from nefele import GraphSelectorCV, GTVClassifierCV, GTVRegressorCV
from nefele.losses import Logistic, Squared
from nefele.runs.config import RunConfig
from nefele.runs.graphs import compare_graphs
from nefele.runs.run import execute
from nefele.runs.split import folds_inside, hold_out


def rows(slopes, m, noise, seed=0):
    """Nodes in a ring, node i with this slope and m rows (or m[i])."""
    rng = np.random.default_rng(seed)
    counts = np.broadcast_to(m, len(slopes))
    owner = np.repeat(np.arange(len(slopes)), counts)
    X = rng.normal(size=(len(owner), 2))
    y = np.asarray(slopes)[owner] * X[:, 0] + noise * rng.normal(size=len(owner))
    edges = [(i, (i + 1) % len(slopes)) for i in range(len(slopes))]
    return X, y, np.array([f"n{i:02d}" for i in owner]), edges


def labels():
    X, y, ids, edges = rows(np.repeat([2.0, -2.0], 6), 24, 1.0, seed=1)
    return X, np.where(y > 0, "up", "down"), ids, edges


def states():
    found = nefele.datasets.load_states()
    ids = found.graph.ids.tolist()
    pairs = zip(found.graph.head, found.graph.tail, strict=True)
    order = {name: k for k, name in enumerate(sorted(ids))}
    edges = [(order[ids[a]], order[ids[b]]) for a, b in pairs]
    return found.X[:, :4], found.y, np.array(found.node_ids), edges


CASES = {  # rows, and what is said of them
    "helps clearly": (lambda: rows(np.repeat([2.0, -2.0], 8), 8, 1.5), "yes"),
    "helps a little": (lambda: rows(np.linspace(0.0, 3.0, 12), 14, 1.0, seed=2), "probably"),
    "no help at all": (lambda: rows(np.ones(8), 40, 1.0), "no"),
    "nodes too small": (
        # fewer rows than parameters: of several optima another one may say something else
        lambda: rows(np.repeat([1.0, -1.0], 6), np.tile([1, 2, 3], 4), 0.5, seed=2),
        "no",
    ),
    "one odd node": (lambda: rows(np.r_[np.ones(4), 9.0, np.ones(7)], 10, 1.0, seed=1), "unclear"),
    "classes": (labels, "probably"),
    "states": (states, "probably"),
}


@pytest.fixture(scope="module", params=list(CASES))
def case(request, tmp_path_factory):
    """The rows as a file with an edge file, and the run of `nefele fit` on them."""
    make, word = CASES[request.param]
    X, y, ids, edges = make()
    folder = tmp_path_factory.mktemp("case")
    names = [f"x{j}" for j in range(X.shape[1])]
    frame = pl.DataFrame(dict(zip(names, X.T, strict=True))).with_columns(
        pl.Series("node", ids), pl.Series("y", y)
    )
    nodes = np.unique(ids)
    frame.write_parquet(folder / "data.parquet")
    pairs = [(nodes[a], nodes[b]) for a, b in edges]
    pl.DataFrame(pairs, schema=["source", "target"], orient="row").write_csv(folder / "edges.csv")
    config = RunConfig(
        data=str(folder / "data.parquet"),
        node="node",
        target="y",
        graph=str(folder / "edges.csv"),
        penalty="l2",
        task="classification" if y.dtype.kind == "U" else "regression",
        folds=3,
        n_alphas=4,
        out=str(folder / "run"),
    )
    _, facts = execute(config, "nefele fit")
    graph = nefele.Graph.from_edges(pairs)
    return config, facts["summary"], frame.select(*names, "node"), y, ids, graph, word


def search(config, graph, **options):
    """The models of a run as an estimator."""
    classes = config.task == "classification"
    kind, loss = (GTVClassifierCV, Logistic) if classes else (GTVRegressorCV, Squared)
    return kind(
        graph,
        node="node",
        penalty=config.penalty,
        loss=loss(l2=config.ridge),
        weighting=config.weighting,
        standardize=True,
        unseen="pooled",
        **options,
    )


def asked(model):
    found = model.verdict_
    return found.helps, found.gain.mean, found.gain.error, found.text()


def same(found, word, gain, error, text):
    assert found[0] == word and found[3] == text
    assert found[1:3] == pytest.approx((gain, error), rel=1e-6, abs=1e-12)


def test_fit_estimator_and_selector_say_the_same(case):
    config, summary, X, y, ids, graph, word = case
    fit = [summary[name] for name in ("helps", "gain", "gain_se", "verdict")]
    assert fit[0] == word
    split = [hold_out(ids, None, config.seed)]
    one = search(config, graph, alphas=[summary["alpha"]], cv=split)
    model = one.fit(X, y)
    same(asked(model), *fit)
    assert fit[3] in model.summary()
    assert (model.gain_, model.gain_se_) == asked(model)[1:3]
    assert model.coupling_helps_ == (fit[0] in ("yes", "probably"))
    selector = GraphSelectorCV({"given": graph}, estimator=one, n_shuffles=0).fit(X, y)
    same(asked(selector), *fit)
    assert fit[3] in selector.summary()


def test_graph_command_estimator_and_selector_say_the_same(case):
    config, _, X, y, ids, graph, _ = case
    splits = folds_inside(ids, None, config.folds, config.seed)
    many = search(config, graph, n_alphas=config.n_alphas, cv=splits)
    verdict = asked(many.fit(X, y))
    selector = GraphSelectorCV({"given": graph}, estimator=many, n_shuffles=0).fit(X, y)
    same(asked(selector), *verdict)
    found = compare_graphs(config, ["given"])
    facts = next(row for row in found.facts["graphs"] if row["graph"] == "given")
    assert facts["coupling"] == verdict[0]
    assert found.selector.verdict_.gain.mean == pytest.approx(verdict[1], rel=2e-2, abs=1e-4)
