"""The report of a fitted model, from Python: the same page as that of `nefele fit`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from nefele._checks import Array
from nefele._ids import IdIndex
from nefele.estimators.coefficients import row_counts
from nefele.report import Step, View, write_report
from nefele.selection.verdict import Verdict

_ALONE = (
    "Fitted with a strength of coupling that was given. No rows were held out, so this page does "
    "not say whether coupling helps; GTVRegressorCV and GTVClassifierCV do."
)


class Reported(BaseEstimator):
    """What can be shown as a page; a subclass gives the view of its fit."""

    def _view(self, **how: Any) -> View:
        """What the page shows, from `title`, `positions` and `geographic`."""
        raise NotImplementedError

    def report(
        self,
        path: Any,
        *,
        title: str | None = None,
        positions: Any = None,
        geographic: bool = False,
    ) -> None:
        """Write the report of the fit, one HTML file that opens without a network.

        With a chosen coupling (`GTVRegressorCV`, `GTVClassifierCV`): errors at held-out rows,
        whether coupling helps, the network, the models along alpha, and the proof, as in the report
        of `nefele fit`. With a given alpha no rows were held out: it shows the models and the
        proof, and does not say whether coupling helps.

        Parameters
        ----------
        path : str or Path
            The HTML file; an older one stays whole until the new one is complete.
        title : str, optional
        positions : array of shape (n_nodes, 2) or mapping from node ids, optional
            Where the nodes are drawn; by default by forces.
        geographic : bool
            Whether positions are (longitude, latitude).

        Examples
        --------
        >>> import nefele, tempfile
        >>> states = nefele.datasets.load_states()
        >>> model = nefele.GTVRegressorCV(states.graph)
        >>> _ = model.fit(states.X[:, :2], states.y, node_ids=states.node_ids)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.report(f"{folder}/report.html", title="States")
        """
        write_report(self._view(title=title, positions=positions, geographic=geographic), path)


def view_of(
    model: Any,
    search: Any = None,
    track: Track | None = None,
    title: str | None = None,
    positions: Any = None,
    geographic: bool = False,
) -> View:
    """What the report of a fitted model shows; `search` is the CV estimator that chose it."""
    check_is_fitted(model, "coef_")
    graph, track = model.graph_, track or Track.single(model)
    nodes = [str(key) for key in graph.ids.tolist()]
    names = model._names() or [f"x{j}" for j in range(model.coef_.shape[-1])]
    scored = search is not None
    return View(
        title=title or f"{type(search or model).__name__}, {graph.n_nodes} nodes",
        task="classification" if hasattr(model, "classes_") else "regression",
        target="",
        metric=_metric(model, search),
        command=" ".join(repr(search or model).split()),
        created=datetime.now().isoformat(timespec="seconds"),
        version=version("nefele"),
        facts=_facts(model, search),
        verdict=search.verdict_.text() if scored else _ALONE,
        notes=[] if model.status_ == "optimal" else [f"The final fit is {model.status_}."],
        nodes=nodes,
        parameters=parameter_names(names, getattr(model, "classes_", np.array([]))),
        rows=_rows(model),
        edges=np.column_stack([graph.head, graph.tail]),
        weights=np.array(graph.weight),
        alphas=track.alphas,
        coef=track.coef,
        clusters=track.clusters,
        gaps=track.gaps,
        chosen=track.chosen,
        tol=float(model.tol),
        history=[Step(*tuple(record)[:4]) for record in model.history_],
        positions=_placed(graph, positions),
        geographic=geographic,
        centre=hasattr(model, "centre_coef_"),
        **_errors(search, nodes, track.chosen, len(track.alphas)),
    )


def parameter_names(features: list[str], classes: NDArray[Any]) -> list[str]:
    """Names of the parameters of a node: for more than two classes, those of each class in turn.

    Examples
    --------
    >>> parameter_names(["x"], np.array(["a", "b", "c"]))[:3]
    ['x [a]', 'intercept [a]', 'x [b]']
    """
    names = [*features, "intercept"]
    if len(classes) <= 2:
        return names
    return [f"{name} [{label}]" for label in classes.tolist() for name in names]


@dataclass(frozen=True, eq=False)
class Track:
    """Models along alpha, from large to small: K alphas, n nodes, p parameters."""

    alphas: Array
    chosen: int
    coef: Array  # (K, n, p)
    clusters: NDArray[np.int64]  # (K, n)
    gaps: Array

    @classmethod
    def single(cls, model: Any) -> Track:
        """The fitted model alone."""
        return cls(
            np.array([float(model.alpha)]),
            0,
            stacked(model.coef_, model.intercept_)[None],
            model.clusters_[None],
            np.array([float(model.dual_gap_)]),
        )


def stacked(coef: Array, intercept: Array) -> Array:
    """Coefficients, then the intercept, of each class in turn; shape (n_nodes, p)."""
    both = np.concatenate([coef, intercept[..., None]], axis=-1)
    return both.reshape(len(both), -1)


def _errors(search: Any, nodes: list[str], chosen: int, count: int) -> dict[str, Any]:
    """Errors at held-out rows: in all, along the alphas, and of each node."""
    blank = np.full(count, np.nan)
    found: dict[str, Any] = {
        "scores": [],
        "cv_error": blank.copy(),
        "cv_se": blank.copy(),
        "best": -1,
        "clearest": -1,
        "own_error": np.full(len(nodes), np.nan),
        "pooled_error": np.full(len(nodes), np.nan),
        "node_error": np.full((count, len(nodes)), np.nan),
    }
    if search is None:
        return found
    table, verdict = search.cv_results_, search.verdict_
    folds = sum(key.startswith("split") for key in table)
    if count == len(table["mean_test_score"]):
        found["cv_error"] = -np.asarray(table["mean_test_score"])
        if folds > 1:
            found["cv_se"] = np.asarray(table["std_test_score"]) / np.sqrt(folds - 1)
    found |= {
        "scores": verdict.scores,
        "best": int(np.argmin(np.abs(search.alphas_ - search.best_alpha_))) if count > 1 else 0,
        "cv_own": -float(search.baseline_scores_["own"]),
        "cv_pooled": -float(search.baseline_scores_["pooled"]),
    }
    if count > 1 and search.clearest_alpha_ is not None:
        found["clearest"] = int(np.argmin(np.abs(search.alphas_ - search.clearest_alpha_)))
    _spread(found, verdict, nodes, chosen)
    return found


def _spread(found: dict[str, Any], verdict: Verdict, nodes: list[str], chosen: int) -> None:
    """Errors of the nodes at their places; those that judged nothing have none."""
    if verdict.part != "node" or not len(verdict.nodes):
        return
    at = IdIndex(np.array(nodes, dtype=object)).positions(
        np.array([str(key) for key in verdict.nodes], dtype=object)
    )
    on = at >= 0
    found["own_error"][at[on]] = verdict.own[on]
    found["pooled_error"][at[on]] = verdict.pooled[on]
    found["node_error"][chosen, at[on]] = verdict.coupled[on]


def _metric(model: Any, search: Any) -> str:
    scoring = None if search is None else search.scoring
    if scoring is not None:
        return f"minus {scoring}" if isinstance(scoring, str) else "minus the score"
    kind = type(model._core_loss()).__name__
    names = {"Squared": "mean squared error", "HuberLoss": "mean Huber loss"}
    names |= {"Absolute": "mean absolute error", "Hinge": "share of wrong classes"}
    names |= {"Poisson": "mean Poisson loss"}
    return names.get(kind, "log loss")


def _facts(model: Any, search: Any) -> list[tuple[str, str]]:
    graph = model.graph_
    found = [
        ("Nodes", f"{graph.n_nodes:,}"),
        ("Edges", f"{graph.n_edges:,}"),
        ("Strength of the coupling", f"alpha {float(model.alpha):.4g}"),
        ("Penalty", str(model.penalty)),
        ("Final fit", f"{model.status_}, certified gap {float(model.dual_gap_):.1e}"),
        ("Iterations", f"{model.n_iter_:,}"),
    ]
    if search is not None and hasattr(search, "coupling_"):
        found.insert(2, ("Coupling", search.coupling_))
    if hasattr(model, "privacy_"):
        found.append(("Privacy", model.privacy_.text()))
    return found


def _rows(model: Any) -> Any:
    counts = row_counts(model)
    if counts is None:
        return np.zeros(model.graph_.n_nodes, dtype=np.int64)
    return np.rint(counts).astype(np.int64)


def _placed(graph: Any, positions: Any) -> Array | None:
    from nefele._draw.drawing import place

    return None if positions is None else place(graph, positions)
