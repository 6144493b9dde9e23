"""A node without data, and one that the graph has never heard of.

A new sensor that is linked to others gets a model at once, from its neighbours, and improves as
its rows arrive. For ids outside the graph there is the pooled model, or the nearest node.

Run it: python examples/cold_start.py
"""

from typing import Any

import numpy as np
import pandas as pd

from nefele import GTVRegressor

LINE = [f"sensor {i}" for i in range(8)]
LINKS = pd.DataFrame({"source": LINE[:-1], "target": LINE[1:]})
PLACES = {name: (float(i), 0.0) for i, name in enumerate(LINE)} | {"visitor": (6.8, 0.5)}


def readings(name: str, count: int, rng: np.random.Generator) -> pd.DataFrame:
    """Rows with slope 2 in the first half of the line, -1 in the second, -2 at sensor 6."""
    x = rng.normal(size=count)
    slope = -2.0 if name == "sensor 6" else 2.0 if PLACES[name][0] < 4 else -1.0
    return pd.DataFrame({"id": name, "x": x, "y": slope * x + 0.3 * rng.normal(size=count)})


def main() -> None:
    rng = np.random.default_rng(0)
    rows = pd.concat([readings(name, 10, rng) for name in LINE if name != "sensor 6"])
    model = GTVRegressor(LINKS, node="id", alpha=0.2, unseen="nearest", coords=PLACES)
    model.fit(rows[["id", "x"]], rows["y"])

    def slope(name: str) -> float:
        at = pd.DataFrame({"id": [name, name], "x": [0.0, 1.0]})
        return float(np.diff(model.predict(at))[0])

    print("true slope of sensor 6: -2, of its neighbours: -1")
    print(f"without any data, from its neighbours  {slope('sensor 6'):6.2f}")
    for count in (3, 30):
        more = readings("sensor 6", count, rng)
        model.partial_fit(more[["id", "x"]], more["y"])
        print(f"after {count:2d} more rows                     {slope('sensor 6'):6.2f}")
    print(f"a visitor, by the nearest sensor       {slope('visitor'):6.2f}")


def picture() -> Any:
    """The slope of the new sensor as its rows arrive."""
    import matplotlib.pyplot as plt

    counts, found = [0, 1, 2, 4, 8, 16, 32], []
    for count in counts:
        rng = np.random.default_rng(0)
        rows = pd.concat([readings(name, 10, rng) for name in LINE if name != "sensor 6"])
        rows = pd.concat([rows, readings("sensor 6", count, np.random.default_rng(1))])
        model = GTVRegressor(LINKS, node="id", alpha=0.2).fit(rows[["id", "x"]], rows["y"])
        found.append(model.coef_[list(model.nodes_).index("sensor 6"), 0])
    figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    ax.plot(counts, found, marker="o", label="fitted")
    ax.axhline(-1, color="#999999", lw=1, ls="--", label="its neighbours")
    ax.axhline(-2, color="#222222", lw=1, label="its own truth")
    ax.set(xlabel="rows of sensor 6", ylabel="slope")
    ax.set_xscale("symlog", base=2)
    ax.set_xticks(counts, counts)
    ax.legend(frameon=False)
    return figure


if __name__ == "__main__":
    main()
