"""Networks by a few words: what sites can agree to without sending code."""

from __future__ import annotations

from dataclasses import dataclass

from nefele._checks import check_count, check_name
from nefele._torch.base import Module, torch

ACTIVATIONS = ("gelu", "relu", "tanh")


@dataclass(frozen=True)
class Layers:
    """Linear layers with an activation between them, as a `module` of estimators.

    Parameters
    ----------
    hidden : tuple of int
        Units of the hidden layers; none: a linear model.
    activation : {"gelu", "relu", "tanh"}

    Examples
    --------
    >>> Layers((16,))(3, 2)
    Sequential(
      (0): Linear(in_features=3, out_features=16, bias=True)
      (1): Tanh()
      (2): Linear(in_features=16, out_features=2, bias=True)
    )
    """

    hidden: tuple[int, ...] = (32,)
    activation: str = "tanh"

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))
        for units in self.hidden:
            check_count(units, "hidden units", low=1)
        check_name(self.activation, ACTIVATIONS, "activation")

    def __call__(self, n_features: int, n_outputs: int = 1) -> Module:
        """The network."""
        nn = torch.nn
        kinds: dict[str, type[Module]] = {"gelu": nn.GELU, "relu": nn.ReLU, "tanh": nn.Tanh}
        made: list[Module] = []
        sizes = (n_features, *self.hidden, n_outputs)
        for one, two in zip(sizes[:-1], sizes[1:], strict=True):
            made += [nn.Linear(one, two), kinds[self.activation]()]
        return nn.Sequential(*made[:-1])

    def n_parameters(self, n_features: int, n_outputs: int = 1) -> int:
        """Weights and constants of the network.

        Parameters
        ----------
        n_features, n_outputs : int

        Examples
        --------
        >>> Layers((16,)).n_parameters(3, 2)
        98
        """
        sizes = (n_features, *self.hidden, n_outputs)
        return sum((a + 1) * b for a, b in zip(sizes[:-1], sizes[1:], strict=True))
