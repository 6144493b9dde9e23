"""The comparison as a table of text: `python -m nefele.experiments.pfl_table RESULTS.json`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from nefele.experiments.base import Cell, groups
from nefele.experiments.pfl_methods import NEFELE


def markdown(cells: list[Cell]) -> str:
    """One table per data set and size, methods from the best down.

    Accuracies are means over the deals with their deviation; the worst tenth is of the clients.

    Examples
    --------
    >>> cell = {"images": "MNIST", "size": "small", "method": "Ditto", "train": 12, "test": 4}
    >>> cell |= {"accuracy": [0.9, 0.92], "worst": [0.8, 0.8], "bytes": [2e6, 2e6]}
    >>> print(markdown([cell | {"seconds": [3.0, 3.0], "chosen": ["Ditto(lam=0.1)"]}]))
    MNIST, 12 images to train, 4 to test:
    <BLANKLINE>
    | method | accuracy | worst tenth | MB per client | seconds | chosen |
    |---|---|---|---|---|---|
    | Ditto | 0.9100 ± 0.0100 | 0.800 | 2.0 | 3.0 | Ditto(lam=0.1) |
    """
    parts = []
    for (images, _), some in groups(cells, "images", "size").items():
        first = some[0]
        lines = [
            f"{images}, {first['train']} images to train, {first['test']} to test:",
            "",
            "| method | accuracy | worst tenth | MB per client | seconds | chosen |",
            "|---|---|---|---|---|---|",
        ]
        for cell in sorted(some, key=lambda one: -np.mean(one["accuracy"])):
            name = f"**{NEFELE}**" if cell["method"] == NEFELE else cell["method"]
            numbers = (
                f"{np.mean(cell['accuracy']):.4f} ± {np.std(cell['accuracy']):.4f}",
                f"{np.mean(cell['worst']):.3f}",
                f"{np.mean(cell['bytes']) / 1e6:.1f}",
                f"{np.mean(cell['seconds']):.1f}",
            )
            lines.append(f"| {name} | {' | '.join(numbers)} | {cell['chosen'][0]} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def kept(file: Path) -> list[Cell]:
    """Cells of a file with a list of them."""
    found: list[Cell] = json.loads(file.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    print(markdown(kept(Path(sys.argv[1]))))
