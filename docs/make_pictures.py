"""Draw the pictures of the documentation from fits made by nefele.

Run `python docs/make_pictures.py` in an environment with the dev extra.
"""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from matplotlib.lines import Line2D

import nefele
from nefele import theory

IMAGES = Path(__file__).parent / "images"

# Okabe and Ito's colours, told apart by shape as well.
BLUE, ORANGE, GREEN = COLOURS = ("#0072B2", "#D55E00", "#009E73")
MARKERS = ("o", "s", "^")
INK, FAINT = "#222222", "#9a9a9a"

TRUE = np.array([[2.0, 1.0], [-1.5, 2.0], [-0.5, -2.0]])
GROUPS = np.repeat([0, 1, 2], 16)
N_EMPTY, N_ROWS, NOISE, LAM, SEED = 9, 4, 0.8, 0.6, 0


@dataclass(frozen=True)
class Fits:
    """What is drawn: the network, its data, the local fits and the coupled ones."""

    graph: nefele.Graph
    data: nefele.LocalData
    own: np.ndarray
    result: nefele.Result

    @property
    def own_error(self) -> float:
        """Mean of ||w_i - true_i||^2 over the nodes with data, each fitted alone."""
        return float(((self.own - TRUE[GROUPS]) ** 2).sum(axis=1)[self.data.labelled].mean())

    @property
    def nefele_error(self) -> float:
        """The same mean over all nodes, coupled."""
        return float(((self.result.w - TRUE[GROUPS]) ** 2).sum(axis=1).mean())


def make_fits() -> Fits:
    """Three groups of 16 nodes, two parameters, four noisy rows per node, nine nodes without."""
    graph = nefele.graphs.sbm([16, 16, 16], p_in=0.4, p_out=0.012, seed=SEED)
    rng = np.random.default_rng(SEED)
    empty = rng.choice(graph.n_nodes, N_EMPTY, replace=False)
    rows = []
    for i, group in enumerate(GROUPS):
        X = rng.normal(size=(N_ROWS, 2))
        y = X @ TRUE[group] + NOISE * rng.normal(size=N_ROWS)
        rows.append(None if i in empty else (X, y))
    data = nefele.LocalData.from_list(rows)
    own = nefele.Problem(graph, data, lam=0.0).loss.minimise()
    result = nefele.solve(nefele.Problem(graph, data, penalty="l2", lam=LAM))
    return Fits(graph, data, own, result)


def draw_network(ax: plt.Axes, fits: Fits) -> None:
    """The nodes in a spring layout, coloured by fitted cluster; hollow without data."""
    graph, labels = fits.graph, fits.result.clusters()
    drawn = nx.Graph()
    drawn.add_nodes_from(range(graph.n_nodes))
    drawn.add_edges_from(zip(graph.head.tolist(), graph.tail.tolist(), strict=True))
    place = nx.spring_layout(drawn, seed=4, k=0.34, iterations=300)
    at = np.array([place[i] for i in range(graph.n_nodes)])
    for i, j in zip(graph.head, graph.tail, strict=True):
        ax.plot(*at[[i, j]].T, color="#c4c4c4", lw=0.7, zorder=1)
    for k in np.unique(labels):
        for full in (True, False):
            nodes = (labels == k) & (fits.data.labelled == full)
            face = COLOURS[k % 3] if full else "white"
            style = {"s": 58, "marker": MARKERS[k % 3], "linewidths": 1.7, "zorder": 2}
            ax.scatter(*at[nodes].T, color=face, edgecolors=COLOURS[k % 3], **style)
    ax.set_title("The network: 48 nodes, 9 without data", loc="left")
    ax.set_axis_off()
    hollow = Line2D([], [], ls="", marker="o", mfc="white", mec=INK, mew=1.5, ms=7)
    solid = Line2D([], [], ls="", marker="o", color=INK, ms=7)
    text = ["with data", "without data"]
    ax.legend([solid, hollow], text, loc="lower center", ncols=2, bbox_to_anchor=(0.5, -0.13))


