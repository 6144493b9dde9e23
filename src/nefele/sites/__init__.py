"""Sites that keep their data: identity, consent, sealed messages, and a program at each of them.

Each hospital, shop or weather service runs one program beside its rows, talks to its neighbours
only, and ends with its own model, certified together with all the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["Federation", "Site", "learn_together"]

_HOMES = {
    "Federation": "nefele.sites.federation",
    "Site": "nefele.sites.site",
    "learn_together": "nefele.sites.together",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:  # looked up at first use: some need packages of nefele[sites]
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'nefele.sites' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
