"""The comparison as a table of text; `python -m nefele.experiments.pfl_table OUT DATA` keeps it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from nefele.experiments.base import Cell, Inputs, groups
from nefele.experiments.figures import svg
from nefele.experiments.pfl_methods import NEFELE
from nefele.experiments.runner import load
from nefele.experiments.store import Store, cell_file, inputs_key

BEGIN, END = "<!-- table -->", "<!-- end of table -->"


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


def finished(store: Store, inputs: Inputs) -> list[Cell]:
    """The settings of a run that are done, for data sets and sizes whose methods are all done.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     finished(Store(Path(folder, "out")), Inputs())
    []
    """
    experiment = load("pfl")
    key = inputs_key(experiment.needs, inputs)
    found = []
    for some in groups(experiment.cells(False, inputs), "images", "size").values():
        values = [store.kept(cell_file("pfl", cell, key)) for cell in some]
        if all(value is not None for value in values):
            found += [{**c, **(v or {})} for c, v in zip(some, values, strict=True)]
    return found


def put_into(page: str, table: str) -> str:
    r"""The page with the table between its two marks.

    Examples
    --------
    >>> put_into("a\n<!-- table -->\n<!-- end of table -->\nb", "t").splitlines()
    ['a', '<!-- table -->', 't', '<!-- end of table -->', 'b']
    """
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}"


def main() -> None:
    """Write results, table and picture of a run into this repository's benchmarks and docs."""
    if len(sys.argv) != 3:
        sys.exit("Usage: python -m nefele.experiments.pfl_table OUT DATA, in the repository.")
    out, data = map(Path, sys.argv[1:])
    cells = finished(Store(out), Inputs(images=data))
    if not cells:
        sys.exit(f"No data set in {str(out)!r} has all methods done. Run nefele reproduce pfl.")
    for cell in cells:
        cell.pop("clients", None)
    results = Path("benchmarks/results/pfl.json")
    results.write_text(json.dumps(cells, indent=1) + "\n", encoding="utf-8")
    page = Path("docs/personal_networks.md")
    text = put_into(page.read_text(encoding="utf-8"), markdown(cells))
    page.write_text(text, encoding="utf-8")
    Path("docs/images/pfl.svg").write_bytes(svg(load("pfl"), cells))


if __name__ == "__main__":
    main()
