"""Models of different length and meaning, coupled through linear maps over a network.

Weather stations report in different units and with different sensors. What they share is how the
temperature falls with height and rises with the sun; each compares what it has with its neighbours.
"""

from typing import Any

import numpy as np

from nefele import Graph, LocalData, Problem, solve
from nefele.graphs import mapped

rng = np.random.default_rng(1)
# Effects of a kilometre and of an hour of sun, in degrees Celsius.
north, south = np.array([-6.5, 0.4]), np.array([-5.0, 0.8])
stations = {  # effects per unit of the station's own sensors, and the map to common ones
    "Inari": (north, np.eye(2)),
    "Kemi": (north * [0.001, 1.0], np.diag([1000.0, 1.0])),  # height in metres
    "Oulu": (np.append(north, 1.5), np.eye(2, 3)),  # a third sensor, for wind
    "Turku": (south * [1.8, 1.8], np.eye(2) / 1.8),  # degrees Fahrenheit
    "Hanko": (south[1:], np.array([[1.0]])),  # no height: flat land
}
rows = []
for effect, _ in stations.values():
    size = np.where(np.abs(effect) < 0.1, 1000.0, 1.0)
    X = rng.normal(size=(5, len(effect))) * size
    rows.append((X, X @ effect + 2.0 * rng.normal(size=5)))
data = LocalData.from_list(rows, nodes=list(stations), pad=True)

roads = Graph.from_edges(
    [("Inari", "Kemi"), ("Kemi", "Oulu"), ("Oulu", "Turku"), ("Turku", "Hanko")],
    weight=[1.0, 1.0, 0.1, 1.0],
)
sun = np.array([[0.0, 1.0]])
maps = {
    "nodes": {name: F for name, (_, F) in stations.items()},
    "edges": {("Turku", "Hanko"): (sun / 1.8, np.array([[1.0]]))},  # the sun is all they share
}
coupling = mapped(roads, **maps)


def error(result) -> float:
    """Mean distance of the effects, in common units, from the truth."""
    found = []
    for name, (effect, F) in stations.items():
        found.append(np.abs(F @ (result[name][: len(effect)] - effect)).mean())
    return float(np.mean(found))


alone = solve(Problem(coupling, data, lam=0.0))
together = solve(Problem(coupling, data, lam=2.0))
print(f"each station alone    error {error(alone):.3f}")
print(f"coupled through maps  error {error(together):.3f}")
print(f"certified gap {together.gap:.1e} ({together.certificate}, {together.status})")


def picture() -> Any:
    """Effects of an hour of sun in common units: alone, coupled, and the truth."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    place = np.arange(len(stations))
    for name, result, colour, marker in (
        ("each station alone", alone, "#D55E00", "s"),
        ("coupled through maps", together, "#0072B2", "o"),
    ):
        sunny = [(F @ result[key][: len(w)])[-1] for key, (w, F) in stations.items()]
        ax.plot(place, sunny, marker, color=colour, label=name)
    true = [(F @ effect)[-1] for effect, F in stations.values()]
    ax.plot(place, true, "_", color="#222222", ms=22, label="truth")
    ax.set(ylabel="degrees Celsius per hour of sun", xticks=place, xticklabels=list(stations))
    ax.legend(frameon=False)
    return figure