def draw_parameters(ax: plt.Axes, fits: Fits) -> None:
    """Each node's two parameters: fitted alone, then coupled."""
    labels, labelled, w = fits.result.clusters(), fits.data.labelled, fits.result.w
    for k in np.unique(labels):
        colour, marker = COLOURS[k % 3], MARKERS[k % 3]
        nodes = np.flatnonzero((labels == k) & labelled)
        for i in nodes:
            ax.plot(*np.array([fits.own[i], w[i]]).T, color=colour, lw=0.6, alpha=0.35, zorder=1)
        ax.scatter(*fits.own[nodes].T, color=colour, marker=marker, s=26, alpha=0.75, lw=0)
        ax.scatter(*w[labels == k].T, color=colour, marker=marker, s=190, ec=INK, lw=1.4, zorder=3)
    ax.scatter(*TRUE.T, color=INK, marker="x", s=60, lw=2.0, zorder=4)
    ax.set_title("The nodes' parameters", loc="left")
    ax.set_xlabel("first parameter")
    ax.set_ylabel("second parameter")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    handles = [
        Line2D([], [], ls="", marker="o", color=FAINT, ms=5),
        Line2D([], [], ls="", marker="o", color=FAINT, mec=INK, mew=1.4, ms=11),
        Line2D([], [], ls="", marker="x", color=INK, mew=2.0, ms=7),
    ]
    ax.legend(handles, ["own data only", "nefele", "truth"], loc="lower right", borderaxespad=0.2)


def house_style() -> dict[str, Any]:
    """Of the pictures that are not made by functions of the package."""
    return {
        "font.family": "DejaVu Sans",
        "font.size": 11,
        "axes.titlesize": 13,
        "axes.titleweight": "bold",
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "legend.frameon": False,
        "legend.handletextpad": 0.4,
        "svg.hashsalt": "nefele",
    }


def write_picture(figure: plt.Figure, path: Path) -> Path:
    """As an opaque white card: the same contrast on white and on dark pages."""
    extra = {"metadata": {"Date": None}} if path.suffix == ".svg" else {"dpi": 100}
    figure.savefig(path, facecolor="white", **extra)
    plt.close(figure)
    return path


def draw_clusters(folder: Path, suffix: str = "svg") -> Path:
    """The picture of the README."""
    fits = make_fits()
    with matplotlib.rc_context(house_style()):
        figure, axes = plt.subplots(1, 2, figsize=(9.2, 4.1), layout="constrained")
        figure.get_layout_engine().set(w_pad=0.16, h_pad=0.16, wspace=0.04)
        draw_network(axes[0], fits)
        draw_parameters(axes[1], fits)
        return write_picture(figure, folder / f"clusters.{suffix}")


def draw_theory(folder: Path, suffix: str = "svg") -> Path:
    """The picture of docs/theory.md: what a result proves, and the critical flow."""
    fits = make_fits()
    problem = nefele.Problem(fits.graph, fits.data, penalty="l2", lam=LAM)
    result = nefele.solve(problem, tol=1e-9)
    with matplotlib.rc_context({"font.size": 10, "svg.hashsalt": "nefele"}):
        figure, axes = plt.subplots(1, 2, figsize=(9.2, 4.1), layout="constrained")
        theory.plot_certified(theory.certify_clusters(result), problem, ax=axes[0])
        theory.plot_critical_flow(theory.critical_lambda(problem), problem, ax=axes[1])
        return write_picture(figure, folder / f"theory.{suffix}")


@dataclass(frozen=True)
class Coupled:
    """A picture of docs/which_coupling.md: the slopes of its nodes and a coupling that suits."""

    slopes: str  # by the names of the page
    model: str
    title: str
    colour: str
    marker: str


COUPLED = (
    Coupled("apart", "centre", "Each by itself, around a centre", BLUE, "o"),
    Coupled("smooth", "graph", "Neighbours are alike", ORANGE, "s"),
    Coupled("steps", "clusters", "Groups, and jumps between them", GREEN, "^"),
)


