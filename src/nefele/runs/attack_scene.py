"""`nefele attack`: a data file as a scene under attack, and what came out as plain data."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from nefele._checks import Array, check_count, check_name
from nefele.estimators import GTVClassifierCV, GTVRegressorCV
from nefele.estimators.design import Design, Rows
from nefele.estimators.fitting import make_design, make_graph, take_rows
from nefele.losses import Logistic, Squared
from nefele.robust import Backdoor, influence_bound, suspects, worst_nodes
from nefele.runs.attacking import QUADRATIC, Outcome, Scene, attacks, defences, table
from nefele.runs.candidates import KINDS, most_neighbours
from nefele.runs.config import RunConfig
from nefele.runs.inputs import read_inputs
from nefele.runs.pipeline import make_model, model_options
from nefele.runs.results import finite
from nefele.runs.run import Progress, _warnings_as_notes, silent
from nefele.runs.sizes import print_nothing
from nefele.runs.split import folds_inside

USUAL = ("none (quadratic)", "l2", "huber", "clip", "median")
LOSSES = ("huber loss", "absolute loss")  # for numbers
_HELD_OUT = 4  # every so many rows are held out
_STAMP = 6.0  # standard deviations that the backdoor's trigger moves a feature
_WON = 0.5  # share of stamped rows from which a backdoor has succeeded


def attack_file(
    config: RunConfig,
    captured: tuple[str, ...] | None = None,
    worst: int = 1,
    names: tuple[str, ...] | None = None,
    against: tuple[str, ...] | None = None,
    progress: Progress = silent,
    tell: Callable[[str], object] = print_nothing,
) -> dict[str, Any]:
    """Attack the network of a data file, and say what each attack did to each defence.

    Parameters
    ----------
    config : RunConfig
        Which rows, which graph, which model; a number as alpha holds for all penalties.
    captured : tuple of str, optional
        Ids of the captured nodes; default: the `worst` ones.
    worst : int
        So many nodes whose capture would allow most.
    names, against : tuples of str, optional
        Attacks and defences; default: all attacks, the usual defences.
    """
    against = _against(against, config.task == "classification")
    captured = None if captured is None else tuple(dict.fromkeys(captured))
    check_count(worst, "worst", low=1)
    with _warnings_as_notes() as warned:
        scene, chosen, held_out = _scene(config, captured, worst, tell)
        known = list(attacks(scene))[1:]
        for name in names or ():
            check_name(name, known, "attack")
        wanted = known if names is None else list(names)
        rows = []
        with progress(len(against) * (1 + len(wanted))) as tick:
            for name, shield, outcome, success in table(scene, wanted, list(against)):
                tick(f"{name}, {shield}", math.nan)
                rows.append(_row(name, shield, outcome, success))
    bad = {row["defence"] for row in rows if row["success"] > _WON}
    return {
        "nodes": scene.graph.n_nodes,
        "edges": scene.graph.n_edges,
        "rows": scene.data.n_rows,
        "held_out_rows": held_out,
        "captured": [str(node) for node in scene.captured],
        "captured_by": chosen,
        "lam": scene.lam,
        "metric": "share of wrong rows" if scene.target is not None else "mean squared error",
        "bound": _bound(scene),
        "suspects": _suspects(scene),
        "table": rows,
        "holds": [name for name in against if name not in bad],
        "notes": warned(),
    }


def _against(names: tuple[str, ...] | None, classes: bool) -> tuple[str, ...]:
    """The defences that are tried; a ValueError for those that there are not, or not here."""
    if names is None:
        return USUAL if classes else USUAL + LOSSES
    for name in names:
        check_name(name, defences(), "defence")
        if name not in defences(classes):
            raise ValueError(
                f'The defence "{name}" is a loss for numbers, and the target is a class. Leave it '
                "out: the logistic loss has a bounded slope already."
            )
    return tuple(names)


def _scene(
    config: RunConfig, captured: Any, worst: int, tell: Callable[[str], object]
) -> tuple[Scene, str, int]:
    inputs = read_inputs(config, tell)
    graph: Any = inputs.graph
    if graph is None:
        graph = KINDS[config.learner].make(most_neighbours(config.k, [inputs.ids]), {})
    model = make_model(config, graph)
    rows = take_rows(model, inputs.frame(config.node), inputs.y)
    if config.task == "classification" and len(np.unique(rows.y)) != 2:
        raise ValueError(
            f"nefele attack needs two classes; {config.target} has {len(np.unique(rows.y))}. Use "
            "--features and rows of two classes, or a number as target."
        )
    train, test = folds_inside(rows.node_ids, inputs.times, _HELD_OUT, config.seed)[0]
    held, kept = rows.take(test), rows.take(train)
    held, kept = held.filled_by(kept), kept.filled_by(kept)
    model.graph = make_graph(model, kept)
    design = make_design(model, kept)
    lam = _strengths(config, inputs, model.graph, train)
    scene = _stage(config, design, held, lam, captured or ())
    if captured:
        influence_bound(scene.problem("l2"), list(captured))  # says which ids are unknown
        return scene, "named", len(test)
    if worst >= scene.graph.n_nodes:
        raise ValueError(
            f"worst must leave an honest node of the {scene.graph.n_nodes}; got {worst}."
        )
    found = worst_nodes(scene.problem("l2"), worst)
    how = "allow most" if found.exact else "allow most, found one after the other"
    return _stage(config, design, held, lam, tuple(found.nodes)), how, len(test)


def _strengths(config: RunConfig, inputs: Any, graph: Any, train: Any) -> dict[str, float]:
    """Alpha of each penalty: as given, or by cross-validation without attackers."""
    if config.alpha != "auto":
        return dict.fromkeys(("l2", "huber", QUADRATIC), float(config.alpha))
    kind = GTVClassifierCV if config.task == "classification" else GTVRegressorCV
    found = {}
    for penalty in ("l2", QUADRATIC):
        options = model_options(config) | {"penalty": penalty, "n_alphas": config.n_alphas}
        search = kind(graph, **options, cv=config.folds)
        search.fit(inputs.frame(config.node)[train], inputs.y[train])
        found[penalty] = float(search.alpha_)
    return {**found, "huber": found["l2"]}


def _stage(
    config: RunConfig, design: Design, held: Rows, lam: dict[str, float], captured: tuple[Any, ...]
) -> Scene:
    """The scene of a design: errors at held-out rows of honest nodes, in units of the target."""
    graph, data = design.problem.graph, design.problem.data
    assert data is not None
    classes = config.task == "classification"
    X = (held.X - design.shift) / design.scale
    X = np.column_stack([X, np.ones(len(X))]) if design.fit_intercept else X
    place = graph.positions(held.node_ids)
    bad = graph.positions(list(captured)) if captured else np.zeros(0, dtype=np.int64)
    honest = ~np.isin(place, bad)
    X, y, place = X[honest], held.y[honest] - design.offset, place[honest]
    trigger = np.zeros(data.d)
    trigger[int(np.argmin(design.scale))] = _STAMP
    label = 1.0 if classes else float(data.y.max() + 3 * data.y.std())
    door = Backdoor(list(captured) or graph.ids[:1].tolist(), trigger, label, seed=config.seed)

    def judge(w: Array) -> float:
        z = np.einsum("ij,ij->i", X, w[place])
        return float(np.mean(np.sign(z) != y) if classes else np.mean((z - y) ** 2))

    def opened(w: Array) -> float:
        other = y != label
        z = np.einsum("ij,ij->i", door.stamp(X[other]), w[place[other]])
        won = z > 0 if classes else np.abs(z - label) < np.abs(z - y[other])
        return float(np.mean(won)) if other.any() else 0.0

    loss = (Logistic if classes else Squared)(l2=config.ridge)
    target = X[y < 0][0] if classes and (y < 0).any() else None
    return Scene(
        graph, data, loss, lam, list(captured), judge, door, opened, target, seed=config.seed
    )


def _row(name: str, shield: str, outcome: Outcome, success: float) -> dict[str, Any]:
    return {
        "attack": name,
        "defence": shield,
        "error": finite(outcome.error),
        "success": success,
        "moved": finite(outcome.moved) if np.isfinite(outcome.bound) else None,
        "bound": finite(outcome.bound),
        "over_bound": finite(outcome.used),
        "seconds": outcome.seconds,
    }


def _bound(scene: Scene) -> dict[str, Any]:
    found = influence_bound(scene.problem("l2"), scene.captured)
    return {
        "total": finite(found.total),
        "per_node": {
            str(node): finite(float(value))
            for node, value in zip(scene.graph.ids.tolist(), found.per_node, strict=True)
            if not np.isnan(value)
        },
        "reason": found.reason,
    }


def _suspects(scene: Scene) -> list[str] | None:
    """Nodes whose rows speak against their neighbours', before any attack; None for classes."""
    if scene.target is not None or scene.data.sample_weight is not None:
        return None
    try:
        return [str(node) for node in suspects(scene.problem("l2")).nodes]
    except ValueError:
        return None
