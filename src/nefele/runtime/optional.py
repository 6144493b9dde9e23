"""Packages that only some engines need."""

from __future__ import annotations

import importlib
from typing import Any


def need(module: str, extra: str, what: str) -> Any:
    """Import a package that comes with an extra; an ImportError says which.

    Examples
    --------
    >>> need("json", "ray", "JSON").__name__
    'json'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{what}, must be installed; {module} cannot be imported ({error}). "
            f'Install it by pip install "nefele[{extra}]".'
        ) from error