@cache
def page_names() -> dict[str, Any]:
    """Data and models of docs/which_coupling.md, as its first block makes them."""
    text = (Path(__file__).parent / "which_coupling.md").read_text(encoding="utf-8")
    found = re.search(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    names: dict[str, Any] = {}
    exec(found[1], names)
    return names


def draw_sketch(ax: plt.Axes, kind: Coupled) -> None:
    """Who is joined to whom, for nine nodes; dotted where the models of neighbours differ."""
    k = np.arange(9)
    if kind.model == "centre":
        turn = 2 * np.pi * k / 9
        at = np.column_stack([np.cos(turn), np.sin(turn)])
        ends, cut = [(np.zeros(2), point) for point in at], ()
        ax.scatter(0, 0, s=90, color="white", edgecolors=kind.colour, linewidths=1.8, zorder=2)
    else:
        at = np.column_stack([np.sin(2.2 * k / 8 * np.pi) / 1.6, 1.0 - k / 4])
        ends, cut = (
            list(zip(at[:-1], at[1:], strict=True)),
            (2, 5) if kind.model == "clusters" else (),
        )
    for i, pair in enumerate(ends):
        style = {"color": INK, "ls": ":"} if i in cut else {"color": FAINT}
        ax.plot(*np.array(pair).T, lw=1.4, zorder=1, **style)
    ax.scatter(*at.T, s=52, color=kind.colour, marker=kind.marker, zorder=2)
    ax.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), aspect="equal")
    ax.set_axis_off()


def draw_slopes(ax: plt.Axes, kind: Coupled) -> None:
    """The slope of each node: the truth, from own data only, and coupled."""
    page = page_names()
    rows = (page["X"], page["targets"][kind.slopes])
    names = ("own", kind.model)
    own, found = (page["models"][name].fit(*rows, node_ids=page["node_ids"]) for name in names)
    place, truth = page["place"], page["slopes"][kind.slopes]
    ax.vlines(place, own.coef_[:, 0], found.coef_[:, 0], color=FAINT, lw=0.7, zorder=1)
    ax.scatter(place, own.coef_[:, 0], color=FAINT, s=20, lw=0, zorder=1)
    ax.scatter(place, truth, color=INK, marker="_", s=34, lw=1.6, zorder=3)
    style = {"color": kind.colour, "marker": kind.marker, "s": 30}
    ax.scatter(place, found.coef_[:, 0], edgecolors="white", linewidths=0.5, zorder=2, **style)
    if kind.model == "centre":
        ax.axhline(found.centre_coef_[0], color=kind.colour, lw=1.0, ls="--", zorder=1)
    ax.set_title(kind.title, loc="left")
    ax.set(xlabel="node, along the river", ylabel="slope", ylim=(-2.8, 4.6))
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    handles = [
        Line2D([], [], ls="", marker="o", color=FAINT, ms=5),
        Line2D([], [], ls="", marker=kind.marker, color=kind.colour, ms=6),
        Line2D([], [], ls="", marker="_", color=INK, mew=1.8, ms=8),
    ]
    text = ["own data only", kind.model, "truth"]
    ax.legend(handles, text, loc="upper right", ncols=3, columnspacing=1.2, borderaxespad=0.1)


def draw_coupling(folder: Path, suffix: str = "svg", *, kind: Coupled) -> Path:
    """One picture of docs/which_coupling.md."""
    with matplotlib.rc_context(house_style()):
        figure, axes = plt.subplots(
            1, 2, figsize=(8.6, 2.9), layout="constrained", width_ratios=[1, 3.6]
        )
        figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
        draw_sketch(axes[0], kind)
        draw_slopes(axes[1], kind)
        return write_picture(figure, folder / f"coupling_{kind.model}.{suffix}")


def draw_maps(folder: Path, suffix: str = "svg") -> Path:
    """The picture of docs/privacy_maps.md: an attribute is removed, and rows share cells."""
    from nefele.privacy.maps import KAnonymous, RemoveAttribute, plot_cells, plot_removed

    rng = np.random.default_rng(SEED)
    age = rng.normal(size=160)
    X = np.column_stack([age + 0.7 * rng.normal(size=160), 0.4 * age + rng.normal(size=160)])
    Z = RemoveAttribute().fit_transform(X, age)
    wage = rng.lognormal(0.0, 0.5, size=(60, 1))
    with matplotlib.rc_context(house_style()):
        figure, axes = plt.subplots(1, 3, figsize=(9.4, 3.4), layout="constrained")
        plot_removed(X, Z, age, axes[:2])
        plot_cells(KAnonymous(k=10).fit(wage), wage, axes[2])
        for ax in axes:
            for side in ("top", "right"):
                ax.spines[side].set_visible(False)
        return write_picture(figure, folder / f"maps.{suffix}")


