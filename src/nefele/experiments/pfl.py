"""Personal networks for clients with few digits each: nefele next to personalised methods."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from nefele.experiments.base import Cell, Experiment, Inputs, Row, groups, over_seeds
from nefele.experiments.figures import COLOURS, MARKERS
from nefele.experiments.pfl_data import DIGITS, SMALL, deal, label_counts, load_images
from nefele.experiments.pfl_methods import NEFELE, measured, names, splits_of

ROUNDS = {"small": 40, "full": 40}
QUICK = (NEFELE, "own images only", "FedAvg, then own")
SEEDS = 3
LABELS = {
    "accuracy": "test accuracy",
    "worst": "accuracy, worst tenth of clients",
    "bytes": "bytes per client",
    "seconds": "seconds",
}


def cells(quick: bool, inputs: Inputs) -> list[Cell]:
    """Images x sizes x methods; all seeds in one, since the strength is chosen once."""
    if find_spec("torch") is None:
        return []
    if inputs.images is None:
        sets, sizes = [DIGITS], {"full": 10 if quick else 60}
    else:
        sets, sizes = ["MNIST", "Fashion-MNIST"], dict(ROUNDS)
        if quick:
            sets, sizes = sets[:1], {"small": 30}
    seeds = 1 if quick else SEEDS
    return [
        {"images": one, "size": size, "seed": 0, "seeds": seeds, "method": m, "rounds": rounds}
        | splits_of(m)
        for size, rounds in sizes.items()
        for one in sets
        for m in (QUICK if quick else names())
    ]


def compute(setting: Cell, inputs: Inputs) -> Cell:
    """One method on all deals of the images."""
    X, y = load_images(setting["images"], inputs.images)
    counts = label_counts(inputs.images, y)
    divided = SMALL if setting["size"] == "small" else 1
    deals = [deal(X, y, counts, divided, seed) for seed in range(setting["seeds"])]
    return measured(deals, setting["method"], setting["rounds"])


def rows(cells: list[Cell]) -> list[Row]:
    """Four numbers of each method; nefele's accuracy says whether it is above every other."""
    if not cells:
        return [Row("networks", "test accuracy", 0.0, because='pip install "nefele[torch]"')]
    found = []
    for (images, _), part in groups(cells, "images", "size").items():
        mean = {cell["method"]: float(np.mean(cell["accuracy"])) for cell in part}
        for cell in part:
            what = f"{images}, {cell['train']} images: {cell['method']}"
            for key, label in LABELS.items():
                because = cell["chosen"][0] if key == "accuracy" else ""
                if (cell["method"], key) == (NEFELE, "accuracy"):
                    because = f"{_verdict(mean)}; {because}"
                facts = [{key: value} for value in cell[key]]
                minor = key in ("bytes", "seconds")
                found.append(over_seeds(what, label, facts, key, because=because, minor=minor))
    return found


def _verdict(mean: dict[str, Any]) -> str:
    """Whether nefele is above every other method, and if not, who is not below it."""
    above = [name for name, value in mean.items() if name != NEFELE and value >= mean[NEFELE]]
    if not above:
        return "above every other method"
    return f"not above {', '.join(above)}"


def draw(figure: Any, cells: list[Cell]) -> None:
    """Accuracy against bytes per client, one panel per data set and size."""
    parts = groups(cells, "images", "size")
    columns = min(2, len(parts))
    axes = np.ravel(figure.subplots(-(-len(parts) // columns), columns, squeeze=False))
    for ax in axes[len(parts) :]:
        ax.remove()
    shown = list(dict.fromkeys(cell["method"] for cell in cells))
    for ax, ((images, _), part) in zip(axes[: len(parts)], parts.items(), strict=True):
        for cell in part:
            k = shown.index(cell["method"])
            ax.errorbar(
                max(float(np.mean(cell["bytes"])), 1e6) / 1e6,
                np.mean(cell["accuracy"]),
                yerr=np.std(cell["accuracy"]),
                color=COLOURS[k % len(COLOURS)],
                marker=MARKERS[k // len(COLOURS) % len(MARKERS)],
                markersize=8.0 if cell["method"] == NEFELE else 5.0,
                linestyle="none",
                label=cell["method"],
            )
        best = max(np.mean(cell["accuracy"]) for cell in part)
        ax.set(xscale="log", title=f"{images}, {part[0]['train']} images")
        ax.xaxis.set_major_formatter("{x:g}")  # powers in superscripts are too small to read
        ax.set(xlabel="MB per client (none: at the left)", ylim=(best - 0.035, best + 0.006))
        ax.set_ylabel("test accuracy")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)


EXPERIMENT = Experiment(
    name="pfl",
    title="Personal networks of 20 clients with few digits each, next to personalised methods",
    source="PFLlib's MNIST scenario",
    cells=cells,
    compute=compute,
    rows=rows,
    draw=draw,
    size=(7.4, 6.4),
    needs="images",
    notes=(
        "Strengths, and nefele's graph, are chosen once, at held-out training images of the first "
        "deal, on half of the rounds. All methods take the same number of gradients per client. "
        "Bytes are float32, sent and received, of a fit; seconds of the processor, of a fit.",
    ),
)
