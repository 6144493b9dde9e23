"""The network that the members of a federation agree to, in words: no code is ever sent."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from nefele._checks import check_count, check_name, check_number
from nefele.sites._toml import check_keys

WIRES = ("float16", "float32")
_ACTIVATIONS = ("gelu", "relu", "tanh")
_OTHERS = (
    "Sites agree on linear layers over the columns of a table. For convolutions and modules of "
    'your own use method "predictions" with a model.py at each site, or train in one process by '
    "GTVNetClassifier."
)


@dataclass(frozen=True)
class NetTerms:
    """The table [network] of a federation with the method "networks".

    Attributes
    ----------
    hidden : tuple of int
        Units of the hidden layers.
    activation : {"gelu", "relu", "tanh"}
    optimizer : {"adam", "sgd"}
    lr : float
    steps : int
        Steps of the optimiser in each round.
    batch_size : int or None
        Rows of each node in a step; None: all.
    gamma : float or None
        Step scale of Algorithm 1; None: as `GTVNetRegressor` has it.
    wire : {"float16", "float32"}
        The kind of numbers that neighbours send each other.

    Examples
    --------
    >>> NetTerms(hidden=(16, 8)).text()
    'layers of 16, 8 units (tanh), 5 steps of adam in a round, sent as float32'
    """

    hidden: tuple[int, ...] = (32,)
    activation: str = "tanh"
    optimizer: str = "adam"
    lr: float = 0.01
    steps: int = 5
    batch_size: int | None = None
    gamma: float | None = None
    wire: str = "float32"

    def __post_init__(self) -> None:
        if not isinstance(self.hidden, list | tuple):
            raise ValueError(f"hidden must be a list of units, such as [32]; got {self.hidden!r}.")
        units = tuple(check_count(one, "hidden of [network]", low=1) for one in self.hidden)
        object.__setattr__(self, "hidden", units)
        check_name(self.activation, _ACTIVATIONS, "activation of [network]")
        check_name(self.optimizer, ("adam", "sgd"), "optimizer of [network]")
        check_name(self.wire, WIRES, "wire of [network]")
        check_count(self.steps, "steps of [network]", low=1)
        if self.batch_size is not None:
            check_count(self.batch_size, "batch_size of [network]", low=1)
        for name in ("lr", "gamma") if self.gamma is not None else ("lr",):
            value = check_number(getattr(self, name), f"{name} of [network]", low=0.0, strict=True)
            object.__setattr__(self, name, value)

    def text(self) -> str:
        """In words."""
        units = ", ".join(map(str, self.hidden)) or "no hidden"
        return (
            f"layers of {units} units ({self.activation}), {self.steps} steps of {self.optimizer} "
            f"in a round, sent as {self.wire}"
        )

    def n_parameters(self, n_features: int, n_outputs: int) -> int:
        """Weights and constants of one network."""
        sizes = (n_features, *self.hidden, n_outputs)
        return sum((a + 1) * b for a, b in zip(sizes[:-1], sizes[1:], strict=True))

    def plain(self) -> dict[str, Any]:
        """For a TOML file."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, values: Any, where: str = "network") -> NetTerms:
        """From plain values; unknown names are refused."""
        try:
            return cls(**check_keys(values, list(cls.__dataclass_fields__), where))
        except ValueError as error:
            if not str(error).startswith("No key"):
                raise
            raise ValueError(f"{error} {_OTHERS}") from None