def draw_ask_next(folder: Path, suffix: str = "svg") -> Path:
    """The picture of docs/theory.md: errors as more nodes are asked, suggested and at random."""
    sizes, asked, lam = [30, 20, 30, 20], range(2, 15, 3), 0.03
    errors: dict[str, list[list[float]]] = {"at random": [], "by variances": [], "by clusters": []}
    for seed in range(4):
        graph = nefele.graphs.sbm(sizes, 0.4, 0.01, seed=seed)
        block, rng = np.repeat(np.arange(4), sizes), np.random.default_rng(seed)
        truth = rng.normal(size=(4, 2))[block]
        rows = [(X := rng.normal(size=(10, 2)), X @ w + 0.2 * rng.normal(size=10)) for w in truth]

        def problem(on: set[int], graph: Any = graph, rows: Any = rows) -> nefele.Problem:
            there = [row if i in on else None for i, row in enumerate(rows)]
            return nefele.Problem(graph, nefele.LocalData.from_list(there), lam=lam)

        first, most = problem({0}), max(asked)
        orders = {
            "at random": rng.permutation(np.arange(1, 100)).tolist(),
            "by variances": theory.suggest_nodes(first, most).nodes,
            "by clusters": theory.suggest_nodes(first, most, block).nodes,
        }
        for name, order in orders.items():
            fits = [nefele.solve(problem({0, *order[:k]}), tol=1e-4).w for k in asked]
            errors[name].append([np.sqrt(((w - truth) ** 2).sum(axis=1)).mean() for w in fits])
    with matplotlib.rc_context(house_style()):
        figure, ax = plt.subplots(figsize=(5.2, 3.2), layout="constrained")
        kinds = zip(errors.items(), COLOURS, MARKERS, strict=True)
        for (name, found), colour, marker in kinds:
            ax.plot(list(asked), np.mean(found, axis=0), color=colour, marker=marker, label=name)
        ax.set(xlabel="nodes asked, of 100", ylabel="mean error of the models", ylim=(0, None))
        ax.legend(frameon=False)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        return write_picture(figure, folder / f"ask_next.{suffix}")


def draw_pfl(folder: Path, suffix: str = "svg") -> Path:
    """The picture of docs/personal_networks.md, from the results that are kept."""
    from nefele.experiments.figures import svg
    from nefele.experiments.runner import load

    kept = Path(__file__).parents[1] / "benchmarks" / "results" / "pfl.json"
    cells = json.loads(kept.read_text(encoding="utf-8"))
    path = folder / "pfl.svg"  # of the experiment: it has no other form
    path.write_bytes(svg(load("pfl"), cells))
    return path


# What draws each picture, by the name of its file.
DRAWN = {
    "ask_next": draw_ask_next,
    "maps": draw_maps,
    "pfl": draw_pfl,
    "clusters": draw_clusters,
    "theory": draw_theory,
    **{f"coupling_{kind.model}": partial(draw_coupling, kind=kind) for kind in COUPLED},
}


def main() -> None:
    """Draw everything and print the numbers that the text quotes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=IMAGES, help="folder of the pictures")
    parser.add_argument("--format", choices=["svg", "png"], default="svg")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    matplotlib.use("agg")
    for draw in DRAWN.values():
        path = draw(arguments.out, arguments.format)
        print(f"{path}: {path.stat().st_size / 1024:.0f} KB")
    fits = make_fits()
    print(f"{fits.graph.n_edges} edges, {len(set(fits.result.clusters().tolist()))} clusters")
    print(
        f"squared error of the parameters: alone {fits.own_error:.2f}, "
        f"nefele {fits.nefele_error:.3f}; certified gap {fits.result.gap:.1e}"
    )


if __name__ == "__main__":
    main()
