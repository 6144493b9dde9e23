"""AGN: unlike models at the stations of the weather network, coupled by their predictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.experiments.base import Cell, Experiment, Inputs, Row, exact, groups, over_seeds
from nefele.experiments.figures import COLOURS, MARKERS
from nefele.experiments.weather import Rows, Weather, load_weather
from nefele.problem import Problem

ALPHAS = (0.03, 0.3, 3.0)
ROUNDS = 10
LINEAR, MIXED = "linear models", "mixed models"
CHECK = "linear models against GTVMin with Quadratic(Q), lam = 2 alpha"


def cells(quick: bool, inputs: Inputs) -> list[Cell]:
    """Kinds of models x splits; and the check of linear models on a smaller network."""
    step, seeds = (4, 1) if quick else (1, 3)
    runs = [
        {"kind": kind, "seed": s, "step": step, "rounds": ROUNDS}
        for kind in (MIXED, LINEAR)
        for s in range(seeds)
    ]
    return [*runs, {"kind": CHECK, "seed": 0, "step": 10, "rounds": 3000}]


def compute(setting: Cell, inputs: Inputs) -> Cell:
    """Validation error alone and for growing alpha."""
    assert inputs.weather is not None
    weather = load_weather(inputs.weather).part(setting["step"])
    train, test = weather.split(setting["seed"])
    if setting["kind"] == CHECK:
        return _check(weather, train, setting["rounds"])
    models: Any = _models(weather.stations) if setting["kind"] == MIXED else _kinds()[0]
    found: Cell = {"stations": len(weather.stations)}
    for alpha in (0.0, *ALPHAS):
        fit = _fit(weather, train, models, alpha, rounds=setting["rounds"], tol=None)
        errors = [
            np.mean((fit.predict(X[:, :2], node_ids=[name] * len(y)) - y) ** 2)
            for name, (X, y) in zip(weather.stations, test, strict=True)
        ]
        found[f"{alpha:g}"] = {"error": float(np.mean(errors))}
    return found


def _kinds() -> list[Any]:
    from sklearn.linear_model import LinearRegression, Ridge
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeRegressor

    return [
        LinearRegression(),
        DecisionTreeRegressor(min_samples_leaf=3, random_state=0),
        make_pipeline(StandardScaler(), KNeighborsRegressor(4)),
        make_pipeline(StandardScaler(), Ridge()),
    ]


def _models(stations: list[str]) -> dict[str, Any]:
    kinds = _kinds()
    return {name: kinds[i % len(kinds)] for i, name in enumerate(stations)}


def _fit(weather: Weather, train: Rows, models: Any, alpha: float, **options: Any) -> Any:
    import warnings

    from nefele.agnostic import FedRelaxRegressor
    from nefele.result import ConvergenceWarning

    fit = FedRelaxRegressor(
        models, graph=weather.graph(), alpha=alpha, n_shared=50, random_state=0, **options
    )
    X = np.vstack([X[:, :2] for X, _ in train])
    y = np.concatenate([y for _, y in train])
    ids = np.repeat(np.array(weather.stations), [len(y) for _, y in train])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the row says it
        return fit.fit(X, y, node_ids=ids)


def _check(weather: Weather, train: Rows, rounds: int) -> Cell:
    """Largest distance of the predictions on the shared rows from the exact solution."""
    from nefele.penalties import Quadratic

    alpha = ALPHAS[0]
    fit = _fit(weather, train, _kinds()[0], alpha, rounds=rounds, tol=1e-9, schedule="gauss-seidel")
    shared = np.column_stack([fit.X_shared_, np.ones(len(fit.X_shared_))])
    penalty = Quadratic(shared.T @ shared / len(shared))
    data = weather.local_data(train)
    # A gap fixes predictions to its square root: far below the tolerance of the rounds.
    solved = exact(Problem(weather.graph(), data, penalty=penalty, lam=2 * alpha), tol=1e-12)
    apart = [
        np.abs(_predicted(fit, name) - shared @ solved.w[i]).max()
        for i, name in enumerate(weather.stations)
    ]
    facts = solved.facts(apart=max(apart), rounds=fit.rounds_, stations=len(weather.stations))
    return {**facts, "converged": bool(facts["converged"] and fit.converged_)}


def _predicted(fit: Any, name: str) -> Array:
    return np.asarray(fit.predict(fit.X_shared_, node_ids=[name] * len(fit.X_shared_)))


def rows(done: list[Cell]) -> list[Row]:
    """Errors alone and coupled, and the distance of linear models from the exact solution."""
    table = []
    for (kind,), those in groups(done, "kind").items():
        if kind == CHECK:
            text = "the rounds end at the optimum of the core's problem"
            row = over_seeds(
                f"{kind}, {those[0]['stations']:g} stations",
                "largest distance of predictions, degrees",
                those,
                "apart",
                expected=(0.0, 1e-4),
                because=text,
            )
            table.append(row)
            continue
        alone = float(np.mean([cell["0"]["error"] for cell in those]))
        for alpha in ("0", *(f"{a:g}" for a in ALPHAS)):
            facts = [cell[alpha] for cell in those]
            name = "alone" if alpha == "0" else f"FedRelax, alpha {alpha}, {ROUNDS} rounds"
            what = f"{kind}, {those[0]['stations']} stations, {name}"
            gain = float(np.mean([fact["error"] for fact in facts])) / alone - 1
            text = "" if alpha == "0" else f"{gain:+.0%} against alone"
            table.append(over_seeds(what, "validation error (44)", facts, "error", because=text))
    return table


def draw(figure: Any, done: list[Cell]) -> None:
    """Validation error against alpha, alone at the left."""
    ax = figure.subplots()
    names = ["0", *(f"{a:g}" for a in ALPHAS)]
    runs = groups((cell for cell in done if cell["kind"] != CHECK), "kind")
    for k, ((kind,), those) in enumerate(runs.items()):
        errors = np.array([[cell[name]["error"] for name in names] for cell in those])
        ax.errorbar(
            range(len(names)),
            errors.mean(axis=0),
            yerr=errors.std(axis=0),
            label=kind,
            color=COLOURS[k],
            marker=MARKERS[k],
        )
    ax.set_xticks(range(len(names)), ["alone", *names[1:]])
    ax.set(xlabel="alpha", ylabel="validation error (44)")
    ax.legend()


EXPERIMENT = Experiment(
    "agnostic1",
    "weather: unlike models coupled by their predictions",
    "AGN, Algorithm 2 (the paper has no experiments)",
    cells,
    compute,
    rows,
    draw,
    size=(5.0, 3.2),
    needs="weather",
    notes=(
        "Linear, tree, nearest-neighbour and ridge models in turn; neighbours are to predict alike "
        "on 50 drawn rows. AGN prints no numbers to compare with. The factor of its printed update "
        "is in the table of constants.",
    ),
)
