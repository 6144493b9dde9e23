"""Buildings with unlike models: power from weather and hour, nobody shares rows or parameters.

Each building brought its own kind of model, from a straight line to a random forest, and has four
days of measurements, eight a day; one building is new and has none. Buildings of the same use
that lie near each other are linked. They tell each other only what they would predict for a public
set of weather and hours, and the links drop one message in five.

Run it: python examples/mixed_models.py
"""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

from nefele.agnostic import FedRelaxRegressor
from nefele.runtime import Faults

KINDS = [
    Ridge(),
    make_pipeline(SplineTransformer(n_knots=4), Ridge()),
    DecisionTreeRegressor(min_samples_leaf=3, random_state=0),
    RandomForestRegressor(20, min_samples_leaf=2, random_state=0),
    make_pipeline(StandardScaler(), SVR(C=30.0)),
    make_pipeline(StandardScaler(), KNeighborsRegressor(4)),
]
N_BUILDINGS, NEW = 18, "B17"
NAMES = [f"B{i:02d}" for i in range(N_BUILDINGS)]
USE = np.repeat(["home", "office"], N_BUILDINGS // 2)
SIZE = 1 + 0.1 * np.random.default_rng(1).standard_normal(N_BUILDINGS)


def measure(days: int, rng: np.random.Generator) -> pd.DataFrame:
    """Outdoor temperature, hour and power (kW) of every building."""
    owner = np.repeat(np.arange(N_BUILDINGS), 8 * days)
    hour = np.tile(np.arange(0, 24, 3), days * N_BUILDINGS).astype(float)
    outside = rng.normal(5, 6, len(owner)) + 4 * np.sin((hour - 9) / 24 * 2 * np.pi)
    heating = 0.5 * np.maximum(18 - outside, 0)
    busy = np.where(USE[owner] == "home", np.exp(-((hour - 19) ** 2) / 12), (hour // 3) % 6 > 1)
    power = SIZE[owner] * (np.where(USE[owner] == "home", 1.0, 0.4) * heating + 8 * busy)
    power += rng.normal(0, 1.0, len(owner))
    return pd.DataFrame(
        {
            "building": np.array(NAMES)[owner],
            "outside": outside,
            "hour": hour,
            "power": power,
        }
    )


def main() -> None:
    rng = np.random.default_rng(0)
    train, test = measure(4, rng), measure(30, rng)
    train = train[train["building"] != NEW]
    pairs = [(i, i + s) for s in (1, 2, 3) for i in range(N_BUILDINGS - s) if USE[i] == USE[i + s]]
    links = pd.DataFrame([(NAMES[i], NAMES[j]) for i, j in pairs], columns=["source", "target"])
    public = pd.DataFrame({"outside": rng.uniform(-12, 22, 96), "hour": np.resize(range(24), 96)})
    models = {name: KINDS[i % len(KINDS)] for i, name in enumerate(NAMES)}

    X, y = train.drop(columns="power"), train["power"]
    X_test = test.drop(columns="power")
    off = (test["building"] != NEW).to_numpy()

    def error(found: np.ndarray, rows: np.ndarray) -> float:
        return float(np.mean((found - test["power"].to_numpy())[rows] ** 2))

    alone, pooled = np.zeros(len(test)), np.zeros(len(test))
    for name in NAMES:
        own, mine = (train["building"] == name).to_numpy(), (test["building"] == name).to_numpy()
        for found, rows in ((alone, own), (pooled, np.ones(len(train), dtype=bool))):
            if rows.any():
                fit = clone(models[name]).fit(X[rows].drop(columns="building"), y[rows])
                found[mine] = fit.predict(X_test[mine].drop(columns="building"))

    model = FedRelaxRegressor(
        models,
        graph=links,
        node="building",
        alpha=0.1,
        X_shared=public,
        rounds=10,
        tol=None,
        random_state=0,
        faults=Faults(link_loss=0.2),
    ).fit(X, y)
    coupled = model.predict(X_test)

    print("mean squared error on new days (noise alone: 1.00)")
    print(f"each building alone      {error(alone, off):6.3f}")
    print(f"all rows in one place    {error(pooled, off):6.3f}")
    print(f"coupled by predictions   {error(coupled, off):6.3f}")
    print(f"the building without rows {error(coupled, ~off):6.3f}")
    print()
    print(model.ledger_.summary())


def picture() -> Any:
    """One day of three offices with unlike models, before and after they talk to each other."""
    import matplotlib.pyplot as plt

    train = measure(4, np.random.default_rng(0))
    X, y = train.drop(columns="power"), train["power"]
    names = ["B09", "B10", "B12"]  # a random forest, a support vector machine, a line
    some = X["building"].isin(names)
    links = pd.DataFrame({"source": names[:2], "target": names[1:]})
    models = {name: KINDS[NAMES.index(name) % len(KINDS)] for name in names}
    public = pd.DataFrame(
        {"outside": np.resize([-5.0, 5.0, 15.0], 72), "hour": np.resize(range(24), 72)}
    )
    day = pd.DataFrame({"outside": 5.0, "hour": np.arange(24.0)})
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.4), sharey=True, layout="constrained")
    for ax, alpha, title in zip(axes, (0.0, 0.3), ("each alone", "coupled"), strict=True):
        model = FedRelaxRegressor(
            models, graph=links, node="building", alpha=alpha, X_shared=public, random_state=0
        ).fit(X[some], y[some])
        for name in names:
            ax.plot(day["hour"], model.predict(day.assign(building=name)), label=name)
        ax.set(title=title, xlabel="hour, 5 degrees outside")
    axes[0].set_ylabel("power, kW")
    axes[0].legend(frameon=False)
    return figure


if __name__ == "__main__":
    main()
