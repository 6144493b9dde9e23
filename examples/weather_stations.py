"""Weather stations: the temperature of tomorrow, one model per station, from generated data.

Stations lie in three climates. Each has few days of data, and neighbours in space are alike. The
graph of near stations is built inside fit, from their coordinates.

Run it: python examples/weather_stations.py
"""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import mean_squared_error

from nefele import GTVRegressor
from nefele.estimators import SpatialKNN

N_STATIONS, N_TRAIN, N_TEST = 60, 6, 40
CLIMATES = np.array([[0.9, -0.2, 1.0], [0.4, 0.5, -2.0], [0.7, 0.0, 4.0]])


def make_stations(seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Training days, test days, and a table with the place of each station."""
    rng = np.random.default_rng(seed)
    lat = np.sort(rng.uniform(60, 70, N_STATIONS))
    lon = rng.uniform(21, 29, N_STATIONS)
    names = [f"S{i:03d}" for i in range(N_STATIONS)]
    climate = CLIMATES[np.digitize(lat, [63.3, 66.6])]

    def days(count: int) -> pd.DataFrame:
        owner = np.repeat(np.arange(N_STATIONS), count)
        today, wind = rng.normal(5, 3, len(owner)), rng.normal(size=len(owner))
        slope, gust, level = climate[owner].T
        tomorrow = slope * today + gust * wind + level + rng.normal(0, 1.5, len(owner))
        station = np.array(names)[owner]
        return pd.DataFrame(
            {"station": station, "today": today, "wind": wind, "tomorrow": tomorrow}
        )

    places = pd.DataFrame({"station": names, "lat": lat, "lon": lon})
    return days(N_TRAIN), days(N_TEST), places


def main() -> None:
    train, test, places = make_stations()
    X, y = train.drop(columns="tomorrow"), train["tomorrow"]
    models = {
        "each station alone": GTVRegressor(SpatialKNN(5), node="station", coords=places, alpha=0),
        "one model for all": GTVRegressor(SpatialKNN(5), node="station", coords=places, alpha=1e4),
        "coupled over the map": GTVRegressor(
            SpatialKNN(5), node="station", coords=places, alpha=1.0
        ),
    }
    print("mean squared error on new days (noise alone: 2.25)")
    for name, model in models.items():
        model.fit(X, y)
        error = mean_squared_error(test["tomorrow"], model.predict(test.drop(columns="tomorrow")))
        print(f"{name:22} {error:6.3f}   {model.clusters_.max() + 1:3d} groups of stations")


def picture() -> Any:
    """The map of stations: what tomorrow takes from today, alone and coupled."""
    import matplotlib.pyplot as plt

    train, _, places = make_stations()
    X, y = train.drop(columns="tomorrow"), train["tomorrow"]
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 4.2), sharey=True, layout="constrained")
    for ax, alpha, title in zip(axes, (0.0, 1.0), ("each alone", "coupled"), strict=True):
        model = GTVRegressor(SpatialKNN(5), node="station", coords=places, alpha=alpha).fit(X, y)
        slope = dict(zip(model.nodes_, model.coef_[:, 0], strict=True))
        colour = [slope[name] for name in places["station"]]
        drawn = ax.scatter(places["lon"], places["lat"], c=colour, vmin=0.2, vmax=1.1, s=40)
        ax.axhline(63.3, color="#999999", lw=0.8)
        ax.axhline(66.6, color="#999999", lw=0.8)
        ax.set(title=title, xlabel="longitude")
    axes[0].set_ylabel("latitude")
    figure.colorbar(drawn, ax=axes, label="slope of today (truth: 0.9, 0.4, 0.7)")
    return figure


if __name__ == "__main__":
    main()
