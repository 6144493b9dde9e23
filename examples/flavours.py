"""Six flavours of federated learning on one table: who holds what, and what each site ends with."""

from typing import Any

import numpy as np

from nefele import Graph, LocalData, flavours, solve

rng = np.random.default_rng(0)
sites = [f"clinic {k}" for k in range(8)]
group = np.repeat([0, 1], 4)
truth = np.array([[1.0, 2.0], [1.0, -2.0]])[group]  # two kinds of clinic
rows = [(X := rng.normal(size=(15, 2)), X @ w + 0.3 * rng.normal(size=15)) for w in truth]
data = LocalData.from_list(rows, nodes=sites)
ring = Graph.from_edges(list(zip(sites, sites[1:] + sites[:1], strict=True)), nodes=sites)


def report(name: str, w: np.ndarray, meaning: str) -> None:
    """One line: distance of the sites' models from the truth."""
    error = np.sqrt(((w - truth) ** 2).sum(axis=1)).mean()
    print(f"{name:14} {len(np.unique(w.round(3), axis=0)):2d} models, error {error:.3f}  {meaning}")


server = solve(flavours.centralised(data))
report("centralised", server.w[1:], "a server in the middle keeps one model")
report("decentralised", solve(flavours.decentralised(data, ring)).w, "one model, no server")
report("clustered", solve(flavours.clustered(data, ring, lam=0.5)).w, "one model per group")
report("personalised", solve(flavours.personalised(data, ring, lam=0.01)).w, "one for each site")

X, y = data.X, data.X @ [1.0, 2.0] + 0.3 * rng.normal(size=data.n_rows)
where = np.array(sites)[data.row_node]
whole = solve(flavours.horizontal(X, y, where))
print("horizontal     every site has the fit to the whole table:", whole.w[0].round(2))

columns = {"bank": [0], "shop": [1]}
for alpha in (0.0, 1.0):
    model = flavours.vertical(X, y, columns, alpha=alpha, rounds=500)
    both = [model.predict(X, node_ids=[site] * len(X)) for site in columns]
    apart = np.sqrt(np.mean((both[0] - both[1]) ** 2))
    print(
        f"vertical       alpha {alpha:.0f}: the predictions of bank and shop differ by {apart:.2f}"
    )


def picture() -> Any:
    """The two parameters of each clinic, flavour by flavour; crosses are the truth."""
    import matplotlib.pyplot as plt

    fits = {
        "centralised": server.w[1:],
        "clustered": solve(flavours.clustered(data, ring, lam=0.5)).w,
        "personalised": solve(flavours.personalised(data, ring, lam=0.01)).w,
    }
    figure, axes = plt.subplots(1, 3, figsize=(7.6, 3.2), sharey=True, layout="constrained")
    for ax, (name, w) in zip(axes, fits.items(), strict=True):
        ax.scatter(*truth.T, marker="x", color="#222222", s=60)
        ax.scatter(*w.T, color="#0072B2", alpha=0.7)
        ax.set(title=name, xlim=(-0.5, 2.5), xlabel="first parameter")
    axes[0].set_ylabel("second parameter")
    return figure
