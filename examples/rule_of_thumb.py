"""Models that stay near a rule of thumb, and what the rule costs.

Shops sell ice cream; their owners expect "two cones more for each degree above 15". The weather
says something else in each town. Compared: fits that follow the sales alone, and fits that are kept
near the rule on the rows where owners would use it. Then: what is the model of the shop with the
fewest rows made of?

Run it: python examples/rule_of_thumb.py
"""

from typing import Any

import numpy as np

import nefele

SHOPS = [f"shop {i}" for i in range(8)]


def make_sales(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Degrees and sunshine, cones sold, and the shop of each row."""
    rng = np.random.default_rng(seed)
    rows = np.array([30, 25, 20, 30, 25, 4, 30, 20])
    ids = np.repeat(SHOPS, rows)
    X = np.column_stack([rng.uniform(10, 30, len(ids)), rng.uniform(0, 14, len(ids))])
    slope = np.repeat(np.where(np.arange(8) < 4, 2.5, 1.2), rows)
    y = 5 + slope * (X[:, 0] - 15) + 0.8 * X[:, 1] + 3 * rng.normal(size=len(ids))
    return X, y, ids


def main() -> None:
    X, y, ids = make_sales()
    rule = np.where(X[:, 0] > 15, 10 + 2.0 * (X[:, 0] - 15), np.nan)  # on cold days nobody has one
    street = nefele.Graph.from_edges(list(zip(SHOPS, SHOPS[1:], strict=False)))
    print("strength   from the rule   error")
    for strength in (0.0, 0.3, 1.0, 3.0):
        model = nefele.GTVRegressor(street, penalty="squared_l2", alpha=0.5, explainable=strength)
        model.fit(X, y, node_ids=ids, signal=rule)
        predicted = model.predict(X, node_ids=ids)
        away = np.sqrt(np.nanmean((predicted - rule) ** 2))
        error = np.sqrt(((predicted - y) ** 2).mean())
        print(f"{strength:8.1f}   {away:13.2f}   {error:5.2f}   {model.status_}")
    found = nefele.explain(model, "shop 5")
    shares = ", ".join(
        f"{name} {share:.2f}" for name, share in zip(found.nodes, found.share, strict=True)
    )
    print(f"shop 5 is made of the rows of {shares}")
    one = found.prediction([28.0, 10.0])
    left = one.without("shop 4")
    print(f"28 degrees, 10 hours of sun: {one.value:.1f} cones; {left:.1f} without shop 4")


def picture() -> Any:
    """What nearness to the rule costs."""
    import matplotlib.pyplot as plt

    X, y, ids = make_sales()
    rule = np.where(X[:, 0] > 15, 10 + 2.0 * (X[:, 0] - 15), np.nan)
    street = nefele.Graph.from_edges(list(zip(SHOPS, SHOPS[1:], strict=False)))
    figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for strength in (0.0, 0.1, 0.3, 1.0, 3.0, 10.0):
        model = nefele.GTVRegressor(street, penalty="squared_l2", alpha=0.5, explainable=strength)
        predicted = model.fit(X, y, node_ids=ids, signal=rule).predict(X, node_ids=ids)
        away = np.sqrt(np.nanmean((predicted - rule) ** 2))
        error = np.sqrt(((predicted - y) ** 2).mean())
        ax.scatter(away, error, color="#0072B2")
        ax.annotate(f"{strength:g}", (away, error), xytext=(5, 4), textcoords="offset points")
    ax.set(xlabel="distance from the rule", ylabel="error", title="strength of the rule")
    return figure


if __name__ == "__main__":
    main()
