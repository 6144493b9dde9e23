"""What a run is asked to do, and its form as a TOML file."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import tomli_w

from nefele._checks import check_count, check_flag, check_name, check_number
from nefele._words import visible
from nefele.runs.names import check_file_name

PENALTIES = ("auto", "l2", "l1", "linf", "squared_l2", "huber")
TASKS = ("regression", "classification")
WEIGHTINGS = ("rows", "nodes")
ENGINES = ("in_process", "ray", "mpi")
COMPARED = ("boosting",)  # methods that can be asked for beside the usual three
RESERVED = "intercept"  # the name of the constant in coef.csv and in the report
LEARN = "learn"
LEARNT = {  # graphs learnt from the rows: each node is joined to the nodes ...
    "moments": "whose rows look most like its own",
    "wasserstein": "whose rows look most like draws from the same Gaussian",
    "losses": "whose models do best on its rows",
    "labels": "with the most similar shares of the classes",
    "covariances": "with the most similar means, deviations and covariances",
    "gradients": "that pull a common model in the same direction",
    "pooling": "with which it gains most by pooling their rows, where it gains at all",
}
_PATHS = ("data", "graph", "places", "out", "budget")
_LISTS = ("features", "coords")
_TEXTS = (
    *_PATHS,
    "node",
    "target",
    "penalty",
    "time",
    "task",
    "weighting",
    "compare",
    "engine",
    "address",
)
_FLAGS = ("standardize", "drop_missing", "allow_isolates", "price")
_PROMISED = ("bounds", "budget", "total_epsilon", "unit", "delta")  # of use with epsilon only
_RIDGE = {"regression": 0.0, "classification": 1e-3}


@dataclass(frozen=True)
class RunConfig:
    """A run: which rows, which graph, which model.

    Attributes
    ----------
    data : str
        CSV or Parquet file with one row per observation.
    node, target : str
        Columns with the node ids and with what is predicted.
    features : tuple of str, optional
        Default: all columns that play no other part and say something.
    graph : str, optional
        Edge file with columns source, target and perhaps weight, or "learn" (the default without
        coordinates and with a named penalty), or "learn:" and a name of `LEARNT`.
    coords : tuple of str, optional
        Two columns, constant at each node; without a graph they give one.
    places : str, optional
        File with a line for each node, those without rows included: the columns `node` and
        `coords` are then read there.
    k : int
        Neighbours of each node in a graph from coordinates, or in a learnt one.
    penalty : str, optional
        Default: "auto", the coupling itself is chosen; "l2" when `alpha` is a number, and with
        `epsilon`.
    alpha : float or "auto"
    task : str
    time : str, optional
        Column that orders the rows; the latest rows of each node are then held out.
    weighting : {"rows", "nodes"}
        Whether every row or every node counts the same, in all models that are compared.
    seed : int
        For the choice of held-out rows and of folds.
    folds, n_alphas : int
    standardize : bool
    l2 : float, optional
        Ridge term of each node's loss; default 0, for classification 0.001.
    tol : float
        Certified relative gap to reach.
    drop_missing, allow_isolates : bool
        Whether to leave out rows with missing values; whether ids without an edge are legal.
    compare : {"boosting"}, optional
        More methods for the table of errors at held-out rows; the fit stays the same.
    out : str, optional
        Folder of the run.
    epsilon, delta, unit : float, float, {"record", "node"}
        A guarantee of differential privacy, see `nefele.privacy.Privacy`; without epsilon none.
    bounds : dict, optional
        x and y of `nefele.privacy.Bounds`, declared without looking at the data.
    budget : str, optional
        Account of what was spent on these data; default: a file beside the data.
    total_epsilon : float, optional
        What all runs together may spend, for a new account; default epsilon.
    price : bool
        Whether the report shows errors against epsilon, which are made of raw rows.
    engine : str, optional
        Who solves the final fit, see `nefele.solve`; default: this process.
    parts : int, optional
        Number of parts on an engine; default: one for each CPU of this machine.
    address : str, optional
        Address of a Ray cluster, or "auto"; default: Ray on this machine alone.

    Examples
    --------
    >>> config = RunConfig.from_dict({"data": "a.csv", "node": "id", "target": "y", "alpha": 0.1})
    >>> config.alpha, config.penalty, config.ridge
    (0.1, 'l2', 0.0)
    >>> RunConfig("a.csv", "id", "y").penalty
    'auto'
    """

    data: str
    node: str
    target: str
    features: tuple[str, ...] | None = None
    graph: str | None = None
    coords: tuple[str, ...] | None = None
    k: int = 5
    penalty: str = ""
    alpha: float | str = "auto"
    time: str | None = None
    task: str = "regression"
    weighting: str = "rows"
    seed: int = 0
    folds: int = 5
    n_alphas: int = 30
    standardize: bool = True
    l2: float | None = None
    tol: float = 1e-4
    drop_missing: bool = False
    allow_isolates: bool = False
    compare: str | None = None
    places: str | None = None
    out: str | None = None
    epsilon: float | None = None
    delta: float = 1e-6
    unit: str = "record"
    bounds: dict[str, Any] | None = None
    budget: str | None = None
    total_epsilon: float | None = None
    price: bool = False
    engine: str | None = None
    parts: int | None = None
    address: str | None = None

    def __post_init__(self) -> None:
        if self.penalty == "":
            chooses = self.alpha == "auto" and self.epsilon is None
            object.__setattr__(self, "penalty", "auto" if chooses else "l2")
        check_name(self.penalty, PENALTIES, "penalty")
        check_name(self.task, TASKS, "task")
        check_name(self.weighting, WEIGHTINGS, "weighting")
        if self.compare is not None:
            check_name(self.compare, COMPARED, "method to compare with")
        check_count(self.k, "k", low=1)
        check_count(self.seed, "seed", low=0)
        check_count(self.folds, "folds", low=2)
        check_count(self.n_alphas, "n_alphas", low=2)
        check_number(self.tol, "tol", low=0.0, strict=True)
        self._check_engine()
        for name in _FLAGS:
            check_flag(getattr(self, name), name)
        if self.l2 is not None:
            check_number(self.l2, "l2", low=0.0)
        _check_alpha(self.alpha)
        if self.chooses and self.alpha != "auto":
            raise ValueError(
                'alpha must be "auto" with penalty "auto", which has a strength of its own; got '
                f"{self.alpha!r}. Name a penalty, such as l2."
            )
        if self.learns:
            check_name(self.learner, LEARNT, "learnt graph")
            if self.learner == "labels" and self.task != "classification":
                raise ValueError('The graph "learn:labels" needs --task classification. Add it.')
        for name in _PATHS:
            check_file_name(getattr(self, name) or "")
        self._check_roles()
        if self.epsilon is not None:
            from nefele.runs.promise import check_private  # scikit-learn takes long to import

            check_private(self)
        else:
            self._check_public()

    def _check_engine(self) -> None:
        if self.engine is not None:
            check_name(self.engine, ENGINES, "engine")
        if self.parts is not None:
            check_count(self.parts, "parts", low=1)
        for name in ("parts", "address"):
            if getattr(self, name) is not None and self.engine is None:
                raise ValueError(
                    f"{name} must go with an engine. Add --engine ray, or leave it out."
                )
        if self.address is not None and self.engine != "ray":
            raise ValueError(f"address must go with the engine ray; got engine {self.engine!r}.")
        if self.engine is not None and self.epsilon is not None:
            raise ValueError("engine must be left out with epsilon: private fits are made here.")

    def _check_public(self) -> None:
        """Who asks for privacy by halves must not get a run without it."""
        if self.price:
            raise ValueError("price must go with epsilon: --price shows what privacy costs.")
        usual = {f.name: f.default for f in fields(self)}
        for name in _PROMISED:
            if getattr(self, name) != usual[name]:
                raise ValueError(
                    f"{name} must go with epsilon, without which a run is not private. Add "
                    f"--epsilon (epsilon = ... in a file), or leave {name} out."
                )

    def _check_roles(self) -> None:
        roles = {"node": self.node, "target": self.target}
        if self.time is not None:
            roles["time"] = self.time
        taken: dict[str, str] = {}
        for role, column in roles.items():
            if column in taken:
                raise ValueError(
                    f'{role} and {taken[column]} must be different columns; both are "{column}".'
                )
            taken[column] = role
        for column in self.features or ():
            if column in taken:
                raise ValueError(
                    f'features must not name the {taken[column]} column; got "{column}". Drop it.'
                )
        if self.features is not None and len(set(self.features)) < len(self.features):
            raise ValueError(f"features must be distinct; got {', '.join(self.features)}.")
        check_features(self.features or ())
        if self.coords is not None and not len(self.coords) == len(set(self.coords)) == 2:
            raise ValueError(
                f"coords must name two different columns, such as lat,lon; got {len(self.coords)}: "
                f"{', '.join(self.coords)}."
            )
        if self.places is not None and self.coords is None:
            raise ValueError(
                "places must go with coords, the two columns of that file with the coordinates, "
                "such as lat,lon."
            )

    @property
    def chooses(self) -> bool:
        """Whether the coupling itself is chosen: by a centre, by a graph and a centre."""
        return self.penalty == "auto"

    @property
    def learns(self) -> bool:
        """Whether the graph comes from the rows."""
        none = self.graph is None and self.coords is None
        return _is_learnt(self.graph) or (none and not self.chooses)

    @property
    def bare(self) -> bool:
        """Whether there is no graph at all: the centre alone joins the nodes."""
        return self.chooses and self.graph is None and self.coords is None

    @property
    def learner(self) -> str:
        """Which graph of `LEARNT` is learnt, if one is."""
        return (self.graph or LEARN).removeprefix(LEARN).removeprefix(":") or "moments"

    @property
    def edge_file(self) -> str | None:
        """The file with the edges, if there is one."""
        return None if self.graph is None or _is_learnt(self.graph) else self.graph

    @property
    def ridge(self) -> float:
        """The ridge term that is used."""
        return _RIDGE[self.task] if self.l2 is None else float(self.l2)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "the configuration") -> RunConfig:
        """Checked options from names and plain values; unknown names are refused."""
        names = [f.name for f in fields(cls)]
        for key in values:
            if key not in names:
                close = difflib.get_close_matches(key, names, n=1)
                hint = f' Did you mean "{close[0]}"?' if close else ""
                raise ValueError(f'No key "{key}" in {where}.{hint} Known: {", ".join(names)}.')
        for key in ("data", "node", "target"):
            if key not in values:
                raise ValueError(f'{where} must have the key "{key}". Add a line {key} = "...".')
        return cls(**{key: _typed(key, value) for key, value in values.items()})

    def absolute(self, base: Path) -> RunConfig:
        """With the files named in full; relative names start at `base`."""
        found: dict[str, Any] = {}
        for name in _PATHS:
            value = getattr(self, name)
            if value is not None and not (name == "graph" and _is_learnt(value)):
                found[name] = str((base / Path(value).expanduser()).resolve())
        return replace(self, **found)

    def to_toml(self) -> str:
        """The options as TOML, those that are not set left out.

        Examples
        --------
        >>> config = RunConfig("a.csv", "id", "y", features=("x",), alpha=0.5)
        >>> RunConfig.from_dict(tomllib.loads(config.to_toml())) == config
        True
        """
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return tomli_w.dumps({name: v for name, v in values.items() if v is not None})


def _is_learnt(graph: str | None) -> bool:
    return graph is not None and (graph == LEARN or graph.startswith(f"{LEARN}:"))


def read_config(path: Path) -> RunConfig:
    """Options from a TOML file; relative names of files start at its folder."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ValueError(f"No file {str(path)!r}. Write one by: nefele init {path}") from None
    except OSError as error:
        raise ValueError(f"{str(path)!r} cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise ValueError(f"{str(path)!r} must be TOML in UTF-8; it is another kind.") from None
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{str(path)!r} must be TOML; {error}.") from None
    return RunConfig.from_dict(values, str(path)).absolute(path.resolve().parent)


def template(name: str) -> str:
    """A commented configuration, for a file of this name."""
    return _TEMPLATE.format(name=visible(name))


def check_features(names: Iterable[str]) -> None:
    """A ValueError when a feature has the name of the constant."""
    if RESERVED in names:
        raise ValueError(
            f'No feature may be called "{RESERVED}": each model has a constant of that name. '
            "Rename the column, or leave it out by --features."
        )


def _check_alpha(alpha: Any) -> None:
    if isinstance(alpha, str):
        if alpha != "auto":
            raise ValueError(f'alpha must be a number >= 0 or "auto"; got {alpha!r}.')
        return
    check_number(alpha, "alpha", low=0.0, advice='Use 0 for local fits, or "auto".')


def _typed(key: str, value: Any) -> Any:
    if key in _LISTS and value is not None:
        if isinstance(value, str) or not all(isinstance(item, str) for item in value):
            raise ValueError(f'{key} must be a list of column names, ["..."]; got {value!r}.')
        return tuple(value)
    if key in _TEXTS and value is not None and not isinstance(value, str):
        raise ValueError(f'{key} must be text; got {value!r}. Write {key} = "{value}".')
    return value


_TEMPLATE = """\
# nefele run {name}
# Names of files are relative to the folder of this file.

data = "data.csv"         # CSV (comma, semicolon or tab) or Parquet, one row per observation
node = "station"          # column with the node ids; "007" and "7" differ
target = "tmax"           # column to predict
# features = ["wind"]     # default: all columns that play no other part and say something

# Which nodes are neighbours: a file, coordinates, or learnt from the rows. Without any of these
# a centre joins all nodes; with a named penalty the graph is learnt.
# graph = "edges.csv"     # columns source, target and perhaps weight; or "learn", "learn:losses"
# coords = ["lat", "lon"] # two columns, constant at each node
# places = "places.csv"   # a file with a line for each node that has these columns
k = 5                     # neighbours of each node, for coords and for "learn"
# allow_isolates = true   # ids without an edge are fitted by their own rows

task = "regression"       # or "classification"
weighting = "rows"        # every row counts the same, or every node ("nodes")
penalty = "auto"          # the coupling is chosen; or l2, l1, linf, squared_l2, huber
alpha = "auto"            # strength; with a named penalty by cross-validation, or a number >= 0
# time = "date"           # the latest rows of each node are held out
folds = 5
n_alphas = 30
standardize = true        # solve with features of unit variance
# l2 = 0.001              # ridge term of each node; default 0, for classification 0.001
tol = 1e-4                # certified relative gap to reach
seed = 0                  # which rows are held out, and which rows are in which fold
# compare = "boosting"    # boosted trees beside the other methods, at the held-out rows
# drop_missing = true     # leave out rows with missing values; otherwise features are filled in
# out = "my-run"          # folder of the run

# engine = "ray"          # the final fit by parts: ray, mpi or in_process
# parts = 8               # default: one for each CPU
# address = "auto"        # of a Ray cluster; default: Ray on this machine alone

# A guarantee of differential privacy, see docs/privacy.md; then features must be named.
# epsilon = 1.0           # without it there is none
# delta = 1e-6            # well below 1 / the number of rows
# unit = "record"         # whose privacy: of one row, or of one "node"
# bounds = {{x = 3.5, y = [-30, 45]}} # declared: largest norm of a row, or a range for each feature
# budget = "data.csv.budget" # account of what was spent on these data
# total_epsilon = 2.0     # what all runs together may spend, for a new account; default epsilon
# price = true            # show errors against epsilon in the report; they are not private
"""
