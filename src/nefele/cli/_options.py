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
Places = Annotated[
    str | None,
    Flag(help="File with a line for each node and the columns of --coords.", show_default="DATA"),
]
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

Epsilon = Annotated[
    float | None,
    Flag(help="A guarantee of differential privacy; needs --bounds and --features."),
]
Delta = Annotated[float, Flag(help="Of the guarantee; well below 1 / the number of rows.")]
Unit = Annotated[str, Flag(help="record or node: whose privacy is guaranteed.")]
BoundsFile = Annotated[
    Path | None, Flag("--bounds", help="TOML file with x and y: declared bounds of the rows.")
]
BudgetFile = Annotated[
    Path | None,
    Flag("--budget", help="Account of what was spent.", show_default="DATA.budget"),
]
ShowPrice = Annotated[
    bool, Flag("--price", help="Show errors against epsilon in the report; they are not private.")
]
TotalEpsilon = Annotated[
    float | None,
    Flag(help="What all runs may spend, for a new account.", show_default="--epsilon"),
]

Engine = Annotated[
    str | None,
    Flag(help="ray, mpi or in_process: the final fit by parts.", show_default="this process"),
]
Parts = Annotated[int | None, Flag(help="Parts on an engine.", show_default="one for each CPU")]
Address = Annotated[
    str | None,
    Flag(help="Of a Ray cluster, or auto.", show_default="Ray on this machine alone"),
]


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
            f"{option} must have names, comma between them; got {text!r}. Leave the option out "
            "for the default."
        )
    return names


def as_config(given: dict[str, Any], **more: Any) -> RunConfig:
    """A configuration of those arguments of a command that bear the names of its fields."""
    from nefele.runs.config import RunConfig

    names = [one.name for one in fields(RunConfig) if one.name in given]
    lists = {name: split_names(given[name], f"--{name}") for name in ("features", "coords")}
    values = {name: given[name] for name in names} | lists | {"data": str(given["data"])}
    if values.get("budget") is not None:
        values["budget"] = str(values["budget"])
    return RunConfig(**values | more)


def read_bounds(path: Path | None) -> dict[str, Any] | None:
    """Declared bounds from a TOML file."""
    import tomllib

    if path is None:
        return None
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ValueError(f"{str(path)!r} cannot be read ({error.strerror}).") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{str(path)!r} must be TOML; {error}.") from None


def file_stem(data: Path) -> str:
    """The name of a data file without its endings.

    Examples
    --------
    >>> file_stem(Path("rows/weather.csv.gz"))
    'weather'
    """
    return Path(data.stem).stem if data.suffix.lower() == ".gz" else data.stem
