"""Options that several commands have, and how their texts are read."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from nefele.runs.config import RunConfig

Flag = typer.Option

Data = Annotated[Path, typer.Argument(metavar="DATA", help="CSV or Parquet file.")]
Node = Annotated[str, Flag(help="Column with the node ids.")]
Target = Annotated[str, Flag(help="Column to predict.")]
Features = Annotated[str | None, Flag(help="Columns, comma between them. Default: all others.")]
Coords = Annotated[str | None, Flag(help="Two columns with coordinates, such as lat,lon.")]
PENALTIES = "auto: the coupling itself is chosen; or l2, l1, linf, squared_l2, huber."
PenaltyName = Annotated[str, Flag(help=PENALTIES)]
Task = Annotated[str, Flag(help="regression or classification.")]
Weighting = Annotated[str, Flag(help="rows: every row counts the same; nodes: every node does.")]
Folds = Annotated[int, Flag(help="Folds of the cross-validation.")]
Standardize = Annotated[bool, Flag(help="Solve with features of unit variance.")]
Ridge = Annotated[
    float | None,
    Flag("--l2", help="Ridge term of each node.", show_default="0, for classes 0.001"),
]
Tol = Annotated[float, Flag(help="Certified relative gap to reach.")]
DropMissing = Annotated[bool, Flag("--drop-missing", help="Leave out rows with missing values.")]


def split_names(text: str | None, option: str) -> tuple[str, ...] | None:
    """Names with commas between them; a ValueError when there are none.

    Examples
    --------
    >>> split_names("wind, rain", "--features")
    ('wind', 'rain')
    """
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise ValueError(
            f"{option} must name columns, comma between them; got {text!r}. Leave the option out "
            "for the default."
        )
    return names


def as_config(given: dict[str, Any], **more: Any) -> RunConfig:
    """A configuration of those arguments of a command that bear the names of its fields."""
    from nefele.runs.config import RunConfig

    names = [one.name for one in fields(RunConfig) if one.name in given]
    lists = {name: split_names(given[name], f"--{name}") for name in ("features", "coords")}
    values = {name: given[name] for name in names} | lists | {"data": str(given["data"])}
    return RunConfig(**values | more)


def file_stem(data: Path) -> str:
    """The name of a data file without its endings.

    Examples
    --------
    >>> file_stem(Path("rows/weather.csv.gz"))
    'weather'
    """
    return Path(data.stem).stem if data.suffix.lower() == ".gz" else data.stem
