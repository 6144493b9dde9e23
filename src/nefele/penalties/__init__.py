"""Edge penalties. Add one: its file, one line here, one in the contract tests' cases."""

from typing import Any

from nefele._checks import check_name
from nefele.penalties.base import Penalty
from nefele.penalties.huber import HuberPenalty
from nefele.penalties.l1 import L1Norm
from nefele.penalties.l2 import L2Norm
from nefele.penalties.linf import LinfNorm
from nefele.penalties.lp import Lp
from nefele.penalties.partial import Partial
from nefele.penalties.quadratic import Quadratic
from nefele.penalties.squared_l2 import SquaredL2

__all__ = [
    "HuberPenalty",
    "L1Norm",
    "L2Norm",
    "LinfNorm",
    "Lp",
    "Partial",
    "Penalty",
    "Quadratic",
    "SquaredL2",
    "as_penalty",
]

_BY_NAME = {
    "huber": HuberPenalty,
    "l1": L1Norm,
    "l2": L2Norm,
    "linf": LinfNorm,
    "squared_l2": SquaredL2,
}


def as_penalty(penalty: Any) -> Penalty:
    """The penalty itself, or the one of this name.

    Examples
    --------
    >>> as_penalty("l1")
    L1Norm()
    """
    if isinstance(penalty, str):
        return _BY_NAME[check_name(penalty, _BY_NAME, "penalty")]()
    if isinstance(penalty, type) and issubclass(penalty, Penalty):
        raise ValueError(f"penalty must be an object; got a class. Use {penalty.__name__}().")
    if not isinstance(penalty, Penalty):
        raise ValueError(
            f"penalty must be one of {', '.join(_BY_NAME)} or a Penalty object; got {penalty!r}."
        )
    return penalty
